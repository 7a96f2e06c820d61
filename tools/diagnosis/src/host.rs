//! The hosts under the job's GPUs: whether their CPUs are used up, and whether they wait for I/O.

use sightline_model::{DraftClaim, Entity, Relation, Stat, TimeRange};

use crate::case::Case;
use crate::sentence::{Sentence, ratio, stat};
use crate::signal::Signal;
use crate::view::{Member, View};

/// CPUs busy for this share of their time have no reserve: at 85 % of a queue's capacity a task waits several times as long
/// as it runs (M/M/1: 0.85 / (1 - 0.85)).
const SATURATED: f64 = 0.85;

/// Some task waits for a CPU during this share of the time. Busy but sufficient hosts stay below a fifth; this is twice that.
const PRESSED: f64 = 0.4;

/// A host's queue must at least double to be called longer.
const TIMES_BEFORE: f64 = 2.0;

/// The share of time some task waits for I/O from which it matters.
pub(crate) const WAITS_FOR_IO: f64 = 0.1;

/// What is known of one host's CPUs.
pub(crate) struct CpuUse {
    pub(crate) saturated: bool,
    pub(crate) claim: DraftClaim,
}

/// A gauge's or a counter's mean per second in a window: a counter of seconds becomes a share of time.
pub(crate) fn rate(view: &View<'_>, member: &Member<'_>, range: TimeRange) -> Option<f64> {
    let per_step = if view.is_increase() { view.step_ms as f64 / 1000.0 } else { 1.0 };
    member.mean(range).map(|mean| mean / per_step)
}

/// The job's nodes, each once.
pub(crate) fn nodes<'a>(case: &Case<'a>) -> Vec<&'a str> {
    let mut nodes: Vec<&str> = Vec::new();
    for placement in &case.observations.job.placements {
        if !nodes.contains(&placement.node.as_str()) {
            nodes.push(&placement.node);
        }
    }
    nodes
}

/// Whether a node's CPUs are used up in a window, by the best signal there is; `None` when none tells.
pub(crate) fn cpu_use(case: &Case<'_>, node: &str, now: TimeRange, before: Option<TimeRange>) -> Option<CpuUse> {
    let by_mode = case.view(Signal::CpuTime).and_then(|view| by_mode(view, node, now));
    if by_mode.as_ref().is_some_and(|u| u.saturated) {
        return by_mode;
    }
    // A job in a cgroup can be short of CPUs on a host that has some to spare: pressure tells.
    let by_pressure = case.view(Signal::CpuPressure).and_then(|view| by_pressure(view, node, now, before));
    if by_pressure.as_ref().is_some_and(|u| u.saturated) {
        return by_pressure;
    }
    by_mode.or(by_pressure).or_else(|| by_queue(case, node, now, before?))
}

fn by_mode(view: &View<'_>, node: &str, now: TimeRange) -> Option<CpuUse> {
    let of_node = |m: &&Member<'_>| m.entity.get("node").is_some_and(|n| n == node);
    let total: f64 = view.members.iter().filter(of_node).filter_map(|m| m.sum(now)).sum();
    let idle = view.members.iter().filter(of_node).find(|m| m.entity.get("mode").is_some_and(|mode| mode == "idle"))?;
    if total <= 0.0 || !view.is_increase() {
        return None;
    }
    // Waiting for I/O is idle time too; it is not counted as use.
    let waiting = view
        .members
        .iter()
        .filter(of_node)
        .find(|m| m.entity.get("mode").is_some_and(|mode| mode == "iowait"))
        .and_then(|m| m.sum(now));
    let share = (idle.sum(now)? + waiting.unwrap_or(0.0)) / total;
    let whole = Entity::from([("node".to_owned(), node.to_owned())]);
    let all = stat(view.evidence, &whole, Stat::Sum, Some(now));
    let idle_time = stat(view.evidence, idle.entity, Stat::Sum, Some(now));
    let claim = Sentence::new("The CPUs of {node} were idle for {idle} of {all} CPU seconds, a ratio of {share}.")
        .entity(view.evidence, idle.entity)
        .number("idle", idle_time.clone(), 0, view.unit())
        .number("all", all.clone(), 0, view.unit())
        .number("share", ratio(idle_time, all), 2, sightline_model::Unit::Ratio)
        .claim();
    Some(CpuUse { saturated: 1.0 - share >= SATURATED, claim })
}

fn of_node<'v, 'a>(view: &'v View<'a>, node: &str) -> Option<&'v Member<'a>> {
    view.members.iter().find(|m| m.entity.get("node").is_some_and(|n| n == node))
}

fn by_pressure(view: &View<'_>, node: &str, now: TimeRange, before: Option<TimeRange>) -> Option<CpuUse> {
    let member = of_node(view, node)?;
    let share = rate(view, member, now)?;
    let past = before.and_then(|range| rate(view, member, range));
    let risen = past.is_none_or(|past| share >= TIMES_BEFORE * past);
    Some(CpuUse { saturated: share >= PRESSED && risen, claim: level_claim(view, member, now) })
}

/// Without CPU time or pressure: the queue of runnable tasks against its own past, unless tasks wait for I/O.
fn by_queue(case: &Case<'_>, node: &str, now: TimeRange, before: TimeRange) -> Option<CpuUse> {
    let view = case.view(Signal::RunnableTasks).or_else(|| case.view(Signal::LoadAverage))?;
    let member = of_node(view, node)?;
    let (then, since) = (member.mean(before)?, member.mean(now)?);
    // The load average counts tasks that wait for I/O as well.
    let blocked = view.signal == Signal::LoadAverage && waits_for_io(case, node, now).unwrap_or(true);
    Some(CpuUse { saturated: since >= TIMES_BEFORE * then && !blocked, claim: rise_claim(view, member, before, now)? })
}

fn level_claim(view: &View<'_>, member: &Member<'_>, now: TimeRange) -> DraftClaim {
    let text = format!("The {} of {{node}} was {{level}} per step of time.", view.signal.words());
    Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("level", stat(view.evidence, member.entity, Stat::Mean, Some(now)), 1, view.unit())
        .claim()
}

/// From its level before to its level now; `None` when it did not rise.
pub(crate) fn rise_claim(
    view: &View<'_>,
    member: &Member<'_>,
    before: TimeRange,
    now: TimeRange,
) -> Option<DraftClaim> {
    if member.mean(now)? <= member.mean(before)? {
        return Some(level_claim(view, member, now));
    }
    let then = stat(view.evidence, member.entity, Stat::Mean, Some(before));
    let since = stat(view.evidence, member.entity, Stat::Mean, Some(now));
    let text = format!("The {} of {{node}} rose from {{before}} to {{after}} at the mean.", view.signal.words());
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("before", then.clone(), 2, view.unit())
        .number("after", since.clone(), 2, view.unit())
        .holds(since, Relation::Above, then);
    Some(sentence.claim())
}

/// Whether tasks of a node wait for I/O; `None` when nothing tells.
pub(crate) fn waits_for_io(case: &Case<'_>, node: &str, now: TimeRange) -> Option<bool> {
    if let Some(view) = case.view(Signal::IoPressure)
        && let Some(share) = of_node(view, node).and_then(|m| rate(view, m, now))
    {
        return Some(share >= WAITS_FOR_IO);
    }
    let blocked = case.view(Signal::BlockedTasks)?;
    // One task in uninterruptible sleep at every look is I/O that somebody waits for.
    of_node(blocked, node)?.mean(now).map(|tasks| tasks >= 1.0)
}

/// Whether the CPUs of most of the job's nodes are used up; `None` when nothing tells of any.
pub(crate) fn mostly_saturated(case: &Case<'_>) -> Option<bool> {
    let before = case.pace.slowdown().map(|s| s.good);
    let known: Vec<bool> = nodes(case)
        .into_iter()
        .filter_map(|node| cpu_use(case, node, case.focus(), before))
        .map(|u| u.saturated)
        .collect();
    (!known.is_empty()).then(|| known.iter().filter(|s| **s).count() * 2 > known.len())
}

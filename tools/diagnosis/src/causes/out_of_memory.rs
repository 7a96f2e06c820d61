//! A job that ran out of memory: on a GPU, or on a host.
//!
//! Needs GPU memory, logs or the framework's counters. Speaks for it: log lines of the framework (GPU) or of the kernel's killer of
//! processes (host); counters of out-of-memory errors and of killed processes; allocations tried again; GPU memory at its ceiling when
//! the job died. Rules it out: none of these although they are collected. Trap: an allocator that holds almost all memory is how
//! training frameworks work; full memory alone is no fault. Memory that grew until none was left is a leak, and this is its end.

use jiff::Timestamp;
use sightline_analysis::increase;
use sightline_model::{Component, DraftClaim, Entity, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::memory_leak;
use crate::records::{Record, contains, events, lines};
use crate::sentence::{Sentence, ratio, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View, shift};

pub(crate) const CHECK: Check = Check { id: "out_of_memory", assess };

/// What frameworks and CUDA write.
const GPU_LINES: [&str; 5] = [
    "CUDA out of memory",
    "OutOfMemoryError",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "failed to allocate memory on device",
];

/// What the kernel and Kubernetes write.
const HOST_LINES: [&str; 5] = [
    "Out of memory: Killed process",
    "Out of memory: Kill process",
    "oom-kill:",
    "Memory cgroup out of memory",
    "OOMKilled",
];

/// A GPU with less than this share of its memory left cannot serve the next large tensor.
const LEFT: f64 = 0.03;

/// Memory the framework holds beyond what its tensors take, as a share of what they take, from which it is fragmented. PyTorch's
/// caching allocator keeps some tens of percent in a healthy job.
const FRAGMENTED: f64 = 1.0;

/// How long before the end of a job its last samples of memory are looked at, at least: a few samples of a slow exporter.
const LAST_MS: i64 = 300_000;

/// Where memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Gpu,
    Host,
}

/// One sign that memory ran out.
struct Sign {
    place: Place,
    at: Option<Timestamp>,
    component: Option<Component>,
    claim: DraftClaim,
}

fn assess(case: &Case<'_>) -> Finding {
    let mut signs = written(case);
    signs.extend(counted(case, Signal::OomKills, Place::Host));
    signs.extend(counted(case, Signal::TrainingOoms, Place::Gpu));
    signs.sort_by_key(|s| s.at);
    if let Some(first) = signs.first() {
        return ran_out(case, first, &signs);
    }
    if let Some(found) = died_full(case) {
        return found;
    }
    if let Some(found) = retries(case) {
        return found;
    }
    if case.view(Signal::MemoryUsed).is_none()
        && case.observations.logs.is_none()
        && [Signal::TrainingOoms, Signal::OomKills].into_iter().all(|s| case.view(s).is_none())
    {
        return case.no_data(&[Signal::MemoryUsed, Signal::TrainingOoms, Signal::OomKills]);
    }
    let mut why = Sentence::new(
        "Ruled out as far as it is collected: no line and no counter tells of memory that ran out, and the job did not die with full memory.",
    );
    if let Some(view) = case.view(Signal::MemoryUsed) {
        why = why.cite(&view.evidence.id);
    }
    Finding::RuledOut(why.claim())
}

fn written(case: &Case<'_>) -> Vec<Sign> {
    let both: Vec<&str> = GPU_LINES.into_iter().chain(HOST_LINES).collect();
    let told = events(case, &["oom", "alert", "fault", "kill", "fail"]);
    let told = told.into_iter().filter(|e| both.iter().any(|text| contains(e.body(), text)));
    lines(case, &both).into_iter().chain(told).map(|record| sign(case, &record)).collect()
}

fn sign(case: &Case<'_>, record: &Record<'_>) -> Sign {
    let place = if GPU_LINES.iter().any(|text| contains(record.body(), text)) { Place::Gpu } else { Place::Host };
    let component = match place {
        Place::Gpu => gpu_of(case, record),
        Place::Host => record.name("node").map(|node| Component::from([("node".to_owned(), node.to_owned())])),
    };
    Sign { place, at: Some(record.at), component, claim: record.claim() }
}

/// The GPU a line speaks of: by its own label, by its rank, else by the number in its text.
fn gpu_of(case: &Case<'_>, record: &Record<'_>) -> Option<Component> {
    let placements = &case.observations.job.placements;
    let by_rank = record.name("rank").and_then(|r| placements.iter().find(|p| p.rank.as_deref() == Some(r)));
    if let Some(placement) = by_rank {
        return Some(placement.component());
    }
    let node = record.name("node")?;
    let here = |gpu: &str| placements.iter().find(|p| p.node == node && p.gpu == gpu);
    // "GPU 3 has a total capacity of …" or "(GPU 3; 79.15 GiB total capacity; …)".
    let in_text = record.body().split("GPU ").skip(1).find_map(|rest| {
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        here(&number)
    });
    let placement = record.name("gpu").and_then(here).or(in_text);
    Some(placement.map_or_else(|| Component::from([("node".to_owned(), node.to_owned())]), |p| p.component()))
}

/// A counter that grew in the window.
fn counted(case: &Case<'_>, signal: Signal, place: Place) -> Vec<Sign> {
    let Some(view) = case.view(signal) else { return Vec::new() };
    view.members
        .iter()
        .filter_map(|member| {
            let (at, claim) = super::hardware_degradation::growth(view, member)?;
            let component = match place {
                Place::Host => member.entity.get("node").map(|n| Component::from([("node".to_owned(), n.clone())])),
                Place::Gpu => Some(crate::ranks::component_of(case, member)).filter(|c| !c.is_empty()),
            };
            Some(Sign { place, at, component, claim })
        })
        .collect()
}

fn ran_out(case: &Case<'_>, first: &Sign, signs: &[Sign]) -> Finding {
    // A counter and a line of one failure are of one place; what comes first decides.
    let same: Vec<&Sign> = signs.iter().filter(|s| s.place == first.place).collect();
    let mut components: Vec<Component> = Vec::new();
    for component in same.iter().filter_map(|s| s.component.as_ref()) {
        // A node is named by its GPUs where these are known.
        let finer = same.iter().filter_map(|s| s.component.as_ref()).any(|c| c != component && holds(c, component));
        if !finer && !components.contains(component) {
            components.push(component.clone());
        }
    }
    if components.is_empty() || components.len() * 2 > case.observations.job.placements.len().max(2) {
        components = case.whole_job();
    }
    let text = match first.place {
        Place::Gpu => "The job ran out of GPU memory.",
        Place::Host => "A host of the job ran out of memory, and the kernel killed a process to get some back.",
    };
    let mut claims: Vec<DraftClaim> = same.iter().map(|s| s.claim.clone()).take(3).collect();
    if first.place == Place::Gpu {
        claims.extend(fragmentation(case));
    }
    let grew = memory_leak::holds(case);
    Finding::Supported(Box::new(Support {
        // Memory that grew until none was left has a cause of its own, which goes first.
        strength: if grew { Strength::Hint } else { Strength::Proof },
        coincides: if grew { None } else { case.coincides(first.at, 0).filter(|near| *near) },
        magnitude: 10.0,
        components,
        onset: first.at,
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}

fn holds(finer: &Component, coarser: &Component) -> bool {
    coarser.iter().all(|(key, value)| finer.get(key) == Some(value))
}

/// A job that failed while a GPU of it had no memory left.
fn died_full(case: &Case<'_>) -> Option<Finding> {
    let job = &case.observations.job;
    let end = job.end.filter(|_| ["fail", "error", "oom"].iter().any(|state| contains(&job.state, state)))?;
    let (used, free) = (case.view(Signal::MemoryUsed)?, case.view(Signal::MemoryFree)?);
    let reach = LAST_MS.max(4 * used.step_ms);
    let last = sightline_model::TimeRange::new(shift(end, -reach), end)?;
    let mut full: Vec<(&Member<'_>, &Member<'_>, f64)> = used
        .members
        .iter()
        .filter_map(|m| {
            let left = free.members.iter().find(|f| f.entity == m.entity)?;
            let (taken, rest) = (m.max(last)?, left.within(last).map(|p| p.min).reduce(f64::min)?);
            Some((m, left, rest / (taken + rest)))
        })
        .filter(|(_, _, share)| *share < LEFT)
        .collect();
    full.sort_by(|a, b| a.2.total_cmp(&b.2));
    let (member, left, _) = full.first()?;
    let text = format!(
        "Shortly before the job failed {} had {{left}} of memory left and {{used}} in use.",
        who(member.entity)
    );
    let claim = Sentence::new(&text)
        .entity(used.evidence, member.entity)
        .number("left", stat(free.evidence, left.entity, Stat::Min, Some(last)), 0, free.unit())
        .number("used", stat(used.evidence, member.entity, Stat::Max, Some(last)), 0, used.unit())
        .claim();
    let many = full.len() * 2 > job.placements.len();
    let components = if many { case.whole_job() } else { full.iter().map(|(m, _, _)| m.component()).collect() };
    let mut claims = vec![claim];
    claims.extend(fragmentation(case));
    Some(Finding::Supported(Box::new(Support {
        strength: if memory_leak::holds(case) { Strength::Hint } else { Strength::Pattern },
        coincides: None,
        magnitude: 1.0,
        components,
        onset: None,
        why: Sentence::new("The job failed when its GPU memory was full.").cite(&used.evidence.id).claim(),
        claims,
        fault: true,
    })))
}

/// An allocator that has to empty its cache again and again while the job is slow.
fn retries(case: &Case<'_>) -> Option<Finding> {
    let view = case.view(Signal::AllocRetries)?;
    let slowdown = case.pace.slowdown()?;
    let gained = |m: &Member<'_>| {
        if view.is_increase() {
            return m.sum(slowdown.slow);
        }
        let part: Vec<_> = m.samples.iter().filter(|s| slowdown.slow.contains(s.time)).copied().collect();
        increase(&part).map(|i| i.total)
    };
    // One retry can be chance; ten in the slow stretch are a state.
    let worst = view
        .members
        .iter()
        .filter(|m| gained(m).is_some_and(|n| n >= 10.0))
        .max_by(|a, b| gained(a).unwrap_or(0.0).total_cmp(&gained(b).unwrap_or(0.0)))?;
    let (_, claim) = super::hardware_degradation::growth(view, worst)?;
    let mut claims = vec![claim];
    claims.extend(fragmentation(case));
    let named = crate::ranks::component_of(case, worst);
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Pattern,
        coincides: slowdown.onset.map(|_| true),
        magnitude: slowdown.factor,
        components: if named.is_empty() { case.whole_job() } else { vec![named] },
        onset: slowdown.onset.map(|o| o.at),
        why: Sentence::new(
            "GPU memory is so short that the framework empties its cache and allocates anew, step after step.",
        )
        .cite(&view.evidence.id)
        .claim(),
        claims,
        fault: true,
    })))
}

/// A claim that the framework holds far more than its tensors take; `None` when it does not or nothing tells.
fn fragmentation(case: &Case<'_>) -> Option<DraftClaim> {
    let (reserved, active) = (case.view(Signal::MemoryReserved)?, case.view(Signal::MemoryActive)?);
    if reserved.unit() != active.unit() {
        return None;
    }
    let range = case.focus();
    let excess = |r: &Member<'_>, a: &Member<'_>| Some(r.median(range)? - (1.0 + FRAGMENTED) * a.median(range)?);
    let (held, taken) = reserved.members.iter().find_map(|r| {
        let a = active.members.iter().find(|a| a.entity == r.entity)?;
        excess(r, a).filter(|by| *by > 0.0).map(|_| (r, a))
    })?;
    Some(fragmentation_claim(reserved, active, held.entity, taken.entity, range))
}

fn fragmentation_claim(
    reserved: &View<'_>,
    active: &View<'_>,
    held: &Entity,
    taken: &Entity,
    range: sightline_model::TimeRange,
) -> DraftClaim {
    let holds = stat(reserved.evidence, held, Stat::Median, Some(range));
    let takes = stat(active.evidence, taken, Stat::Median, Some(range));
    Sentence::new("The framework held {reserved} for tensors of {active}, {times} times as much: memory is fragmented.")
        .number("reserved", holds.clone(), 1, reserved.unit())
        .number("active", takes.clone(), 1, active.unit())
        .number("times", ratio(holds.clone(), takes.clone()), 1, sightline_model::Unit::None)
        .holds(holds, Relation::Above, takes)
        .claim()
}

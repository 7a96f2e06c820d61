//! `network_delay`: the time is lost between services. Calls take longer than the callee's own work accounts for, or packets are
//! lost, while the service's own time and its CPU stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::cause::{Finding, Strength, Support};
use crate::services::case::ServiceCase;
use crate::services::causes::events::just_before;
use crate::services::role::Role;
use crate::services::shift::Shift;
use crate::services::suspects::Symptom;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    if let Some(support) = by_gap(case) {
        return Finding::Supported(support);
    }
    if let Some(lost) = case.field().into_iter().find_map(|service| case.lost_packets(service)) {
        let text = "Packets of {service} are lost or sent again: {before} usually, {level} now.";
        let strength =
            if case.worst(&[Role::Cpu, Role::CpuThrottle]).is_none() { Strength::Proof } else { Strength::Pattern };
        return Finding::Supported(case.supported(strength, lost, lost.sentence(text)));
    }
    if let Some(support) = by_exclusion(case) {
        return Finding::Supported(support);
    }
    let subject = case.suspect().map_or(case.entry.as_str(), |s| s.service.as_str());
    let gap = case.shifts.iter().filter(|s| s.role.is_of_a_call()).max_by(|a, b| a.score.total_cmp(&b.score));
    match gap.or_else(|| case.series(subject, Role::NetworkErrors)) {
        Some(shift) => case.quiet(shift),
        None if !case.is_about(Symptom::Latency) => match case.series(subject, Role::Latency) {
            Some(shift) if !shift.is_change() => case.quiet(shift),
            Some(_) | None => case.no_data("the time between caller and callee, or lost packets,"),
        },
        None => case.no_data("the time between caller and callee, or lost packets,"),
    }
}

/// An edge must lose at least this share of what the worst service adds by itself to be what makes requests slow.
const SHARE: f64 = 0.5;

/// The service whose calls lose time on the way. A slow network of one service shows on its calls in both directions; a slow edge
/// on that edge alone. Where a call has no span of its own, the way back from one callee is seen before the next call, so packets
/// that a service loses decide.
pub(super) fn by_gap(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let stretch = case.stretch();
    let gaps: Vec<&Shift<'_>> = case.shifts.iter().filter(|s| s.role.is_of_a_call()).collect();
    let wide = gaps.iter().copied().filter(|gap| gap.is_change() && gap.near(stretch));
    let slow: Vec<&Shift<'_>> = wide.filter(|gap| weighs(case, gap)).collect();
    let mut by_service: BTreeMap<&str, (f64, usize, usize)> = BTreeMap::new();
    for gap in &gaps {
        for (end, weight) in [("to", 1.0), ("from", 0.5)] {
            let Some(service) = gap.entity.get(end) else { continue };
            let (lost, wide, all) = by_service.entry(service.as_str()).or_insert((0.0, 0, 0));
            *all += 1;
            if slow.iter().any(|s| std::ptr::eq(*s, *gap)) {
                *wide += 1;
                // A caller's gap may be the callee's network; the callee's is named first.
                *lost += weight * (gap.level - gap.usual.level);
            }
        }
    }
    let standing = |(lost, wide, all): &(f64, usize, usize)| lost * *wide as f64 / (*all).max(1) as f64;
    let by_time = by_service.iter().max_by(|a, b| standing(a.1).total_cmp(&standing(b.1))).filter(|(_, s)| s.1 > 0)?;
    let losing = losing(case, &slow);
    let service = losing.map_or(*by_time.0, |lost| lost.service());
    let touches =
        |gap: &&&Shift<'_>| ["to", "from"].iter().any(|end| gap.entity.get(*end).is_some_and(|s| s == service));
    let worst = |a: &&&Shift<'_>, b: &&&Shift<'_>| a.score.total_cmp(&b.score);
    let widest = *slow.iter().filter(touches).max_by(worst).or_else(|| slow.iter().max_by(worst))?;
    let all_edges = by_service.get(service).is_some_and(|(_, wide, all)| *wide >= 2 && wide == all);
    let caller = widest.entity.get("from").map(String::as_str);
    let strength = match (losing, widest.role, caller.map(|caller| clears(case, &gaps, caller))) {
        (Some(_), ..) => Strength::Proof,
        (None, Role::Gap, Some(Cleared::Yes)) => Strength::Proof,
        (None, Role::Gap, Some(Cleared::ByCpu)) => Strength::Pattern,
        // What comes before the call may be the caller's own work, all the more after a change to it. A slow caller is late for all
        // its calls, but nobody is late for calling it; and of two callees that are reached late, one by one, it is the way.
        (None, Role::Wait, _)
            if (all_edges && is_reached_late(&slow, service) || is_alone(&gaps, &slow, widest))
                && caller.is_none_or(|c| just_before(case, c).is_none() && !is_starved(case, c)) =>
        {
            Strength::Pattern
        }
        (None, ..) => Strength::Hint,
    };
    let strength = if losing.is_none() && !case.is_about(Symptom::Latency) { Strength::Hint } else { strength };
    let text = if widest.role == Role::Gap {
        "Calls from {from} to {to} take longer than {to} itself does: {level} between caller and callee, {before} usually."
    } else {
        "Calls from {from} to {to} reach it later: {level} pass in the caller before the callee begins, {before} usually."
    };
    let mut support = case.supported(strength, widest, widest.sentence(text));
    support.components = vec![case.component(service, losing.and_then(|lost| case.only_pod(lost)))];
    support.claims.extend(losing.map(|lost| lost.says().claim()));
    for gap in slow.iter().filter(|g| !std::ptr::eq(**g, widest)).take(3) {
        support.claims.push(gap.says().claim());
    }
    if let Some(own) = case.series(service, Role::OwnTime).filter(|s| !s.is_change()) {
        support.claims.push(own.says_quiet().claim());
    }
    Some(support)
}

/// Whether an edge loses enough to be what makes requests slow: beside what services add by themselves, and beside the symptom. The
/// own time of both ends is not held against it: a caller's may hold the wait, and a service whose network is slow waits on all its
/// calls.
fn weighs(case: &ServiceCase<'_>, gap: &Shift<'_>) -> bool {
    let ends = ["from", "to"].map(|end| gap.entity.get(end).map(String::as_str));
    let stretch = case.stretch();
    let own = case.shifts.iter().filter(|s| {
        s.role == Role::OwnTime
            && !s.entity.contains_key("pod")
            && s.is_change()
            && s.near(stretch)
            && !ends.contains(&Some(s.service()))
    });
    let most = own.map(|s| s.level - s.usual.level).fold(0.0, f64::max);
    let lost = gap.level - gap.usual.level;
    lost >= SHARE * most && case.is_felt(gap)
}

/// Whether some call to the service reaches it late.
fn is_reached_late(slow: &[&Shift<'_>], service: &str) -> bool {
    slow.iter().any(|gap| gap.entity.get("to").is_some_and(|to| to == service))
}

/// Whether an edge is the only one of its caller that is late, of several.
fn is_alone(gaps: &[&Shift<'_>], slow: &[&Shift<'_>], edge: &Shift<'_>) -> bool {
    let same = |gap: &&&Shift<'_>| gap.entity.get("from") == edge.entity.get("from");
    slow.iter().filter(same).count() == 1 && gaps.iter().filter(same).count() > 1
}

/// Whether a service is held back by its CPU limit, or uses more CPU than it did.
fn is_starved(case: &ServiceCase<'_>, service: &str) -> bool {
    [Role::CpuThrottle, Role::Cpu].iter().any(|role| !case.changes(service, *role).is_empty())
}

/// A service whose pods lose packets, of those that slow calls begin at, end at, or begin beside.
fn losing<'c, 'a>(case: &'c ServiceCase<'a>, slow: &[&Shift<'_>]) -> Option<&'c Shift<'a>> {
    let ends = |gap: &&Shift<'_>, end: &str| gap.entity.get(end).cloned();
    let callers: BTreeSet<String> = slow.iter().filter_map(|gap| ends(gap, "from")).collect();
    let mut near: BTreeSet<String> = slow.iter().filter_map(|gap| ends(gap, "to")).collect();
    near.extend(callers.iter().flat_map(|caller| case.graph.callees(caller)).map(str::to_owned));
    near.extend(callers);
    let lost = near.iter().filter_map(|service| case.lost_packets(service));
    lost.max_by(|a, b| a.score.total_cmp(&b.score))
}

/// Whether a caller itself is cleared of the time that is lost on its calls: a starved caller begins its calls late.
enum Cleared {
    /// Its own time is as usual, or another of its calls is.
    Yes,
    /// Nothing but its CPU says so.
    ByCpu,
    No,
}

fn clears(case: &ServiceCase<'_>, gaps: &[&Shift<'_>], caller: &str) -> Cleared {
    let own = case.series(caller, Role::OwnTime).is_some_and(|own| !own.is_change());
    let other = gaps.iter().any(|g| !g.is_change() && g.entity.get("from").is_some_and(|from| from == caller));
    let cpu = case.series(caller, Role::Cpu).is_some_and(|cpu| !cpu.is_change());
    let throttled = !case.changes(caller, Role::CpuThrottle).is_empty();
    match (own || other, cpu && !throttled) {
        (true, _) => Cleared::Yes,
        (false, true) => Cleared::ByCpu,
        (false, false) => Cleared::No,
    }
}

/// Slow by itself although its CPU, its memory and its disk are recorded and rest: what is left is the way to it. No proof.
pub(super) fn by_exclusion(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let suspect = case.suspect().filter(|_| case.is_about(Symptom::Latency))?;
    let cpu = case.series(&suspect.service, Role::Cpu).filter(|s| !s.is_change())?;
    let strained = [Role::CpuThrottle, Role::Memory, Role::MajorFaults, Role::Disk];
    if case.worst(&strained).is_some()
        || suspect.shift.role == Role::OwnTime
        || case.has(Role::Gap)
        || case.has(Role::Wait)
    {
        return None;
    }
    let text = "{service} is slow ({what} {level}, {before} usually) while its CPU, memory and disk, as far as they are recorded, stay as they are: the time may be lost on the network, which is not recorded.";
    let why = suspect.shift.sentence(&text.replace("{what}", suspect.shift.role.words()));
    let mut support = case.supported(Strength::Hint, &suspect.shift, why);
    support.claims.push(cpu.says_quiet().claim());
    Some(support)
}

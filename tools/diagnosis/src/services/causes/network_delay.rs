//! `network_delay`: the time is lost between services. Calls take longer than the callee's own work accounts for, or packets are
//! lost, while the service's own time and its CPU stay as they are.

use std::collections::BTreeMap;

use crate::cause::{Finding, Strength, Support};
use crate::services::case::ServiceCase;
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
    if let Some(lost) = case.worst(&[Role::NetworkErrors]) {
        let text = "Packets of {service} are lost or sent again: {before} usually, {level} now.";
        let strength =
            if case.worst(&[Role::Cpu, Role::CpuThrottle]).is_none() { Strength::Proof } else { Strength::Pattern };
        return Finding::Supported(case.supported(strength, lost, lost.sentence(text)));
    }
    if let Some(support) = by_exclusion(case) {
        return Finding::Supported(support);
    }
    let subject = case.suspect().map_or(case.entry.as_str(), |s| s.service.as_str());
    let gap = case.shifts.iter().filter(|s| s.role == Role::Gap).max_by(|a, b| a.score.total_cmp(&b.score));
    match gap.or_else(|| case.series(subject, Role::NetworkErrors)) {
        Some(shift) => case.quiet(shift),
        None if !case.is_about(Symptom::Latency) => match case.series(subject, Role::Latency) {
            Some(shift) if !shift.is_change() => case.quiet(shift),
            Some(_) | None => case.no_data("the time between caller and callee, or lost packets,"),
        },
        None => case.no_data("the time between caller and callee, or lost packets,"),
    }
}

/// The service whose calls lose time on the way. A slow network of one service shows on its calls in both directions; a slow edge
/// on that edge alone.
fn by_gap(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let stretch = case.stretch();
    let gaps: Vec<&Shift<'_>> = case.shifts.iter().filter(|s| s.role == Role::Gap && s.near(stretch)).collect();
    let mut by_service: BTreeMap<&str, (f64, usize, usize)> = BTreeMap::new();
    for gap in &gaps {
        for (end, weight) in [("to", 1.0), ("from", 0.5)] {
            let Some(service) = gap.entity.get(end) else { continue };
            let (lost, wide, all) = by_service.entry(service.as_str()).or_insert((0.0, 0, 0));
            *all += 1;
            if gap.is_change() {
                *wide += 1;
                // A caller's gap may be the callee's network; the callee's is named first.
                *lost += weight * (gap.level - gap.usual.level);
            }
        }
    }
    let standing = |(lost, wide, all): &(f64, usize, usize)| lost * *wide as f64 / (*all).max(1) as f64;
    let (service, _) =
        by_service.iter().max_by(|a, b| standing(a.1).total_cmp(&standing(b.1))).filter(|(_, s)| s.1 > 0)?;
    let touches =
        |gap: &&&Shift<'_>| ["to", "from"].iter().any(|end| gap.entity.get(*end).is_some_and(|s| s == service));
    let widest =
        gaps.iter().filter(touches).max_by(|a, b| a.score.total_cmp(&b.score)).filter(|gap| gap.is_change())?;
    let strength = match widest.entity.get("from").map(|caller| clears(case, &gaps, caller)) {
        Some(Cleared::Yes) => Strength::Proof,
        Some(Cleared::ByCpu) => Strength::Pattern,
        Some(Cleared::No) | None => Strength::Hint,
    };
    let text = "Calls from {from} to {to} take longer than {to} itself does: {level} between caller and callee, {before} usually.";
    let mut support = case.supported(strength, widest, widest.sentence(text));
    support.components = vec![case.component(service, None)];
    for gap in gaps.iter().filter(|g| g.is_change() && !std::ptr::eq(**g, *widest)).take(3) {
        support.claims.push(gap.says().claim());
    }
    if let Some(own) = case.series(service, Role::OwnTime).filter(|s| !s.is_change()) {
        support.claims.push(own.says_quiet().claim());
    }
    Some(support)
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
fn by_exclusion(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let suspect = case.suspect().filter(|_| case.is_about(Symptom::Latency))?;
    let cpu = case.series(&suspect.service, Role::Cpu).filter(|s| !s.is_change())?;
    let strained = [Role::CpuThrottle, Role::Memory, Role::MajorFaults, Role::Disk];
    if case.worst(&strained).is_some() || suspect.shift.role == Role::OwnTime || case.has(Role::Gap) {
        return None;
    }
    let text = "{service} is slow ({what} {level}, {before} usually) while its CPU, memory and disk, as far as they are recorded, stay as they are: the time may be lost on the network, which is not recorded.";
    let why = suspect.shift.sentence(&text.replace("{what}", suspect.shift.role.words()));
    let mut support = case.supported(Strength::Hint, &suspect.shift, why);
    support.claims.push(cpu.says_quiet().claim());
    Some(support)
}

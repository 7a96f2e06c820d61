//! `traffic_surge`: more requests than usual came in, and what became slow or failed is their doing.

use crate::cause::{Finding, Strength};
use crate::services::case::ServiceCase;
use crate::services::role::Role;

/// Half as many requests again as the busiest usual hour: less is within what a service is sized for.
const SURGE: f64 = 0.5;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    let entry = &case.entry;
    let surge =
        case.changes(entry, Role::Requests).into_iter().find(|s| s.level > s.usual.level && s.relative() >= SURGE);
    if let Some(surge) = surge {
        // Failing requests are sent again: more of them may be the effect where a callee is off by itself.
        let deeper = case.suspect().filter(|s| s.service != *entry).is_some_and(|suspect| {
            match case.is_asked_otherwise(&suspect.service) {
                Some(otherwise) => !otherwise,
                // Whose requests are not counted may be off by itself; one that is held back only since the surge is its victim.
                None => case.changes(&suspect.service, Role::CpuThrottle).is_empty(),
            }
        });
        let strength = if deeper { Strength::Hint } else { Strength::Pattern };
        let text = "{service} received more requests: {level} now, {before} usually.";
        let mut support = case.supported(strength, surge, surge.sentence(text));
        // Callees, CPU and queues follow the traffic, so the traffic explains more.
        support.magnitude += 100.0;
        return Finding::Supported(support);
    }
    match case.series(entry, Role::Requests) {
        Some(shift) => case.quiet(shift),
        None => case.no_data("the number of requests"),
    }
}

//! `error_spike`: a service fails requests by itself, and what it calls does not.
//!
//! Callers hand on the failures of what they call, so the deepest failing service of the call chain is the one.

use crate::cause::{Finding, Strength};
use crate::services::case::ServiceCase;
use crate::services::causes::events::just_before;
use crate::services::role::Role;
use crate::services::suspects::Symptom;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    let roles = [Role::Availability, Role::OwnErrors, Role::Errors];
    if !case.is_about(Symptom::Errors) {
        let entry = &case.entry;
        return match roles.iter().find_map(|role| case.series(entry, *role)) {
            Some(shift) => case.quiet(shift),
            None => case.no_data("availability or errors"),
        };
    }
    let Some(suspect) = case.suspects.iter().find(|s| roles.contains(&s.shift.role)) else {
        return case.no_data("which service fails by itself");
    };
    let mut callees = case
        .graph
        .callees(&suspect.service)
        .filter_map(|callee| roles.iter().find_map(|role| case.series(callee, *role)));
    let well = callees.find(|shift| !shift.is_change());
    // A change that was rolled out just before names the reason; this names the place only.
    let explained = just_before(case, &suspect.service).is_some();
    let proven = suspect.shift.role == Role::OwnErrors || !case.graph.knows(&suspect.service) || well.is_some();
    // A service that is killed for want of memory fails the calls to it, and its callers with it: that says more.
    let starved =
        matches!(super::memory_pressure::assess(case), Finding::Supported(s) if s.strength >= Strength::Pattern);
    // Another that is off by what it uses may be what these failures come from.
    let first = case.suspect().is_some_and(|s| s.service == suspect.service);
    let strength = if proven && first && !explained && !starved { Strength::Pattern } else { Strength::Hint };
    let text = match (suspect.shift.role, well.is_some()) {
        (Role::Availability, true) => {
            "{service} fails requests by itself: its availability fell from {before} to {level}, while what it calls does not fail."
        }
        (Role::Availability, false) => {
            "{service} fails requests by itself: its availability fell from {before} to {level}."
        }
        (Role::OwnErrors, _) => {
            "{service} fails requests by itself: {level} of its spans fail without a failing callee, {before} usually."
        }
        _ => "{service} fails requests by itself: its errors went from {before} to {level}.",
    };
    let mut support = case.supported(strength, &suspect.shift, suspect.shift.sentence(text));
    support.components = vec![case.component(&suspect.service, suspect.pod.as_deref())];
    if let Some(lines) = case.changes(&suspect.service, Role::ErrorLines).first() {
        support.claims.push(lines.says().claim());
    }
    if let Some(well) = well {
        support.claims.push(well.says_quiet().claim());
    }
    support.claims.extend(super::dependency_failure::quoted_line(case, &suspect.service));
    Finding::Supported(support)
}

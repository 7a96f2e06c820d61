//! `storage_bottleneck`: a service waits for its disk.

use crate::cause::{Finding, Strength};
use crate::services::case::ServiceCase;
use crate::services::role::Role;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    if let Some(disk) = case.worst(&[Role::Disk]).filter(|s| s.level > s.usual.level) {
        let busier = [Role::Cpu, Role::Memory]
            .iter()
            .any(|role| case.changes(disk.service(), *role).first().is_some_and(|s| s.score > disk.score));
        let traffic = case.changes(disk.service(), Role::Requests).first().map_or(0.0, |s| s.relative());
        let strength = if busier || traffic >= 0.6 * disk.relative() { Strength::Hint } else { Strength::Pattern };
        let text = if disk.entity.contains_key("node") {
            "The disk of {node}, on which {service} runs, went from {before} to {level} when requests suffered."
        } else {
            "The disk activity of {service} went from {before} to {level} when requests suffered."
        };
        return Finding::Supported(case.supported(strength, disk, disk.sentence(text)));
    }
    let subject = case.suspect().map_or(case.entry.as_str(), |s| s.service.as_str());
    match case.series(subject, Role::Disk) {
        Some(shift) => case.quiet(shift),
        None => case.no_data("disk activity"),
    }
}

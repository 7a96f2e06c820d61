//! `cpu_contention`: a service wants more CPU than it gets. It is throttled at its limit, or its CPU use rose and its own time with it.

use crate::cause::{Finding, Strength};
use crate::services::case::ServiceCase;
use crate::services::role::Role;
use crate::services::suspects::Symptom;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    if let Some(throttled) = case.worst(&[Role::CpuThrottle]) {
        let text = "{service} is held back by its CPU limit: throttling went from {before} to {level}.";
        // Where half as many requests again came in, the limit is met because of them: to the service, or to the one asked about,
        // whose requests reach it, unless its own are known and are as many as ever.
        let service = throttled.service();
        let surged = |of: &str| case.changes(of, Role::Requests).first().is_some_and(|s| s.relative() >= 0.5);
        let as_ever = case.is_asked_otherwise(service) == Some(false);
        let busier = surged(service) || surged(&case.entry) && !as_ever;
        let strength = if busier { Strength::Pattern } else { Strength::Proof };
        let mut support = case.supported(strength, throttled, throttled.sentence(text));
        support.claims.extend(case.changes(throttled.service(), Role::Cpu).first().map(|cpu| cpu.says().claim()));
        return Finding::Supported(support);
    }
    if let Some(cpu) = case.worst(&[Role::Cpu]) {
        // More requests take more CPU: that is the traffic's doing.
        let traffic = case.changes(cpu.service(), Role::Requests).first().map_or(0.0, |s| s.relative());
        let memory = case.changes(cpu.service(), Role::Memory).first().map_or(0.0, |s| s.score);
        let by_itself = traffic < 0.6 * cpu.relative();
        let strength = match by_itself && case.is_about(Symptom::Latency) && memory <= cpu.score {
            true => Strength::Pattern,
            false => Strength::Hint,
        };
        let text = "The CPU use of {service} went from {before} to {level} when requests became slow.";
        return Finding::Supported(case.supported(strength, cpu, cpu.sentence(text)));
    }
    let subject = case.suspect().map_or(case.entry.as_str(), |s| s.service.as_str());
    match [Role::CpuThrottle, Role::Cpu].iter().find_map(|role| case.series(subject, *role)) {
        Some(shift) => case.quiet(shift),
        None => case.no_data("CPU use"),
    }
}

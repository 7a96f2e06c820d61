//! `memory_pressure`: a service is at the end of its memory. Killed for want of it, at its limit, or suddenly much larger.

use jiff::SignedDuration;
use sightline_model::{EvidenceRow, Relation, Stat};

use crate::cause::{Finding, Strength, Support};
use crate::log_lines::decode_line;
use crate::sentence::{Sentence, stat};
use crate::services::case::ServiceCase;
use crate::services::role::Role;
use crate::services::shift::{Shift, decimals};

/// Working sets above this share of the limit leave the kernel reclaiming pages all the time.
const NEAR_LIMIT: f64 = 0.9;

pub(crate) fn assess(case: &ServiceCase<'_>) -> Finding {
    if let Some(finding) = case.nothing_happened() {
        return finding;
    }
    if let Some(killed) = case.worst(&[Role::OomKills]) {
        let text = "Processes of {service} were killed for want of memory: {level} per step, {before} usually.";
        return Finding::Supported(case.supported(Strength::Proof, killed, killed.sentence(text)));
    }
    if let Some(support) = killed(case) {
        return Finding::Supported(support);
    }
    let full = case.field().into_iter().find_map(|service| at_limit(case, service));
    let restarted = case.worst(&[Role::Restarts]);
    if let Some((memory, limit)) = full {
        let of_limit = stat(limit.evidence, limit.entity, Stat::Median, None);
        let of_memory = stat(memory.evidence, memory.entity, Stat::Max, Some(memory.stretch));
        let bound = sightline_model::Quantity::Constant(NEAR_LIMIT);
        let share = sightline_model::Quantity::Ratio(Box::new(of_memory.clone()), Box::new(of_limit.clone()));
        let unit = memory.evidence.unit;
        let digits = decimals(memory.level.abs());
        let why = memory
            .sentence("{service} is at its memory limit: {used} of {limit} in use.")
            .number("used", of_memory, digits, unit)
            .number("limit", of_limit, digits, unit)
            .holds(share, Relation::AtLeast, bound);
        let strength = if restarted.is_some() || case.worst(&[Role::MajorFaults]).is_some() {
            Strength::Proof
        } else {
            Strength::Pattern
        };
        let mut support = case.supported(strength, memory, why);
        support.claims.extend(restarted.map(|s| s.says().claim()));
        return Finding::Supported(support);
    }
    if let Some(faults) = case.worst(&[Role::MajorFaults]) {
        let text = "{service} reads back pages that it had to give up: page faults went from {before} to {level}.";
        return Finding::Supported(case.supported(Strength::Pattern, faults, faults.sentence(text)));
    }
    if let Some(memory) = case.worst(&[Role::Memory]).filter(|s| s.level > s.usual.level) {
        let cpu = case.changes(memory.service(), Role::Cpu).first().map_or(0.0, |s| s.score);
        let strength = if memory.relative() >= 0.3 && memory.score > cpu { Strength::Pattern } else { Strength::Hint };
        let text = "The memory that {service} uses went from {before} to {level}.";
        return Finding::Supported(case.supported(strength, memory, memory.sentence(text)));
    }
    let subject = case.suspect().map_or(case.entry.as_str(), |s| s.service.as_str());
    match case.series(subject, Role::Memory) {
        Some(shift) => case.quiet(shift),
        None => case.no_data("memory"),
    }
}

/// A line of a kernel or of a node's agent that says that a process of a service was killed for want of memory. One kill in two hours
/// is a change of no counter.
fn killed(case: &ServiceCase<'_>) -> Option<Box<Support>> {
    let lines = case.observations.error_lines?;
    let shift = case.suspect().map(|s| &s.shift).or(case.symptom.as_ref().map(|(_, shift)| shift))?;
    let extent = shift.extent;
    let says = |row: &EvidenceRow| {
        row.time.is_some_and(|at| at >= extent.from() - AHEAD && at < case.observations.window.to())
            && row.fields.get("body").is_some_and(|body| tells_of_a_kill(body))
    };
    // A kill says more than any series: all that the asked service rests on is looked at, after the likeliest.
    let services = case.field().into_iter().chain(case.graph.behind(&case.entry));
    let (service, index) = services.into_iter().find_map(|service| {
        let index = lines.rows.iter().position(|row| says(row) && is_about_pod_of(row, service))?;
        Some((service, index))
    })?;
    let evidence = case.evidence_of(service)?;
    let why = Sentence::new("A process of {service} was killed for want of memory at {at}: {line}.")
        .named("service", evidence, "service", service)
        .row_time("at", lines, index)
        .quote("line", lines, index, "body");
    let mut support = case.supported(Strength::Proof, shift, why);
    support.components = vec![case.component(service, None)];
    support.claims.extend(case.series(service, Role::Memory).filter(|s| s.is_change()).map(|s| s.says().claim()));
    Some(support)
}

/// Kinds of lines in the table of lines that tell of a process killed for want of memory.
const KILLED: [&str; 2] = ["cgroup-out-of-memory", "kernel-out-of-memory"];

/// The kernel's words, or those of a node's agent, who tells why a container ended.
fn tells_of_a_kill(body: &str) -> bool {
    decode_line(body).is_some_and(|line| KILLED.contains(&line.id.as_str())) || body.contains("OOMKilled")
}

/// A kill this long before requests suffer belongs to it: a process takes minutes to come back.
const AHEAD: SignedDuration = SignedDuration::from_mins(10);

/// Whether a line is of a service, or of one of its pods: pods are named after what they are replicas of.
fn is_about_pod_of(row: &EvidenceRow, service: &str) -> bool {
    let is_pod = |name: &str| name.strip_prefix(service).is_some_and(|rest| rest.starts_with('-'));
    let named = ["service", "pod"].iter().filter_map(|key| row.entity.get(*key).or_else(|| row.fields.get(*key)));
    named.into_iter().any(|name| name == service || is_pod(name))
        || row
            .fields
            .get("body")
            .is_some_and(|body| body.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(is_pod))
}

/// The memory of a service near its limit in the stretch, which it was not before.
fn at_limit<'c, 'a>(case: &'c ServiceCase<'a>, service: &str) -> Option<(&'c Shift<'a>, &'c Shift<'a>)> {
    let stretch = case.stretch();
    let memory = case.shifts.iter().filter(|s| s.role == Role::Memory && s.service() == service && s.near(stretch));
    let limits = || case.shifts.iter().filter(|s| s.role == Role::MemoryLimit && s.service() == service);
    memory
        .filter_map(|m| {
            let limit = limits().find(|l| l.entity.get("pod") == m.entity.get("pod")).or_else(|| limits().next())?;
            let bound = NEAR_LIMIT * limit.level;
            (limit.level > 0.0 && m.level >= bound && m.usual.level < bound).then_some((m, limit))
        })
        .max_by(|a, b| a.0.score.total_cmp(&b.0.score))
}

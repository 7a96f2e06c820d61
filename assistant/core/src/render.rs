//! An answer as text for a terminal. Everything in it that came from telemetry was cleaned when it was grounded.

use std::fmt::Write as _;

use sightline_model::{Answer, Cause, CauseStatus, Claim, Component, Evidence};

/// The answer as plain text, about 100 columns wide where the sentences allow it.
pub fn render_text(answer: &Answer) -> String {
    let mut out = String::new();
    line(&mut out, &answer.headline);
    if let Some(range) = &answer.time_range {
        line(&mut out, &format!("Window: {}", range.how));
    }
    line(&mut out, &format!("Outcome: {}", answer.outcome.as_str()));
    causes(&mut out, &answer.causes);
    section(&mut out, "Facts", answer.claims.iter().map(claim_line));
    section(&mut out, "Choices", answer.choices.iter().map(|c| format!("{}: {}", c.label, c.question)));
    section(&mut out, "Evidence", answer.evidence.iter().map(evidence_line));
    section(&mut out, "Data health", answer.data_health.iter().cloned());
    section(&mut out, "Next steps", answer.next_steps.iter().cloned());
    section(&mut out, "Runbooks", answer.runbooks.iter().cloned());
    section(&mut out, "You could ask", answer.suggestions.iter().cloned());
    line(&mut out, "");
    line(&mut out, &footer(answer));
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let mut first = true;
    for text in lines {
        if first {
            line(out, "");
            line(out, title);
            first = false;
        }
        line(out, &format!("  {text}"));
    }
}

fn causes(out: &mut String, causes: &[Cause]) {
    section(out, "Causes", causes.iter().filter(|c| c.status == CauseStatus::Supported).map(supported));
    let ruled_out = causes.iter().filter(|c| c.status == CauseStatus::RuledOut);
    section(out, "Ruled out", ruled_out.map(|c| format!("{}: {}", c.id, c.why)));
    let no_data = causes.iter().filter(|c| c.status == CauseStatus::NoData);
    section(out, "Could not be checked", no_data.map(|c| format!("{}: {}", c.id, c.why)));
}

fn supported(cause: &Cause) -> String {
    let mut text = format!("{}. {}", cause.rank, cause.id);
    let components: Vec<String> = cause.components.iter().map(component).collect();
    if !components.is_empty() {
        let _ = write!(text, " on {}", components.join("; "));
    }
    if let Some(onset) = cause.onset {
        let _ = write!(text, ", since {onset}");
    }
    // The cause's own sentence is one of its claims, and is printed once.
    let own = cause.claims.iter().find(|claim| claim.text == cause.why);
    let _ = write!(text, "\n     {}", own.map_or_else(|| cause.why.clone(), claim_line));
    for claim in cause.claims.iter().filter(|claim| claim.text != cause.why) {
        let _ = write!(text, "\n     - {}", claim_line(claim));
    }
    text
}

fn component(component: &Component) -> String {
    component.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
}

fn claim_line(claim: &Claim) -> String {
    let marks: String = claim.citations.iter().map(|id| format!("[{id}]")).collect();
    format!("{} {marks}", claim.text)
}

fn evidence_line(evidence: &Evidence) -> String {
    let mut text = format!("[{}] {} {}", evidence.id, evidence.tool, evidence.dataset);
    if let Some(metric) = evidence.metric.as_ref().or(evidence.canonical_metric.as_ref()) {
        let _ = write!(text, " {metric}");
    }
    if let Some(aggregation) = &evidence.aggregation {
        let _ = write!(text, ", {aggregation}");
    }
    let _ = write!(text, ", {} of {} returned, {} points", evidence.returned, evidence.total, evidence.points);
    if let Some(expected) = evidence.coverage.expected {
        let _ = write!(text, ", {} of {expected} samples seen", evidence.coverage.seen);
    }
    match (&evidence.query_id, &evidence.entry_id) {
        (Some(query), _) => {
            let _ = write!(text, ", query {query}");
        }
        (None, Some(entry)) => {
            let _ = write!(text, ", entry {entry}");
        }
        (None, None) => {}
    }
    text
}

fn footer(answer: &Answer) -> String {
    let v = answer.verification;
    let mut text = format!("{} of {} statements verified", v.passed, v.checked);
    if v.dropped > 0 {
        let _ = write!(text, ", {} taken out", v.dropped);
    }
    let cost = answer.cost;
    let _ = write!(
        text,
        " · {} queries read {} rows ({}) in {:.0} ms · audit {}",
        cost.queries,
        cost.rows_read,
        bytes(cost.bytes_read),
        cost.wall_ms,
        answer.audit.question_id
    );
    if let Some(seq) = answer.audit.seq {
        let _ = write!(text, " #{seq}");
    }
    text
}

/// Bytes with a decimal unit.
fn bytes(count: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let name = units.get(unit).copied().unwrap_or("B");
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {name}") }
}

//! A result as a model is shown it: what was found, and of the evidence its statistics, shape and changes; never more than its room.

use std::fmt::Write as _;

use jiff::Timestamp;
use sightline_analysis::{ChangeOptions, Sample, change_points};
use sightline_model::{CauseStatus, Evidence, EvidenceRow, Series};

use crate::findings::{Shown, ShownCause};
use crate::safe_text::{quoted, value};
use crate::tokens::estimate;

/// The most points of one series.
const MAX_POINTS: usize = 6;
/// The most changes of one series.
const MAX_CHANGES: usize = 2;
/// The most series and the most rows of one piece of evidence.
const MAX_LINES: usize = 10;
/// The most findings of one result.
const MAX_FINDINGS: usize = 16;

/// How much of a result is shown. Old results are shrunk before new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Findings, causes, and the evidence in short.
    Full,
    /// Findings and causes.
    Brief,
    /// That there was a result.
    Gone,
}

/// The text of a result, within so many tokens.
pub(crate) fn digest(shown: &Shown<'_>, detail: Detail, room: u64) -> String {
    let Shown { tool, findings, causes, notes, evidence, withheld } = shown;
    let mut lines = Lines { text: format!("<data tool={tool}>\n"), room, left_out: 0 };
    if detail == Detail::Gone {
        lines.text.push_str("left out here to keep the conversation short; its references still hold\n</data>");
        return lines.text;
    }
    for (name, text) in findings.iter().take(MAX_FINDINGS) {
        lines.add(&format!("{name}: {}", quoted(text)));
    }
    lines.left_out += findings.len().saturating_sub(MAX_FINDINGS);
    for cause in causes.iter().filter(|cause| cause.status == CauseStatus::Supported) {
        lines.add(&supported(cause));
    }
    for (status, said) in [(CauseStatus::RuledOut, "ruled out"), (CauseStatus::NoData, "no data for")] {
        let ids: Vec<&str> = causes.iter().filter(|cause| cause.status == status).map(|cause| cause.id).collect();
        if !ids.is_empty() {
            lines.add(&format!("{said}: {}", ids.join(", ")));
        }
    }
    for note in notes.iter().take(4) {
        lines.add(&format!("note: {}", quoted(note)));
    }
    match detail {
        Detail::Full => {
            for (piece, may_show) in evidence.iter().zip(withheld.iter().map(|withheld| !withheld)) {
                lines.evidence(piece, may_show);
            }
        }
        Detail::Brief => {
            lines.add("its evidence is left out here to keep the conversation short; its references still hold")
        }
        Detail::Gone => {}
    }
    if lines.left_out > 0 {
        let _ = writeln!(lines.text, "{} more lines left out: ask for less to see them", lines.left_out);
    }
    lines.text.push_str("</data>");
    lines.text
}

fn supported(cause: &ShownCause<'_>) -> String {
    let mut text = format!("cause {} rank {}", cause.id, cause.rank);
    let components: Vec<String> = cause.components.iter().map(entity).collect();
    if !components.is_empty() {
        let _ = write!(text, " on {}", components.join("; "));
    }
    if let Some(onset) = cause.onset {
        let _ = write!(text, " since {onset}");
    }
    if let Some(why) = &cause.why {
        let _ = write!(text, ": {}", quoted(why));
    }
    text
}

struct Lines {
    text: String,
    room: u64,
    left_out: usize,
}

impl Lines {
    /// A line, if there is room for it: once one did not fit, smaller ones may still.
    fn add(&mut self, line: &str) {
        let tokens = estimate(line) + 1;
        if tokens > self.room {
            self.left_out += 1;
            return;
        }
        self.room -= tokens;
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn evidence(&mut self, evidence: &Evidence, may_show: bool) {
        if !may_show {
            let Evidence { id, dataset, total, .. } = evidence;
            self.add(&format!("{id} {dataset}: {total} found; what they hold is not shown to a model at this site"));
            return;
        }
        self.add(&head(evidence));
        for (index, series) in evidence.series.iter().take(MAX_LINES).enumerate() {
            self.add(&series_line(index, series));
        }
        // Of series the rows only repeat the means.
        let rows: &[EvidenceRow] = if evidence.series.is_empty() { &evidence.rows } else { &[] };
        for (index, row) in rows.iter().take(MAX_LINES).enumerate() {
            self.add(&row_line(index, row));
        }
        self.left_out += evidence.series.len().max(rows.len()).saturating_sub(MAX_LINES);
    }
}

fn head(evidence: &Evidence) -> String {
    let mut text = format!("{} {}", evidence.id, evidence.dataset);
    if let Some(metric) = evidence.canonical_metric.as_ref().or(evidence.metric.as_ref()) {
        let _ = write!(text, " {}", value(metric));
    }
    if !evidence.unit.symbol().is_empty() {
        let _ = write!(text, " {}", evidence.unit.symbol());
    }
    if let Some(aggregation) = &evidence.aggregation {
        let _ = write!(text, " {}", value(aggregation));
    }
    if !evidence.labels.is_empty() {
        let _ = write!(text, " {}", entity(&evidence.labels));
    }
    let _ = write!(text, " {}/{}", minute(evidence.from), minute(evidence.to));
    let _ = write!(text, " total {}", evidence.total);
    if evidence.truncated {
        text.push_str(" CUT");
    }
    if let Some(expected) = evidence.coverage.expected.filter(|expected| *expected > evidence.coverage.seen) {
        let _ = write!(text, " samples {} of {expected}", evidence.coverage.seen);
    }
    if let Some(stats) = evidence.stats.filter(|_| evidence.series.len() != 1) {
        let _ = write!(
            text,
            ": min {} median {} p95 {} max {}",
            figure(stats.min),
            figure(stats.median),
            figure(stats.p95),
            figure(stats.max)
        );
    }
    text
}

fn series_line(index: usize, series: &Series) -> String {
    let mut text = format!("s{index} {}:", entity(&series.entity));
    let values: Vec<f64> = series.points.iter().map(|point| point.value).filter(|v| v.is_finite()).collect();
    let (Some(min), Some(max)) =
        (series.points.iter().map(|p| p.min).reduce(f64::min), series.points.iter().map(|p| p.max).reduce(f64::max))
    else {
        text.push_str(" no samples");
        return text;
    };
    let _ = write!(text, " min {} max {}", figure(min), figure(max));
    if let Some(median) = sightline_analysis::median(&values) {
        let _ = write!(text, " median {}", figure(median));
    }
    for change in changes(series).iter().take(MAX_CHANGES) {
        let _ = write!(text, "; from {} {} to {}", minute(change.at), figure(change.before), figure(change.after));
    }
    if values.len() > 2 {
        let shape: Vec<String> = thinned(&values).into_iter().map(figure).collect();
        let _ = write!(text, "; shape {}", shape.join(" "));
    }
    text
}

fn row_line(index: usize, row: &EvidenceRow) -> String {
    let mut text = format!("r{index} {}", entity(&row.entity));
    if let Some(found) = row.value {
        let _ = write!(text, " value {}", figure(found));
    }
    if let Some(time) = row.time {
        let _ = write!(text, " time {time:.0}");
    }
    for (name, field) in &row.fields {
        let _ = write!(text, " {}={}", value(name), quoted(field));
    }
    text
}

/// `node=n1 gpu=3`.
fn entity<'a>(entity: impl IntoIterator<Item = (&'a String, &'a String)>) -> String {
    entity.into_iter().map(|(key, name)| format!("{}={}", value(key), value(name))).collect::<Vec<_>>().join(" ")
}

fn changes(series: &Series) -> Vec<sightline_analysis::ChangePoint> {
    let samples: Vec<Sample> = series.points.iter().map(|p| Sample { time: p.time, value: p.value }).collect();
    // A search over every step of a long series is not worth its time here: the diagnosing tools do it.
    if samples.len() > 2_000 {
        return Vec::new();
    }
    let mut found = change_points(&samples, &ChangeOptions::default());
    found.sort_by(|a, b| b.effect.total_cmp(&a.effect));
    found
}

/// When the clearest change of a series began.
pub(crate) fn change_instant(series: &Series) -> Option<Timestamp> {
    changes(series).first().map(|change| change.at)
}

/// At most so many values, each the mean of its part.
fn thinned(values: &[f64]) -> Vec<f64> {
    let size = values.len().div_ceil(MAX_POINTS).max(1);
    values.chunks(size).filter_map(sightline_analysis::mean).collect()
}

/// A number in at most four digits: a model is to see the size of it, not to copy it.
fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 && value.abs() < 1e6 => format!("{value:.0}"),
        size if size >= 1e6 => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// An instant to the minute, in UTC.
fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

//! What was found, from rows of several datasets: each thing once, latest seen first.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::EvidenceRow;
use sightline_query::{Catalogue, Resolution};

use crate::absence::distinct_rows;
use crate::find_entities::{EntityKind, jobs};
use crate::list_rows::text_of;
use crate::tool::{Fetched, ToolContext, ToolError};

/// How alike two names must be to be offered, by Jaro-Winkler: `atlas-n7` and `atlas-n07` have 0.98, unrelated names of one
/// fleet, which share a prefix, up to 0.9.
const NEAR: f64 = 0.92;
/// So many near names are offered.
const MAX_NEAR: usize = 5;

pub(super) fn found(
    kind: EntityKind,
    words: Option<&str>,
    context: &ToolContext<'_>,
    started_from: Option<Timestamp>,
    fetched: &[&Fetched],
) -> Result<Vec<EvidenceRow>, ToolError> {
    let mut things: BTreeMap<BTreeMap<String, String>, EvidenceRow> = BTreeMap::new();
    for part in fetched {
        let rows = if kind == EntityKind::Job { jobs::rows(part, started_from)? } else { distinct_rows(part)? };
        for mut row in rows {
            if kind == EntityKind::Metric {
                describe_metric(&mut row, context.catalogue);
                if words.is_some_and(|words| !metric_matches(&row, words, context.catalogue)) {
                    continue;
                }
            }
            // All keys are fetched: a label has no place where a part of its name could be looked for.
            if kind == EntityKind::Label && words.is_some_and(|words| !holds(row.entity.get("label"), words)) {
                continue;
            }
            match things.get_mut(&row.entity) {
                Some(there) if there.time < row.time => there.time = row.time,
                Some(_) => {}
                None => {
                    things.insert(row.entity.clone(), row);
                }
            }
        }
    }
    let mut rows: Vec<EvidenceRow> = things.into_values().collect();
    rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.entity.cmp(&b.entity)));
    Ok(rows)
}

/// A stored name with what the catalogue knows of it.
fn describe_metric(row: &mut EvidenceRow, catalogue: &Catalogue) {
    let Some(metric) = row.entity.get("metric").and_then(|stored| catalogue.by_stored(stored)) else { return };
    row.fields.insert("canonical".to_owned(), metric.id().to_owned());
    row.fields.insert("kind".to_owned(), metric.kind().as_str().to_owned());
    row.fields.insert("unit".to_owned(), metric.unit().as_str().to_owned());
    row.fields.insert("meaning".to_owned(), metric.meaning().to_owned());
}

fn metric_matches(row: &EvidenceRow, words: &str, catalogue: &Catalogue) -> bool {
    let canonical = row.fields.get("canonical");
    let meant = match catalogue.resolve(words) {
        Resolution::Exact(metric) => canonical.is_some_and(|id| id == metric.id()),
        Resolution::Ambiguous(list) => canonical.is_some_and(|id| list.iter().any(|m| m.id() == id)),
        Resolution::Unknown { .. } => false,
    };
    meant || holds(row.entity.get("metric"), words) || holds(canonical, words)
}

/// Whether a text contains words, without regard to case.
fn holds(text: Option<&String>, words: &str) -> bool {
    text.is_some_and(|text| text.to_lowercase().contains(&words.to_lowercase()))
}

/// The names that come near what was looked for, nearest first.
pub(crate) fn near(key: &str, words: &str, known: &[EvidenceRow]) -> Vec<String> {
    let needle = words.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .iter()
        .map(|row| text_of(row, key))
        .map(|name| (strsim::jaro_winkler(&needle, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(MAX_NEAR).map(|(_, name)| name.to_owned()).collect()
}

//! Entries of the knowledge as evidence: a row a passage, the entry's id in the place of a query.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_diagnosis::Entry;
use sightline_model::{Coverage, Evidence, EvidenceRow, Read, Unit};

use crate::tool::evidence_id;

/// The dataset's name in evidence; it is none that an engine holds.
const KNOWLEDGE: &str = "knowledge";

/// An entry as the n-th piece of evidence.
pub(super) fn of_entry(tool: &str, entry: &Entry, n: usize, as_of: Timestamp) -> Evidence {
    let rows: Vec<EvidenceRow> = entry
        .passages
        .iter()
        .map(|passage| EvidenceRow {
            fields: BTreeMap::from([
                ("section".to_owned(), passage.section.as_str().to_owned()),
                ("text".to_owned(), passage.text.clone()),
            ]),
            ..EvidenceRow::default()
        })
        .collect();
    let mut labels = BTreeMap::from([("title".to_owned(), entry.title.clone())]);
    if !entry.metrics.is_empty() {
        labels.insert("metrics".to_owned(), entry.metrics.join(", "));
    }
    if entry.of_site {
        labels.insert("origin".to_owned(), "site".to_owned());
    }
    Evidence { entry_id: Some(entry.id.clone()), labels, ..bare(tool, n, rows, as_of) }
}

/// That nothing was found among so many entries.
pub(super) fn of_nothing(tool: &str, asked: &str, looked_at: usize, as_of: Timestamp) -> Evidence {
    let labels = BTreeMap::from([("query".to_owned(), asked.to_owned())]);
    let coverage = Coverage { seen: looked_at as u64, ..Coverage::default() };
    Evidence { labels, coverage, ..bare(tool, 1, Vec::new(), as_of) }
}

fn bare(tool: &str, n: usize, rows: Vec<EvidenceRow>, as_of: Timestamp) -> Evidence {
    let held = rows.len() as u64;
    Evidence {
        id: evidence_id(n),
        tool: tool.to_owned(),
        dataset: KNOWLEDGE.to_owned(),
        metric: None,
        canonical_metric: None,
        labels: BTreeMap::new(),
        aggregation: None,
        unit: Unit::None,
        from: as_of,
        to: as_of,
        step_seconds: None,
        points: 0,
        stats: None,
        rows,
        series: Vec::new(),
        coverage: Coverage { seen: held, ..Coverage::default() },
        total: held,
        returned: held,
        truncated: false,
        read: Read::default(),
        query_id: None,
        sql: None,
        params: BTreeMap::new(),
        entry_id: None,
    }
}

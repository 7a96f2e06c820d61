//! What the values of all groups come to: how many there are, their mean, median and ends.

use sightline_analysis::median;
use sightline_model::{Coverage, Evidence, EvidenceRow, Unit};

use crate::reading::Ranked;
use crate::tool::evidence_id;

/// Where the number of groups compared stands among the rows.
pub(super) const COMPARED: usize = 0;
/// Where their mean stands.
pub(super) const MEAN: usize = 1;

/// The piece of evidence beside a ranking: every group that was compared, then statistics over those that are ranked, each group
/// counting once however many samples it has.
pub(super) fn evidence(ranking: &Evidence, n: usize, compared: usize, ranked: &[Ranked]) -> Evidence {
    let values: Vec<f64> = ranked.iter().map(|group| group.value).collect();
    let row = |what: &str, value: f64| EvidenceRow {
        value: Some(value),
        fields: [("row".to_owned(), what.to_owned())].into(),
        ..EvidenceRow::default()
    };
    let mut rows = vec![row("groups compared", compared as f64)];
    if let (Some(middle), false) = (median(&values), values.is_empty()) {
        rows.extend([
            row("mean of the ranked groups", values.iter().sum::<f64>() / values.len() as f64),
            row("median of the ranked groups", middle),
            row("lowest of the ranked groups", values.iter().copied().fold(f64::INFINITY, f64::min)),
            row("highest of the ranked groups", values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ]);
    }
    let held = rows.len() as u64;
    Evidence {
        id: evidence_id(n),
        unit: if ranked.is_empty() { Unit::Count } else { ranking.unit },
        coverage: Coverage { seen: ranking.coverage.seen, ..Coverage::default() },
        rows,
        total: held,
        returned: held,
        ..ranking.clone()
    }
}

//! What happened to the job's nodes, its cluster or the job itself: told beside the causes, not as one.

use sightline_diagnosis::Observations;
use sightline_model::{DraftClaim, EvidenceRow, FactPath};

use crate::list_rows::text_of;
use crate::sentence::{Sentence, at};

/// So many events are told; the evidence holds the rest.
const MAX_TOLD: usize = 5;

/// The events in the window that concern the job.
pub(super) fn claims(observations: &Observations<'_>) -> Vec<DraftClaim> {
    let Some(evidence) = observations.events else { return Vec::new() };
    let mut told = Vec::new();
    for (index, row) in evidence.rows.iter().enumerate() {
        if !concerns(observations, row) || !row.time.is_some_and(|at| observations.window.contains(at)) {
            continue;
        }
        let mut sentence = Sentence::new().time(at(&evidence.id, FactPath::RowTime { row: index })).say(": ").value(
            &evidence.id,
            "kind",
            text_of(row, "kind"),
        );
        if row.fields.contains_key("body") {
            sentence =
                sentence.say(": ").quote(at(&evidence.id, FactPath::RowField { row: index, field: "body".to_owned() }));
        }
        told.push(sentence.finish());
        if told.len() == MAX_TOLD {
            break;
        }
    }
    told
}

/// An event concerns the job when it names it, one of its nodes, or neither a job nor a node.
fn concerns(observations: &Observations<'_>, row: &EvidenceRow) -> bool {
    let (job, node) = (text_of(row, "job"), text_of(row, "node"));
    let its_node = observations.job.placements.iter().any(|p| p.node == node);
    match (job.is_empty(), node.is_empty()) {
        (false, _) => job == observations.job.id,
        (true, false) => its_node,
        (true, true) => true,
    }
}

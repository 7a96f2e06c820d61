//! Final names for evidence. Each tool counts from `E1`; an answer counts through all its tools.

use sightline_model::{Comparison, DraftCause, DraftClaim, EvidenceId, FactRef, NumberSlot, Quantity};
use sightline_tools::{ToolOutput, evidence_id};

/// Moves every evidence id of an output up by `offset`, in the evidence and in all that refers to it.
pub(crate) fn renumber(output: &mut ToolOutput, offset: usize) {
    if offset == 0 {
        return;
    }
    let up = |id: &mut EvidenceId| {
        let number = id.as_str().strip_prefix('E').and_then(|digits| digits.parse::<usize>().ok());
        if let Some(number) = number {
            *id = evidence_id(number + offset);
        }
    };
    for evidence in &mut output.evidence {
        up(&mut evidence.id);
    }
    for claim in output.claims.iter_mut().chain(output.headline.as_mut()) {
        claim_ids(claim, &up);
    }
    for cause in &mut output.causes {
        cause_ids(cause, &up);
    }
}

fn cause_ids(cause: &mut DraftCause, up: &dyn Fn(&mut EvidenceId)) {
    claim_ids(&mut cause.why, up);
    for claim in &mut cause.claims {
        claim_ids(claim, up);
    }
}

fn claim_ids(claim: &mut DraftClaim, up: &dyn Fn(&mut EvidenceId)) {
    claim.citations.iter_mut().for_each(up);
    for slot in claim.slots.values_mut() {
        match slot {
            NumberSlot::Number { quantity, .. } => quantity_ids(quantity, up),
            NumberSlot::Time(FactRef { evidence, .. })
            | NumberSlot::Quote(FactRef { evidence, .. })
            | NumberSlot::Entity { evidence, .. } => up(evidence),
        }
    }
    for Comparison { left, right, .. } in &mut claim.comparisons {
        quantity_ids(left, up);
        quantity_ids(right, up);
    }
}

fn quantity_ids(quantity: &mut Quantity, up: &dyn Fn(&mut EvidenceId)) {
    match quantity {
        Quantity::Fact(fact) => up(&mut fact.evidence),
        Quantity::Difference(left, right) | Quantity::Ratio(left, right) => {
            quantity_ids(left, up);
            quantity_ids(right, up);
        }
        Quantity::PercentChange { from, to } => {
            quantity_ids(from, up);
            quantity_ids(to, up);
        }
        Quantity::Constant(_) => {}
    }
}

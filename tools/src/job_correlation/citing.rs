//! The evidence that counts: what some sentence cites, and what the job was judged by first. The rest is let go, since
//! dozens of series that say nothing would hide those that do; the names are then dense again.

use std::collections::BTreeMap;

use sightline_model::{DraftClaim, Evidence, EvidenceId, NumberSlot, Quantity};

use crate::tool::{ToolOutput, evidence_id};

/// The output with the evidence that counts, renamed `E1`, `E2`, … without gaps.
pub(crate) fn keep_what_counts(mut output: ToolOutput, always_shown: impl Fn(&Evidence) -> bool) -> ToolOutput {
    let mut cited: Vec<EvidenceId> = Vec::new();
    for claim in claims(&mut output) {
        each_id(claim, &mut |id| cited.push(id.clone()));
    }
    output.evidence.retain(|e| always_shown(e) || cited.contains(&e.id));
    let mut names: BTreeMap<String, EvidenceId> = BTreeMap::new();
    for (index, evidence) in output.evidence.iter_mut().enumerate() {
        let name = evidence_id(index + 1);
        names.insert(evidence.id.as_str().to_owned(), name.clone());
        evidence.id = name;
    }
    rename(&mut output, &names);
    output
}

/// The output with its evidence numbered from `after + 1` on, so that it can stand behind that of another.
pub(crate) fn numbered_after(mut output: ToolOutput, after: usize) -> ToolOutput {
    let mut names: BTreeMap<String, EvidenceId> = BTreeMap::new();
    for (index, evidence) in output.evidence.iter_mut().enumerate() {
        let name = evidence_id(after + index + 1);
        names.insert(evidence.id.as_str().to_owned(), name.clone());
        evidence.id = name;
    }
    rename(&mut output, &names);
    output
}

fn rename(output: &mut ToolOutput, names: &BTreeMap<String, EvidenceId>) {
    for claim in claims(output) {
        each_id(claim, &mut |id| {
            if let Some(name) = names.get(id.as_str()) {
                *id = name.clone();
            }
        });
    }
}

fn claims(output: &mut ToolOutput) -> Vec<&mut DraftClaim> {
    let mut all: Vec<&mut DraftClaim> = output.claims.iter_mut().chain(output.headline.as_mut()).collect();
    for cause in &mut output.causes {
        all.push(&mut cause.why);
        all.extend(&mut cause.claims);
    }
    all
}

fn each_id(claim: &mut DraftClaim, visit: &mut dyn FnMut(&mut EvidenceId)) {
    for id in &mut claim.citations {
        visit(id);
    }
    for slot in claim.slots.values_mut() {
        match slot {
            NumberSlot::Number { quantity, .. } => in_quantity(quantity, visit),
            NumberSlot::Time(fact) | NumberSlot::Quote(fact) => visit(&mut fact.evidence),
            NumberSlot::Entity { evidence, .. } => visit(evidence),
        }
    }
    for comparison in &mut claim.comparisons {
        in_quantity(&mut comparison.left, visit);
        in_quantity(&mut comparison.right, visit);
    }
}

fn in_quantity(quantity: &mut Quantity, visit: &mut dyn FnMut(&mut EvidenceId)) {
    match quantity {
        Quantity::Fact(fact) => visit(&mut fact.evidence),
        Quantity::Difference(left, right) | Quantity::Ratio(left, right) => {
            in_quantity(left, visit);
            in_quantity(right, visit);
        }
        Quantity::PercentChange { from, to } => {
            in_quantity(from, visit);
            in_quantity(to, visit);
        }
        Quantity::Constant(_) => {}
    }
}

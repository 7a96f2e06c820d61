//! Whether the one cause that a question asks about could be looked at: `was J7 thermally throttled` has no answer where neither clocks nor
//! temperatures are collected, however well the job does otherwise.

use sightline_model::{CauseStatus, Outcome};

use super::super::reading::Reading;
use super::super::words::{any, words};
use crate::ports::{Ask, Draft};

/// How people call a cause, by its id.
const CALLED: [(&str, &[&str]); 9] = [
    ("thermal_throttling", &["thermally", "thermal", "overheating", "overheated", "too hot", "heat"]),
    ("power_capping", &["power capped", "power capping", "power cap", "power-capped", "power limit"]),
    ("nvlink_fault", &["nvlink"]),
    ("pcie_degradation", &["pcie"]),
    ("data_loader_bottleneck", &["data loader", "dataloader", "input pipeline"]),
    ("network_congestion", &["congestion", "congested"]),
    ("memory_leak", &["memory leak", "leaking", "leaks"]),
    ("checkpoint_stall", &["checkpoint", "checkpoints", "checkpointing"]),
    ("storage_bottleneck", &["storage", "disk", "filesystem"]),
];

/// The draft as it is, unless a question that wants a yes or a no is about a cause that could not be judged.
pub(super) fn answered(ask: &Ask, reading: &Reading, mut draft: Draft) -> Draft {
    let words = words(&ask.text);
    let yes_or_no = reading.has("yes_or_no^");
    if draft.outcome != Some(Outcome::NoFault) || !yes_or_no {
        return draft;
    }
    let asked = CALLED.iter().find(|(_, called)| any(&words, called)).map(|(id, _)| *id);
    let unjudged = |id: &str| draft.causes.iter().find(|c| c.id == id && c.status == CauseStatus::NoData);
    if let Some(cause) = asked.and_then(unjudged) {
        draft.headline = Some(cause.why.clone());
        draft.outcome = Some(Outcome::InsufficientData);
    }
    draft
}

#[cfg(test)]
mod tests {
    use sightline_model::Role;
    use sightline_model::claim::DraftCause;

    use super::*;

    fn outcome(text: &str, status: CauseStatus) -> Option<Outcome> {
        let ask = Ask {
            text: text.to_owned(),
            as_of: jiff::Timestamp::UNIX_EPOCH,
            time_zone: "UTC".to_owned(),
            principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
        };
        let cause = DraftCause {
            id: "thermal_throttling".to_owned(),
            status,
            rank: 0,
            components: Vec::new(),
            onset: None,
            why: sightline_model::DraftClaim {
                text: "Not judged.".to_owned(),
                slots: std::collections::BTreeMap::new(),
                comparisons: Vec::new(),
                citations: Vec::new(),
            },
            claims: Vec::new(),
            next_steps: Vec::new(),
            runbooks: Vec::new(),
        };
        answered(&ask, Draft { outcome: Some(Outcome::NoFault), causes: vec![cause], ..Draft::default() }).outcome
    }

    #[test]
    fn a_cause_that_was_asked_about_and_not_judged_is_no_all_clear() {
        let asked = "Was J4004 thermally throttled this morning?";
        assert_eq!(outcome(asked, CauseStatus::NoData), Some(Outcome::InsufficientData));
        assert_eq!(outcome(asked, CauseStatus::RuledOut), Some(Outcome::NoFault));
        assert_eq!(outcome("Is J4004 healthy?", CauseStatus::NoData), Some(Outcome::NoFault));
    }
}

//! Whether the one cause that a question asks about could be looked at: `was J7 thermally throttled` has no answer where neither clocks nor
//! temperatures are collected, however well the job does otherwise. And who doubts what is shown (`are its GPUs idle`, `the node looks
//! frozen`) is answered by what is wrong with the showing: of the job, nothing is.

use sightline_model::{CauseStatus, Outcome};

use super::super::lexicon;
use super::super::plan::finish;
use super::super::words::{any, words};
use crate::ports::{Ask, Draft, Turn};

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

/// How people speak of what is shown rather than of what runs.
const SHOWN: &[&str] = &[
    "idle",
    "frozen",
    "stale",
    "flat",
    "exactly the same",
    "shifted",
    "out of sync",
    "metrics",
    "telemetry",
    "readings",
    "counters",
    "counter",
    "shows 0",
    "show 0",
    "showing 0",
    "shows zero",
    "show zero",
    "reads 0",
    "read 0",
    "at 0",
    "is 0",
    "are 0",
    "zero",
    "missing",
    "no data",
    "no samples",
    "exporter",
    "believable",
];

/// The causes that lie in the measurement.
const MEASUREMENT: [&str; 2] = ["telemetry_artifact", "telemetry_gap"];

/// A draft whose job has no fault, led by what is wrong with its telemetry, where that was asked about.
fn about_what_is_shown(ask: &Ask, draft: &mut Draft) {
    let supported = |id: &str, status: CauseStatus| status == CauseStatus::Supported && MEASUREMENT.contains(&id);
    let Some(place) = draft.causes.iter().position(|cause| supported(&cause.id, cause.status)) else { return };
    // A job that became slower for a reason that cannot be told is not explained by a hole in its telemetry, unless that is all there is.
    let judged = match draft.outcome {
        Some(Outcome::NoFault) => true,
        Some(Outcome::InsufficientData) => place == 0,
        Some(Outcome::Answered | Outcome::Clarify | Outcome::Refused) | None => false,
    };
    if !judged || !any(&words(&ask.text), SHOWN) {
        return;
    }
    let cause = draft.causes.remove(place);
    draft.headline = Some(cause.why.clone());
    (draft.next_steps, draft.runbooks) = (cause.next_steps.clone(), cause.runbooks.clone());
    draft.causes.insert(0, cause);
    let ranked = draft.causes.iter_mut().filter(|cause| cause.status == CauseStatus::Supported);
    ranked.zip(1..).for_each(|(cause, rank)| cause.rank = rank);
    draft.outcome = Some(Outcome::Answered);
}

/// The same for a turn.
pub(super) fn told(ask: &Ask, turn: Turn) -> Turn {
    match turn {
        Turn::Draft(draft) => finish(answered(ask, *draft)),
        calls @ Turn::Calls(_) => calls,
    }
}

/// The draft as it is, unless a question that wants a yes or a no is about a cause that could not be judged.
pub(super) fn answered(ask: &Ask, mut draft: Draft) -> Draft {
    about_what_is_shown(ask, &mut draft);
    let words = words(&ask.text);
    let yes_or_no = words.first().is_some_and(|word| lexicon::YES_OR_NO.contains(&word.folded.as_str()));
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
        of(text, "thermal_throttling", status, Outcome::NoFault).outcome
    }

    fn of(text: &str, id: &str, status: CauseStatus, outcome: Outcome) -> Draft {
        let ask = Ask {
            text: text.to_owned(),
            as_of: jiff::Timestamp::UNIX_EPOCH,
            time_zone: "UTC".to_owned(),
            principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
        };
        let cause = DraftCause {
            id: id.to_owned(),
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
        let first =
            DraftCause { id: "compute_bound".to_owned(), status: CauseStatus::Supported, rank: 1, ..cause.clone() };
        answered(&ask, Draft { outcome: Some(outcome), causes: vec![first, cause], ..Draft::default() })
    }

    #[test]
    fn a_cause_that_was_asked_about_and_not_judged_is_no_all_clear() {
        let asked = "Was J4004 thermally throttled this morning?";
        assert_eq!(outcome(asked, CauseStatus::NoData), Some(Outcome::InsufficientData));
        assert_eq!(outcome(asked, CauseStatus::RuledOut), Some(Outcome::NoFault));
        assert_eq!(outcome("Is J4004 healthy?", CauseStatus::NoData), Some(Outcome::NoFault));
    }

    #[test]
    fn who_asks_about_what_is_shown_is_told_what_is_wrong_with_it() {
        let supported = CauseStatus::Supported;
        let of_artifact = |text: &str, outcome| of(text, "telemetry_artifact", supported, outcome);
        for text in [
            "Are the GPUs of J4004 idle?",
            "are the ocr-base gpus idle? tensor active shows 0 since 1",
            "gpus on a100-62 look frozen, temp exactly the same for an hour. hung?",
        ] {
            let draft = of_artifact(text, Outcome::NoFault);
            let first = draft.causes.first().map(|cause| (cause.id.as_str(), cause.rank));
            assert_eq!((draft.outcome, first), (Some(Outcome::Answered), Some(("telemetry_artifact", 1))), "{text}");
        }
        assert_eq!(of_artifact("Is J4004 healthy?", Outcome::NoFault).outcome, Some(Outcome::NoFault));
        let slower = of_artifact("why is J4004 slow, its GPUs are idle", Outcome::InsufficientData);
        assert_eq!(slower.outcome, Some(Outcome::InsufficientData));
        let ruled_out = of("Are the GPUs of J4004 idle?", "telemetry_gap", CauseStatus::RuledOut, Outcome::NoFault);
        assert_eq!(ruled_out.outcome, Some(Outcome::NoFault));
    }
}

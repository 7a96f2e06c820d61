//! One answer against what is expected of it. Pure.

mod components;
mod evidence;
mod said;

use serde::{Deserialize, Serialize};
use sightline_model::{Answer, Cause, CauseStatus, Outcome};
use sightline_query::Catalogue;
use sightline_query::catalogue::{CatalogueError, LabelAliases};

pub use components::places;

use crate::suite::Expectation;

/// An onset this far off is the same onset, seconds: no two sources of telemetry agree on less.
const ONSET_WITHIN_S: f64 = 60.0;
/// How many causes count as "among the first".
const FEW: usize = 3;
/// What stands for no cause at all in `incident.toml`.
const NO_CAUSE: &str = "none";

/// What is known about names when an answer is scored.
pub struct Names {
    /// The metrics, to tell that two names mean one.
    pub catalogue: Catalogue,
    /// The labels, likewise.
    pub labels: LabelAliases,
}

impl Names {
    /// The names that ship.
    ///
    /// # Errors
    /// When the shipped data is broken; a test of the catalogue holds that it is not.
    pub fn builtin() -> Result<Self, CatalogueError> {
        Ok(Self { catalogue: Catalogue::builtin()?, labels: LabelAliases::builtin()? })
    }
}

/// How an answer fared. A criterion that the incident does not ask for is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Whether it ended as it should.
    pub outcome: bool,
    /// Whether the first supported cause is a right one.
    pub cause: Option<bool>,
    /// Whether a right cause is among the first three.
    pub cause_top3: Option<bool>,
    /// The first cause, where it is one that must not stand there.
    pub wrong_cause: Option<String>,
    /// Whether the first cause names every culprit before anybody innocent.
    pub component: Option<bool>,
    /// Whether every culprit is named before more than two innocents, by the first three causes.
    pub component_top3: Option<bool>,
    /// How many the first cause accuses that are no culprits.
    pub innocents: usize,
    /// Whether the first cause's onset is within a minute.
    pub onset: Option<bool>,
    /// How late the onset is, seconds; negative for early.
    pub onset_off_s: Option<f64>,
    /// What was asserted and must not be.
    pub said: Vec<String>,
    /// Expected pieces of evidence that are cited, of how many.
    pub evidence: Share,
    /// Expected numbers that the evidence bears out, of how many.
    pub facts: Share,
    /// Whether all its statements were verified, and there are some where something was found.
    pub verified: bool,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// So many.
    pub hit: usize,
    /// Of so many.
    pub of: usize,
}

impl Share {
    /// Counts one more.
    pub fn count(&mut self, hit: bool) {
        self.of += 1;
        self.hit += usize::from(hit);
    }

    /// The fraction; none of nothing.
    pub fn fraction(self) -> Option<f64> {
        (self.of > 0).then(|| self.hit as f64 / self.of as f64)
    }
}

impl Score {
    /// Whether the answer is right: outcome, cause and culprit as asked for, nothing forbidden said, every statement verified.
    pub fn is_right(&self) -> bool {
        self.outcome
            && self.cause != Some(false)
            && self.wrong_cause.is_none()
            && self.component != Some(false)
            && self.said.is_empty()
            && self.verified
    }
}

/// Scores an answer.
pub fn score(answer: &Answer, expect: &Expectation, names: &Names) -> Score {
    let supported: Vec<&Cause> = answer.causes.iter().filter(|cause| cause.status == CauseStatus::Supported).collect();
    let first = supported.first().copied();
    let first_id = first.map_or(NO_CAUSE, |cause| cause.id.as_str());
    let right = |id: &str| expect.causes.iter().any(|cause| cause == id);
    // A control is scored by its outcome: an explanation may stand beside it.
    let asks_cause = expect.outcomes.first() == Some(&Outcome::Answered) && !expect.causes.is_empty();
    let onset_off_s = expect
        .onset
        .zip(first.and_then(|cause| cause.onset))
        .map(|(expected, onset)| onset.duration_since(expected).as_secs_f64());
    let found = matches!(answer.outcome, Outcome::Answered | Outcome::NoFault);
    let verification = answer.verification;
    Score {
        outcome: expect.outcomes.contains(&answer.outcome),
        cause: asks_cause.then(|| right(first_id)),
        cause_top3: asks_cause.then(|| right(first_id) || supported.iter().take(FEW).any(|cause| right(&cause.id))),
        wrong_cause: expect.wrong_causes.iter().find(|wrong| *wrong == first_id).cloned(),
        component: components::named_first(&expect.components, first.into_iter(), 0),
        component_top3: components::named_first(&expect.components, supported.iter().take(FEW).copied(), FEW - 1),
        innocents: first.map_or(0, |cause| components::innocents(&expect.components, cause)),
        onset: expect.onset.map(|_| onset_off_s.is_some_and(|off| off.abs() <= ONSET_WITHIN_S)),
        onset_off_s,
        said: said::forbidden(answer, &expect.must_not_say),
        evidence: evidence::cited(answer, &expect.evidence, names),
        facts: evidence::borne_out(answer, &expect.facts, names),
        verified: verification.checked == verification.passed && (verification.checked > 0 || !found),
    }
}

#[cfg(test)]
#[path = "score/score_tests.rs"]
mod score_tests;

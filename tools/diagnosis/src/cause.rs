//! What a check returns, and how supported causes are ranked.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim};

use crate::case::Case;

/// The smallest relative change that counts as one. MegaScale (Jiang et al., NSDI 2024) reports stragglers of about 10 %;
/// half of that is still well above the scatter of a healthy job's medians.
pub const MIN_RELATIVE: f64 = 0.05;

/// A modified z-score from which a value is an outlier among its peers (Iglewicz and Hoaglin, 1993).
pub(crate) const OUTLIER_Z: f64 = 3.5;

/// One cause: its id and its check.
pub(crate) struct Check {
    pub(crate) id: &'static str,
    pub(crate) assess: fn(&Case<'_>) -> Finding,
}

/// How much the evidence proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    /// It fits, and nothing better does.
    Hint,
    /// It has the cause's shape, and what else has that shape is excluded.
    Pattern,
    /// The hardware or the job itself names the mechanism: an error counter, a reason bit, a log line, a timer.
    Proof,
}

/// A cause that holds.
#[derive(Clone, Debug)]
pub(crate) struct Support {
    pub(crate) strength: Strength,
    /// Whether it began when the job became slower; `None` when one of both is not known.
    pub(crate) coincides: Option<bool>,
    /// For equal standing: how large the effect is.
    pub(crate) magnitude: f64,
    pub(crate) components: Vec<Component>,
    pub(crate) onset: Option<Timestamp>,
    pub(crate) why: DraftClaim,
    pub(crate) claims: Vec<DraftClaim>,
    /// Whether it is a fault; compute-bound and the like are explanations.
    pub(crate) fault: bool,
}

impl Support {
    /// Its standing among supported causes. Coincidence with the slowdown weighs half as much again as one grade of proof:
    /// a proven fault hours away from the slowdown is a finding, not its cause.
    pub(crate) fn standing(&self) -> f64 {
        let strength = match self.strength {
            Strength::Hint => 1.0,
            Strength::Pattern => 2.0,
            Strength::Proof => 3.0,
        };
        let coincidence = match self.coincides {
            Some(true) => 1.5,
            Some(false) => -1.0,
            None => 0.0,
        };
        let fault = if self.fault { 10.0 } else { 0.0 };
        strength + coincidence + fault
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    /// It holds.
    Supported(Box<Support>),
    /// It does not.
    RuledOut(DraftClaim),
    /// What it needs is not there.
    NoData(DraftClaim),
}

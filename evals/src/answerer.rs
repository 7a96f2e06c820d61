//! The port behind which the product stands while it is examined: whoever can answer a question about a recorded incident.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;
use sightline_engine::SeriesShift;
use sightline_model::audit::ModelUse;
use sightline_model::{Answer, BoxFuture};

/// One question about a recorded incident, with nothing of what is expected.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The incident's id.
    pub incident: &'a str,
    /// The bundle's folder.
    pub bundle: &'a Path,
    /// The question.
    pub text: &'a str,
    /// Who asks: a principal of the policy, or `role@tenant`.
    pub principal: &'a str,
    /// The instant taken as now; the bundle's latest sample without one.
    pub as_of: Option<Timestamp>,
    /// The asker's zone, an IANA name.
    pub time_zone: &'a str,
    /// Metrics, by canonical id, that are taken to be unknown, as where they are not collected.
    pub without: &'a BTreeSet<String>,
}

/// An answer, with what a model had to do with it.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// What a model was asked for it; none where no model plans.
    pub model: Option<ModelUse>,
}

/// Answers questions about recorded incidents. Errors are one line for the person who runs the suite.
pub trait Answerer: Send + Sync {
    /// Answers, loading the bundle where it is not loaded yet.
    fn answer<'a>(&'a self, asked: Asked<'a>) -> BoxFuture<'a, Result<Answered, String>>;

    /// Loads a bundle ahead of its questions. What cannot be loaded is told when it is asked about.
    fn prepare<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, ()>;

    /// What each recorded series did before and after an instant, for the baseline; this is not bounded by any policy.
    fn shifts<'a>(&'a self, bundle: &'a Path, split: Timestamp) -> BoxFuture<'a, Result<Vec<SeriesShift>, String>>;

    /// Lets go of what was loaded of a bundle.
    fn forget<'a>(&'a self, bundle: &'a Path) -> BoxFuture<'a, Result<(), String>>;
}

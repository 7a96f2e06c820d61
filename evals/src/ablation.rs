//! What an answer is worth when a metric is not collected: it stays right, or it says what is missing. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sightline_model::{Answer, CauseStatus, Outcome};

use crate::score::Names;

/// How a question fared without a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fared {
    /// The answer is right all the same.
    Right,
    /// It is not, and says that something is missing: an outcome, a cause without data, or a word about the data.
    SaysMissing,
    /// It is wrong without a word about it.
    Wrong,
}

/// One question asked without one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Removal {
    /// The metric, by canonical id.
    pub metric: String,
    /// Whether it is one that sites often lack.
    pub optional: bool,
    /// How the question fared.
    pub fared: Fared,
    /// What was answered instead, where it was not right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// The metrics without which a question is asked again: those that were fetched for its answer. Without another metric nothing would
/// be different.
pub(crate) fn candidates(answer: &Answer) -> BTreeSet<String> {
    answer.evidence.iter().filter_map(|evidence| evidence.canonical_metric.clone()).collect()
}

/// Judges the answer that came without the metric, given with whether it is right.
pub(crate) fn removal(metric: String, again: Result<(bool, Answer), String>, names: &Names) -> Removal {
    let optional = names.catalogue.get(&metric).is_some_and(|known| known.collection().is_some());
    let (fared, instead) = match again {
        Ok((true, _)) => (Fared::Right, None),
        Ok((false, answer)) => {
            let fared = if says_missing(&answer, &metric) { Fared::SaysMissing } else { Fared::Wrong };
            (fared, Some(answer.headline))
        }
        Err(error) => (Fared::Wrong, Some(error)),
    };
    Removal { metric, optional, fared, instead }
}

/// Whether an answer says that it lacks something, and does not name a cause with certainty regardless.
fn says_missing(answer: &Answer, metric: &str) -> bool {
    let words = metric.replace('_', " ");
    let names_it = answer.data_health.iter().any(|line| line.contains(metric) || line.to_lowercase().contains(&words));
    let lacks = answer.causes.iter().any(|cause| cause.status == CauseStatus::NoData);
    match answer.outcome {
        Outcome::InsufficientData | Outcome::Clarify | Outcome::Refused => true,
        Outcome::NoFault => lacks || names_it,
        Outcome::Answered => names_it,
    }
}

/// How often each metric's absence was borne, by metric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Borne {
    /// Whether sites often lack it.
    pub optional: bool,
    /// Still right.
    pub right: usize,
    /// Not right, and said so.
    pub says_missing: usize,
    /// Wrong.
    pub wrong: usize,
}

/// Removals by metric. Only questions that were right with all metrics count: what was wrong before says nothing about a metric.
pub(crate) fn by_metric<'a>(removals: impl Iterator<Item = &'a Removal>) -> BTreeMap<String, Borne> {
    let mut all: BTreeMap<String, Borne> = BTreeMap::new();
    for removal in removals {
        let borne = all.entry(removal.metric.clone()).or_default();
        borne.optional = removal.optional;
        match removal.fared {
            Fared::Right => borne.right += 1,
            Fared::SaysMissing => borne.says_missing += 1,
            Fared::Wrong => borne.wrong += 1,
        }
    }
    all
}

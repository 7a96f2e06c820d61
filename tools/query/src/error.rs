//! Why a query does not make sense. Each message says what to ask instead.

use sightline_model::{Aggregation, Dataset, MetricKind};

/// A fault of a query, found before anything is decided or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No metric of that name.
    #[error("no metric is called `{name}`{}", did_you_mean(near))]
    UnknownMetric {
        /// The name.
        name: String,
        /// Names that are close.
        near: Vec<String>,
    },
    /// More than one metric goes by these words.
    #[error("`{name}` could mean {}; name one of them", listed(candidates))]
    AmbiguousMetric {
        /// The words.
        name: String,
        /// Canonical names.
        candidates: Vec<String>,
    },
    /// A share of time is asked for, but beyond what?
    #[error("`{}` needs a threshold; give one in the metric's unit", aggregation.as_str())]
    MissingThreshold {
        /// What was asked for.
        aggregation: Aggregation,
    },
    /// Samples would be left out whose neighbours count.
    #[error(
        "`{}` needs every sample of a series, so it cannot be filtered by `value`; use `fraction_above` or `fraction_below` with a threshold, or an aggregation like `avg`",
        aggregation.as_str()
    )]
    ValueFilterDoesNotFit {
        /// What was asked for.
        aggregation: Aggregation,
    },
    /// A threshold has no use.
    #[error("a threshold is for `fraction_above` and `fraction_below` only; leave it out, or use a filter on `value`")]
    ThresholdNotUsed,
    /// A metric was named for a dataset that has none.
    #[error("dataset `{dataset}` has no metrics; leave `metric` out or ask dataset `metrics`")]
    MetricNotApplicable {
        /// The dataset.
        dataset: Dataset,
    },
    /// The aggregation does not fit the metric's kind.
    #[error("`{}` does not fit `{metric}`, which is a {}; use {}", aggregation.as_str(), kind.as_str(), listed(fitting))]
    AggregationDoesNotFit {
        /// The metric.
        metric: String,
        /// Its kind.
        kind: MetricKind,
        /// What was asked for.
        aggregation: Aggregation,
        /// What fits.
        fitting: Vec<String>,
    },
    /// A histogram was read without saying which of its series, or another kind with it.
    #[error("`{metric}` is a {}: its {part} cannot be read", kind.as_str())]
    PartDoesNotFit {
        /// The metric.
        metric: String,
        /// Its kind.
        kind: MetricKind,
        /// The part.
        part: &'static str,
    },
    /// The dataset lacks that dimension.
    #[error("dataset `{dataset}` has no `{dim}`; it has {}", listed(has))]
    UnknownDimension {
        /// The dataset.
        dataset: Dataset,
        /// The dimension.
        dim: String,
        /// What it has.
        has: Vec<String>,
    },
    /// The shape does not fit the dataset.
    #[error("{what} cannot be read from dataset `{dataset}`")]
    ShapeDoesNotFit {
        /// The dataset.
        dataset: Dataset,
        /// What was asked for.
        what: &'static str,
    },
    /// A text is too long.
    #[error("a filter value has {length} bytes; at most {limit} are taken")]
    TextTooLong {
        /// Its length in bytes.
        length: usize,
        /// The cap.
        limit: usize,
    },
    /// A list is too long or empty.
    #[error("{what} has {length} entries; between 1 and {limit} are taken")]
    ListSize {
        /// Which list.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The cap.
        limit: usize,
    },
    /// A pattern does not compile.
    #[error("the pattern `{pattern}` cannot be used: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A bound is not a finite number.
    #[error("a value can be compared with a finite number only")]
    BoundNotFinite,
    /// A step is too short or longer than the window.
    #[error("a step of {} s cannot be used; {}", seconds(*step_ms), steps_of(*range_ms))]
    BadStep {
        /// The step.
        step_ms: u64,
        /// The window's length.
        range_ms: u64,
    },
    /// A limit of zero or above the cap.
    #[error("a limit of {limit} cannot be used; limits are between 1 and {cap}")]
    BadLimit {
        /// The limit.
        limit: u32,
        /// The cap.
        cap: u32,
    },
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn steps_of(range_ms: u64) -> String {
    if range_ms < 1000 {
        format!("the window is {} s long; ask about a second or more", seconds(range_ms))
    } else {
        format!("use one between 1 s and the window's {} s", seconds(range_ms))
    }
}

fn listed(names: &[String]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() {
        "; `find_entities` lists what is collected".to_owned()
    } else {
        format!("; did you mean {}?", listed(near))
    }
}

#[cfg(test)]
mod tests {
    use super::QueryError;

    #[test]
    fn a_step_that_cannot_be_is_told_with_one_that_can() {
        let told = |step_ms, range_ms| QueryError::BadStep { step_ms, range_ms }.to_string();
        assert_eq!(
            told(4_294_967_295_000, 3_600_000),
            "a step of 4294967295 s cannot be used; use one between 1 s and the window's 3600 s"
        );
        assert_eq!(
            told(1, 1),
            "a step of 0.001 s cannot be used; the window is 0.001 s long; ask about a second or more"
        );
    }
}

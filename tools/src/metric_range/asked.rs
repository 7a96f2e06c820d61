//! The arguments of `metric_range`, checked: what is read, and what is made of it.

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim};
use sightline_query::{Align, SampleOrder};

use super::NAME;
use super::derive::{Transform, TransformArg, ratio_unit};
use crate::args::{AggregationArg, AlignArg, FilterArg, Instant, SampleOrderArg, dims, filters, window};
use crate::job_scope::{JobScope, job_scope};
use crate::measure::{Derived, Measure, Rows};
use crate::tool::{Fetched, ToolContext, ToolError};

/// How many samples are listed unless said otherwise.
const DEFAULT_SAMPLES: u32 = 100;
/// The longest moving average: what is longer is a longer step.
const MAX_POINTS: u32 = 1000;

/// What to read.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricRangeArgs {
    /// Any name or words for it; `*`: every metric.
    metric: String,
    /// RFC 3339 in UTC.
    from: Instant,
    /// Exclusive.
    to: Instant,
    /// Only this job's GPUs.
    #[serde(default)]
    pub(super) job: Option<String>,
    #[serde(default)]
    filters: Vec<FilterArg>,
    /// Dimensions: one series each.
    #[serde(default)]
    group_by: Vec<String>,
    #[serde(default)]
    aggregation: Option<AggregationArg>,
    /// Of fraction_*.
    #[serde(default)]
    threshold: Option<f64>,
    /// 0: one number.
    #[serde(default)]
    step_seconds: Option<u32>,
    #[serde(default)]
    align: Option<AlignArg>,
    #[serde(default)]
    transform: Option<TransformArg>,
    /// Of moving_average.
    #[serde(default)]
    points: Option<u32>,
    #[serde(default)]
    divide_by: Option<String>,
    /// Not combined, in this order.
    #[serde(default)]
    samples: Option<SampleOrderArg>,
    #[serde(default)]
    limit: Option<u32>,
    /// `limit` of each of these.
    #[serde(default)]
    per: Vec<String>,
}

/// What was asked for.
pub(super) struct Asked {
    pub(super) measure: Measure,
    pub(super) divisor: Option<Measure>,
    pub(super) transform: Option<Transform>,
    pub(super) group_by: Vec<Dim>,
    pub(super) scope: JobScope,
    pub(super) reading: Reading,
}

/// How the metric is read.
pub(super) enum Reading {
    /// Combined, in steps of so many milliseconds; a length is chosen if none was said.
    Steps { step_ms: Option<u64>, align: Align },
    /// As one number over the window.
    Whole,
    /// As it is stored: so many, of each group if there are any.
    Samples { order: SampleOrder, limit: u32, per: Vec<Dim> },
}

fn fault(reason: impl Into<String>) -> ToolError {
    ToolError::Arguments { tool: NAME, reason: reason.into() }
}

impl MetricRangeArgs {
    pub(super) fn asked(&self, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Asked, ToolError> {
        let rows = Rows {
            range: window(NAME, self.from, self.to, context.as_of)?,
            filters: filters(NAME, Dataset::Metrics, &self.filters)?,
            placement: None,
        };
        let transform = self.transform()?;
        let reading = self.reading(context)?;
        let measure = |name: &str| {
            let measure = Measure::resolve(NAME, context, name, self.aggregation.map(|a| a.0))?;
            match reading {
                Reading::Samples { .. } => measure.uncombined(NAME),
                Reading::Steps { .. } | Reading::Whole => measure.against(NAME, self.threshold),
            }
        };
        let asked = measure(&self.metric)?;
        let divisor = self.divide_by.as_deref().map(measure).transpose()?;
        let derived = match (&divisor, transform) {
            (Some(_), Some(_)) => {
                return Err(fault("`transform` and `divide_by` cannot be combined; ask for one of them"));
            }
            (Some(divisor), None) if divisor.is_every() || asked.is_every() => {
                return Err(fault("a ratio of every metric at once has no meaning; name one metric for each side"));
            }
            (Some(divisor), None) if divisor.metric == asked.metric => {
                return Err(fault(format!("`divide_by` is the metric itself, `{}`; name another", asked.metric)));
            }
            (Some(divisor), None) => {
                Some(Derived::Ratio { to: divisor.metric.clone(), unit: ratio_unit(asked.unit(), divisor.unit()) })
            }
            (None, Some(transform)) => Some(transform.derived()),
            (None, None) => None,
        };
        if matches!(reading, Reading::Whole) && transform.is_some() {
            return Err(fault("one number over the window has no neighbours to `transform`; give a `step_seconds`"));
        }
        Ok(Asked {
            measure: asked.computed(derived),
            divisor,
            transform,
            group_by: dims(Dataset::Metrics, &self.group_by),
            scope: job_scope(context, self.job.as_deref(), rows, fetched)?,
            reading,
        })
    }

    fn transform(&self) -> Result<Option<Transform>, ToolError> {
        match (self.transform, self.points) {
            (Some(TransformArg::MovingAverage), Some(points)) if (2..=MAX_POINTS).contains(&points) => {
                Ok(Some(Transform::MovingAverage(usize::try_from(points).unwrap_or(usize::MAX))))
            }
            (Some(TransformArg::MovingAverage), points) => {
                let said = points.map_or("missing".to_owned(), |points| points.to_string());
                Err(fault(format!("`points` is {said}; a moving average is over 2 to {MAX_POINTS} points")))
            }
            (_, Some(_)) => Err(fault("`points` is how long a moving average is; add `transform: moving_average`")),
            (Some(TransformArg::Delta), None) => Ok(Some(Transform::Delta)),
            (Some(TransformArg::Cumulative), None) => Ok(Some(Transform::Cumulative)),
            (None, None) => Ok(None),
        }
    }

    fn reading(&self, context: &ToolContext<'_>) -> Result<Reading, ToolError> {
        let Some(order) = self.samples else {
            let only = [("limit", self.limit.is_some()), ("per", !self.per.is_empty())];
            if let Some((name, _)) = only.into_iter().find(|(_, given)| *given) {
                return Err(fault(format!(
                    "`{name}` is for samples as they are stored; add `samples` with an order, or use top_k"
                )));
            }
            return Ok(match self.step_seconds {
                Some(0) => Reading::Whole,
                seconds => Reading::Steps {
                    step_ms: seconds.map(|s| u64::from(s) * 1000),
                    align: self.align.unwrap_or_default().into(),
                },
            });
        };
        let never = [
            ("aggregation", self.aggregation.is_some()),
            ("threshold", self.threshold.is_some()),
            ("step_seconds", self.step_seconds.is_some()),
            ("align", self.align.is_some()),
            ("divide_by", self.divide_by.is_some()),
        ];
        if let Some((name, _)) = never.into_iter().find(|(_, given)| *given) {
            return Err(fault(format!("samples are read as they are stored, without `{name}`; leave one of them out")));
        }
        if self.transform.is_some() && (order != SampleOrderArg::Time || !self.per.is_empty()) {
            return Err(fault(
                "a `transform` goes along time; list `samples` by `time` and leave `per` out, and tell series apart by `group_by`",
            ));
        }
        // What is computed from neighbours needs all of them.
        let usual = if self.transform.is_some() { context.max_rows } else { DEFAULT_SAMPLES.min(context.max_rows) };
        let limit = self.limit.unwrap_or(usual);
        if limit == 0 || limit > context.max_rows {
            return Err(fault(format!("`limit` is {limit}; between 1 and {} samples can be listed", context.max_rows)));
        }
        Ok(Reading::Samples { order: order.into(), limit, per: dims(Dataset::Metrics, &self.per) })
    }
}

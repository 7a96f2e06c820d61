//! Counters: what every stored series gained, across steps and resets.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use sightline_model::rows::Labels;
use sightline_model::{Aggregation, Cell, Dim, Point, Series};

use crate::reading::group::{Groups, dimension_columns};
use crate::reading::table::Table;
use crate::tool::{Fetched, ToolError};

/// What one stored series did within one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StepGrowth {
    /// The start of the step; for a whole window: the first sample.
    pub(crate) time: Timestamp,
    /// Samples.
    pub(crate) count: u64,
    /// Smallest sample.
    pub(crate) min: f64,
    /// First sample.
    pub(crate) first: f64,
    /// Last sample.
    pub(crate) last: f64,
    /// Sum of the rises between consecutive samples.
    pub(crate) rise: f64,
    /// When the first sample was taken.
    pub(crate) first_time: Timestamp,
    /// When the last sample was taken.
    pub(crate) last_time: Timestamp,
}

/// What one stored series gained in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    /// The start of the step.
    pub(crate) time: Timestamp,
    /// Samples.
    pub(crate) count: u64,
    /// The increase since the sample before the step, or since the first sample ever seen.
    pub(crate) increase: f64,
    /// The time it took.
    pub(crate) seconds: f64,
}

/// Rises and falls cancel to within this share of the larger value when a counter did not fall: floats that were
/// added up in another order than they were subtracted.
const ROUNDING: f64 = 1e-9;

impl StepGrowth {
    /// The increase within the step. `rise` leaves out what a reset restarts from; that is at least the step's smallest sample,
    /// and exactly that when there was one reset to below the first sample.
    fn inside(&self) -> f64 {
        let fallen = self.rise - (self.last - self.first);
        let scale = self.rise.abs().max(self.first.abs()).max(self.last.abs());
        if fallen > ROUNDING * scale { self.rise + self.min.max(0.0) } else { self.rise }
    }

    fn since(&self, before: &Self) -> f64 {
        // A fall means that the counter began anew, so that the whole of the new value was gained.
        let between = if self.first < before.last { self.first } else { self.first - before.last };
        between.max(0.0) + self.inside()
    }
}

/// The gains of one stored series, step by step. A first step with one sample has none: nothing to compare it with.
pub(crate) fn gains(mut steps: Vec<StepGrowth>) -> Vec<Gain> {
    steps.sort_by_key(|s| s.time);
    let mut gains = Vec::with_capacity(steps.len());
    let mut before: Option<StepGrowth> = None;
    for step in steps {
        let (increase, from) = match &before {
            Some(before) => (step.since(before), before.last_time),
            None => (step.inside(), step.first_time),
        };
        let seconds = (step.last_time.as_millisecond() - from.as_millisecond()) as f64 / 1000.0;
        if seconds > 0.0 {
            gains.push(Gain { time: step.time, count: step.count, increase, seconds });
        }
        before = Some(step);
    }
    gains
}

/// The series of a `rate` or `increase`, stored series summed into groups.
pub(crate) fn grown_series(
    fetched: &Fetched,
    group_by: &[Dim],
    aggregation: Aggregation,
) -> Result<Vec<Series>, ToolError> {
    let table = Table::new(&fetched.result);
    let bucket = table.column("bucket")?;
    let mut groups: Groups<'_, BTreeMap<Timestamp, Point>> = Groups::new(&table, group_by)?;
    for (row, steps) in stored_series(fetched, &table, Some(bucket))? {
        let slots = groups.of(row);
        for gain in gains(steps) {
            let value = amount(&gain, aggregation);
            slots
                .entry(gain.time)
                .and_modify(|p| {
                    p.value += value;
                    p.min = p.value;
                    p.max = p.value;
                    p.count += gain.count;
                })
                .or_insert(Point { time: gain.time, value, min: value, max: value, count: gain.count });
        }
    }
    Ok(groups.into_series(|slots| slots.into_values().collect()))
}

/// What a gain counts for.
pub(crate) fn amount(gain: &Gain, aggregation: Aggregation) -> f64 {
    if aggregation == Aggregation::Rate { gain.increase / gain.seconds } else { gain.increase }
}

type StoredSeries<'a> = Vec<(&'a [Cell], Vec<StepGrowth>)>;

/// The steps of every stored series, with one of its rows. Without a bucket the whole window is one step.
pub(crate) fn stored_series<'a>(
    fetched: &Fetched,
    table: &Table<'a>,
    bucket: Option<usize>,
) -> Result<StoredSeries<'a>, ToolError> {
    let mut dims = Vec::new();
    for name in dimension_columns(fetched) {
        dims.push(table.column(&name)?);
    }
    let labels = table.column("labels")?;
    let [count, min, first, last, rise, first_time, last_time] = [
        table.column("count")?,
        table.column("min")?,
        table.column("first")?,
        table.column("last")?,
        table.column("rise")?,
        table.column("first_time")?,
        table.column("last_time")?,
    ];
    let mut index: HashMap<(Vec<&'a str>, Option<&'a Labels>), usize> = HashMap::new();
    let mut series: StoredSeries<'a> = Vec::new();
    for row in table.rows() {
        let (Some(min), Some(first), Some(last), Some(rise)) =
            (table.number(row, min), table.number(row, first), table.number(row, last), table.number(row, rise))
        else {
            continue;
        };
        let (Some(first_time), Some(last_time)) = (table.time(row, first_time), table.time(row, last_time)) else {
            continue;
        };
        let time = bucket.and_then(|column| table.time(row, column)).unwrap_or(first_time);
        let step = StepGrowth { time, count: table.count(row, count), min, first, last, rise, first_time, last_time };
        let key = (dims.iter().map(|c| table.text(row, *c)).collect(), table.labels(row, labels));
        let next = series.len();
        let at = *index.entry(key).or_insert(next);
        match series.get_mut(at) {
            Some((_, steps)) => steps.push(step),
            None => series.push((row, vec![step])),
        }
    }
    Ok(series)
}

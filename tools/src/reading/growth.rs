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
    let names = Spellings::of(fetched);
    let mut read: Vec<Row<'a>> = Vec::new();
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
        let name = names.column.map_or("", |column| table.text(row, column));
        let dims = dims.iter().filter(|c| Some(**c) != names.column).map(|c| table.text(row, *c)).collect();
        read.push(Row { row, name, place: names.place(name), dims, labels: table.labels(row, labels), step });
    }
    let twice = said_twice(&read);
    let mut index: HashMap<(&[&'a str], Option<&'a Labels>, &'a str), usize> = HashMap::new();
    let mut series: StoredSeries<'a> = Vec::new();
    for (one, _) in read.iter().zip(twice).filter(|(_, twice)| !twice) {
        let next = series.len();
        let at = *index.entry((&one.dims, one.labels, one.name)).or_insert(next);
        match series.get_mut(at) {
            Some((_, steps)) => steps.push(one.step),
            None => series.push((one.row, vec![one.step])),
        }
    }
    Ok(series)
}

/// One row: a step of a stored series.
struct Row<'a> {
    row: &'a [Cell],
    /// The stored metric name, where it was asked for.
    name: &'a str,
    /// Its place among the spellings of the metric.
    place: usize,
    dims: Vec<&'a str>,
    labels: Option<&'a Labels>,
    step: StepGrowth,
}

/// The spellings of a metric, the preferred one first.
struct Spellings<'f> {
    column: Option<usize>,
    stored: &'f [String],
    suffix: &'static str,
}

impl<'f> Spellings<'f> {
    fn of(fetched: &'f Fetched) -> Self {
        let stored = fetched.query.metric().map_or(&[][..], |m| m.stored.as_slice());
        let column = Table::new(&fetched.result).optional(Dim::Metric.as_str()).filter(|_| stored.len() > 1);
        Self { column, stored, suffix: fetched.query.query().part.suffix() }
    }

    fn place(&self, name: &str) -> usize {
        let base = name.strip_suffix(self.suffix).unwrap_or(name);
        let place = |name: &str| self.stored.iter().position(|stored| stored.eq_ignore_ascii_case(name));
        place(name).or_else(|| place(base)).unwrap_or(self.stored.len())
    }
}

/// Which rows say again what another says under a spelling that comes first: an exporter that renames a metric writes both
/// names for some versions, and their sum would be twice the truth. Rows that follow one another, as when the exporter was
/// upgraded, are both kept.
fn said_twice(rows: &[Row<'_>]) -> Vec<bool> {
    // Steps of two spellings begin together. Over a whole window each is one row, from its first sample to its last.
    let mut same: HashMap<(&[&str], Option<&Labels>), Vec<&Row<'_>>> = HashMap::new();
    for row in rows {
        same.entry((&row.dims, row.labels)).or_default().push(row);
    }
    let mut at_once: HashMap<(&[&str], Option<&Labels>, Timestamp), usize> = HashMap::new();
    for row in rows {
        let least = at_once.entry((&row.dims, row.labels, row.step.time)).or_insert(row.place);
        *least = row.place.min(*least);
    }
    let overlaps = |a: &StepGrowth, b: &StepGrowth| a.first_time <= b.last_time && b.first_time <= a.last_time;
    rows.iter()
        .map(|row| {
            let least = at_once.get(&(row.dims.as_slice(), row.labels, row.step.time));
            let all = same.get(&(row.dims.as_slice(), row.labels)).map_or(&[][..], Vec::as_slice);
            least.is_some_and(|least| row.place > *least)
                || all.len() <= SPELLINGS
                    && all.iter().any(|other| other.place < row.place && overlaps(&other.step, &row.step))
        })
        .collect()
}

/// More rows than this of one series are steps, which begin together; fewer may be whole windows.
const SPELLINGS: usize = 8;

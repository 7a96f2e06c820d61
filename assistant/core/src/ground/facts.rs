//! Facts recomputed from evidence. Nothing here trusts a number that a tool or a planner wrote down.

use sightline_model::{Entity, Evidence, FactPath, FactRef, Point, Quantity, Relation, Series, Stat, TimeRange};

use super::Ungrounded;

/// What a fact turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fact {
    /// A number.
    Number(f64),
    /// An instant.
    Time(jiff::Timestamp),
    /// Untrusted text.
    Text(String),
}

impl Fact {
    /// The fact as a number; an instant counts as milliseconds since 1970.
    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => value.is_finite().then_some(*value),
            Self::Time(at) => Some(at.as_millisecond() as f64),
            Self::Text(_) => None,
        }
    }
}

/// "About the same" allows this share of the larger magnitude: half of the 5 % below which the compare tool calls two windows
/// unchanged.
const ABOUT: f64 = 0.02;

/// Looks a fact up.
pub(super) fn look_up(fact: &FactRef, evidence: &[Evidence]) -> Result<Fact, Ungrounded> {
    let found = evidence.iter().find(|e| e.id == fact.evidence);
    let found = found.ok_or_else(|| Ungrounded::NoEvidence { id: fact.evidence.to_string() })?;
    let missing = || Ungrounded::NoFact { id: fact.evidence.to_string(), path: format!("{:?}", fact.path) };
    let value = match &fact.path {
        FactPath::Stat { entity, stat, within } => {
            let series: Vec<&Series> = found.series.iter().filter(|s| matches(&s.entity, entity)).collect();
            statistic(&series, *stat, within.as_ref()).map(Fact::Number)
        }
        FactPath::Peers { exclude, stat, within } => {
            let mut values: Vec<f64> = found
                .series
                .iter()
                .filter(|s| !matches(&s.entity, exclude))
                .filter_map(|s| statistic(&[s], *stat, within.as_ref()))
                .collect();
            median(&mut values).map(Fact::Number)
        }
        FactPath::Instant { entity, at } => found
            .series
            .iter()
            .filter(|s| matches(&s.entity, entity))
            .any(|s| s.points.iter().any(|p| p.time == *at))
            .then_some(Fact::Time(*at)),
        FactPath::LastSeen { entity } => found
            .series
            .iter()
            .filter(|s| matches(&s.entity, entity))
            .filter_map(|s| s.points.last())
            .map(|p| p.time)
            .max()
            .map(Fact::Time),
        FactPath::RowValue { row } => found.rows.get(*row).and_then(|r| r.value).map(Fact::Number),
        FactPath::RowTime { row } => found.rows.get(*row).and_then(|r| r.time).map(Fact::Time),
        FactPath::RowField { row, field } => found
            .rows
            .get(*row)
            .and_then(|r| r.fields.get(field).or_else(|| r.entity.get(field)))
            .map(|text| Fact::Text(text.clone())),
        // From cut data a total cannot be told.
        FactPath::Total => (!found.truncated).then_some(Fact::Number(found.total as f64)),
        FactPath::Returned => Some(Fact::Number(found.returned as f64)),
        FactPath::SeriesWhere { stat, relation, bound, within } => {
            let count = found
                .series
                .iter()
                .filter_map(|s| statistic(&[s], *stat, within.as_ref()))
                .filter(|value| holds(*value, *relation, *bound))
                .count();
            Some(Fact::Number(count as f64))
        }
    };
    value.ok_or_else(missing)
}

/// Computes a quantity. `Constant` is for comparisons; printing one is refused by the caller.
pub(super) fn compute(quantity: &Quantity, evidence: &[Evidence]) -> Result<f64, Ungrounded> {
    let not_a_number = || Ungrounded::NotANumber;
    match quantity {
        Quantity::Fact(fact) => look_up(fact, evidence)?.number().ok_or_else(not_a_number),
        Quantity::Difference(left, right) => Ok(compute(left, evidence)? - compute(right, evidence)?),
        Quantity::Ratio(left, right) => {
            let base = compute(right, evidence)?;
            if base == 0.0 { Err(not_a_number()) } else { Ok(compute(left, evidence)? / base) }
        }
        Quantity::PercentChange { from, to } => {
            let base = compute(from, evidence)?;
            if base == 0.0 { Err(not_a_number()) } else { Ok((compute(to, evidence)? - base) / base.abs() * 100.0) }
        }
        Quantity::Constant(value) => Ok(*value),
    }
}

/// Whether a comparison holds.
pub(super) fn holds(left: f64, relation: Relation, right: f64) -> bool {
    match relation {
        Relation::Above => left > right,
        Relation::Below => left < right,
        Relation::AtLeast => left >= right,
        Relation::AtMost => left <= right,
        Relation::About => (left - right).abs() <= ABOUT * left.abs().max(right.abs()),
    }
}

fn matches(entity: &Entity, wanted: &Entity) -> bool {
    wanted.iter().all(|(key, value)| entity.get(key) == Some(value))
}

/// A statistic over the points of one or several series. Several series have no common median, first or last point.
fn statistic(series: &[&Series], stat: Stat, within: Option<&TimeRange>) -> Option<f64> {
    let points: Vec<&Point> =
        series.iter().flat_map(|s| &s.points).filter(|p| within.is_none_or(|w| w.contains(p.time))).collect();
    if points.is_empty() {
        return None;
    }
    let count: u64 = points.iter().map(|p| p.count).sum();
    let single = series.len() == 1;
    match stat {
        Stat::Count => Some(count as f64),
        Stat::Min => points.iter().map(|p| p.min).reduce(f64::min),
        Stat::Max => points.iter().map(|p| p.max).reduce(f64::max),
        Stat::Mean => (count > 0).then(|| points.iter().map(|p| p.value * p.count as f64).sum::<f64>() / count as f64),
        Stat::Sum => Some(points.iter().map(|p| p.value).sum()),
        Stat::Median => {
            let mut values: Vec<f64> = points.iter().map(|p| p.value).collect();
            median(&mut values)
        }
        Stat::P95 => {
            let mut values: Vec<f64> = points.iter().map(|p| p.value).collect();
            quantile(&mut values, 0.95)
        }
        Stat::First => single.then(|| points.first().map(|p| p.value)).flatten(),
        Stat::Last => single.then(|| points.last().map(|p| p.value)).flatten(),
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The quantile by linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
fn quantile(values: &mut [f64], level: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let place = level * last as f64;
    let low = *values.get(place.floor() as usize)?;
    let high = *values.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}

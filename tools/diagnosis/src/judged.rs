//! A diagnosis as tests look at it, and a reader that recomputes every claim of one.

use sightline_model::claim::{DraftCause, Quantity};
use sightline_model::{
    Component, DraftClaim, Entity, Evidence, EvidenceId, FactPath, NumberSlot, Point, Relation, Stat, TimeRange,
};

use crate::diagnose::Diagnosis;
use crate::worlds::at;

/// A diagnosis with short ways to look at it.
pub(crate) struct Judged(pub(crate) Diagnosis);

impl Judged {
    pub(crate) fn outcome(&self) -> &'static str {
        self.0.outcome.as_str()
    }

    pub(crate) fn first(&self) -> &DraftCause {
        &self.0.causes[0]
    }

    /// Outcome, first cause, its components as `node/gpu`, and the minute of its onset.
    pub(crate) fn verdict(&self) -> (&'static str, &str, Vec<String>, Option<usize>) {
        let first = self.first();
        let components = first.components.iter().map(component).collect();
        let onset = first.onset.map(|o| ((o.as_second() - at(0).as_second()) / 60) as usize);
        (self.outcome(), first.id.as_str(), components, onset)
    }

    pub(crate) fn status(&self, id: &str) -> &'static str {
        let cause = self.0.causes.iter().find(|c| c.id == id).unwrap();
        match cause.status {
            sightline_model::CauseStatus::Supported => "supported",
            sightline_model::CauseStatus::RuledOut => "ruled_out",
            sightline_model::CauseStatus::NoData => "no_data",
        }
    }

    pub(crate) fn supported(&self) -> Vec<&str> {
        self.0.causes.iter().filter(|c| c.rank > 0).map(|c| c.id.as_str()).collect()
    }
}

fn component(c: &Component) -> String {
    c.values().rev().cloned().collect::<Vec<_>>().join("/")
}

pub(crate) fn claims(diagnosis: &Diagnosis) -> Vec<&DraftClaim> {
    let mut all = vec![&diagnosis.headline];
    all.extend(&diagnosis.claims);
    for cause in &diagnosis.causes {
        all.push(&cause.why);
        all.extend(&cause.claims);
    }
    all
}

/// Recomputes a claim from the evidence; panics when it would not hold.
pub(crate) fn check(claim: &DraftClaim, evidence: &[&Evidence]) {
    assert!(!claim.text.contains(|c: char| c.is_ascii_digit()), "digits in `{}`", claim.text);
    let named = claim.text.matches('{').count();
    assert!(named >= claim.slots.len(), "unused slots in `{}`", claim.text);
    for name in claim.text.split('{').skip(1).map(|part| part.split('}').next().unwrap()) {
        assert!(claim.slots.contains_key(name), "`{{{name}}}` has nothing in `{}`", claim.text);
    }
    for slot in claim.slots.values() {
        let there = match slot {
            NumberSlot::Number { quantity, .. } => value(quantity, evidence).is_some(),
            NumberSlot::Time(fact) => value(&Quantity::Fact(fact.clone()), evidence).is_some(),
            NumberSlot::Quote(fact) => find(&fact.evidence, evidence).is_some(),
            NumberSlot::Entity { evidence: id, key, value } => find(id, evidence).is_some_and(|e| {
                let series = e.series.iter().any(|s| s.entity.get(key) == Some(value));
                series || e.rows.iter().any(|r| r.entity.get(key) == Some(value))
            }),
        };
        assert!(there, "{slot:?} of `{}` is not in the evidence", claim.text);
    }
    for c in &claim.comparisons {
        let (left, right) = (value(&c.left, evidence), value(&c.right, evidence));
        let (Some(left), Some(right)) = (left, right) else { panic!("{c:?} of `{}` has no value", claim.text) };
        let holds = match c.relation {
            Relation::Above => left > right,
            Relation::Below => left < right,
            Relation::AtLeast => left >= right,
            Relation::AtMost => left <= right,
            Relation::About => (left - right).abs() <= 0.02 * left.abs().max(right.abs()),
        };
        assert!(holds, "`{}`: {left} {:?} {right} does not hold", claim.text, c.relation);
    }
}

fn find<'a>(id: &EvidenceId, evidence: &[&'a Evidence]) -> Option<&'a Evidence> {
    evidence.iter().find(|e| e.id == *id).copied()
}

fn value(quantity: &Quantity, evidence: &[&Evidence]) -> Option<f64> {
    match quantity {
        Quantity::Constant(v) => Some(*v),
        Quantity::Difference(a, b) => Some(value(a, evidence)? - value(b, evidence)?),
        Quantity::Ratio(a, b) => Some(value(a, evidence)? / value(b, evidence)?),
        Quantity::PercentChange { from, to } => {
            let from = value(from, evidence)?;
            Some((value(to, evidence)? - from) / from.abs() * 100.0)
        }
        Quantity::Fact(fact) => {
            let e = find(&fact.evidence, evidence)?;
            let series = |entity: &Entity| e.series.iter().find(|s| s.entity == *entity);
            match &fact.path {
                FactPath::Stat { entity, stat, within } => {
                    let points: Vec<Point> = e
                        .series
                        .iter()
                        .filter(|s| entity.iter().all(|(k, v)| s.entity.get(k) == Some(v)))
                        .flat_map(|s| s.points.clone())
                        .collect();
                    of_points(&points, *stat, *within)
                }
                FactPath::Peers { exclude, stat, within } => {
                    let others: Vec<f64> = e
                        .series
                        .iter()
                        .filter(|s| s.entity != *exclude)
                        .filter_map(|s| of_points(&s.points, *stat, *within))
                        .collect();
                    sightline_analysis::median(&others)
                }
                FactPath::Instant { entity, at } => {
                    series(entity)?.points.iter().find(|p| p.time == *at).map(|p| p.time.as_millisecond() as f64)
                }
                FactPath::LastSeen { entity } => Some(series(entity)?.points.last()?.time.as_millisecond() as f64),
                FactPath::RowTime { row } => Some(e.rows.get(*row)?.time?.as_millisecond() as f64),
                other => panic!("{other:?} is not used by the checks"),
            }
        }
    }
}

fn of_points(points: &[Point], stat: Stat, within: Option<TimeRange>) -> Option<f64> {
    let points: Vec<&Point> = points.iter().filter(|p| within.is_none_or(|w| w.contains(p.time))).collect();
    let values: Vec<f64> = points.iter().map(|p| p.value).collect();
    match stat {
        Stat::Min => points.iter().map(|p| p.min).reduce(f64::min),
        Stat::Max => points.iter().map(|p| p.max).reduce(f64::max),
        Stat::Mean => sightline_analysis::mean(&values),
        Stat::Median => sightline_analysis::median(&values),
        Stat::P95 => sightline_analysis::quantile(&values, 0.95),
        Stat::First => values.first().copied(),
        Stat::Last => values.last().copied(),
        Stat::Sum => (!values.is_empty()).then(|| values.iter().sum()),
        Stat::Count => Some(points.iter().map(|p| p.count).sum::<u64>() as f64),
    }
}

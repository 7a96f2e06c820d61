//! Whether what an incident shows was cited, and whether its numbers stand in what was fetched.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_model::{Answer, Entity, Evidence, EvidenceId, Point};

use super::{Names, Share};
use crate::suite::{ExpectedEvidence, ExpectedFact};

/// The expected pieces that a sentence of the answer cites.
pub(super) fn cited(answer: &Answer, expected: &[ExpectedEvidence], names: &Names) -> Share {
    let of_causes = answer.causes.iter().flat_map(|cause| &cause.claims);
    let cited: BTreeSet<&EvidenceId> = of_causes.chain(&answer.claims).flat_map(|claim| &claim.citations).collect();
    let mut share = Share::default();
    for wanted in expected {
        let labels = canonical(&wanted.labels, names);
        share.count(answer.evidence.iter().any(|evidence| {
            evidence.dataset == wanted.dataset
                && wanted.metric.as_deref().is_none_or(|metric| is_metric(evidence, metric, names))
                && cited.contains(&evidence.id)
                && entities(evidence).any(|entity| holds(&evidence.labels, entity, &labels))
        }));
    }
    share
}

/// The expected numbers that the fetched series bear out, computed anew from their points.
pub(super) fn borne_out(answer: &Answer, expected: &[ExpectedFact], names: &Names) -> Share {
    let mut share = Share::default();
    for fact in expected {
        share.count(is_borne_out(answer, fact, names));
    }
    share
}

fn is_borne_out(answer: &Answer, fact: &ExpectedFact, names: &Names) -> bool {
    let labels = canonical(&fact.labels, names);
    let end = |text: &Option<String>, open: Timestamp| match text {
        Some(text) => text.parse::<Timestamp>().ok(),
        None => Some(open),
    };
    let Some((from, to)) = end(&fact.from, Timestamp::MIN).zip(end(&fact.to, Timestamp::MAX)) else { return false };
    let evidence = answer.evidence.iter().filter(|evidence| is_metric(evidence, &fact.metric, names));
    let series = evidence.flat_map(|evidence| {
        evidence.series.iter().filter(|series| holds(&evidence.labels, Some(&series.entity), &labels))
    });
    series.into_iter().any(|series| {
        let points: Vec<&Point> = series.points.iter().filter(|point| point.time >= from && point.time < to).collect();
        statistic(&points, &fact.agg)
            .is_some_and(|value| (value - fact.value).abs() <= fact.tolerance * fact.value.abs().max(f64::MIN_POSITIVE))
    })
}

/// A statistic of the samples behind some points; none of no points, and none that is not known here.
fn statistic(points: &[&Point], name: &str) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let count: u64 = points.iter().map(|point| point.count).sum();
    match name {
        "min" => points.iter().map(|point| point.min).reduce(f64::min),
        "max" => points.iter().map(|point| point.max).reduce(f64::max),
        "mean" | "avg" => {
            let sum: f64 = points.iter().map(|point| point.value * point.count as f64).sum();
            (count > 0).then(|| sum / count as f64)
        }
        "median" | "p50" => {
            let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        }
        "first" => Some(first.value),
        "last" => Some(last.value),
        "count" => Some(count as f64),
        "sum" => Some(points.iter().map(|point| point.value).sum()),
        _ => None,
    }
}

/// Whether evidence is of the metric that goes by this stored or canonical name.
fn is_metric(evidence: &Evidence, name: &str, names: &Names) -> bool {
    let known = |name: &str| {
        let metric = names.catalogue.get(name).or_else(|| names.catalogue.by_stored(name));
        metric.map(|metric| metric.id().to_owned())
    };
    let of_evidence = [&evidence.metric, &evidence.canonical_metric];
    let mut own = of_evidence.into_iter().flatten();
    own.any(|own| own.eq_ignore_ascii_case(name) || (known(name).is_some() && known(own) == known(name)))
}

/// What a piece of evidence is about: each of its series and rows, or nothing but its filters.
fn entities(evidence: &Evidence) -> impl Iterator<Item = Option<&Entity>> {
    let of_series = evidence.series.iter().map(|series| Some(&series.entity));
    of_series.chain(evidence.rows.iter().map(|row| Some(&row.entity))).chain([None])
}

/// Whether filters and entity together have these labels.
fn holds(filters: &BTreeMap<String, String>, entity: Option<&Entity>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| entity.and_then(|entity| entity.get(key)).or_else(|| filters.get(key)) == Some(value))
}

/// Labels under their canonical names alone.
fn canonical(labels: &BTreeMap<String, String>, names: &Names) -> BTreeMap<String, String> {
    let known: BTreeSet<&str> = names.labels.canonical().collect();
    let all = names.labels.canonicalise(labels);
    let kept: BTreeMap<String, String> = all.iter().filter(|(key, _)| known.contains(key.as_str())).map(own).collect();
    // A label that no canonical one is read from stays as it is.
    if kept.len() < labels.len() {
        let unread = labels.iter().filter(|(_, value)| !kept.values().any(|own| own == *value)).map(own);
        return kept.iter().map(own).chain(unread).collect();
    }
    kept
}

fn own((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}

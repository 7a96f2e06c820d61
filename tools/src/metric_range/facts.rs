//! What `metric_range` says: one sentence a series, or the whole and its ends.

use sightline_model::{
    Aggregation, Entity, Evidence, EvidenceId, EvidenceRow, FactPath, Outcome, Relation, Series, Stat, Stats,
    TimeRange, Unit,
};

use crate::measure::{Derived, Measure};
use crate::reading::{stat, stats};
use crate::sentence::{Sentence, WHOLE, at, fact, format_for, row_value, stat_of};
use crate::tool::ToolOutput;

/// More series than this are not described one by one.
const MAX_DESCRIBED: usize = 4;
/// So many of the series that stopped are named.
const MAX_STOPPED: usize = 3;
/// Below this share of the expected samples the reader is told. Chosen: scrapes that are lost now and then stay above it.
const GOOD_COVERAGE: f64 = 0.9;

pub(super) fn output(measure: &Measure, evidence: Vec<Evidence>, fixed: &Entity) -> ToolOutput {
    let mut output = ToolOutput { outcome: Some(Outcome::Answered), ..ToolOutput::default() };
    if let Some(values) = evidence.first() {
        let cited: Vec<EvidenceId> = evidence.iter().map(|e| e.id.clone()).collect();
        let claims = describe(measure, values, fixed);
        output.claims = claims.into_iter().map(|s| cited.iter().fold(s, |s, id| s.cite(id)).finish()).collect();
        output.headline = output.claims.first().cloned();
        if matches!(measure.derived, Some(Derived::Ratio { .. })) {
            // The parts come with gaps of their own.
            output.data_health = evidence.iter().skip(1).flat_map(health).collect();
            output.data_health.dedup();
            output.data_health.extend(undivided(values));
            if values.series.is_empty() {
                output.outcome = Some(Outcome::InsufficientData);
            }
        } else {
            output.data_health = health(values);
        }
    }
    output.evidence = evidence;
    output
}

/// What a row with the time beyond a threshold is called.
const BEYOND: &str = "seconds beyond the threshold";

/// How long the share of a window is, as a row: who asks how long it was wants minutes.
pub(super) fn duration(values: &Evidence, range: TimeRange) -> Option<EvidenceRow> {
    let [only] = values.series.as_slice() else { return None };
    let share = stat(only, Stat::Mean)?;
    let fields = [("row".to_owned(), BEYOND.to_owned())].into();
    Some(EvidenceRow { value: Some(share * range.seconds()), fields, ..EvidenceRow::default() })
}

fn undivided(values: &Evidence) -> Option<String> {
    let without = values.rows.last().and_then(|row| row.value).filter(|n| *n > 0.0);
    without.map(|_| "a step without a ratio is not zero: what it is divided by is missing or zero there".to_owned())
}

fn describe(measure: &Measure, values: &Evidence, fixed: &Entity) -> Vec<Sentence> {
    let mut sentences = Vec::new();
    let unit = measure.unit();
    if let [only] = values.series.as_slice() {
        sentences.extend(stats(&values.series).map(|s| of_series(measure, values, only, &s, fixed)));
    } else {
        if let Some(all) = &values.stats {
            let mut sentence = subject(measure, values, &Entity::new(), fixed);
            sentence = level(sentence, measure, values, &Entity::new(), all, unit);
            sentences.push(sentence.say(", over ").number(fact(&values.id, FactPath::Total), WHOLE).say(" series"));
        }
        if values.series.len() <= MAX_DESCRIBED {
            for series in values.series.iter().filter(|series| can_be_named(values, &series.entity)) {
                sentences
                    .extend(stats(std::slice::from_ref(series)).map(|s| of_series(measure, values, series, &s, fixed)));
            }
        } else {
            sentences.extend(extreme(measure, values, fixed, Relation::Above));
            sentences.extend(extreme(measure, values, fixed, Relation::Below));
        }
    }
    sentences.extend(stopped(values));
    let beyond = values.rows.iter().position(|row| row.fields.get("row").is_some_and(|what| what == BEYOND));
    if let Some((row, seconds)) = beyond.and_then(|row| Some((row, values.rows.get(row)?.value?))) {
        let number = row_value(&values.id, row);
        sentences.push(
            Sentence::new()
                .say("that share of the window is ")
                .number(number, format_for(seconds.round(), Unit::Seconds)),
        );
    }
    if let (Some(Derived::Ratio { .. }), Some(row)) = (&measure.derived, values.rows.len().checked_sub(1)) {
        let without = Sentence::new().number(row_value(&values.id, row), WHOLE);
        sentences.push(without.say(" steps have no ratio: what it is divided by is missing or zero there"));
    }
    sentences
}

/// `gpu_temperature of GPU 3, node n07`: the metric, then what the series and the filters say it is of.
pub(crate) fn subject(measure: &Measure, values: &Evidence, entity: &Entity, fixed: &Entity) -> Sentence {
    let mut whole = fixed.clone();
    whole.extend(entity.clone());
    let mut sentence = Sentence::new().say(match &measure.derived {
        Some(Derived::Delta) => "the change from point to point of ",
        Some(Derived::MovingAverage) => "the moving average of ",
        Some(Derived::Cumulative) => "the running sum of ",
        Some(Derived::Ratio { .. }) => "the ratio of ",
        None => "",
    });
    sentence = match measure.aggregation {
        Aggregation::Avg | Aggregation::Last | Aggregation::Min | Aggregation::Max => sentence,
        Aggregation::Rate => sentence.say("the rate of "),
        Aggregation::Increase => sentence.say("the increase of "),
        Aggregation::Sum => sentence.say("the sum of samples of "),
        Aggregation::Count => sentence.say("the number of samples of "),
        Aggregation::Stddev => sentence.say("the standard deviation of "),
        Aggregation::P50 => sentence.say("the median of "),
        Aggregation::P90 => sentence.say("p90 of "),
        Aggregation::P95 => sentence.say("p95 of "),
        Aggregation::P99 => sentence.say("p99 of "),
        Aggregation::TimeAvg => sentence.say("the mean over time of "),
        Aggregation::FractionAbove => threshold(sentence.say("the share of time above "), values).say(" of "),
        Aggregation::FractionBelow => threshold(sentence.say("the share of time below "), values).say(" of "),
    };
    sentence = if measure.is_every() {
        // One of them may be named by a filter or by what tells the series apart.
        match whole.remove("metric") {
            Some(name) => sentence.value(&values.id, "metric", &name),
            None => sentence.say("every metric"),
        }
    } else {
        sentence.value(&values.id, "metric", &measure.metric)
    };
    if let Some(Derived::Ratio { to, .. }) = &measure.derived {
        sentence = sentence.say(" to ").value(&values.id, "divided_by", to);
    }
    if whole.is_empty() { sentence } else { sentence.say(" of ").entity(&values.id, &whole) }
}

fn threshold(sentence: Sentence, values: &Evidence) -> Sentence {
    match values.labels.get("threshold") {
        Some(threshold) => sentence.value(&values.id, "threshold", threshold),
        None => sentence.say("the threshold"),
    }
}

fn of_series(measure: &Measure, values: &Evidence, series: &Series, stats: &Stats, fixed: &Entity) -> Sentence {
    let sentence = subject(measure, values, &series.entity, fixed);
    level(sentence, measure, values, &series.entity, stats, measure.unit())
}

/// The level of one series, or of all together for an empty entity, in the words that fit the aggregation.
fn level(
    sentence: Sentence,
    measure: &Measure,
    values: &Evidence,
    entity: &Entity,
    stats: &Stats,
    unit: Unit,
) -> Sentence {
    let id = &values.id;
    let number = |sentence: Sentence, which: Stat, value: f64| {
        sentence.number(stat_of(id, entity, which), format_for(value, unit))
    };
    if stats.min == 0.0 && stats.max == 0.0 {
        let sentence = number(sentence.say(" was measured as "), Stat::Max, 0.0);
        return sentence.say(" throughout").compare(
            stat_of(id, entity, Stat::Min),
            Relation::AtLeast,
            sightline_model::Quantity::Constant(0.0),
        );
    }
    let adds_up = matches!(measure.aggregation, Aggregation::Increase | Aggregation::Sum | Aggregation::Count);
    if adds_up && measure.derived.is_none() {
        // The sum of a step's worth each is at least as large as the largest.
        let all = stat_of(id, entity, Stat::Sum);
        return sentence.say(" was ").number(all, format_for(stats.max, unit)).say(" in all");
    }
    if stats.min == stats.max {
        let sentence = number(sentence.say(" stood at "), Stat::Max, stats.max);
        return sentence.say(" throughout").compare(
            stat_of(id, entity, Stat::Min),
            Relation::AtLeast,
            stat_of(id, entity, Stat::Max),
        );
    }
    if measure.derived.is_some() {
        let sentence = number(sentence.say(" averaged "), Stat::Mean, stats.mean);
        return between(sentence, number, stats);
    }
    match measure.aggregation {
        Aggregation::Max => number(sentence.say(" peaked at "), Stat::Max, stats.max),
        Aggregation::Min => number(sentence.say(" was never below "), Stat::Min, stats.min),
        // Of several series none is the last.
        Aggregation::Last if !can_be_named(values, entity) => {
            let sentence = number(sentence.say(" averaged "), Stat::Mean, stats.mean);
            between(sentence, number, stats)
        }
        Aggregation::Last => {
            let sentence = number(sentence.say(" was last "), Stat::Last, stats.last);
            between(sentence, number, stats)
        }
        Aggregation::Avg
        | Aggregation::Rate
        | Aggregation::Increase
        | Aggregation::Sum
        | Aggregation::Count
        | Aggregation::Stddev
        | Aggregation::P50
        | Aggregation::P90
        | Aggregation::P95
        | Aggregation::P99
        | Aggregation::TimeAvg
        | Aggregation::FractionAbove
        | Aggregation::FractionBelow => {
            let sentence = number(sentence.say(" averaged "), Stat::Mean, stats.mean);
            between(sentence, number, stats)
        }
    }
}

fn between(sentence: Sentence, number: impl Fn(Sentence, Stat, f64) -> Sentence, stats: &Stats) -> Sentence {
    let sentence = number(sentence.say(", between "), Stat::Min, stats.min);
    number(sentence.say(" and "), Stat::Max, stats.max)
}

/// The series at one end, against the median of the others; nothing when it does not stand out by its mean.
fn extreme(measure: &Measure, values: &Evidence, fixed: &Entity, relation: Relation) -> Option<Sentence> {
    let mean = |s: &Series| stat(s, Stat::Mean);
    let by_mean = |a: &&Series, b: &&Series| mean(a).unwrap_or(0.0).total_cmp(&mean(b).unwrap_or(0.0));
    let (series, words) = if relation == Relation::Above {
        (values.series.iter().max_by(by_mean)?, " was the highest on average, ")
    } else {
        (values.series.iter().min_by(by_mean)?, " was the lowest on average, ")
    };
    if !can_be_named(values, &series.entity) {
        return None;
    }
    let others: Vec<f64> = values.series.iter().filter(|s| s.entity != series.entity).filter_map(mean).collect();
    let peers = sightline_analysis::median(&others)?;
    let own = mean(series)?;
    if own == peers {
        return None;
    }
    let unit = measure.unit();
    let own_fact = stat_of(&values.id, &series.entity, Stat::Mean);
    let peers_fact =
        fact(&values.id, FactPath::Peers { exclude: series.entity.clone(), stat: Stat::Mean, within: None });
    Some(
        subject(measure, values, &series.entity, fixed)
            .say(words)
            .number(own_fact.clone(), format_for(own, unit))
            .say(", against a median of ")
            .number(peers_fact.clone(), format_for(peers, unit))
            .say(" over the others")
            .compare(own_fact, relation, peers_fact),
    )
}

/// Whether a fact about this entity is about one series. Samples that lack what tells the others apart, such as those of no node,
/// are named by less than the others are, and so by what fits them too.
fn can_be_named(values: &Evidence, entity: &Entity) -> bool {
    let fits = |series: &&Series| entity.iter().all(|(key, value)| series.entity.get(key) == Some(value));
    values.series.iter().filter(fits).count() == 1
}

/// Series that end in the middle of the window: a device that stops reporting is not at zero.
fn stopped(values: &Evidence) -> Vec<Sentence> {
    values
        .coverage
        .gaps
        .iter()
        .filter(|gap| gap.to == values.to && !gap.entity.is_empty() && can_be_named(values, &gap.entity))
        .take(MAX_STOPPED)
        .map(|gap| {
            Sentence::new()
                .entity(&values.id, &gap.entity)
                .say(" has no samples after ")
                .time(at(&values.id, FactPath::LastSeen { entity: gap.entity.clone() }))
        })
        .collect()
}

fn health(values: &Evidence) -> Vec<String> {
    let coverage = &values.coverage;
    let sparse = coverage.expected.is_some_and(|expected| (coverage.seen as f64) < GOOD_COVERAGE * expected as f64);
    if sparse || !coverage.gaps.is_empty() {
        vec!["samples are missing in this window; the gaps are listed under coverage and are not zeros".to_owned()]
    } else {
        Vec::new()
    }
}

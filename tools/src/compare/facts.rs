//! What `compare` says: both levels, their difference, and whether it is one.

use sightline_analysis::mann_whitney;
use sightline_model::{Entity, Evidence, NumberFormat, Outcome, Quantity, Relation, Series, Stat, Unit};

use crate::measure::Measure;
use crate::metric_range::subject;
use crate::sentence::{Sentence, format_for, stat_of};
use crate::tool::ToolOutput;

/// Fewer points on a side than this decide nothing: with four against four the rank test cannot reach its threshold.
const MIN_POINTS: usize = 5;
/// A shift must be this unlikely by chance. Stricter than the usual 0.05, for neighbouring points of a series resemble each
/// other, which the test does not know.
const MAX_P: f64 = 0.01;
/// Changes of less than this, percent, are called unchanged: within what differs from day to day without a cause. Chosen.
const UNCHANGED_PERCENT: f64 = 5.0;

/// How the two sides relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Higher,
    Lower,
    Unchanged,
    Unclear,
    TooLittle,
}

pub(super) fn output(measure: &Measure, pieces: Vec<Evidence>, heads: &[usize], same: &Entity) -> ToolOutput {
    let mut output = ToolOutput { outcome: Some(Outcome::Answered), ..ToolOutput::default() };
    let side = |n: usize| heads.get(n).and_then(|index| pieces.get(*index));
    if let (Some(base), Some(other)) = (side(0), side(1)) {
        let verdict = judge(base, other);
        let sentences = describe(measure, base, other, same, verdict);
        output.claims = sentences.into_iter().map(Sentence::finish).collect();
        output.headline = output.claims.first().cloned();
        if verdict == Verdict::TooLittle {
            output.outcome = Some(Outcome::InsufficientData);
        }
    }
    output.evidence = pieces;
    output
}

fn judge(base: &Evidence, other: &Evidence) -> Verdict {
    let (Some(before), Some(after)) = (base.stats, other.stats) else { return Verdict::TooLittle };
    let values = |e: &Evidence| -> Vec<f64> { points(&e.series).collect() };
    let (first, second) = (values(base), values(other));
    if first.len().min(second.len()) < MIN_POINTS {
        return Verdict::TooLittle;
    }
    let difference = after.mean - before.mean;
    if difference == 0.0 || (before.mean != 0.0 && (difference / before.mean * 100.0).abs() < UNCHANGED_PERCENT) {
        return Verdict::Unchanged;
    }
    match mann_whitney(&first, &second) {
        Some(test) if test.p_value <= MAX_P && (test.superiority > 0.5) == (difference > 0.0) => {
            if difference > 0.0 {
                Verdict::Higher
            } else {
                Verdict::Lower
            }
        }
        Some(_) => Verdict::Unclear,
        None => Verdict::TooLittle,
    }
}

fn points(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|s| &s.points).map(|p| p.value)
}

fn describe(measure: &Measure, base: &Evidence, other: &Evidence, same: &Entity, verdict: Verdict) -> Vec<Sentence> {
    let (Some(before), Some(after)) = (base.stats, other.stats) else { return Vec::new() };
    let unit = measure.unit();
    let mean = |e: &Evidence| stat_of(&e.id, &Entity::new(), Stat::Mean);
    let both = |sentence: Sentence| {
        sentence
            .number(mean(other), format_for(after.mean, unit))
            .say(" on average, against ")
            .number(mean(base), format_for(before.mean, unit))
            .say(" in the base")
    };
    let percent = || Quantity::PercentChange { from: Box::new(mean(base)), to: Box::new(mean(other)) };
    let by_percent = |sentence: Sentence| {
        if before.mean == 0.0 {
            return sentence;
        }
        let change = ((after.mean - before.mean) / before.mean.abs() * 100.0).abs();
        let format = NumberFormat { magnitude: true, ..format_for(change, Unit::Percent) };
        sentence.say(", a change of ").number(percent(), format)
    };
    let sentence = subject(measure, other, &Entity::new(), same);
    let headline = match verdict {
        Verdict::Higher => {
            by_percent(both(sentence.say(" is higher: "))).compare(mean(other), Relation::Above, mean(base))
        }
        Verdict::Lower => {
            by_percent(both(sentence.say(" is lower: "))).compare(mean(other), Relation::Below, mean(base))
        }
        Verdict::Unchanged => {
            let sentence = both(sentence.say(" is unchanged: "));
            if before.mean == 0.0 {
                sentence.compare(mean(other), Relation::About, mean(base))
            } else {
                sentence.compare(percent(), Relation::AtMost, Quantity::Constant(UNCHANGED_PERCENT)).compare(
                    percent(),
                    Relation::AtLeast,
                    Quantity::Constant(-UNCHANGED_PERCENT),
                )
            }
        }
        Verdict::Unclear => both(sentence.say(" shows no clear difference, its spread being too wide: ")),
        Verdict::TooLittle => both(sentence.say(" has too little data on one side to compare: ")),
    };
    let median = |e: &Evidence| stat_of(&e.id, &Entity::new(), Stat::Median);
    let difference = Quantity::Difference(Box::new(median(other)), Box::new(median(base)));
    let medians = Sentence::new()
        .say("the medians are ")
        .number(median(other), format_for(after.median, unit))
        .say(" and ")
        .number(median(base), format_for(before.median, unit))
        .say(", a difference of ")
        .number(difference, format_for(after.median - before.median, unit));
    vec![headline, medians]
}

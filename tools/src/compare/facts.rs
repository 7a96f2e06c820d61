//! What `compare` says: both levels of each metric, their difference with its interval, and what it means.

use sightline_analysis::CohortTest;
use sightline_model::{Entity, Evidence, EvidenceRow, FactPath, NumberFormat, Outcome, Quantity, Relation, Stat, Unit};
use sightline_query::catalogue::BetterEnd;

use crate::compare::NAME;
use crate::compare::canary::{Advice, Reason, TOLERATED, advice};
use crate::compare::judge::{Judgement, UNCHANGED, Verdict};
use crate::measure::Measure;
use crate::metric_range::subject;
use crate::reading::derived;
use crate::sentence::{Sentence, at, format_for, row_value, stat_of};
use crate::tool::{ToolContext, ToolOutput};

/// Both sides of one metric.
pub(super) struct Pair {
    pub(super) measure: Measure,
    pub(super) base: Evidence,
    pub(super) other: Evidence,
    pub(super) better: Option<BetterEnd>,
}

/// The evidence as it is put together.
pub(super) struct File {
    pieces: Vec<Evidence>,
    event: bool,
    pub(super) pairs: Vec<Pair>,
    missing: Vec<String>,
}

impl File {
    pub(super) fn new(event: Option<Evidence>) -> Self {
        Self { event: event.is_some(), pieces: event.into_iter().collect(), pairs: Vec::new(), missing: Vec::new() }
    }

    /// The number of the next piece.
    pub(super) fn next(&self) -> usize {
        self.pieces.len() + 1
    }

    pub(super) fn add(&mut self, pieces: &[Evidence], job: Option<&str>) {
        for piece in pieces {
            let mut piece = piece.clone();
            if let Some(job) = job {
                piece.labels.insert("job".to_owned(), job.to_owned());
            }
            self.pieces.push(piece);
        }
    }

    pub(super) fn compared(
        &mut self,
        measure: &Measure,
        base: Option<&Evidence>,
        other: Option<&Evidence>,
        context: &ToolContext<'_>,
    ) {
        let labelled = |e: &Evidence| self.pieces.iter().find(|p| p.id == e.id).unwrap_or(e).clone();
        if let (Some(base), Some(other)) = (base.map(&labelled), other.map(&labelled)) {
            let better = context.catalogue.get(&measure.metric).and_then(|metric| metric.better());
            self.pairs.push(Pair { measure: measure.clone(), base, other, better });
        }
    }

    pub(super) fn missing(&mut self, measure: &Measure) {
        self.missing.push(format!("{} has no data on one of the sides and was left out", measure.metric));
    }
}

pub(super) fn output(mut file: File, judgements: &[Judgement], same: &Entity, canary: bool) -> ToolOutput {
    let mut output = ToolOutput { outcome: Some(Outcome::Answered), ..ToolOutput::default() };
    let event = file.pieces.first().filter(|_| file.event).map(event_sentence);
    let mut sentences: Vec<Sentence> = Vec::new();
    for (pair, judgement) in file.pairs.iter().zip(judgements) {
        let numbers = judgement.test.map(|test| computed(pair, &test, judgement, file.pieces.len() + 1));
        sentences.extend(describe(pair, same, judgement, numbers.as_ref()));
        file.pieces.extend(numbers);
    }
    if canary {
        sentences.insert(0, verdict_sentence(&file.pairs, judgements, same));
    }
    sentences.extend(event);
    let decided = if canary {
        advice(judgements) != Advice::TooLittle
    } else {
        judgements.iter().any(|j| j.verdict != Verdict::TooLittle)
    };
    if !decided {
        output.outcome = Some(Outcome::InsufficientData);
    }
    output.claims = sentences.into_iter().map(Sentence::finish).collect();
    output.headline = output.claims.first().cloned();
    output.data_health = file.missing;
    output.evidence = file.pieces;
    output
}

fn event_sentence(event: &Evidence) -> Sentence {
    let path = |path: FactPath| at(&event.id, path);
    let mut sentence =
        Sentence::new().say("the base ends and the other side begins at ").time(path(FactPath::RowTime { row: 0 }));
    if event.rows.first().is_some_and(|row| row.fields.contains_key("body")) {
        sentence = sentence.say(": ").quote(path(FactPath::RowField { row: 0, field: "body".to_owned() }));
    }
    sentence
}

/// Rows of the numbers that were computed from both sides, in this order.
const LOW: usize = 0;
const HIGH: usize = 1;
const SUPERIORITY: usize = 2;
const CONFIDENCE: usize = 3;

/// The computed numbers as evidence of their own, without SQL: what they were computed from stands before them.
fn computed(pair: &Pair, test: &CohortTest, judgement: &Judgement, n: usize) -> Evidence {
    let mut piece = derived(&pair.other, n, Vec::new());
    let rows = [
        ("difference of medians, lower end of the interval", test.interval.0),
        ("difference of medians, upper end of the interval", test.interval.1),
        ("pairs in which the other side exceeds the base, percent", (test.delta + 1.0) * 50.0),
        ("confidence of the interval, percent", 95.0),
        ("p-value, corrected for the number of metrics", judgement.p_value),
    ];
    piece.rows = rows
        .into_iter()
        .map(|(name, value)| EvidenceRow {
            value: Some(value),
            fields: [("row".to_owned(), name.to_owned())].into(),
            ..EvidenceRow::default()
        })
        .collect();
    piece.tool = NAME.to_owned();
    piece.aggregation = Some("the two sides compared".to_owned());
    piece.from = pair.base.from.min(pair.other.from);
    piece.to = pair.base.to.max(pair.other.to);
    piece.step_seconds = None;
    piece.total = piece.rows.len() as u64;
    piece.returned = piece.total;
    piece.coverage = sightline_model::Coverage::default();
    piece
}

fn mean(e: &Evidence) -> Quantity {
    stat_of(&e.id, &Entity::new(), Stat::Mean)
}

fn median(e: &Evidence) -> Quantity {
    stat_of(&e.id, &Entity::new(), Stat::Median)
}

fn difference(pair: &Pair) -> Quantity {
    Quantity::Difference(Box::new(median(&pair.other)), Box::new(median(&pair.base)))
}

fn describe(pair: &Pair, same: &Entity, judgement: &Judgement, numbers: Option<&Evidence>) -> Vec<Sentence> {
    let (base, other) = (&pair.base, &pair.other);
    let (Some(before), Some(after)) = (base.stats, other.stats) else { return Vec::new() };
    let unit = pair.measure.unit();
    let both = |sentence: Sentence| {
        sentence
            .number(mean(other), format_for(after.mean, unit))
            .say(" on average, against ")
            .number(mean(base), format_for(before.mean, unit))
            .say(" in the base")
    };
    let moved = |words: &'static str| {
        let shift = judgement.test.map_or(0.0, |t| t.shift);
        let relation = if shift > 0.0 { Relation::Above } else { Relation::Below };
        let sentence = both(subject(&pair.measure, other, &Entity::new(), same).say(words));
        let sentence = if before.median == 0.0 {
            sentence
        } else {
            let change = shift / before.median.abs() * 100.0;
            let format = NumberFormat { magnitude: true, ..format_for(change.abs(), Unit::Percent) };
            let percent = Quantity::PercentChange { from: Box::new(median(base)), to: Box::new(median(other)) };
            sentence.say("; the median moved by ").number(percent, format)
        };
        sentence.compare(median(other), relation, median(base))
    };
    let plain = |words: &'static str| both(subject(&pair.measure, other, &Entity::new(), same).say(words));
    let headline = match judgement.verdict {
        Verdict::Regressed => moved(" has regressed: "),
        Verdict::Improved => moved(" has improved: "),
        Verdict::Higher => moved(" is higher: "),
        Verdict::Lower => moved(" is lower: "),
        Verdict::Unchanged => {
            let bound = Quantity::Constant(UNCHANGED * before.median.abs());
            let other_way = Quantity::Constant(-UNCHANGED * before.median.abs());
            plain(" is unchanged: ").compare(difference(pair), Relation::AtMost, bound).compare(
                difference(pair),
                Relation::AtLeast,
                other_way,
            )
        }
        Verdict::Unclear => plain(" shows no clear difference, its spread being too wide: "),
        Verdict::TooLittle => plain(" has too little data on one side to compare: "),
    };
    let mut sentences = vec![headline];
    if let (Some(numbers), Some(test)) = (numbers, judgement.test) {
        sentences.push(interval_sentence(pair, numbers, &test, unit));
    }
    sentences
}

fn interval_sentence(pair: &Pair, numbers: &Evidence, test: &CohortTest, unit: Unit) -> Sentence {
    let row = |row: usize| row_value(&numbers.id, row);
    Sentence::new()
        .say("the difference of the medians is ")
        .number(difference(pair), format_for(test.shift, unit))
        .say(", between ")
        .number(row(LOW), format_for(test.interval.0, unit))
        .say(" and ")
        .number(row(HIGH), format_for(test.interval.1, unit))
        .say(" with ")
        .number(row(CONFIDENCE), NumberFormat { decimals: 0, unit: Unit::Percent, magnitude: false })
        .say(" confidence; the other side is higher in ")
        .number(row(SUPERIORITY), NumberFormat { decimals: 0, unit: Unit::Percent, magnitude: false })
        .say(" of all pairs of points")
}

fn verdict_sentence(pairs: &[Pair], judgements: &[Judgement], same: &Entity) -> Sentence {
    let named = |sentence: Sentence, index: usize| match pairs.get(index) {
        Some(pair) => {
            let of = subject(&pair.measure, &pair.other, &Entity::new(), same);
            sentence.append(of).cite(&pair.base.id)
        }
        None => sentence,
    };
    let cite_all =
        |sentence: Sentence| pairs.iter().fold(sentence, |s, pair| s.cite(&pair.base.id).cite(&pair.other.id));
    match advice(judgements) {
        Advice::Promote => {
            let sentence = Sentence::new().say("promote: nothing that was compared got worse, and by more than ");
            let sentence = sentence.say("a tenth worse is ruled out for each metric that has a better end");
            debug_assert!((TOLERATED - 0.1).abs() < f64::EPSILON, "the sentence says a tenth");
            cite_all(sentence)
        }
        Advice::RollBack(index) => {
            let sentence = named(Sentence::new().say("roll back: "), index).say(" is worse than in the base");
            match (pairs.get(index), judgements.get(index).and_then(|j| j.test)) {
                (Some(pair), Some(test)) => {
                    let relation = if test.shift > 0.0 { Relation::Above } else { Relation::Below };
                    sentence.compare(median(&pair.other), relation, median(&pair.base))
                }
                _ => sentence,
            }
        }
        Advice::Hold(Reason::Unlike(index)) => named(Sentence::new().say("hold: the two sides did not do the same work, as "), index)
            .say(" differs; compare them under like load"),
        Advice::Hold(Reason::Unsure(index)) => named(Sentence::new().say("hold: "), index)
            .say(" may be worse by more than a tenth, and the data cannot tell yet; let both sides run longer"),
        Advice::Hold(Reason::NothingToJudge) => cite_all(Sentence::new().say(
            "hold: none of the compared metrics has an end that is better by itself; compare a latency, an error count or a throughput",
        )),
        Advice::TooLittle => {
            cite_all(Sentence::new().say("too little data for a verdict: a side has fewer than twenty steps with data"))
        }
    }
}

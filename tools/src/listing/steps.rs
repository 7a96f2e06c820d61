//! Rows counted over time. Where rows of the kind are there at all, a step without one counts zero: a count of nothing is 0.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_model::{Aggregation, Coverage, Evidence, EvidenceRow, FactPath, Point, Series, Stat};
use sightline_query::{Align, Shape};

use super::Listing;
use crate::reading::{Content, evidence, read_series};
use crate::sentence::{Sentence, WHOLE, at, fact, row_value, stat_of};
use crate::tool::{Fetched, ToolContext, ToolError};

/// The name of the row that says how many steps there are.
const STEPS: &str = "steps";
/// The name of the row, the last one, that says how many of them are zero.
const EMPTY: &str = "steps without any";

impl Listing {
    /// The counts over time, if they are wanted.
    pub(super) fn step_shape(&self, context: &ToolContext<'_>) -> Option<Shape> {
        let seconds = self.step_seconds?;
        let (step_ms, align) = if seconds == 0 {
            (crate::reading::whole_ms(self.range), Align::Window)
        } else {
            (u64::from(seconds) * 1000, Align::Epoch)
        };
        Some(Shape::Series {
            step_ms,
            align,
            group_by: self.count_by.clone(),
            aggregation: Aggregation::Count,
            limit: context.max_rows,
        })
    }

    /// The counts of every step of the window, as series of the groups that are counted by.
    pub(super) fn stepped(
        &self,
        context: &ToolContext<'_>,
        counted: &Fetched,
        n: usize,
    ) -> Result<Evidence, ToolError> {
        let Shape::Series { step_ms, align, .. } = &counted.query.query().shape else {
            return Ok(evidence(counted, self.tool, n, Content::Rows(Vec::new())));
        };
        let series = read_series(counted, &self.count_by, Aggregation::Count)?;
        let steps = self.steps(i64::try_from(*step_ms).unwrap_or(i64::MAX), *align);
        let points = steps.len().saturating_mul(series.len());
        if counted.result.truncated || points > usize::try_from(context.max_rows).unwrap_or(usize::MAX) {
            return Err(self.cut(context, "the counts per step"));
        }
        let seen = series.iter().flat_map(|s| &s.points).map(|p| p.count).sum();
        let filled: Vec<Series> = series.iter().map(|s| filled(s, &steps)).collect();
        let empty = filled.iter().flat_map(|s| &s.points).filter(|p| p.value == 0.0).count();
        let mut piece = evidence(counted, self.tool, n, Content::Series(filled));
        let row = |what: &str, value: usize| EvidenceRow {
            value: Some(value as f64),
            fields: [("row".to_owned(), what.to_owned())].into(),
            ..EvidenceRow::default()
        };
        piece.rows.extend([row(STEPS, points), row(EMPTY, empty)]);
        // Zeros are not missing.
        piece.coverage = Coverage { expected: None, seen, gaps: Vec::new(), ..piece.coverage };
        Ok(piece)
    }

    /// When each step of the window begins.
    fn steps(&self, step_ms: i64, align: Align) -> Vec<Timestamp> {
        let from = self.range.from().as_millisecond();
        let step_ms = step_ms.max(1);
        let first = match align {
            Align::Epoch => from - from.rem_euclid(step_ms),
            Align::Window => from,
        };
        let to = self.range.to().as_millisecond();
        let starts =
            std::iter::successors(Some(first), |start| start.checked_add(step_ms)).take_while(|start| *start < to);
        // More than can be shown is an error of its own, and need not be spelled out for it.
        starts.take(2_000_000).filter_map(|start| Timestamp::from_millisecond(start).ok()).collect()
    }
}

/// The series with a point in every step.
fn filled(series: &Series, steps: &[Timestamp]) -> Series {
    let counts: BTreeMap<Timestamp, f64> = series.points.iter().map(|p| (p.time, p.value)).collect();
    let point = |time: &Timestamp| {
        let value = counts.get(time).copied().unwrap_or(0.0);
        // A count is one observation of its step, so that the mean of the points is a mean per step.
        Point { time: *time, value, min: value, max: value, count: 1 }
    };
    Series { entity: series.entity.clone(), points: steps.iter().map(point).collect() }
}

/// The busiest step, and how many had none.
pub(super) fn told(piece: &Evidence) -> Option<Sentence> {
    let points = || piece.series.iter().flat_map(|s| s.points.iter().map(move |p| (&s.entity, p)));
    let (entity, most) = points().reduce(|best, next| if next.1.value > best.1.value { next } else { best })?;
    let last = piece.rows.len().checked_sub(1)?;
    let id = &piece.id;
    let mut sentence = Sentence::new()
        .say("the most in one step are ")
        .number(stat_of(id, entity, Stat::Max), WHOLE)
        .say(" at ")
        .time(at(id, FactPath::Instant { entity: entity.clone(), at: most.time }));
    if !entity.is_empty() {
        sentence = sentence.say(", with ").entity(id, entity);
    }
    sentence = sentence.say("; ").number(row_value(id, last), WHOLE).say(" of ").number(row_value(id, last - 1), WHOLE);
    Some(sentence.say(" steps have none").compare(
        stat_of(id, entity, Stat::Max),
        sightline_model::Relation::AtLeast,
        fact(id, FactPath::Stat { entity: sightline_model::Entity::new(), stat: Stat::Max, within: None }),
    ))
}

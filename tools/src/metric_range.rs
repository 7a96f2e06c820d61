//! `metric_range`: one metric, or every one, over a time range: in steps, as one number, or as it is stored.

mod asked;
mod derive;
mod facts;
mod samples;
pub(crate) mod step;

pub use asked::MetricRangeArgs;
pub use derive::TransformArg;
pub(crate) use facts::subject;

use sightline_model::{Aggregation, Dataset, Dim, Entity, Evidence, EvidenceRow, Series};
use sightline_query::{Align, Filter, Match, Query, Shape};

use crate::absence::Missing;
use crate::job_scope::{JobScope, job_intervals};
use crate::measure::{Measure, Rows};
use crate::reading::{Content, derived, evidence, whole_ms};
use crate::sentence::{Sentence, fact};
use crate::tool::{Fetched, Step, Tool, ToolContext, ToolError, ToolOutput, evidence_id};
use asked::{Asked, Reading};

const NAME: &str = "metric_range";

/// One metric over a time range.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricRange;

impl Tool for MetricRange {
    type Args = MetricRangeArgs;

    const NAME: &'static str = NAME;
    const DATASETS: &'static [Dataset] = &[Dataset::Metrics];
    const DESCRIPTION: &'static str = "One metric over a time range. Arguments of one name mean the same in all tools.";

    fn plan(&self, args: &Self::Args, context: &ToolContext<'_>, fetched: &[Fetched]) -> Result<Step, ToolError> {
        let asked = args.asked(context, fetched)?;
        let rows = match &asked.scope {
            JobScope::Ask(query) => return Ok(Step::Fetch(vec![(**query).clone()])),
            JobScope::Unknown => return Ok(Step::Done),
            JobScope::Known(rows) => rows,
        };
        let read = last_read(fetched);
        if read.is_empty() {
            return Ok(Step::fetch(asked.queries(context, rows, 0)));
        }
        if read.iter().any(|f| f.result.truncated) && !asked.may_be_cut() {
            let tries = reads(fetched);
            let longer = matches!(asked.reading, Reading::Steps { step_ms: None, .. }) && tries < step::TARGETS.len();
            return if longer { Ok(Step::fetch(asked.queries(context, rows, tries))) } else { Err(asked.cut(context)) };
        }
        for (measure, part) in asked.parts(&read) {
            let missing = missing(measure, rows);
            if part.iter().all(|f| f.result.rows.is_empty()) && missing.probed(fetched).is_empty() {
                return Ok(Step::fetch(missing.probes(context)));
            }
        }
        Ok(Step::Done)
    }

    fn interpret(
        &self,
        args: &Self::Args,
        context: &ToolContext<'_>,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let asked = args.asked(context, fetched)?;
        let rows = match &asked.scope {
            JobScope::Known(rows) => rows,
            JobScope::Ask(_) | JobScope::Unknown => return Ok(unknown_job(NAME, fetched)),
        };
        let read = last_read(fetched);
        if read.iter().any(|f| f.result.truncated) && !asked.may_be_cut() {
            return Err(asked.cut(context));
        }
        let fixed = fixed_entity(&rows.filters, args.job.as_deref());
        let mut output = match (&asked.reading, read.as_slice()) {
            (Reading::Samples { order, limit, per }, [samples])
                if asked.transform.is_none() && !samples.result.rows.is_empty() =>
            {
                samples::output(&asked, samples, *order, *limit, per, &fixed)?
            }
            (Reading::Samples { .. } | Reading::Steps { .. } | Reading::Whole, _) => {
                series_output(&asked, rows, &read, fetched, &fixed)?
            }
        };
        if read.iter().any(|f| f.result.truncated) {
            let more = "there are more samples than those read; raise `limit`, or narrow the window";
            output.data_health.push(more.to_owned());
        }
        output.data_health.extend(asked.measure.mixed(&asked.group_by, &rows.filters));
        if let Some(job) = &args.job {
            for piece in &mut output.evidence {
                piece.labels.insert("job".to_owned(), job.clone());
            }
        }
        Ok(output)
    }
}

impl Asked {
    /// Everything to read at once; `tries` says how often it was cut before.
    fn queries(&self, context: &ToolContext<'_>, rows: &Rows, tries: usize) -> Vec<Query> {
        let (step_ms, align) = match &self.reading {
            Reading::Steps { step_ms, align } => {
                (step_ms.unwrap_or_else(|| step::default_ms(rows.range, tries)), *align)
            }
            Reading::Whole => (whole_ms(rows.range), Align::Window),
            Reading::Samples { .. } => return vec![self.measure.query(rows, self.sample_shape(context, rows))],
        };
        let shape = |group_by: Vec<Dim>, aggregation: Aggregation| Shape::Series {
            step_ms,
            align,
            group_by,
            aggregation,
            limit: context.max_rows,
        };
        let mut group_by = self.group_by.clone();
        // The last sample of several series is now of one, now of another, and the change between those is no change of either: they
        // are read apart, and stay apart where there are several.
        if self.transform.is_some() && self.measure.aggregation == Aggregation::Last {
            group_by.extend(self.series_key(rows).into_iter().filter(|dim| !self.group_by.contains(dim)));
        }
        let measures = std::iter::once(&self.measure).chain(&self.divisor);
        measures.flat_map(|measure| measure.queries(rows, &group_by, shape)).collect()
    }

    /// What was read of the metric, and of what it is divided by.
    fn parts<'a, 'f>(&'a self, read: &'a [&'f Fetched]) -> Vec<(&'a Measure, &'a [&'f Fetched])> {
        let reads = if matches!(self.reading, Reading::Samples { .. }) { 1 } else { self.measure.reads() };
        let (own, other) = read.split_at_checked(reads).unwrap_or((read, &[]));
        std::iter::once((&self.measure, own)).chain(self.divisor.iter().map(|divisor| (divisor, other))).collect()
    }

    /// Whether the first of more rows are what was asked for.
    fn may_be_cut(&self) -> bool {
        match &self.reading {
            Reading::Samples { per, .. } => per.is_empty() && self.transform.is_none(),
            Reading::Steps { .. } | Reading::Whole => false,
        }
    }

    /// Nothing can be told of the window: more came than was read.
    fn cut(&self, context: &ToolContext<'_>) -> ToolError {
        let (limit, narrow) = match &self.reading {
            Reading::Samples { limit, per, .. } if per.is_empty() && *limit < context.max_rows => {
                (*limit, "raise `limit`, or ask for a shorter window or more filters")
            }
            Reading::Samples { .. } => (context.max_rows, "ask for a shorter window or more filters"),
            Reading::Steps { .. } | Reading::Whole => (
                context.max_rows,
                "ask for a shorter window, a longer step, fewer dimensions in `group_by`, or more filters",
            ),
        };
        ToolError::Cut { what: "the series asked for".to_owned(), limit, narrow: narrow.to_owned() }
    }
}

fn series_output(
    asked: &Asked,
    rows: &Rows,
    read: &[&Fetched],
    fetched: &[Fetched],
    fixed: &Entity,
) -> Result<ToolOutput, ToolError> {
    // Only what is computed from neighbours was read with what tells series apart.
    if let (Reading::Samples { .. }, Some(_), [samples]) = (&asked.reading, asked.transform, read) {
        asked.check_apart(samples, rows)?;
    }
    // What is computed comes first, then what it is computed from.
    let mut next = if asked.measure.derived.is_some() { 2 } else { 1 };
    let mut pieces: Vec<Evidence> = Vec::new();
    let mut heads: Vec<Evidence> = Vec::new();
    for (measure, part) in asked.parts(read) {
        let measured = measure.series(part, &asked.group_by)?;
        if measured.series.is_empty() {
            let Some(empty) = part.first() else { return Ok(ToolOutput::default()) };
            return missing(measure, rows).explain_or_empty(NAME, empty, fetched);
        }
        // Words and unit of what is computed belong to what is computed.
        let plain = measure.clone().computed(None);
        let found = plain.series_evidence(part, &asked.group_by, measured, NAME, next)?;
        next += found.len();
        heads.extend(found.first().cloned());
        pieces.extend(found);
    }
    let computed = match (asked.transform, heads.as_slice()) {
        (Some(transform), [values]) => {
            let series = transform.apply(&values.series);
            if series.is_empty() {
                let Some(empty) = read.first() else { return Ok(ToolOutput::default()) };
                return missing(&asked.measure, rows).explain_or_empty(NAME, empty, &[]);
            }
            let mut head = derived(values, 1, series);
            head.aggregation = Some(
                [values.aggregation.as_deref(), Some(&transform.described())]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", "),
            );
            Some(head)
        }
        (None, [above, below]) => Some(divided(asked, above, below)),
        (Some(_) | None, _) => None,
    };
    let mut evidence: Vec<Evidence> = computed.into_iter().chain(pieces).collect();
    let of_time = matches!(asked.measure.aggregation, Aggregation::FractionAbove | Aggregation::FractionBelow);
    if let (Reading::Whole, true, Some(head)) = (&asked.reading, of_time, evidence.first_mut()) {
        head.rows.extend(facts::duration(head, rows.range));
    }
    Ok(facts::output(&asked.measure, evidence, fixed))
}

/// The ratio of two pieces, with the number of steps that have none as its last row.
fn divided(asked: &Asked, above: &Evidence, below: &Evidence) -> Evidence {
    let (series, without): (Vec<Series>, u64) = derive::ratio(&above.series, &below.series);
    let mut head = derived(above, 1, series);
    head.metric = None;
    head.canonical_metric = None;
    head.unit = asked.measure.unit();
    asked.measure.label(&mut head);
    // Where a ratio is missing, samples need not be; gaps of samples stand with the parts.
    head.coverage.gaps.clear();
    head.rows.push(EvidenceRow {
        value: Some(without as f64),
        fields: [("row".to_owned(), "steps without a ratio".to_owned())].into(),
        ..EvidenceRow::default()
    });
    head
}

fn is_read(fetched: &Fetched) -> bool {
    let is_metric = fetched.query.dataset() == Dataset::Metrics;
    is_metric && matches!(fetched.query.query().shape, Shape::Series { .. } | Shape::Samples { .. })
}

/// The latest read of the metric: an earlier one was cut.
fn last_read(fetched: &[Fetched]) -> Vec<&Fetched> {
    let latest = fetched.iter().filter(|f| is_read(f)).map(|f| f.round).max();
    fetched.iter().filter(|f| is_read(f) && Some(f.round) == latest).collect()
}

/// In how many rounds the metric was read.
fn reads(fetched: &[Fetched]) -> usize {
    let rounds: std::collections::BTreeSet<usize> = fetched.iter().filter(|f| is_read(f)).map(|f| f.round).collect();
    rounds.len()
}

pub(crate) fn missing(measure: &Measure, rows: &Rows) -> Missing {
    Missing {
        dataset: Dataset::Metrics,
        metric: (!measure.is_every()).then(|| (measure.metric.clone(), measure.probe_part())),
        range: rows.range,
        filtered: !rows.filters.is_empty() || rows.placement.is_some(),
    }
}

/// What all rows have in common by the question's own words.
pub(crate) fn fixed_entity(filters: &[Filter], job: Option<&str>) -> Entity {
    let mut entity = Entity::new();
    for filter in filters {
        if let Filter::Dim { dim, matches: Match::Eq(value) } = filter {
            entity.insert(crate::reading::entity_key(dim).to_owned(), value.clone());
        }
    }
    if let Some(job) = job {
        entity.insert("job".to_owned(), job.to_owned());
    }
    entity
}

/// A job that held no GPU in the window, or is not the asker's to see: the same words for both.
pub(crate) fn unknown_job(tool: &str, fetched: &[Fetched]) -> ToolOutput {
    let Some(intervals) = job_intervals(fetched) else { return ToolOutput::default() };
    let id = evidence_id(1);
    let found = evidence(intervals, tool, 1, Content::Rows(Vec::new()));
    let job = found.labels.get("job").cloned().unwrap_or_default();
    let headline = Sentence::new()
        .say("no data: job ")
        .value(&id, "job", &job)
        .say(" held no GPU in this window")
        .compare(
            fact(&id, sightline_model::FactPath::Total),
            sightline_model::Relation::AtMost,
            sightline_model::Quantity::Constant(0.0),
        )
        .cite(&id)
        .finish();
    ToolOutput::no_data(vec![found], headline)
}

#[cfg(test)]
#[path = "metric_range_readings_tests.rs"]
mod readings_tests;
#[cfg(test)]
#[path = "metric_range_tests.rs"]
mod tests;

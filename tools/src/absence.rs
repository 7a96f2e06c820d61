//! Why nothing came back: never collected, not in this window, or not under these filters. None of these is zero.

use jiff::{SignedDuration, Timestamp};
use sightline_model::{Dataset, Dim, Evidence, EvidenceRow, FactPath, Quantity, Relation, TimeRange};
use sightline_query::{MetricPart, Query, Shape};

use crate::reading::{Content, Table, entity_key, evidence};
use crate::sentence::{Sentence, WHOLE, at, fact};
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput, evidence_id};

/// How far around a window is looked for any sample: long enough for a source that pauses over a weekend, short enough for
/// every role's longest range.
const LOOK_AROUND: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What was asked for and did not come back.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) dataset: Dataset,
    /// The metric, for dataset `metrics`.
    pub(crate) metric: Option<(String, MetricPart)>,
    pub(crate) range: TimeRange,
    /// Whether anything narrowed the rows.
    pub(crate) filtered: bool,
}

impl Missing {
    /// The dimension that is looked at to see whether anything is there.
    fn dim(&self) -> Dim {
        if self.dataset == Dataset::Metrics { Dim::Metric } else { Dim::Cluster }
    }

    /// What to ask to tell the reasons apart: anything around the window, and, under filters, anything in it.
    pub(crate) fn probes(&self, context: &ToolContext<'_>) -> Vec<Query> {
        let around = around(self.range, context.as_of);
        let mut ranges = vec![around];
        if self.filtered && around != self.range {
            ranges.push(self.range);
        }
        ranges
            .into_iter()
            .map(|range| Query {
                dataset: self.dataset,
                metric: self.metric.as_ref().map(|(name, _)| name.clone()),
                part: self.metric.as_ref().map_or(MetricPart::Samples, |(_, part)| *part),
                range,
                filters: Vec::new(),
                placement: None,
                threshold: None,
                shape: Shape::Distinct { of: vec![self.dim()], limit: context.max_rows },
            })
            .collect()
    }

    /// The probes among what was fetched.
    pub(crate) fn probed<'a>(&self, fetched: &'a [Fetched]) -> Vec<&'a Fetched> {
        fetched
            .iter()
            .filter(|f| f.query.dataset() == self.dataset)
            .filter(|f| matches!(&f.query.query().shape, Shape::Distinct { of, .. } if of.as_slice() == [self.dim()]))
            .collect()
    }

    /// The answer for an empty result, with whatever probes were made.
    pub(crate) fn explain_or_empty(
        &self,
        tool: &str,
        empty: &Fetched,
        fetched: &[Fetched],
    ) -> Result<ToolOutput, ToolError> {
        let probes = self.probed(fetched);
        if !probes.is_empty() {
            return self.explain(tool, empty, &probes);
        }
        let id = evidence_id(1);
        let mut found = evidence(empty, tool, 1, Content::Rows(Vec::new()));
        if let Some((name, _)) = &self.metric {
            found.labels.insert("metric".to_owned(), name.clone());
        }
        let headline = self
            .subject(std::slice::from_ref(&found))
            .say(" there in this window, but too sparse for a value of what was asked: too few samples to tell growth, or no observations")
            .cite(&id)
            .finish();
        Ok(ToolOutput::no_data(vec![found], headline))
    }

    /// The answer, resting on what was empty and on the probes.
    fn explain(&self, tool: &str, empty: &Fetched, probes: &[&Fetched]) -> Result<ToolOutput, ToolError> {
        let mut found = vec![evidence(empty, tool, 1, Content::Rows(Vec::new()))];
        for (index, probe) in probes.iter().enumerate() {
            found.push(evidence(probe, tool, index + 2, Content::Rows(distinct_rows(probe)?)));
        }
        if let Some((name, _)) = &self.metric {
            for piece in &mut found {
                piece.labels.insert("metric".to_owned(), name.clone());
            }
        }
        let nothing = |n: usize| fact(&evidence_id(n), FactPath::Total);
        let anywhere = found.get(1).filter(|e| e.total > 0);
        let in_window = found.get(2).or(if self.filtered { found.get(1) } else { None }).filter(|e| e.total > 0);
        let subject = self.subject(&found);
        let (sentence, health) = match (anywhere, in_window) {
            (None, _) => (
                subject.say(" not collected: nothing of the kind was found, in this window or around it").compare(
                    nothing(2),
                    Relation::AtMost,
                    Quantity::Constant(0.0),
                ),
                "not collected is not zero: what was asked for does not exist in the data that may be read",
            ),
            (Some(_), Some(there)) if self.dataset != Dataset::Metrics => (
                Sentence::new()
                    .number(nothing(1), WHOLE)
                    .say(match self.dataset {
                        Dataset::Logs => " log lines",
                        Dataset::Spans => " spans",
                        Dataset::Events => " events",
                        Dataset::Jobs => " jobs",
                        Dataset::JobGpus => " GPU placements",
                        Dataset::Metrics => " samples",
                    })
                    .say(" fit what was asked, though there are others in this window")
                    .compare(fact(&there.id, FactPath::Total), Relation::AtLeast, Quantity::Constant(1.0)),
                "where names were asked for, check them with find_entities",
            ),
            (Some(_), Some(there)) => (
                subject
                    .say(" without data for what was asked, though there is data from others in this window")
                    .compare(nothing(1), Relation::AtMost, Quantity::Constant(0.0))
                    .compare(fact(&there.id, FactPath::Total), Relation::AtLeast, Quantity::Constant(1.0)),
                "no data is not zero: check the names in the filters with find_entities",
            ),
            (Some(there), None) => (
                subject
                    .say(" without data in this window; outside it the last was seen at ")
                    .time(at(&there.id, FactPath::RowTime { row: 0 }))
                    .compare(nothing(1), Relation::AtMost, Quantity::Constant(0.0)),
                "no data is not zero: nothing was recorded in this window",
            ),
        };
        let headline = found.iter().fold(sentence, |sentence, piece| sentence.cite(&piece.id)).finish();
        Ok(ToolOutput { data_health: vec![health.to_owned()], ..ToolOutput::no_data(found, headline) })
    }

    fn subject(&self, found: &[Evidence]) -> Sentence {
        let sentence = Sentence::new();
        match (&self.metric, found.first()) {
            (Some((name, _)), Some(first)) => sentence.value(&first.id, "metric", name).say(" is"),
            (Some(_) | None, _) => sentence.say(match self.dataset {
                Dataset::Metrics => "metrics are",
                Dataset::Logs => "log lines are",
                Dataset::Spans => "spans are",
                Dataset::Events => "events are",
                Dataset::Jobs => "jobs are",
                Dataset::JobGpus => "GPU placements are",
            }),
        }
    }
}

/// The window with some time around it, nothing after now. A long window is its own surroundings.
fn around(range: TimeRange, as_of: Timestamp) -> TimeRange {
    if range.to().duration_since(range.from()) > LOOK_AROUND {
        return range;
    }
    let from = range.from().saturating_sub(LOOK_AROUND).unwrap_or(range.from());
    let to = range.to().saturating_add(LOOK_AROUND).unwrap_or(range.to()).min(as_of);
    TimeRange::new(from, to).unwrap_or(range)
}

/// The rows of a [`Shape::Distinct`] or [`Shape::LabelKeys`] result, latest seen first.
pub(crate) fn distinct_rows(fetched: &Fetched) -> Result<Vec<EvidenceRow>, ToolError> {
    let table = Table::new(&fetched.result);
    let mut columns = Vec::new();
    match &fetched.query.query().shape {
        Shape::Distinct { of, .. } => {
            for dim in of {
                columns.push((entity_key(dim), table.column(dim.as_str())?));
            }
        }
        Shape::LabelKeys { .. } => columns.push(("label", table.column("key")?)),
        Shape::Series { .. } | Shape::Samples { .. } | Shape::Rank { .. } | Shape::Rows { .. } => return Ok(Vec::new()),
    }
    let [count, first, last] = [table.column("count")?, table.column("first_time")?, table.column("last_time")?];
    let mut rows: Vec<EvidenceRow> = table
        .rows()
        .map(|row| {
            let mut fields = std::collections::BTreeMap::new();
            fields.insert("samples".to_owned(), table.count(row, count).to_string());
            if let Some(time) = table.time(row, first) {
                fields.insert("first_seen".to_owned(), time.to_string());
            }
            EvidenceRow {
                entity: columns
                    .iter()
                    .map(|(key, column)| ((*key).to_owned(), table.text(row, *column).to_owned()))
                    .filter(|(_, value)| !value.is_empty())
                    .collect(),
                time: table.time(row, last),
                fields,
                ..EvidenceRow::default()
            }
        })
        .filter(|row| !row.entity.is_empty())
        .collect();
    rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.entity.cmp(&b.entity)));
    Ok(rows)
}

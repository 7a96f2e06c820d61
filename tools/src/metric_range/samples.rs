//! Samples as they are stored: the first of all by time or value, or the first of each group; and whether they are of one series.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use sightline_model::{Aggregation, Coverage, Dim, Entity, Evidence, EvidenceRow, FactPath, Outcome, Relation};
use sightline_query::{SampleOrder, Shape};

use super::asked::Asked;
use super::{NAME, subject};
use crate::measure::Rows;
use crate::reading::{Content, Table, entity_key, evidence, read_series};
use crate::sentence::{Sentence, WHOLE, at, fact, format_for, row_value};
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput, evidence_id};

/// The most samples that are listed as rows, as for log lines; all samples of a window are served by their points as well.
const MAX_ROWS: usize = 1000;

impl Asked {
    /// What to read: every sample where the first of each group are wanted, for an engine's limit knows no groups.
    pub(super) fn sample_shape(&self, context: &ToolContext<'_>, rows: &Rows) -> Shape {
        let (order, limit) = match &self.reading {
            super::Reading::Samples { order, limit, per } if per.is_empty() => (*order, *limit),
            super::Reading::Samples { order, .. } => (*order, context.max_rows),
            super::Reading::Steps { .. } | super::Reading::Whole => (SampleOrder::Time, context.max_rows),
        };
        let mut group_by = self.told_apart();
        // What is computed from neighbours must know whether they are of one stored series.
        if self.transform.is_some() {
            group_by.extend(self.series_key(rows).into_iter().filter(|dim| !self.group_by.contains(dim)));
        }
        Shape::Samples { group_by, order, limit }
    }

    /// What is told of a sample besides its time and value.
    fn told_apart(&self) -> Vec<Dim> {
        let per: &[Dim] = match &self.reading {
            super::Reading::Samples { per, .. } => per,
            super::Reading::Steps { .. } | super::Reading::Whole => &[],
        };
        per.iter().chain(self.group_by.iter().filter(|dim| !per.contains(dim))).cloned().collect()
    }

    /// The dimensions that tell stored series apart besides their labels; none where every metric is asked for as one series,
    /// which is said to be a mixture.
    pub(super) fn series_key(&self, rows: &Rows) -> Vec<Dim> {
        if self.measure.mixed(&self.group_by, &rows.filters).is_some() {
            return Vec::new();
        }
        vec![Dim::Metric, Dim::Cluster, Dim::Node, Dim::Gpu, Dim::Service]
    }

    /// Checks that what is computed from neighbours has one stored series in each group: the difference of two GPUs' samples is no
    /// change of either.
    ///
    /// # Errors
    /// When a group holds several series, with the dimensions that tell them apart, or several values of one instant, which only
    /// labels or, of a mixture, other dimensions can.
    pub(super) fn check_apart(&self, samples: &Fetched, rows: &Rows) -> Result<(), ToolError> {
        let table = Table::new(&samples.result);
        let columns = |dims: &[Dim]| dims.iter().map(|dim| table.column(dim.as_str())).collect::<Result<Vec<_>, _>>();
        let (time, value) = (table.column("time")?, table.column("value")?);
        let (group, key) = (columns(&self.group_by)?, self.series_key(rows));
        let key_columns = columns(&key)?;
        let mut first: HashMap<Vec<&str>, Vec<&str>> = HashMap::new();
        let mut at: HashMap<(Vec<&str>, Timestamp), f64> = HashMap::new();
        let mut differ: BTreeSet<usize> = BTreeSet::new();
        let mut twice = false;
        for row in table.rows() {
            let (Some(time), Some(value)) = (table.time(row, time), table.number(row, value)) else { continue };
            let texts = |columns: &[usize]| columns.iter().map(|c| table.text(row, *c)).collect::<Vec<&str>>();
            let (group, own) = (texts(&group), texts(&key_columns));
            let there = first.entry(group.clone()).or_insert_with(|| own.clone());
            differ.extend(there.iter().zip(&own).enumerate().filter(|(_, (a, b))| a != b).map(|(index, _)| index));
            // A sample that was written twice is still one.
            twice |= *at.entry((group, time)).or_insert(value) != value;
        }
        if differ.is_empty() && !twice {
            return Ok(());
        }
        let names: Vec<String> = key
            .iter()
            .enumerate()
            .filter(|(i, _)| differ.contains(i))
            .map(|(_, dim)| format!("`{}`", dim.as_str()))
            .collect();
        let apart = if names.is_empty() {
            "what tells them apart (a label, or `metric`, `cluster`, `node`, `gpu`, `service`)".to_owned()
        } else {
            names.join(", ")
        };
        let reason = format!(
            "several stored series would be taken for one, and what is computed from neighbouring samples would mix them; add {apart} to `group_by`, or filter for one of them"
        );
        Err(ToolError::Arguments { tool: NAME, reason })
    }
}

/// The samples as rows, and as series where they are all that the window holds.
pub(super) fn output(
    asked: &Asked,
    samples: &Fetched,
    order: SampleOrder,
    limit: u32,
    per: &[Dim],
    fixed: &Entity,
) -> Result<ToolOutput, ToolError> {
    let dims = asked.told_apart();
    let all = listed(samples, &dims)?;
    let total = all.len() as u64;
    let mut rows = if per.is_empty() { ranked(all) } else { first_of_each(all, per, limit) };
    let shown = rows.len() as u64;
    rows.truncate(MAX_ROWS);
    // Statistics of picked samples are not the window's, and whoever cites a mean means that: only all of them in time make a series.
    let mut piece = if per.is_empty() && order == SampleOrder::Time && !samples.result.truncated {
        evidence(samples, NAME, 1, Content::Series(read_series(samples, &dims, Aggregation::Last)?))
    } else {
        evidence(samples, NAME, 1, Content::Rows(Vec::new()))
    };
    piece.coverage = coverage(&rows, total);
    piece.returned = rows.len() as u64;
    piece.total = total;
    piece.truncated = samples.result.truncated || piece.returned < total;
    piece.rows = rows;
    piece.aggregation = Some(if per.is_empty() { worded(order) } else { format!("{}, of each group", worded(order)) });
    asked.measure.label(&mut piece);
    let claims: Vec<_> = describe(asked, &piece, order, per, fixed).into_iter().map(Sentence::finish).collect();
    let mut health = Vec::new();
    if piece.returned < shown {
        health.push("not every sample asked for is listed as a row; ask for fewer".to_owned());
    }
    Ok(ToolOutput {
        headline: claims.first().cloned(),
        claims,
        outcome: Some(Outcome::Answered),
        data_health: health,
        evidence: vec![piece],
        ..ToolOutput::default()
    })
}

fn worded(order: SampleOrder) -> String {
    match order {
        SampleOrder::Time => "samples in time order",
        SampleOrder::Latest => "samples, the latest first",
        SampleOrder::Highest => "samples, the highest first",
        SampleOrder::Lowest => "samples, the lowest first",
    }
    .to_owned()
}

/// Every sample in the order it came, with what it is of.
fn listed(samples: &Fetched, dims: &[Dim]) -> Result<Vec<EvidenceRow>, ToolError> {
    let table = Table::new(&samples.result);
    let (time, value) = (table.column("time")?, table.column("value")?);
    let mut columns = Vec::new();
    for dim in dims {
        columns.push((entity_key(dim), table.column(dim.as_str())?));
    }
    Ok(table
        .rows()
        .filter_map(|row| {
            let told = columns.iter().map(|(key, column)| ((*key).to_owned(), table.text(row, *column).to_owned()));
            Some(EvidenceRow {
                entity: told.filter(|(_, text)| !text.is_empty()).collect(),
                value: Some(table.number(row, value)?),
                time: Some(table.time(row, time)?),
                ..EvidenceRow::default()
            })
        })
        .collect())
}

fn ranked(rows: Vec<EvidenceRow>) -> Vec<EvidenceRow> {
    rows.into_iter().zip(1..).map(|(row, rank)| EvidenceRow { rank: Some(rank), ..row }).collect()
}

/// The first of each group with their place in it, group after group.
fn first_of_each(rows: Vec<EvidenceRow>, per: &[Dim], limit: u32) -> Vec<EvidenceRow> {
    let mut groups: BTreeMap<Vec<Option<String>>, Vec<EvidenceRow>> = BTreeMap::new();
    for row in rows {
        let key = per.iter().map(|dim| row.entity.get(entity_key(dim)).cloned()).collect();
        let group = groups.entry(key).or_default();
        if u32::try_from(group.len()).is_ok_and(|there| there < limit) {
            group.push(row);
        }
    }
    groups.into_values().flat_map(ranked).collect()
}

/// Of samples picked by order or number nothing can be told to be missing.
fn coverage(rows: &[EvidenceRow], seen: u64) -> Coverage {
    let times = || rows.iter().filter_map(|row| row.time);
    Coverage { expected: None, seen, first: times().min(), last: times().max(), gaps: Vec::new() }
}

fn describe(asked: &Asked, piece: &Evidence, order: SampleOrder, per: &[Dim], fixed: &Entity) -> Vec<Sentence> {
    let id = evidence_id(1);
    let mut head = subject(&asked.measure, piece, &Entity::new(), fixed)
        .say(": ")
        .number(fact(&id, FactPath::Returned), WHOLE)
        .say(match order {
            SampleOrder::Time => " samples are listed in time order",
            SampleOrder::Latest => " samples are listed, the latest first",
            SampleOrder::Highest => " samples are listed, the highest first",
            SampleOrder::Lowest => " samples are listed, the lowest first",
        })
        .cite(&id);
    if !per.is_empty() {
        head = head.say(" in each group");
    }
    let Some((row, value)) = piece.rows.first().and_then(|row| Some((row, row.value?))) else { return vec![head] };
    let mut first = Sentence::new()
        .say("the first is ")
        .number(row_value(&id, 0), format_for(value, piece.unit))
        .say(" at ")
        .time(at(&id, FactPath::RowTime { row: 0 }));
    if !row.entity.is_empty() {
        first = first.say(", of ").entity(&id, &row.entity);
    }
    let relation = match order {
        SampleOrder::Highest => Some(Relation::AtLeast),
        SampleOrder::Lowest => Some(Relation::AtMost),
        SampleOrder::Time | SampleOrder::Latest => None,
    };
    if let Some(relation) = relation.filter(|_| per.is_empty() && piece.rows.len() > 1) {
        first = first.compare(row_value(&id, 0), relation, row_value(&id, piece.rows.len() - 1));
    }
    vec![head, first]
}

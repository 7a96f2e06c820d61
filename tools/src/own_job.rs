//! The job that a call names, looked up for who may ask about own jobs only: whose it is, and which places it held when.
//!
//! These are the queries and their reading; who asks them, and what of it becomes the scope of the call, is the host's.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use sightline_model::{Dataset, Dim, EvidenceRow, FactPath, Quantity, Relation, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Order, Query, Shape};

use crate::list_rows::{list_rows, text_of};
use crate::reading::{Content, evidence};
use crate::sentence::{Sentence, fact};
use crate::tool::{Fetched, ToolError, ToolOutput, evidence_id};

/// A run of the job: schedulers use an id again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Whose rows it is among.
    pub tenant: String,
    /// Where it ran.
    pub cluster: String,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; as of when it still runs, else.
    pub end: Timestamp,
}

/// The places that the job held, all of them from here to there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Node and GPU.
    pub slots: BTreeSet<(String, String)>,
    /// Since when it held all of them.
    pub from: Timestamp,
    /// Until when.
    pub to: Timestamp,
    /// In how many attempts the run held GPUs: only one of them is meant here.
    pub attempts: usize,
}

/// The job that a call names: as its argument `job`, or by a filter on it.
pub fn named(arguments: &Value) -> Option<&str> {
    let by_filter = || {
        arguments.get("filters")?.as_array()?.iter().find_map(|filter| {
            let is_job = matches!(filter.get("dim")?.as_str()?, "job" | "job_id");
            let is = filter.get("op").is_none_or(|op| matches!(op.as_str(), Some("is" | "in")));
            match filter.get("values")?.as_array()?.as_slice() {
                [only] if is_job && is => only.as_str(),
                _ => None,
            }
        })
    };
    arguments.get("job").and_then(Value::as_str).or_else(by_filter)
}

/// The window that a call asks about, as far as it says so.
pub fn asked(arguments: &Value, as_of: Timestamp) -> Option<TimeRange> {
    let time = |key: &str| arguments.get(key).and_then(Value::as_str).and_then(|text| text.parse::<Timestamp>().ok());
    let to = time("to").unwrap_or(as_of).min(as_of);
    TimeRange::new(time("from").unwrap_or(Timestamp::UNIX_EPOCH), to)
}

/// The runs of a job, at any time until now; none before 1970.
pub fn runs_query(job: &str, as_of: Timestamp, max_rows: u32) -> Option<Query> {
    let range = TimeRange::new(Timestamp::UNIX_EPOCH, as_of)?;
    Some(rows_of(Dataset::Jobs, job, Vec::new(), range, max_rows))
}

/// The latest of the runs that the asked window touches, else the latest of all.
///
/// # Errors
/// When the rows are malformed.
pub fn run(jobs: &Fetched, asked: Option<TimeRange>, as_of: Timestamp) -> Result<Option<Run>, ToolError> {
    let rows = list_rows(jobs)?;
    let runs = rows.iter().filter_map(|row| {
        let start = row.time?;
        let end = end_of(row).unwrap_or(as_of).min(as_of);
        let cluster = row.entity.get("cluster").cloned().unwrap_or_default();
        Some(Run { tenant: text_of(row, "tenant").to_owned(), cluster, start, end })
    });
    Ok(runs.max_by_key(|run| (overlap(run.start, run.end, asked).is_some(), run.start)))
}

/// The places of a run; one that lasted no time had none.
pub fn places_query(job: &str, run: &Run, max_rows: u32) -> Option<Query> {
    let range = TimeRange::new(run.start, run.end)?;
    let cluster = Filter::Dim { dim: Dim::Cluster, matches: Match::Eq(run.cluster.clone()) };
    Some(rows_of(Dataset::JobGpus, job, vec![cluster], range, max_rows))
}

/// The places of the run's latest attempt that the asked window touches, while it held all of them: between attempts, and while it
/// grew or shrank, a GPU may be another's.
///
/// # Errors
/// When the rows are cut or malformed.
pub fn places(gpus: &Fetched, job: &str, run: &Run, asked: Option<TimeRange>) -> Result<Places, ToolError> {
    if gpus.result.truncated {
        return Err(ToolError::Cut {
            what: format!("the GPUs of job `{job}`"),
            limit: gpus.query.limit(),
            narrow: "ask an operator who may read whole tenants".to_owned(),
        });
    }
    let rows = list_rows(gpus)?;
    let mut attempts: BTreeMap<u64, Places> = BTreeMap::new();
    for row in &rows {
        let from = row.time.unwrap_or(run.start).max(run.start);
        let to = end_of(row).unwrap_or(run.end).min(run.end);
        let slot = (text_of(row, "node").to_owned(), text_of(row, "gpu").to_owned());
        // A row without a place would stand for all that has none.
        if from >= to || slot.0.is_empty() || slot.1.is_empty() {
            continue;
        }
        let attempt = text_of(row, "attempt").parse().unwrap_or(0);
        let held = attempts.entry(attempt).or_insert_with(|| Places { slots: BTreeSet::new(), from, to, attempts: 0 });
        held.from = held.from.max(from);
        held.to = held.to.min(to);
        held.slots.insert(slot);
    }
    let count = attempts.len();
    let whole = attempts.into_values().filter(|held| held.from < held.to);
    let latest = whole.max_by_key(|held| (overlap(held.from, held.to, asked).is_some(), held.from));
    Ok(match latest {
        Some(latest) => Places { attempts: count, ..latest },
        None => Places { attempts: count, ..no_places(run) },
    })
}

/// A run that held nothing.
pub fn no_places(run: &Run) -> Places {
    Places { slots: BTreeSet::new(), from: run.start, to: run.end.max(run.start), attempts: 0 }
}

/// What there is to say of a job that is none of the asker's: the same for one that does not exist and for one of somebody else.
pub fn none_of_yours(tool: &str, jobs: &Fetched) -> ToolOutput {
    let id = evidence_id(1);
    let found = evidence(jobs, tool, 1, Content::Rows(Vec::new()));
    let job = found.labels.get("job").cloned().unwrap_or_default();
    let headline = Sentence::new()
        .say("no data: there is no job ")
        .value(&id, "job", &job)
        .say(" of yours")
        .compare(fact(&id, FactPath::Total), Relation::AtMost, Quantity::Constant(0.0))
        .cite(&id)
        .finish();
    ToolOutput::no_data(vec![found], headline)
}

fn rows_of(dataset: Dataset, job: &str, more: Vec<Filter>, range: TimeRange, limit: u32) -> Query {
    let id = Filter::Dim { dim: Dim::JobId, matches: Match::Eq(job.to_owned()) };
    Query {
        dataset,
        metric: None,
        part: MetricPart::Samples,
        range,
        filters: [id].into_iter().chain(more).collect(),
        placement: None,
        threshold: None,
        shape: Shape::Rows { order: Order::Ascending, limit },
    }
}

fn end_of(row: &EvidenceRow) -> Option<Timestamp> {
    row.fields.get("end")?.parse().ok()
}

fn overlap(from: Timestamp, to: Timestamp, asked: Option<TimeRange>) -> Option<TimeRange> {
    TimeRange::new(from, to)?.intersect(&asked?)
}

#[cfg(test)]
#[path = "own_job_tests.rs"]
mod tests;

//! The job that is meant: its span, its GPUs, and the windows to read.

use jiff::{SignedDuration, Timestamp};
use sightline_diagnosis::Placement;
use sightline_model::{Aggregation, Dataset, Dim, EvidenceRow, TimeRange};
use sightline_query::kept::{around_kept_steps, within_kept_steps, worth_keeping};
use sightline_query::{Filter, KEPT_STEP_MS, Match, MetricPart, Order, Query, Shape};

use crate::args::{Instant, window};
use crate::job_correlation::batches::Reading;
use crate::job_correlation::{JobCorrelationArgs, NAME};
use crate::list_rows::list_rows;
use crate::metric_range::unknown_job;
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput};

/// Without a window, jobs are looked for this far back: what the role with the shortest longest range may still ask for.
pub(super) const HORIZON: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How much of the job's past before the window is read, at most: a level to compare with, for the price of a few steps.
const PAST: SignedDuration = SignedDuration::from_hours(6);

/// How far past the job's end: whether a GPU fell silent shows only while its peers go on.
const AFTERMATH: SignedDuration = SignedDuration::from_mins(15);

/// What is known about the job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scope {
    pub(super) job: String,
    pub(super) cluster: String,
    pub(super) state: String,
    pub(super) start: Timestamp,
    pub(super) end: Option<Timestamp>,
    pub(super) placements: Vec<Placement>,
    /// The asked window within the job's span.
    pub(super) window: TimeRange,
    /// What is read: the window with some of the job's past, and a little after its end.
    pub(super) range: TimeRange,
    /// What a reader should know about the choice.
    pub(super) notes: Vec<String>,
}

impl Scope {
    /// The window that a reading takes: what is read by steps of whole kept ones leaves out the minutes at both ends that fill none, which
    /// a closer look sees; what is only looked at as a whole takes them in, since what moved is read again within the range.
    pub(super) fn read_by(&self, reading: Reading) -> TimeRange {
        if !worth_keeping(self.range) {
            return self.range;
        }
        match reading {
            Reading::Steps { aggregation: Aggregation::Avg | Aggregation::Last, step_ms }
                if step_ms.is_multiple_of(KEPT_STEP_MS) =>
            {
                within_kept_steps(self.range)
            }
            Reading::Steps { .. } => self.range,
            Reading::Whole => {
                let around = around_kept_steps(self.range);
                if i128::from(around.millis()) <= HORIZON.as_millis() { around } else { self.range }
            }
        }
    }

    /// A window within the range in which only names are looked for.
    pub(super) fn of_names(&self, range: TimeRange) -> TimeRange {
        if worth_keeping(self.range) { within_kept_steps(range) } else { range }
    }
}

/// The job, or the answer that there is none.
pub(super) enum Found {
    /// The job.
    Scope(Box<Scope>),
    /// None that the asker may see in this window.
    Unknown(Box<ToolOutput>),
}

/// The window in which the job is looked for.
pub(super) fn asked(args: &JobCorrelationArgs, context: &ToolContext<'_>) -> Result<TimeRange, ToolError> {
    let to = args.to.unwrap_or(Instant(context.as_of));
    let from = args.from.unwrap_or_else(|| Instant(moved(to.0.min(context.as_of), -HORIZON)));
    window(NAME, from, to, context.as_of)
}

/// The first round: the job, and which GPUs it held.
pub(super) fn queries(args: &JobCorrelationArgs, context: &ToolContext<'_>, range: TimeRange) -> Vec<Query> {
    [Dataset::Jobs, Dataset::JobGpus]
        .into_iter()
        .map(|dataset| Query {
            dataset,
            metric: None,
            part: MetricPart::Samples,
            range,
            filters: vec![Filter::Dim { dim: Dim::JobId, matches: Match::Eq(args.job.clone()) }],
            placement: None,
            threshold: None,
            shape: Shape::Rows { order: Order::Ascending, limit: context.max_rows },
        })
        .collect()
}

/// Reads the first round.
pub(super) fn read(
    args: &JobCorrelationArgs,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Found, ToolError> {
    let of = |dataset: Dataset| fetched.iter().find(|f| f.round == 0 && f.query.dataset() == dataset);
    let unknown = || Ok(Found::Unknown(Box::new(unknown_job(NAME, fetched))));
    let (Some(jobs), Some(gpus)) = (of(Dataset::Jobs), of(Dataset::JobGpus)) else { return unknown() };
    if gpus.result.truncated {
        return Err(ToolError::Cut {
            what: format!("the GPUs of job `{}`", args.job),
            limit: context.max_rows,
            narrow: "ask about a shorter window".to_owned(),
        });
    }
    let job_rows = list_rows(jobs)?;
    // Schedulers use an id again: the latest run is meant.
    let Some(job) = job_rows.iter().max_by_key(|row| row.time) else { return unknown() };
    let cluster = text(job, "cluster").to_owned();
    let start = job.time.unwrap_or(Timestamp::MIN);
    let end = time(job, "end");
    let gpu_rows = list_rows(gpus)?;
    let asked = asked(args, context)?;
    let placements = placements(&gpu_rows, &cluster, asked, start, end);
    let last = end.unwrap_or(context.as_of).min(context.as_of);
    let Some(window) = TimeRange::new(start, last).and_then(|span| span.intersect(&asked)) else { return unknown() };
    let back = PAST.min(SignedDuration::from_millis(window.millis()));
    let from = start.max(moved(window.from(), -back));
    let aftermath = end.filter(|end| *end <= window.to()).map_or(window.to(), |end| moved(end, AFTERMATH));
    let range = TimeRange::new(from, aftermath.min(context.as_of)).unwrap_or(window);
    let mut notes = Vec::new();
    if job_rows.len() > 1 {
        notes.push(format!("{} runs carry this job id in the window; the latest one was looked at", job_rows.len()));
    }
    let scope = Scope {
        job: args.job.clone(),
        cluster,
        state: text(job, "state").to_owned(),
        start,
        end,
        placements,
        window,
        range,
        notes,
    };
    Ok(Found::Scope(Box::new(scope)))
}

/// The GPUs held by this run within the asked window, each once.
fn placements(
    rows: &[EvidenceRow],
    cluster: &str,
    asked: TimeRange,
    start: Timestamp,
    end: Option<Timestamp>,
) -> Vec<Placement> {
    let mut placements: Vec<Placement> = Vec::new();
    for row in rows.iter().filter(|row| text(row, "cluster") == cluster) {
        let from = row.time.unwrap_or(start).max(start);
        let to = [time(row, "end"), end].into_iter().flatten().min().unwrap_or(asked.to());
        let held = TimeRange::new(from, to).is_some_and(|held| held.intersect(&asked).is_some());
        let (node, gpu) = (text(row, "node"), text(row, "gpu"));
        let known = placements.iter().any(|p| p.node == node && p.gpu == gpu);
        if held && !known && !node.is_empty() && !gpu.is_empty() {
            let rank = Some(text(row, "rank")).filter(|r| !r.is_empty()).map(str::to_owned);
            placements.push(Placement { node: node.to_owned(), gpu: gpu.to_owned(), rank });
        }
    }
    placements
}

fn text<'a>(row: &'a EvidenceRow, key: &str) -> &'a str {
    crate::list_rows::text_of(row, key)
}

fn time(row: &EvidenceRow, key: &str) -> Option<Timestamp> {
    row.fields.get(key)?.parse().ok()
}

fn moved(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}

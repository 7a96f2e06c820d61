//! Narrows a query to the rows of one job, or of one user's jobs, for who may read own jobs only.
//!
//! The choice is the safe one wherever a row does not say whose it is. A sample counts as the job's where its node and GPU are: what is
//! measured of a node as a whole is measured of everybody on it. A line or an event counts where it carries the node and GPU, or is
//! asked for by the job's own label; a span, which knows no GPU, by the label alone. Nothing outside of the time in which the job held
//! its GPUs counts: before and after, they are another's. What is asked for beyond that comes back empty, like what is not there.
//!
//! The limit: a GPU counts as held by one job at a time. Where several share one under the same node and index (time slicing, MPS, or
//! MIG instances that are not told apart), what is measured or logged of that GPU in that time is taken for the job's own, although
//! some of it is of the jobs beside it. Whoever runs such a cluster gives `own_jobs_only` knowing that.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use sightline_model::{Dataset, Dim, TimeRange};
use sightline_policies::{JobRows, OwnRows};
use sightline_query::{Align, Filter, Match, Shape, ValidQuery};

/// The canonical label of a job in rows that have no column for it.
pub(crate) const JOB_LABEL: &str = "job";

/// What is read of a query: never more than it asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Narrowed {
    pub(crate) window: TimeRange,
    /// The places; an empty list lets no row through.
    pub(crate) placement: Option<Vec<(String, String)>>,
    /// Dimensions that must be one of these; an empty list lets no row through.
    pub(crate) lists: Vec<(Dim, Vec<String>)>,
}

/// Narrows a query; without `own` it stays as it is.
pub(crate) fn narrow(query: &ValidQuery, own: Option<&OwnRows>, window: TimeRange) -> Narrowed {
    let placement = query.placement().map(<[_]>::to_vec);
    match own {
        None => Narrowed { window, placement, lists: Vec::new() },
        Some(OwnRows::JobsOf { user }) => {
            let lists = match query.dataset() {
                Dataset::Jobs => vec![(Dim::User, vec![user.clone()])],
                // Policy opens no other dataset without a job. If it ever did, there would be nothing here that is the user's.
                Dataset::JobGpus => vec![(Dim::JobId, Vec::new())],
                Dataset::Metrics | Dataset::Logs | Dataset::Spans | Dataset::Events => {
                    vec![(Dim::Label(JOB_LABEL.to_owned()), Vec::new())]
                }
            };
            Narrowed { window, placement, lists }
        }
        Some(OwnRows::Job(job)) => to_job(query, job, window, placement),
    }
}

fn to_job(query: &ValidQuery, job: &JobRows, window: TimeRange, placement: Option<Vec<(String, String)>>) -> Narrowed {
    let within = within(query, job, window);
    let is_empty = within.is_none();
    let window = within.unwrap_or(window);
    let only = |text: &String| if is_empty { Vec::new() } else { vec![text.clone()] };
    let by_label = || vec![(Dim::Label(JOB_LABEL.to_owned()), only(&job.job_id))];
    let (placement, own) = match query.dataset() {
        Dataset::Metrics => (Some(places(job, placement, is_empty)), Vec::new()),
        Dataset::Logs | Dataset::Events if asks_by_label(query, job) => (placement, by_label()),
        Dataset::Logs | Dataset::Events => (Some(places(job, placement, is_empty)), Vec::new()),
        Dataset::Spans => (placement, by_label()),
        // An id may have been another's before.
        Dataset::Jobs => (placement, vec![(Dim::JobId, only(&job.job_id)), (Dim::User, only(&job.user))]),
        Dataset::JobGpus => (placement, vec![(Dim::JobId, only(&job.job_id))]),
    };
    // Names of nodes and ids of jobs repeat in another cluster.
    let lists = [(Dim::Cluster, only(&job.cluster))].into_iter().chain(own).collect();
    Narrowed { window, placement, lists }
}

/// The job's places among those that are asked for.
fn places(job: &JobRows, asked: Option<Vec<(String, String)>>, is_empty: bool) -> Vec<(String, String)> {
    if is_empty {
        return Vec::new();
    }
    match asked {
        None => job.slots.iter().cloned().collect(),
        Some(asked) => {
            let asked: BTreeSet<(String, String)> = asked.into_iter().collect();
            asked.intersection(&job.slots).cloned().collect()
        }
    }
}

fn asks_by_label(query: &ValidQuery, job: &JobRows) -> bool {
    query.filters().iter().any(|filter| match filter {
        Filter::Dim { dim: Dim::Label(label), matches: Match::Eq(id) } => label == JOB_LABEL && *id == job.job_id,
        Filter::Dim { .. } | Filter::Value { .. } => false,
    })
}

/// The part of the window in which the job held its GPUs, in whole milliseconds, never a part of one more. Steps that count from the
/// window's start keep their places, so the part begins with a step; a window of one step begins where the job does.
fn within(query: &ValidQuery, job: &JobRows, window: TimeRange) -> Option<TimeRange> {
    let first = job.from.as_millisecond().saturating_add(i64::from(job.from.subsec_nanosecond() % 1_000_000 != 0));
    let begins = Timestamp::from_millisecond(first).ok()?;
    let ends = Timestamp::from_millisecond(job.to.as_millisecond()).ok()?;
    let from = match query.query().shape {
        Shape::Series { step_ms, align: Align::Window, .. } if begins > window.from() => {
            let step = i64::try_from(step_ms.max(1)).unwrap_or(i64::MAX);
            let late = begins.as_millisecond().saturating_sub(window.from().as_millisecond());
            if step >= window.millis() {
                begins
            } else {
                let steps = late.saturating_add(step.saturating_sub(1)).checked_div(step).unwrap_or(0);
                window.from().checked_add(SignedDuration::from_millis(steps.saturating_mul(step))).ok()?
            }
        }
        Shape::Series { .. }
        | Shape::Samples { .. }
        | Shape::Rank { .. }
        | Shape::Rows { .. }
        | Shape::Distinct { .. }
        | Shape::LabelKeys { .. } => begins.max(window.from()),
    };
    TimeRange::new(from, ends.min(window.to()))
}

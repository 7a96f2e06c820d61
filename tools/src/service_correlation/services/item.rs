//! One metric to look at: what it tells, and how it is read.

use std::collections::{BTreeMap, BTreeSet};

use sightline_diagnosis::Role;
use sightline_model::{Aggregation, Dataset, Dim, MetricKind, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Query, Shape};

use crate::tool::ToolContext;

/// How a metric's samples become a level.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum How {
    /// The catalogue's gauge, averaged.
    Gauge(String),
    /// A name the catalogue does not know; taken for a gauge.
    Unknown(String),
    /// The catalogue's counter, by how much it grew.
    Counter(String),
    /// The catalogue's histogram: the mean of what it observed.
    Mean(String),
    /// The catalogue's counter of requests: the share of them that carries a status of failure under this label.
    FailedShare { metric: String, status: String },
}

/// One of the queries that a metric takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) part: MetricPart,
    /// Whether only what carries a status of failure is read.
    pub(super) failed: bool,
}

impl Part {
    const fn all(part: MetricPart) -> Self {
        Self { part, failed: false }
    }
}

/// How a label says that a request failed on the server's side: HTTP's 5xx, or a word. What the client did wrong (4xx) is no failure.
const FAILED: &str = "^(5[0-9xX]{2}|[eE]rror|ERROR|STATUS_CODE_ERROR|[fF]ailed|[fF]ailure)$";

/// Labels that carry the status of a request, in the spellings of Istio, Prometheus clients and OpenTelemetry.
pub(super) const STATUS: [&str; 7] = [
    "response_code",
    "status_code",
    "status",
    "code",
    "http_status_code",
    "http_response_status_code",
    "http.response.status_code",
];

/// Whether a text is the status of a request: three digits as HTTP has them, or a word for how it ended.
pub(super) fn is_status(text: &str) -> bool {
    let digits = text.len() == 3 && text.starts_with(|c: char| ('1'..='5').contains(&c));
    let http = digits && text.chars().skip(1).all(|c| c.is_ascii_digit() || c.eq_ignore_ascii_case(&'x'));
    http || ["ok", "success", "error", "failed", "failure", "status_code_ok", "status_code_error", "status_code_unset"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

impl How {
    /// The parts to query.
    pub(super) fn parts(&self) -> &'static [Part] {
        const SAMPLES: Part = Part::all(MetricPart::Samples);
        match self {
            Self::Gauge(_) | Self::Unknown(_) | Self::Counter(_) => &[SAMPLES],
            Self::Mean(_) => &[Part::all(MetricPart::Sum), Part::all(MetricPart::Count)],
            Self::FailedShare { .. } => &[SAMPLES, Part { part: MetricPart::Samples, failed: true }],
        }
    }

    pub(super) fn aggregation(&self) -> Aggregation {
        match self {
            Self::Gauge(_) | Self::Unknown(_) => Aggregation::Avg,
            Self::Counter(_) | Self::Mean(_) | Self::FailedShare { .. } => Aggregation::Increase,
        }
    }
}

/// What tells the series of a metric apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// One series a service.
    Service,
    /// One series a pod of a service.
    ServicePod,
    /// One series a container, whose service has to be told by its pod's name.
    Pod,
}

impl Level {
    pub(super) fn group_by(self) -> Vec<Dim> {
        let label = |key: &str| Dim::Label(key.to_owned());
        match self {
            Self::Service => vec![Dim::Service],
            Self::ServicePod => vec![Dim::Service, label("pod")],
            Self::Pod => vec![label("pod"), label("container")],
        }
    }

    fn filters(self) -> Vec<Filter> {
        let there = |dim: Dim, matches: Match| Filter::Dim { dim, matches };
        match self {
            Self::Service | Self::ServicePod => vec![there(Dim::Service, Match::Present)],
            Self::Pod => {
                vec![there(Dim::Service, Match::Absent), there(Dim::Label("pod".to_owned()), Match::Present)]
            }
        }
    }
}

/// A metric to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) role: Role,
    pub(super) how: How,
    pub(super) level: Level,
}

impl Item {
    /// The query for one part of it, in steps of this length.
    pub(super) fn query(&self, context: &ToolContext<'_>, part: Part, range: TimeRange, step_ms: u64) -> Query {
        let mut filters = self.level.filters();
        let metric = match &self.how {
            How::Gauge(id) | How::Counter(id) | How::Mean(id) => Some(id.clone()),
            How::FailedShare { metric, status } => {
                if part.failed {
                    let failed = Match::Regex(FAILED.to_owned());
                    filters.push(Filter::Dim { dim: Dim::Label(status.clone()), matches: failed });
                }
                Some(metric.clone())
            }
            How::Unknown(stored) => {
                filters.push(Filter::Dim { dim: Dim::Metric, matches: Match::Eq(stored.clone()) });
                None
            }
        };
        // The stored name is read along, so that the evidence can say which spelling was found.
        let mut group_by = self.level.group_by();
        group_by.push(Dim::Metric);
        let shape = Shape::Series {
            step_ms,
            align: Align::Epoch,
            group_by,
            aggregation: self.how.aggregation(),
            limit: context.max_rows,
        };
        Query {
            dataset: Dataset::Metrics,
            metric,
            part: part.part,
            range,
            filters,
            placement: None,
            threshold: None,
            shape,
        }
    }
}

/// The catalogue's counters of requests among these metrics, whose status may tell failures.
pub(super) fn request_counters(context: &ToolContext<'_>, metrics: &BTreeSet<String>) -> Vec<String> {
    let counts = |id: &&String| {
        let metric = context.catalogue.get(id);
        metric.is_some_and(|m| m.kind() == MetricKind::Counter) && Role::of(id) == Some(Role::Requests)
    };
    metrics.iter().filter(counts).cloned().collect()
}

/// The metrics to look at, each once, from the stored names there are and the labels that carry the status of counters of requests:
/// the likeliest to tell something first.
pub(super) fn items(
    context: &ToolContext<'_>,
    names: &BTreeMap<String, BTreeSet<Level>>,
    statuses: &BTreeMap<String, String>,
) -> Vec<Item> {
    let mut found: BTreeSet<Item> = BTreeSet::new();
    for (metric, status) in statuses {
        let how = How::FailedShare { metric: metric.clone(), status: status.clone() };
        found.insert(Item { role: Role::Errors, how, level: Level::Service });
    }
    for (stored, levels) in names {
        let Some((role, how)) = told(context, stored) else { continue };
        let by_pod = matches!(
            role,
            Role::Cpu
                | Role::CpuThrottle
                | Role::Memory
                | Role::MemoryLimit
                | Role::MajorFaults
                | Role::OomKills
                | Role::Restarts
                | Role::Disk
                | Role::NetworkErrors
                | Role::Network
        );
        for level in levels {
            let level = if *level == Level::Service && by_pod { Level::ServicePod } else { *level };
            found.insert(Item { role, how: how.clone(), level });
        }
    }
    let mut items: Vec<Item> = found.into_iter().collect();
    items.truncate(MAX_ITEMS);
    items
}

/// More metrics than this are not looked at: the roles that tell the most come first.
const MAX_ITEMS: usize = 48;

/// What a stored name tells and how it is read; `None` for what no cause looks at, and for a running total that the catalogue does
/// not know: its level says nothing.
fn told(context: &ToolContext<'_>, stored: &str) -> Option<(Role, How)> {
    if let Some(metric) = context.catalogue.by_stored(stored) {
        let role = Role::of(metric.id()).or_else(|| Role::of(stored))?;
        let id = metric.id().to_owned();
        return match metric.kind() {
            MetricKind::Gauge => Some((role, How::Gauge(id))),
            MetricKind::Counter => Some((role, How::Counter(id))),
            MetricKind::Histogram => Some((role, How::Mean(id))),
            MetricKind::State => None,
        };
    }
    let is_total = stored.to_ascii_lowercase().ends_with("_total");
    let role = Role::of(stored).filter(|_| !is_total)?;
    Some((role, How::Unknown(stored.to_owned())))
}

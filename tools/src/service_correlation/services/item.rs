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
    /// The catalogue's counter of requests, or its histogram of how long they take (`observed`): the share of them that carries a
    /// status of failure under this label.
    FailedShare { metric: String, observed: bool, status: String },
    /// Names that each belong to one service and begin with its name (`cart_latency-50`): one metric, whose name is the rest.
    Columns { rest: String, names: BTreeSet<String> },
}

/// One of the queries that a metric takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        const MEAN: [Part; 2] = [Part::all(MetricPart::Sum), Part::all(MetricPart::Count)];
        const COUNTED: [Part; 2] = [SAMPLES, Part { part: MetricPart::Samples, failed: true }];
        const OBSERVED: [Part; 2] = [Part::all(MetricPart::Count), Part { part: MetricPart::Count, failed: true }];
        match self {
            Self::Gauge(_) | Self::Unknown(_) | Self::Counter(_) | Self::Columns { .. } => &[SAMPLES],
            Self::Mean(_) => &MEAN,
            Self::FailedShare { observed: true, .. } => &OBSERVED,
            Self::FailedShare { observed: false, .. } => &COUNTED,
        }
    }

    /// What the metric is called, whatever it is stored as.
    pub(super) fn family(&self) -> &str {
        match self {
            Self::Gauge(name) | Self::Unknown(name) | Self::Counter(name) | Self::Mean(name) => name,
            Self::FailedShare { metric, .. } => metric,
            Self::Columns { rest, .. } => rest,
        }
    }

    pub(super) fn aggregation(&self) -> Aggregation {
        match self {
            Self::Gauge(_) | Self::Unknown(_) | Self::Columns { .. } => Aggregation::Avg,
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
    /// One series a node, for all services that run on it.
    Node,
    /// One series a container, whose service has to be told by its pod's name.
    Pod,
}

impl Level {
    pub(super) fn group_by(self) -> Vec<Dim> {
        let label = |key: &str| Dim::Label(key.to_owned());
        match self {
            Self::Service => vec![Dim::Service],
            Self::ServicePod => vec![Dim::Service, label("pod")],
            Self::Node => vec![Dim::Node],
            Self::Pod => vec![label("pod"), label("container")],
        }
    }

    fn filters(self) -> Vec<Filter> {
        let there = |dim: Dim, matches: Match| Filter::Dim { dim, matches };
        match self {
            Self::Service | Self::ServicePod => vec![there(Dim::Service, Match::Present)],
            Self::Node => vec![there(Dim::Node, Match::Present)],
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
            How::FailedShare { metric, status, .. } => {
                if part.failed {
                    let failed = Match::Regex(FAILED.to_owned());
                    filters.push(Filter::Dim { dim: Dim::Label(status.clone()), matches: failed });
                }
                Some(metric.clone())
            }
            How::Columns { names, .. } => {
                let names = names.iter().cloned().collect();
                filters.push(Filter::Dim { dim: Dim::Metric, matches: Match::In(names) });
                None
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

/// The catalogue's counters of requests among these metrics, and its histograms of how long requests take: their status may tell
/// failures. Each with the part that counts requests.
pub(super) fn request_counters(context: &ToolContext<'_>, metrics: &BTreeSet<String>) -> Vec<(String, MetricPart)> {
    let part = |id: &String| match (context.catalogue.get(id)?.kind(), Role::of(id)?) {
        (MetricKind::Counter, Role::Requests) => Some((id.clone(), MetricPart::Samples)),
        (MetricKind::Histogram, Role::Latency) => Some((id.clone(), MetricPart::Count)),
        _ => None,
    };
    metrics.iter().filter_map(part).collect()
}

/// What is known about the names of metrics.
pub(super) struct Names<'a> {
    /// Stored names, with what their series are told apart by.
    pub(super) levels: &'a BTreeMap<String, BTreeSet<Level>>,
    /// The services that each name is stored of.
    pub(super) owners: &'a BTreeMap<String, BTreeSet<String>>,
    /// What counts requests, with the label that carries their status.
    pub(super) statuses: &'a BTreeMap<String, (MetricPart, String)>,
}

/// The metrics to look at, each once: the likeliest to tell something first.
pub(super) fn items(context: &ToolContext<'_>, names: &Names<'_>) -> Vec<Item> {
    let mut found: BTreeSet<Item> = BTreeSet::new();
    for (metric, (part, status)) in names.statuses {
        let observed = *part == MetricPart::Count;
        let how = How::FailedShare { metric: metric.clone(), observed, status: status.clone() };
        found.insert(Item { role: Role::Errors, how, level: Level::Service });
    }
    let mut columns: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (stored, levels) in names.levels {
        if let Some(rest) = column(context, names, stored) {
            columns.entry(rest).or_default().insert(stored.clone());
            continue;
        }
        let Some((role, how)) = told(context, stored) else { continue };
        for level in levels {
            found.insert(Item { role, how: how.clone(), level: finer(role, *level) });
        }
    }
    for (rest, names) in columns {
        let Some(role) = Role::of(rest) else { continue };
        let how = How::Columns { rest: rest.to_owned(), names };
        found.insert(Item { role, how, level: finer(role, Level::Service) });
    }
    let mut items: Vec<Item> = found.into_iter().collect();
    items.truncate(MAX_ITEMS);
    items
}

/// The rest of a name that begins with the name of the only service it is stored of.
fn column<'a>(context: &ToolContext<'_>, names: &Names<'_>, stored: &'a str) -> Option<&'a str> {
    let owners = names.owners.get(stored).filter(|_| context.catalogue.by_stored(stored).is_none())?;
    let mut owners = owners.iter();
    let (Some(only), None) = (owners.next(), owners.next()) else { return None };
    let rest = stored.strip_prefix(only.as_str())?.strip_prefix(['_', '-', '.', ':', '/'])?;
    (!rest.is_empty()).then_some(rest)
}

/// What a service uses is told by pod.
fn finer(role: Role, level: Level) -> Level {
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
    if level == Level::Service && by_pod { Level::ServicePod } else { level }
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

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
}

impl How {
    /// The parts to query.
    pub(super) fn parts(&self) -> &'static [MetricPart] {
        match self {
            Self::Gauge(_) | Self::Unknown(_) | Self::Counter(_) => &[MetricPart::Samples],
            Self::Mean(_) => &[MetricPart::Sum, MetricPart::Count],
        }
    }

    pub(super) fn aggregation(&self) -> Aggregation {
        match self {
            Self::Gauge(_) | Self::Unknown(_) => Aggregation::Avg,
            Self::Counter(_) | Self::Mean(_) => Aggregation::Increase,
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
    pub(super) fn query(&self, context: &ToolContext<'_>, part: MetricPart, range: TimeRange, step_ms: u64) -> Query {
        let mut filters = self.level.filters();
        let metric = match &self.how {
            How::Gauge(id) | How::Counter(id) | How::Mean(id) => Some(id.clone()),
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
        Query { dataset: Dataset::Metrics, metric, part, range, filters, placement: None, threshold: None, shape }
    }
}

/// The metrics to look at, each once, from the stored names there are: the likeliest to tell something first.
pub(super) fn items(context: &ToolContext<'_>, names: &BTreeMap<String, BTreeSet<Level>>) -> Vec<Item> {
    let mut found: BTreeSet<Item> = BTreeSet::new();
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

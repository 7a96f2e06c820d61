//! Which dimensions each dataset has, and which aggregations fit which kind of metric.

use sightline_model::{Aggregation, Dataset, Dim, MetricKind};

use crate::error::QueryError;

/// The dimensions of a dataset that are columns of their own; datasets with labels have any label besides.
pub fn dimensions(dataset: Dataset) -> &'static [Dim] {
    match dataset {
        Dataset::Metrics => &[Dim::Tenant, Dim::Cluster, Dim::Metric, Dim::Node, Dim::Gpu, Dim::Service],
        Dataset::Logs => &[Dim::Tenant, Dim::Cluster, Dim::Node, Dim::Gpu, Dim::Service, Dim::Severity, Dim::Body],
        Dataset::Spans => &[
            Dim::Tenant,
            Dim::Cluster,
            Dim::Node,
            Dim::Service,
            Dim::Pod,
            Dim::Operation,
            Dim::TraceId,
            Dim::SpanId,
            Dim::ParentId,
        ],
        Dataset::Events => &[Dim::Tenant, Dim::Cluster, Dim::Node, Dim::Gpu, Dim::Service, Dim::Kind, Dim::Body],
        Dataset::Jobs => &[Dim::Tenant, Dim::Cluster, Dim::JobId, Dim::Name, Dim::User, Dim::Kind, Dim::State],
        Dataset::JobGpus => {
            &[Dim::Tenant, Dim::Cluster, Dim::JobId, Dim::Node, Dim::Gpu, Dim::GpuUuid, Dim::Rank, Dim::Attempt]
        }
    }
}

/// Whether the dataset has labels besides its columns.
pub fn has_labels(dataset: Dataset) -> bool {
    match dataset {
        Dataset::Metrics | Dataset::Logs | Dataset::Spans | Dataset::Events | Dataset::Jobs => true,
        Dataset::JobGpus => false,
    }
}

/// Whether its rows have a number to combine: a sample, or a span's duration.
pub fn has_values(dataset: Dataset) -> bool {
    match dataset {
        Dataset::Metrics | Dataset::Spans => true,
        Dataset::Logs | Dataset::Events | Dataset::Jobs | Dataset::JobGpus => false,
    }
}

/// Longest label key taken, bytes: Prometheus names no limit, and 128 is past anything seen in exporters.
const MAX_LABEL_KEY: usize = 128;

/// Checks that the dataset has the dimension.
pub(crate) fn check_dim(dataset: Dataset, dim: &Dim) -> Result<(), QueryError> {
    let known = dimensions(dataset);
    let fits = match dim {
        Dim::Label(key) => has_labels(dataset) && !key.is_empty() && key.len() <= MAX_LABEL_KEY,
        Dim::Tenant
        | Dim::Cluster
        | Dim::Metric
        | Dim::Node
        | Dim::Gpu
        | Dim::Service
        | Dim::Severity
        | Dim::Body
        | Dim::Kind
        | Dim::JobId
        | Dim::Name
        | Dim::User
        | Dim::State
        | Dim::GpuUuid
        | Dim::Rank
        | Dim::Attempt
        | Dim::Pod
        | Dim::Operation
        | Dim::TraceId
        | Dim::SpanId
        | Dim::ParentId => known.contains(dim),
    };
    if fits {
        return Ok(());
    }
    let mut has: Vec<String> = known.iter().map(|d| d.as_str().to_owned()).collect();
    if has_labels(dataset) {
        has.push("any label".to_owned());
    }
    Err(QueryError::UnknownDimension { dataset, dim: dim.as_str().to_owned(), has })
}

/// The aggregations that fit a kind.
///
/// A counter's level says nothing (it depends on when it was last reset), so only its growth is offered, besides the count of
/// samples. A state's values are names: they can be looked at, not averaged.
pub fn fitting(kind: MetricKind) -> &'static [Aggregation] {
    match kind {
        MetricKind::Gauge => &[
            Aggregation::Avg,
            Aggregation::Min,
            Aggregation::Max,
            Aggregation::Sum,
            Aggregation::Count,
            Aggregation::Last,
            Aggregation::Stddev,
            Aggregation::P50,
            Aggregation::P90,
            Aggregation::P95,
            Aggregation::P99,
            Aggregation::TimeAvg,
            Aggregation::FractionAbove,
            Aggregation::FractionBelow,
        ],
        MetricKind::Counter => &[Aggregation::Rate, Aggregation::Increase, Aggregation::Last, Aggregation::Count],
        MetricKind::Histogram => &[
            Aggregation::P50,
            Aggregation::P90,
            Aggregation::P95,
            Aggregation::P99,
            Aggregation::Avg,
            Aggregation::Rate,
            Aggregation::Increase,
        ],
        MetricKind::State => &[
            Aggregation::Last,
            Aggregation::Min,
            Aggregation::Max,
            Aggregation::Count,
            // How long it was in a state: a flag is above 0 or not.
            Aggregation::FractionAbove,
            Aggregation::FractionBelow,
        ],
    }
}

/// Whether the aggregation fits the kind.
pub fn fits(kind: MetricKind, aggregation: Aggregation) -> bool {
    fitting(kind).contains(&aggregation)
}

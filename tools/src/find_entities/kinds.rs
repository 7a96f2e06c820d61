//! The kinds of things that can be looked for, and where each of them shows.

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Order, Query, Shape};

use crate::tool::ToolContext;

macro_rules! kinds {
    ($($name:ident = $wire:literal, $many:literal;)*) => {
        /// A kind of thing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum EntityKind {
            $(#[doc = concat!("A ", $wire, ".")] $name,)*
        }

        impl EntityKind {
            const NAMES: &[&str] = &[$($wire,)*];

            /// Its canonical name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// Several of it, in words.
            pub(super) fn plural(self) -> &'static str {
                match self { $(Self::$name => $many,)* }
            }
        }
    };
}

kinds! {
    Cluster = "cluster", "clusters";
    Node = "node", "nodes";
    Gpu = "gpu", "GPUs";
    Job = "job", "jobs";
    User = "user", "users";
    Service = "service", "services";
    Model = "model", "models";
    Pod = "pod", "pods";
    Rack = "rack", "racks";
    Metric = "metric", "metrics";
    EventKind = "event_kind", "kinds of events";
}

impl JsonSchema for EntityKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EntityKind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Self::NAMES })
    }
}

impl EntityKind {
    /// What to ask, of the datasets the asker may read; nothing when there is none.
    pub(super) fn queries(self, context: &ToolContext<'_>, range: TimeRange, search: Option<&str>) -> Vec<Query> {
        let limit = context.max_rows;
        let contains = |dim: Dim| {
            search.map(|text| Filter::Dim { dim, matches: Match::ContainsFold(text.to_owned()) }).into_iter().collect()
        };
        let queries: Vec<Query> = match self {
            Self::Job => {
                let dims = if search.is_some() { vec![Dim::JobId, Dim::Name] } else { vec![Dim::JobId] };
                let shape = Shape::Rows { order: Order::Descending, limit };
                dims.into_iter()
                    .map(|dim| {
                        query(
                            Dataset::Jobs,
                            range,
                            if search.is_some() { contains(dim) } else { Vec::new() },
                            shape.clone(),
                        )
                    })
                    .collect()
            }
            Self::Cluster
            | Self::Node
            | Self::Gpu
            | Self::User
            | Self::Service
            | Self::Model
            | Self::Pod
            | Self::Rack
            | Self::Metric
            | Self::EventKind => self
                .places()
                .into_iter()
                .map(|(dataset, of)| {
                    let mut filters: Vec<Filter> = Vec::new();
                    if let Some(named) = of.last() {
                        filters.push(Filter::Dim { dim: named.clone(), matches: Match::Present });
                        // A GPU is an index: what is looked for is its node.
                        let searched = if self == Self::Gpu { Dim::Node } else { named.clone() };
                        filters.extend(contains(searched));
                    }
                    query(dataset, range, filters, Shape::Distinct { of, limit })
                })
                .collect(),
        };
        queries.into_iter().filter(|q| context.may_read(q.dataset)).collect()
    }

    /// The dimension by which it is known, last, behind what it belongs to.
    fn places(self) -> Vec<(Dataset, Vec<Dim>)> {
        let label = |key: &str| Dim::Label(key.to_owned());
        match self {
            Self::Cluster => vec![(Dataset::Metrics, vec![Dim::Cluster]), (Dataset::Jobs, vec![Dim::Cluster])],
            Self::Node => vec![(Dataset::Metrics, vec![Dim::Cluster, Dim::Node])],
            Self::Gpu => vec![(Dataset::Metrics, vec![Dim::Cluster, Dim::Node, Dim::Gpu])],
            Self::User => vec![(Dataset::Jobs, vec![Dim::User])],
            Self::Service => vec![
                (Dataset::Metrics, vec![Dim::Service]),
                (Dataset::Logs, vec![Dim::Service]),
                (Dataset::Spans, vec![Dim::Service]),
            ],
            Self::Model => vec![(Dataset::Metrics, vec![label("model")]), (Dataset::Jobs, vec![label("model")])],
            Self::Pod => vec![(Dataset::Metrics, vec![label("pod")]), (Dataset::Spans, vec![Dim::Pod])],
            Self::Rack => vec![(Dataset::Metrics, vec![label("rack")])],
            Self::Metric => vec![(Dataset::Metrics, vec![Dim::Metric])],
            Self::EventKind => vec![(Dataset::Events, vec![Dim::Kind])],
            Self::Job => Vec::new(),
        }
    }
}

fn query(dataset: Dataset, range: TimeRange, filters: Vec<Filter>, shape: Shape) -> Query {
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

impl EntityKind {
    /// The entity key whose text a search is held against.
    pub(super) fn searched_key(self) -> &'static str {
        match self {
            Self::Gpu => "node",
            Self::EventKind => "kind",
            Self::Cluster
            | Self::Node
            | Self::Job
            | Self::User
            | Self::Service
            | Self::Model
            | Self::Pod
            | Self::Rack
            | Self::Metric => self.as_str(),
        }
    }
}

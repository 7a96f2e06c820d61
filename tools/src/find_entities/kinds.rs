//! The kinds of things that can be looked for, and where each of them shows.

use schemars::JsonSchema;
use serde::Deserialize;
use sightline_model::{Dataset, Dim, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Order, Query, Shape};

use super::NAME;
use crate::args::{FilterArg, dim, dims, filters};
use crate::reading::entity_key;
use crate::tool::{ToolContext, ToolError};

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
    Label = "label", "labels";
    LabelValue = "label_value", "values of the label";
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

/// What is asked besides the kind.
pub(super) struct Wanted<'a> {
    pub(super) range: TimeRange,
    pub(super) filters: &'a [FilterArg],
    /// The dataset of labels.
    pub(super) dataset: Dataset,
    /// The label whose values are asked for.
    pub(super) label: Option<&'a str>,
    /// Told apart by these.
    pub(super) per: &'a [String],
    /// The most rows of a query.
    pub(super) limit: u32,
}

impl EntityKind {
    /// What to ask, of the datasets the asker may read; nothing when there is none.
    pub(super) fn queries(
        self,
        context: &ToolContext<'_>,
        wanted: &Wanted<'_>,
        search: Option<&str>,
    ) -> Result<Vec<Query>, ToolError> {
        let limit = wanted.limit;
        let contains = |dim: Dim| {
            search.map(|text| Filter::Dim { dim, matches: Match::ContainsFold(text.to_owned()) }).into_iter()
        };
        let mut queries: Vec<Query> = Vec::new();
        match self {
            Self::Job => {
                let dims = if search.is_some() { vec![Dim::JobId, Dim::Name] } else { vec![Dim::JobId] };
                for dim in dims {
                    let shape = Shape::Rows { order: Order::Descending, limit };
                    queries.push(wanted.query(Dataset::Jobs, contains(dim), shape)?);
                }
            }
            Self::Label => {
                queries.push(wanted.query(wanted.dataset, std::iter::empty(), Shape::LabelKeys { limit })?);
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
            | Self::EventKind
            | Self::LabelValue => {
                for (dataset, own) in self.places(wanted) {
                    let mut conditions: Vec<Filter> = Vec::new();
                    if let Some(named) = own.last() {
                        conditions.push(Filter::Dim { dim: named.clone(), matches: Match::Present });
                        // A GPU is an index: what is looked for is its node.
                        let searched = if self == Self::Gpu { Dim::Node } else { named.clone() };
                        conditions.extend(contains(searched));
                    }
                    let per = dims(dataset, wanted.per).into_iter().filter(|dim| !own.contains(dim));
                    let of = per.chain(own.iter().cloned()).collect();
                    queries.push(wanted.query(dataset, conditions.into_iter(), Shape::Distinct { of, limit })?);
                }
            }
        }
        Ok(queries.into_iter().filter(|q| context.may_read(q.dataset)).collect())
    }

    /// The dimension by which it is known, last, behind what it belongs to.
    fn places(self, wanted: &Wanted<'_>) -> Vec<(Dataset, Vec<Dim>)> {
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
            Self::LabelValue => {
                wanted.label.map(|name| (wanted.dataset, vec![dim(wanted.dataset, name)])).into_iter().collect()
            }
            Self::Job | Self::Label => Vec::new(),
        }
    }
}

impl Wanted<'_> {
    fn query(
        &self,
        dataset: Dataset,
        conditions: impl Iterator<Item = Filter>,
        shape: Shape,
    ) -> Result<Query, ToolError> {
        let own = filters(NAME, dataset, self.filters)?;
        Ok(Query {
            dataset,
            metric: None,
            part: MetricPart::Samples,
            range: self.range,
            filters: conditions.chain(own).collect(),
            placement: None,
            threshold: None,
            shape,
        })
    }

    /// The entity key whose text a search is held against.
    pub(super) fn searched_key(&self, kind: EntityKind) -> String {
        match kind {
            EntityKind::Gpu => "node".to_owned(),
            EntityKind::EventKind => "kind".to_owned(),
            EntityKind::LabelValue => {
                self.label.map(|name| entity_key(&dim(self.dataset, name)).to_owned()).unwrap_or_default()
            }
            EntityKind::Cluster
            | EntityKind::Node
            | EntityKind::Job
            | EntityKind::User
            | EntityKind::Service
            | EntityKind::Model
            | EntityKind::Pod
            | EntityKind::Rack
            | EntityKind::Metric
            | EntityKind::Label => kind.as_str().to_owned(),
        }
    }
}

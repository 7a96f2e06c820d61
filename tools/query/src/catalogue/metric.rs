//! One metric of the catalogue.

use sightline_model::{MetricKind, Unit};

macro_rules! entity_levels {
    ($($(#[$doc:meta])* $name:ident = $wire:literal;)*) => {
        /// What one series of a metric describes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EntityLevel {
            $($(#[$doc])* $name,)*
        }

        impl EntityLevel {
            /// Every level.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name in data files and results.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $wire,)* }
            }

            /// The level of that name.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($wire => Some(Self::$name),)* _ => None }
            }
        }
    };
}

entity_levels! {
    /// A whole cluster.
    Cluster = "cluster";
    /// One node.
    Node = "node";
    /// A disk, file system, network interface or port of a node.
    Device = "device";
    /// One GPU.
    Gpu = "gpu";
    /// One NVLink of a GPU.
    Link = "link";
    /// One NVSwitch of a node.
    NvSwitch = "nvswitch";
    /// One job.
    Job = "job";
    /// One rank of a job.
    Rank = "rank";
    /// One served model or engine.
    Model = "model";
    /// One service, or the process that is scraped.
    Service = "service";
    /// One pod or container.
    Pod = "pod";
}

/// The end of a metric that is the better one, whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetterEnd {
    /// Less is better: latencies, errors, step times.
    Lower,
    /// More is better: throughput, availability.
    Higher,
}

impl BetterEnd {
    /// Both ends.
    pub const ALL: [Self; 2] = [Self::Lower, Self::Higher];

    /// Its name in data files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
        }
    }

    /// The end of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == text)
    }
}

/// One metric: its names, what it means and how it misleads. Only the catalogue makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub(super) id: String,
    pub(super) file: String,
    pub(super) kind: MetricKind,
    pub(super) unit: Unit,
    pub(super) entity: EntityLevel,
    pub(super) dcgm_field: Option<u16>,
    pub(super) stored: Vec<String>,
    pub(super) words: Vec<String>,
    pub(super) same_as: Option<String>,
    pub(super) meaning: String,
    pub(super) good_for: String,
    pub(super) misleads: String,
    pub(super) collection: Option<String>,
    pub(super) better: Option<BetterEnd>,
}

impl Metric {
    /// The canonical id, snake_case.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What kind of number it is. It says what the values do, not what an exporter's TYPE line claims.
    pub fn kind(&self) -> MetricKind {
        self.kind
    }

    /// Whether it is stored as `_bucket`, `_sum` and `_count`.
    pub fn is_histogram(&self) -> bool {
        self.kind == MetricKind::Histogram
    }

    /// The unit of every stored sample.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// What one series describes.
    pub fn entity(&self) -> EntityLevel {
        self.entity
    }

    /// The numeric field of DCGM, which outlives renames.
    pub fn dcgm_field(&self) -> Option<u16> {
        self.dcgm_field
    }

    /// The names under which it may be stored, never empty, as listed; then names with `:` once more with `_`, as pipelines
    /// rewrite them; the canonical id last.
    pub fn stored(&self) -> impl Iterator<Item = &str> {
        self.stored.iter().map(String::as_str)
    }

    /// What people call it.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// The metric that holds the same quantity in another unit.
    pub fn same_as(&self) -> Option<&str> {
        self.same_as.as_deref()
    }

    /// What it measures.
    pub fn meaning(&self) -> &str {
        &self.meaning
    }

    /// What it is good for.
    pub fn good_for(&self) -> &str {
        &self.good_for
    }

    /// How it misleads.
    pub fn misleads(&self) -> &str {
        &self.misleads
    }

    /// Which end is the better one; none where that depends on the question, as with load, power or clocks.
    pub fn better(&self) -> Option<BetterEnd> {
        self.better
    }

    /// Why it may not be collected; none when it usually is.
    pub fn collection(&self) -> Option<&str> {
        self.collection.as_deref()
    }
}

//! The catalogue of metrics and labels: what each is called, what it means and how it misleads.
//!
//! The knowledge itself is data under `data/`; this module reads and checks it. Its main promise: every stored name belongs to
//! exactly one metric, and one metric has one unit, so numbers of two meanings never meet in one series.

mod blank;
mod error;
mod labels;
mod load;
mod metric;
mod resolve;

#[cfg(test)]
mod builtin_tests;
#[cfg(test)]
mod labels_tests;
#[cfg(test)]
mod load_tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use blank::is_blank;
pub use error::{CatalogueError, Fault, Problem};
pub use labels::LabelAliases;
pub use metric::{BetterEnd, EntityLevel, Metric};
pub use resolve::Resolution;

/// The metric files that ship, by family.
const BUILTIN: [(&str, &str); 13] = [
    ("dcgm_core.toml", include_str!("../data/metrics/dcgm_core.toml")),
    ("dcgm_profiling.toml", include_str!("../data/metrics/dcgm_profiling.toml")),
    ("dcgm_health.toml", include_str!("../data/metrics/dcgm_health.toml")),
    ("dcgm_links.toml", include_str!("../data/metrics/dcgm_links.toml")),
    ("node_host.toml", include_str!("../data/metrics/node_host.toml")),
    ("node_storage.toml", include_str!("../data/metrics/node_storage.toml")),
    ("node_network.toml", include_str!("../data/metrics/node_network.toml")),
    ("rdma_nccl.toml", include_str!("../data/metrics/rdma_nccl.toml")),
    ("serving.toml", include_str!("../data/metrics/serving.toml")),
    ("vllm.toml", include_str!("../data/metrics/vllm.toml")),
    ("sglang_tgi.toml", include_str!("../data/metrics/sglang_tgi.toml")),
    ("training.toml", include_str!("../data/metrics/training.toml")),
    ("services.toml", include_str!("../data/metrics/services.toml")),
];

/// The series that a histogram is stored in.
const HISTOGRAM_PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];

/// The known metrics. Guaranteed: ids are unique, every stored name belongs to exactly one metric (in any case of letters), every
/// metric has a kind, a unit, a meaning, what it is good for and how it misleads.
#[derive(Clone, Debug)]
pub struct Catalogue {
    metrics: Vec<Metric>,
    by_id: HashMap<String, usize>,
    by_stored: HashMap<String, usize>,
    by_word: BTreeMap<String, Vec<usize>>,
}

impl Catalogue {
    /// The catalogue that ships.
    ///
    /// # Errors
    /// Every fault of the shipped files; a test holds that there is none.
    pub fn builtin() -> Result<Self, CatalogueError> {
        Self::from_toml(&BUILTIN)
    }

    /// A catalogue from files, given as (name, text).
    ///
    /// # Errors
    /// Every fault of every file, not only the first.
    pub fn from_toml(files: &[(&str, &str)]) -> Result<Self, CatalogueError> {
        load::load(files)
    }

    /// The metric of that canonical id.
    pub fn get(&self, canonical: &str) -> Option<&Metric> {
        self.by_id.get(canonical).and_then(|index| self.metrics.get(*index))
    }

    /// The metric that a stored name belongs to; the series of a histogram (`_bucket`, `_sum`, `_count`) belong to it.
    pub fn by_stored(&self, stored: &str) -> Option<&Metric> {
        let key = stored.to_lowercase();
        if let Some(metric) = self.stored_exactly(&key) {
            return Some(metric);
        }
        let family = HISTOGRAM_PARTS.iter().find_map(|part| key.strip_suffix(part))?;
        self.stored_exactly(family).filter(|metric| metric.is_histogram())
    }

    fn stored_exactly(&self, key: &str) -> Option<&Metric> {
        self.by_stored.get(key).and_then(|index| self.metrics.get(*index))
    }

    /// All metrics, in the order of the files.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.metrics.iter()
    }

    /// The metrics that hold the same quantity as this one in another unit, under other stored names.
    pub fn variants<'a>(&'a self, canonical: &'a str) -> impl Iterator<Item = &'a Metric> {
        self.metrics.iter().filter(move |metric| metric.same_as() == Some(canonical))
    }

    /// This catalogue with further stored names, for example those of a bundle. The keys are canonical ids or known names; a
    /// name that another metric held moves over, because the site knows its own data best.
    ///
    /// # Errors
    /// Every alias whose metric is unknown, and every name that is another metric's id.
    pub fn with_aliases(&self, source: &str, aliases: &BTreeMap<String, Vec<String>>) -> Result<Self, CatalogueError> {
        load::with_aliases(self, source, aliases)
    }

    /// This catalogue without the metrics of these canonical ids: as if nobody knew them. For finding out what an answer rests on.
    #[must_use]
    pub fn without(&self, ids: &BTreeSet<String>) -> Self {
        load::without(self, ids)
    }
}

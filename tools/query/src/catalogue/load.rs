//! Reading metric files: every fault is reported, not only the first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;
use sightline_model::{MetricKind, Unit};

use super::error::{CatalogueError, Fault, Problem};
use super::metric::{BetterEnd, EntityLevel, Metric};
use super::resolve::{Resolution, normalise};
use super::{Catalogue, labels};

/// A metric as written. Required keys are optional here, so that a missing one is a fault beside others and not the end of reading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetric {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    entity: String,
    dcgm_field: Option<u16>,
    #[serde(default)]
    stored: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    same_as: Option<String>,
    #[serde(default)]
    meaning: String,
    #[serde(default)]
    good_for: String,
    #[serde(default)]
    misleads: String,
    collection: Option<String>,
    better: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    metric: Vec<RawMetric>,
}

pub(super) fn load(files: &[(&str, &str)]) -> Result<Catalogue, CatalogueError> {
    let mut faults = Vec::new();
    let mut metrics = Vec::new();
    for (file, text) in files {
        match toml::from_str::<RawFile>(text) {
            Ok(raw) => metrics.extend(raw.metric.into_iter().filter_map(|raw| check_metric(file, raw, &mut faults))),
            Err(error) => faults.push(labels::unreadable(file, text, &error)),
        }
    }
    let catalogue = index(metrics, &mut faults);
    if faults.is_empty() { Ok(catalogue) } else { Err(CatalogueError::new(faults)) }
}

/// Checks one metric by itself; none when it cannot be used, and then a fault says why.
fn check_metric(file: &str, raw: RawMetric, faults: &mut Vec<Fault>) -> Option<Metric> {
    let entry = (!raw.id.is_empty()).then(|| raw.id.clone());
    let before = faults.len();
    let mut fault = |problem| faults.push(Fault { file: file.to_owned(), entry: entry.clone(), problem });

    if raw.id.is_empty() {
        fault(Problem::Missing { key: "id" });
    } else if !is_snake_case(&raw.id) {
        fault(Problem::BadId);
    }
    for (key, text) in [("meaning", &raw.meaning), ("good_for", &raw.good_for), ("misleads", &raw.misleads)] {
        if text.trim().is_empty() {
            fault(Problem::Missing { key });
        }
    }
    if raw.stored.is_empty() || raw.stored.iter().any(|name| name.trim().is_empty()) {
        fault(Problem::Missing { key: "stored" });
    }
    if raw.collection.as_deref().is_some_and(|text| text.trim().is_empty()) {
        fault(Problem::Missing { key: "collection" });
    }
    for word in &raw.words {
        if word.is_empty()
            || *word != word.to_lowercase()
            || word.split_whitespace().collect::<Vec<_>>().join(" ") != *word
        {
            fault(Problem::BadWord { word: word.clone() });
        }
    }
    let kind = parse_kind(&raw.kind);
    if kind.is_none() {
        let known = KINDS.map(MetricKind::as_str).to_vec();
        fault(Problem::Unknown { what: "kind", value: raw.kind.clone(), known });
    }
    let unit = Unit::parse(&raw.unit);
    if unit.is_none() {
        fault(Problem::UnknownUnit { unit: raw.unit.clone() });
    }
    let entity = EntityLevel::parse(&raw.entity);
    if entity.is_none() {
        let known = EntityLevel::ALL.iter().map(|level| level.as_str()).collect();
        fault(Problem::Unknown { what: "entity", value: raw.entity.clone(), known });
    }

    let better = raw.better.as_deref().map(|text| (text, BetterEnd::parse(text)));
    if let Some((text, None)) = better {
        let known = BetterEnd::ALL.iter().map(|end| end.as_str()).collect();
        fault(Problem::Unknown { what: "better", value: text.to_owned(), known });
    }

    if faults.len() > before {
        return None;
    }
    let stored = spellings(&raw.id, raw.stored);
    Some(Metric {
        id: raw.id,
        file: file.to_owned(),
        kind: kind?,
        unit: unit?,
        entity: entity?,
        dcgm_field: raw.dcgm_field,
        stored,
        words: raw.words,
        same_as: raw.same_as,
        meaning: raw.meaning,
        good_for: raw.good_for,
        misleads: raw.misleads,
        collection: raw.collection,
        better: better.and_then(|(_, end)| end),
    })
}

const KINDS: [MetricKind; 4] = [MetricKind::Gauge, MetricKind::Counter, MetricKind::Histogram, MetricKind::State];

fn parse_kind(text: &str) -> Option<MetricKind> {
    KINDS.into_iter().find(|kind| kind.as_str() == text)
}

fn is_snake_case(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.chars().all(allowed)
        && !id.contains("__")
        && !id.ends_with('_')
}

/// The listed names, then those with `:` once more with `_`, because many pipelines rewrite colons, then the id itself.
fn spellings(id: &str, listed: Vec<String>) -> Vec<String> {
    let rewritten: Vec<String> =
        listed.iter().filter(|name| name.contains(':')).map(|name| name.replace(':', "_")).collect();
    let mut all = listed;
    for name in rewritten.into_iter().chain([id.to_owned()]) {
        if !all.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            all.push(name);
        }
    }
    all
}

/// Builds the indexes and checks what metrics promise each other.
fn index(metrics: Vec<Metric>, faults: &mut Vec<Fault>) -> Catalogue {
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut fields: HashMap<u16, usize> = HashMap::new();
    let fault = |metric: &Metric, problem| Fault { file: metric.file.clone(), entry: Some(metric.id.clone()), problem };
    for (position, metric) in metrics.iter().enumerate() {
        match by_id.get(&metric.id).and_then(|first| metrics.get(*first)) {
            Some(first) => faults.push(fault(metric, Problem::DuplicateId { file: first.file.clone() })),
            None => {
                by_id.insert(metric.id.clone(), position);
            }
        }
    }

    let mut by_stored: HashMap<String, usize> = HashMap::new();
    let mut by_word: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, metric) in metrics.iter().enumerate() {
        for name in &metric.stored {
            let key = name.to_lowercase();
            if by_id.get(&key).is_some_and(|other| *other != position) {
                // A second metric of one id was reported above.
                if key != metric.id {
                    faults.push(fault(metric, Problem::StoredIsId { name: name.clone() }));
                }
                continue;
            }
            match by_stored.get(&key).and_then(|first| metrics.get(*first)) {
                Some(owner) => {
                    let (owner, file) = (owner.id.clone(), owner.file.clone());
                    faults.push(fault(metric, Problem::StoredTaken { name: name.clone(), owner, file }));
                }
                None => {
                    by_stored.insert(key, position);
                }
            }
        }
        for word in &metric.words {
            let meant = by_word.entry(normalise(word)).or_default();
            if !meant.contains(&position) {
                meant.push(position);
            }
        }
        if let Some(field) = metric.dcgm_field {
            match fields.get(&field).and_then(|first| metrics.get(*first)) {
                Some(owner) => faults.push(fault(metric, Problem::FieldTaken { field, owner: owner.id.clone() })),
                None => {
                    fields.insert(field, position);
                }
            }
        }
        if let Some(name) = &metric.same_as {
            let other = by_id.get(name).and_then(|other| metrics.get(*other));
            if !other.is_some_and(|other| other.kind == metric.kind && other.unit != metric.unit) {
                faults.push(fault(metric, Problem::BadSameAs { name: name.clone() }));
            }
        }
    }
    Catalogue { metrics, by_id, by_stored, by_word }
}

pub(super) fn without(base: &Catalogue, ids: &BTreeSet<String>) -> Catalogue {
    let mut metrics: Vec<Metric> = base.metrics.iter().filter(|metric| !ids.contains(&metric.id)).cloned().collect();
    for metric in &mut metrics {
        metric.same_as = metric.same_as.take().filter(|other| !ids.contains(other));
    }
    // Fewer metrics break no promise that all of them keep.
    index(metrics, &mut Vec::new())
}

pub(super) fn with_aliases(
    base: &Catalogue,
    source: &str,
    aliases: &BTreeMap<String, Vec<String>>,
) -> Result<Catalogue, CatalogueError> {
    let mut faults = Vec::new();
    let mut metrics = base.metrics.clone();
    for (wanted, names) in aliases {
        let fault = |problem| Fault { file: source.to_owned(), entry: Some(wanted.clone()), problem };
        let id = match base.resolve(wanted) {
            Resolution::Exact(metric) => metric.id().to_owned(),
            Resolution::Ambiguous(meant) => {
                let near = meant.iter().map(|metric| metric.id().to_owned()).collect();
                faults.push(fault(Problem::UnknownMetric { near }));
                continue;
            }
            Resolution::Unknown { near } => {
                faults.push(fault(Problem::UnknownMetric { near }));
                continue;
            }
        };
        for name in names {
            let key = name.to_lowercase();
            if name.trim().is_empty() {
                faults.push(fault(Problem::Missing { key: "stored" }));
            } else if key != id && base.by_id.contains_key(&key) {
                faults.push(fault(Problem::StoredIsId { name: name.clone() }));
            } else {
                move_name(&mut metrics, &id, name);
            }
        }
    }
    let catalogue = index(metrics, &mut faults);
    if faults.is_empty() { Ok(catalogue) } else { Err(CatalogueError::new(faults)) }
}

/// Puts a name in front of a metric's own and takes it from whoever had it. No metric is left without a name: its id stays.
fn move_name(metrics: &mut [Metric], id: &str, name: &str) {
    for metric in metrics {
        metric.stored.retain(|stored| !stored.eq_ignore_ascii_case(name));
        if metric.id == id {
            metric.stored.insert(0, name.to_owned());
        }
    }
}

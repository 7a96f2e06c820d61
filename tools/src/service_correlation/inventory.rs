//! What is recorded about the service: under which label it goes, which metrics and replicas it has, whether it has spans.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use sightline_model::{Candidate, Component, Dataset, Dim, FactPath, Outcome, Quantity, Relation, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Query, Shape};

use crate::absence::distinct_rows;
use crate::args::{Instant, window};
use crate::find_entities::matching::near;
use crate::reading::{Content, Table, entity_key, evidence};
use crate::sentence::{Sentence, fact};
use crate::service_correlation::{NAME, ServiceCorrelationArgs};
use crate::tool::{Fetched, ToolContext, ToolError, ToolOutput};

/// The window unless one is given.
const DEFAULT_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// How much before the window is read, to have a level to compare with: two whole days also show what each day does at that hour.
const PAST: SignedDuration = SignedDuration::from_hours(48);

/// Metrics that only an inference engine has; one of them makes a service one.
const INFERENCE: [&str; 8] = [
    "time_to_first_token",
    "inter_token_latency",
    "request_queue_time",
    "requests_running",
    "requests_waiting",
    "kv_cache_usage",
    "prompt_tokens",
    "generation_tokens",
];

/// What there is about a service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inventory {
    /// Its name, or its model's; empty where all services are looked at, since none was named.
    pub(super) name: String,
    /// The label that carries the name: `service`, or `model`.
    pub(super) dim: Dim,
    /// The window that was asked about.
    pub(super) window: TimeRange,
    /// What is read: the window and its past.
    pub(super) range: TimeRange,
    /// Metrics with this label, by canonical name where the catalogue knows one, else as stored.
    pub(super) metrics: BTreeSet<String>,
    /// Whether it wrote spans.
    pub(super) spans: bool,
    /// What tells its replicas apart, each with the values it has; empty when there is but one.
    pub(super) replicas: Replicas,
    /// What names it in an answer: its service where one is known, else its model.
    pub(super) component: Component,
}

/// The replicas of a service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Replicas {
    /// What tells them apart.
    pub(super) dims: Vec<Dim>,
    /// Their pods.
    pub(super) pods: BTreeSet<String>,
    /// The nodes that their own rows name.
    pub(super) nodes: BTreeSet<String>,
    /// How many there are, at least 1.
    pub(super) count: usize,
}

impl Inventory {
    /// Whether it is an inference service.
    pub(super) fn serves(&self) -> bool {
        INFERENCE.iter().any(|metric| self.metrics.contains(*metric))
    }

    /// Whether it is to be judged by the phases of an engine: of all services together no phase can be told.
    pub(super) fn is_engine(&self) -> bool {
        self.serves() && !self.name.is_empty()
    }

    /// Whether anything that any service may have is recorded.
    pub(super) fn is_traced_or_measured(&self) -> bool {
        self.spans || !self.is_engine()
    }

    /// The condition that a row is the service's.
    pub(super) fn filter(&self) -> Filter {
        Filter::Dim { dim: self.dim.clone(), matches: Match::Eq(self.name.clone()) }
    }
}

/// The service, or the answer that there is none.
pub(super) enum Found {
    /// The service.
    Inventory(Box<Inventory>),
    /// None that the asker may see in this window.
    Unknown(Box<ToolOutput>),
}

/// The labels that may carry the name of a service.
fn named_by() -> [(Dataset, Dim); 3] {
    [(Dataset::Metrics, Dim::Service), (Dataset::Metrics, model()), (Dataset::Spans, Dim::Service)]
}

fn model() -> Dim {
    Dim::Label("model".to_owned())
}

/// What can tell replicas apart, and the service's own name.
fn places() -> Vec<Dim> {
    vec![Dim::Service, Dim::Label("pod".to_owned()), Dim::Label("engine".to_owned()), Dim::Node]
}

/// The first round.
pub(super) fn queries(args: &ServiceCorrelationArgs, context: &ToolContext<'_>) -> Result<Vec<Query>, ToolError> {
    let (_, range) = windows(args, context)?;
    let mut queries = Vec::new();
    for (dataset, dim) in named_by() {
        if !context.may_read(dataset) {
            continue;
        }
        let Some(named) = &args.service else {
            // Nothing was named: whatever goes by the name of a service.
            if dim == Dim::Service {
                let filter = Filter::Dim { dim, matches: Match::Present };
                let of = if dataset == Dataset::Metrics { Dim::Metric } else { Dim::Service };
                queries.push(distinct(context, dataset, range, Some(filter), vec![of]));
            }
            continue;
        };
        let filter = Filter::Dim { dim, matches: Match::Eq(named.clone()) };
        let of = if dataset == Dataset::Metrics { Dim::Metric } else { Dim::Service };
        queries.push(distinct(context, dataset, range, Some(filter.clone()), vec![of]));
        if dataset == Dataset::Metrics {
            queries.push(distinct(context, dataset, range, Some(filter), places()));
        }
    }
    Ok(queries)
}

/// What to ask when there is no such service: the names there are, to find near ones.
pub(super) fn probes(args: &ServiceCorrelationArgs, context: &ToolContext<'_>) -> Result<Vec<Query>, ToolError> {
    let (_, range) = windows(args, context)?;
    let readable = named_by().into_iter().filter(|(dataset, _)| context.may_read(*dataset));
    Ok(readable.map(|(dataset, dim)| distinct(context, dataset, range, None, vec![dim])).collect())
}

fn distinct(
    context: &ToolContext<'_>,
    dataset: Dataset,
    range: TimeRange,
    filter: Option<Filter>,
    of: Vec<Dim>,
) -> Query {
    Query {
        dataset,
        metric: None,
        part: MetricPart::Samples,
        range,
        filters: filter.into_iter().collect(),
        placement: None,
        threshold: None,
        shape: Shape::Distinct { of, limit: context.max_rows },
    }
}

/// Reads the first round.
pub(super) fn read(
    args: &ServiceCorrelationArgs,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Found, ToolError> {
    let (window, range) = windows(args, context)?;
    let name = args.service.clone().unwrap_or_default();
    let mut inventory = Inventory {
        name: name.clone(),
        dim: Dim::Service,
        window,
        range,
        metrics: BTreeSet::new(),
        spans: false,
        replicas: Replicas { count: 1, ..Replicas::default() },
        component: Component::from([("service".to_owned(), name.clone())]),
    };
    for one in fetched.iter().filter(|f| f.round == 0) {
        let table = Table::new(&one.result);
        if one.query.dataset() == Dataset::Spans {
            inventory.spans = table.rows().next().is_some();
            continue;
        }
        let by_model = matches!(one.query.query().filters.as_slice(), [Filter::Dim { dim: Dim::Label(_), .. }]);
        let dim = if by_model { model() } else { Dim::Service };
        if of(one) == [Dim::Metric] {
            let column = table.column("metric")?;
            let names: BTreeSet<String> = table.rows().map(|row| canonical(context, table.text(row, column))).collect();
            if inventory.metrics.is_empty() && !names.is_empty() {
                inventory.dim = dim;
                inventory.metrics = names;
            }
        } else if inventory.dim == dim && !inventory.metrics.is_empty() {
            let rows = distinct_rows(one)?;
            let services: BTreeSet<&String> = rows.iter().filter_map(|r| r.entity.get("service")).collect();
            inventory.component = match (by_model, services.first()) {
                (true, Some(only)) if services.len() == 1 => Component::from([("service".to_owned(), (*only).clone())]),
                (true, _) => Component::from([("model".to_owned(), name.clone())]),
                (false, _) => Component::from([("service".to_owned(), name.clone())]),
            };
            inventory.replicas = replicas(&rows);
        }
    }
    if inventory.metrics.is_empty() && !inventory.spans {
        return Ok(Found::Unknown(Box::new(unknown(args, fetched)?)));
    }
    Ok(Found::Inventory(Box::new(inventory)))
}

fn of(fetched: &Fetched) -> &[Dim] {
    match &fetched.query.query().shape {
        Shape::Distinct { of, .. } => of,
        Shape::Series { .. }
        | Shape::Samples { .. }
        | Shape::Rank { .. }
        | Shape::Rows { .. }
        | Shape::LabelKeys { .. } => &[],
    }
}

/// Replicas are pods where pods are known, else nodes; a replica may run several engines.
fn replicas(rows: &[sightline_model::EvidenceRow]) -> Replicas {
    let value =
        |row: &sightline_model::EvidenceRow, dim: &Dim| row.entity.get(entity_key(dim)).cloned().unwrap_or_default();
    let (pod, engine) = (Dim::Label("pod".to_owned()), Dim::Label("engine".to_owned()));
    let pods: BTreeSet<String> = rows.iter().map(|r| value(r, &pod)).filter(|p| !p.is_empty()).collect();
    let nodes: BTreeSet<String> = rows.iter().map(|r| value(r, &Dim::Node)).filter(|n| !n.is_empty()).collect();
    let place = if pods.is_empty() { Dim::Node } else { pod };
    let mut engines: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let at = value(row, &place);
        if at.is_empty() && !pods.is_empty() {
            continue;
        }
        let own = engines.entry(at).or_default();
        let name = value(row, &engine);
        if !name.is_empty() {
            own.insert(name);
        }
    }
    let several = engines.values().any(|own| own.len() > 1);
    let count = engines.values().map(|own| if several { own.len().max(1) } else { 1 }).sum::<usize>().max(1);
    let mut dims = vec![place];
    dims.extend(several.then_some(engine));
    Replicas { dims, pods, nodes, count }
}

fn canonical(context: &ToolContext<'_>, stored: &str) -> String {
    let entry = context.catalogue.by_stored(stored);
    entry.map_or_else(|| stored.to_owned(), |metric| metric.id().to_owned())
}

/// No such service, or none that the asker may see: the same words for both.
fn unknown(args: &ServiceCorrelationArgs, fetched: &[Fetched]) -> Result<ToolOutput, ToolError> {
    let asked = args.service.as_deref().unwrap_or_default();
    let mut pieces = Vec::new();
    let mut known = Vec::new();
    for one in fetched.iter().filter(|f| of(f) != places()) {
        let mut rows = Vec::new();
        if one.round > 0 && !one.result.truncated {
            // Services and models are both offered under one name.
            rows = distinct_rows(one)?;
            known.extend(rows.iter().cloned().map(|mut row| {
                if let Some(name) = row.entity.remove("model") {
                    row.entity.insert("service".to_owned(), name);
                }
                row
            }));
        }
        let near = near("service", asked, &known);
        rows.retain(|row| row.entity.values().any(|v| near.contains(v)));
        pieces.push(evidence(one, NAME, pieces.len() + 1, Content::Rows(rows)));
    }
    let near = near("service", asked, &known);
    let Some(first) = pieces.first() else {
        let health = "neither metrics nor spans may be read, so nothing can be said of a service".to_owned();
        return Ok(ToolOutput {
            outcome: Some(Outcome::InsufficientData),
            data_health: vec![health],
            ..ToolOutput::default()
        });
    };
    let key = first.labels.keys().next().cloned().unwrap_or_default();
    let told = if asked.is_empty() {
        Sentence::new().say("no data: no service has samples or spans in this window")
    } else {
        let sentence = Sentence::new().say("no data: service ").value(&first.id, &key, asked);
        sentence.say(" has no samples and no spans in this window")
    };
    let mut sentence = told.compare(fact(&first.id, FactPath::Total), Relation::AtMost, Quantity::Constant(0.0));
    for (index, name) in near.iter().enumerate() {
        let holds = |e: &&sightline_model::Evidence| e.rows.iter().any(|r| r.entity.values().any(|v| v == name));
        let Some(piece) = pieces.iter().find(holds) else { continue };
        let label = piece.rows.iter().flat_map(|r| &r.entity).find(|(_, v)| *v == name).map(|(k, _)| k.clone());
        sentence = sentence.say(if index == 0 { "; close to it are " } else { ", " });
        sentence = sentence.value(&piece.id, &label.unwrap_or_default(), name);
    }
    let headline = pieces.iter().fold(sentence, |sentence, piece| sentence.cite(&piece.id)).finish();
    Ok(ToolOutput {
        evidence: pieces,
        claims: vec![headline.clone()],
        headline: Some(headline),
        outcome: Some(if near.is_empty() { Outcome::InsufficientData } else { Outcome::Clarify }),
        data_health: vec!["no data is not zero: check the name with find_entities".to_owned()],
        choices: near
            .into_iter()
            .map(|name| Candidate { question: format!("why is service {name} slow?"), label: name })
            .collect(),
        ..ToolOutput::default()
    })
}

fn windows(args: &ServiceCorrelationArgs, context: &ToolContext<'_>) -> Result<(TimeRange, TimeRange), ToolError> {
    let to = args.to.map_or(context.as_of, |to| to.0);
    let back = |from: jiff::Timestamp, by: SignedDuration| from.checked_sub(by).unwrap_or(from);
    let from = args.from.unwrap_or_else(|| Instant(back(to.min(context.as_of), DEFAULT_WINDOW)));
    let window = window(NAME, from, Instant(to), context.as_of)?;
    Ok((window, TimeRange::new(back(window.from(), PAST), window.to()).unwrap_or(window)))
}

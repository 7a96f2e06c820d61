//! What is recorded about the service: under which label it goes, which metrics, whether it has spans.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use sightline_model::{Dataset, Dim, TimeRange};
use sightline_query::{Filter, Match, MetricPart, Query, Shape};

use crate::args::{Instant, window};
use crate::reading::Table;
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
    /// Its name, or its model's.
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
}

impl Inventory {
    /// Whether it is an inference service.
    pub(super) fn serves(&self) -> bool {
        INFERENCE.iter().any(|metric| self.metrics.contains(*metric))
    }

    /// Whether anything that any service may have is recorded.
    pub(super) fn is_traced_or_measured(&self) -> bool {
        self.spans || !self.serves()
    }
}

/// The service, or the answer that there is none.
pub(super) enum Found {
    /// The service.
    Inventory(Box<Inventory>),
    /// None that the asker may see in this window.
    Unknown(Box<ToolOutput>),
}

/// The first round.
pub(super) fn queries(args: &ServiceCorrelationArgs, context: &ToolContext<'_>) -> Result<Vec<Query>, ToolError> {
    let (_, range) = windows(args, context)?;
    let mut queries = Vec::new();
    for (dataset, dim) in [
        (Dataset::Metrics, Dim::Service),
        (Dataset::Metrics, Dim::Label("model".to_owned())),
        (Dataset::Spans, Dim::Service),
    ] {
        if !context.may_read(dataset) {
            continue;
        }
        let of = if dataset == Dataset::Metrics { Dim::Metric } else { Dim::Service };
        queries.push(Query {
            dataset,
            metric: None,
            part: MetricPart::Samples,
            range,
            filters: vec![Filter::Dim { dim, matches: Match::Eq(args.service.clone()) }],
            placement: None,
            threshold: None,
            shape: Shape::Distinct { of: vec![of], limit: context.max_rows },
        });
    }
    Ok(queries)
}

/// Reads the first round.
pub(super) fn read(
    args: &ServiceCorrelationArgs,
    context: &ToolContext<'_>,
    fetched: &[Fetched],
) -> Result<Found, ToolError> {
    let (window, range) = windows(args, context)?;
    let mut inventory = Inventory {
        name: args.service.clone(),
        dim: Dim::Service,
        window,
        range,
        metrics: BTreeSet::new(),
        spans: false,
    };
    for one in fetched.iter().filter(|f| f.round == 0) {
        let table = Table::new(&one.result);
        if one.query.dataset() == Dataset::Spans {
            inventory.spans = table.rows().next().is_some();
            continue;
        }
        let column = table.column("metric")?;
        let names: BTreeSet<String> = table.rows().map(|row| canonical(context, table.text(row, column))).collect();
        let by_model = matches!(one.query.query().filters.as_slice(), [Filter::Dim { dim: Dim::Label(_), .. }]);
        if inventory.metrics.is_empty() && !names.is_empty() {
            inventory.dim = if by_model { Dim::Label("model".to_owned()) } else { Dim::Service };
            inventory.metrics = names;
        }
    }
    if inventory.metrics.is_empty() && !inventory.spans {
        return Ok(Found::Unknown(Box::new(unknown(fetched))));
    }
    Ok(Found::Inventory(Box::new(inventory)))
}

fn canonical(context: &ToolContext<'_>, stored: &str) -> String {
    let base = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| stored.strip_suffix(suffix));
    let entry = context.catalogue.get(stored).or_else(|| context.catalogue.get(base?));
    entry.map_or_else(|| stored.to_owned(), |metric| metric.id().to_owned())
}

fn unknown(_fetched: &[Fetched]) -> ToolOutput {
    ToolOutput { outcome: Some(sightline_model::Outcome::InsufficientData), ..ToolOutput::default() }
}

fn windows(args: &ServiceCorrelationArgs, context: &ToolContext<'_>) -> Result<(TimeRange, TimeRange), ToolError> {
    let to = args.to.map_or(context.as_of, |to| to.0);
    let back = |from: jiff::Timestamp, by: SignedDuration| from.checked_sub(by).unwrap_or(from);
    let from = args.from.unwrap_or_else(|| Instant(back(to.min(context.as_of), DEFAULT_WINDOW)));
    let window = window(NAME, from, Instant(to), context.as_of)?;
    Ok((window, TimeRange::new(back(window.from(), PAST), window.to()).unwrap_or(window)))
}

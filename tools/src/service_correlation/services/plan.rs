//! What to fetch: which metrics there are, then those that some cause looks at, spans, error lines, events, who calls whom.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use sightline_model::{Aggregation, Dataset, Dim, EvidenceRow, TimeRange};
use sightline_query::{Align, Filter, Match, MetricPart, Order, Query, Shape};

use crate::absence::distinct_rows;
use crate::reading::read_rank;
use crate::service_correlation::inventory::Inventory;
use crate::service_correlation::services::item::{
    Item, Level, Names, Part, STATUS, is_status, items, request_counters,
};
use crate::tool::{Fetched, ToolContext, ToolError};

/// How much before the window is read in fine steps too, at least and at most: a level just before it.
const LEAST_LEAD: SignedDuration = SignedDuration::from_mins(30);
const MOST_LEAD: SignedDuration = SignedDuration::from_hours(2);

/// Steps of the days before, and of the window: enough to see ten minutes in two days, and half a minute in an hour.
const PAST_STEPS: (u64, u64) = (48, 288);
const RECENT_STEPS: (u64, u64) = (60, 480);

/// No step of the past is shorter: that of the window is compared over some ten minutes.
const LEAST_PAST_STEP: u64 = 300;

/// Lengths of a step, seconds.
const STEPS: [u64; 11] = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600];

/// Spans of the sample of whole traces: enough for a mean a minute over an hour, few enough to be held and joined at once.
const SAMPLE_SPANS: u64 = 40_000;

/// Who calls whom is recorded once at the start, or now and then: looked for this far back, what every role may ask for.
const CALLS_BACK: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Error lines and events looked at.
const MAX_LINES: u32 = 300;

/// Stored names of containers and pods begin like this in cAdvisor and kube-state-metrics, and often carry no service.
const POD_PREFIXES: [&str; 2] = ["container_", "kube_pod_"];

/// Stored names of what a node's disks do begin like this in node_exporter.
const NODE_DISKS: &str = "node_disk_io_time";

/// How severities of lines that report a failure are written.
const SEVERE: [&str; 20] = [
    "error", "ERROR", "Error", "err", "ERR", "fatal", "FATAL", "Fatal", "critical", "CRITICAL", "Critical", "crit",
    "CRIT", "panic", "PANIC", "severe", "SEVERE", "alert", "emerg", "E",
];

/// What a query is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Purpose {
    /// A metric: its past, or the window.
    Metric { item: Item, part: Part, past: bool },
    /// Durations or numbers of spans by service.
    Spans { by_pod: bool, counted: bool, past: bool },
    /// Whole traces of a sample.
    Traces,
    /// Who calls whom, as recorded.
    Calls,
    /// Numbers of error lines by service.
    ErrorLines { past: bool },
    /// Error lines themselves.
    Lines,
    /// Events.
    Events,
}

/// A query with what it is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) purpose: Purpose,
    pub(super) query: Query,
}

/// The window with a little before it.
pub(super) fn recent(inventory: &Inventory) -> TimeRange {
    let lead = SignedDuration::from_millis(inventory.window.millis()).clamp(LEAST_LEAD, MOST_LEAD);
    let from = inventory.window.from().checked_sub(lead).unwrap_or(inventory.window.from());
    TimeRange::new(from.max(inventory.range.from()), inventory.window.to()).unwrap_or(inventory.window)
}

fn past(inventory: &Inventory) -> Option<TimeRange> {
    TimeRange::new(inventory.range.from(), recent(inventory).from())
}

fn query(dataset: Dataset, range: TimeRange, filters: Vec<Filter>, shape: Shape) -> Query {
    Query { dataset, metric: None, part: MetricPart::Samples, range, filters, placement: None, threshold: None, shape }
}

fn present(dim: Dim) -> Filter {
    Filter::Dim { dim, matches: Match::Present }
}

/// The second round: which metrics of services and pods there are in the window, and how many spans.
pub(super) fn discovery(context: &ToolContext<'_>, inventory: &Inventory) -> Vec<Query> {
    let range = recent(inventory);
    let limit = context.max_rows;
    let mut queries = Vec::new();
    if context.may_read(Dataset::Metrics) {
        let of = vec![Dim::Metric, Dim::Service];
        queries.push(query(Dataset::Metrics, range, vec![present(Dim::Service)], Shape::Distinct { of, limit }));
        for prefix in POD_PREFIXES {
            let of = vec![Dim::Metric, Dim::Label("pod".to_owned()), Dim::Node];
            let named = Filter::Dim { dim: Dim::Metric, matches: Match::Prefix(prefix.to_owned()) };
            let without = Filter::Dim { dim: Dim::Service, matches: Match::Absent };
            let filters = vec![named, without, present(Dim::Label("pod".to_owned()))];
            queries.push(query(Dataset::Metrics, range, filters, Shape::Distinct { of, limit }));
        }
        let disks = Filter::Dim { dim: Dim::Metric, matches: Match::Prefix(NODE_DISKS.to_owned()) };
        let of = vec![Dim::Metric, Dim::Node];
        queries.push(query(Dataset::Metrics, range, vec![disks, present(Dim::Node)], Shape::Distinct { of, limit }));
        for (metric, part) in request_counters(context, &inventory.metrics) {
            let of = STATUS.map(|key| Dim::Label(key.to_owned())).to_vec();
            let mut statuses = query(Dataset::Metrics, range, Vec::new(), Shape::Distinct { of, limit });
            statuses.metric = Some(metric);
            statuses.part = part;
            queries.push(statuses);
        }
    }
    if context.may_read(Dataset::Spans) {
        let shape = Shape::Rank {
            group_by: vec![Dim::Service, Dim::Pod],
            aggregation: Aggregation::Count,
            order: Order::Descending,
            limit,
        };
        queries.push(query(Dataset::Spans, range, Vec::new(), shape));
    }
    queries
}

/// What the second round found.
#[derive(Clone, Debug, Default)]
pub(super) struct Discovered {
    /// Stored names, with what their series are told apart by.
    pub(super) names: BTreeMap<String, BTreeSet<Level>>,
    /// The services that each stored name is stored of.
    pub(super) owners: BTreeMap<String, BTreeSet<String>>,
    /// Nodes by pod.
    pub(super) places: BTreeMap<String, String>,
    /// What counts requests, with the label that carries their status.
    pub(super) statuses: BTreeMap<String, (MetricPart, String)>,
    /// The most series of one metric.
    pub(super) series: u64,
    /// Services by name.
    pub(super) services: BTreeSet<String>,
    /// Pods that wrote spans, with their service.
    pub(super) pods: BTreeMap<String, String>,
    /// Spans in the window with its lead.
    pub(super) spans: u64,
}

impl Discovered {
    pub(super) fn read(
        context: &ToolContext<'_>,
        inventory: &Inventory,
        fetched: &[Fetched],
    ) -> Result<Self, ToolError> {
        let mut found = Self::default();
        let asked = discovery(context, inventory);
        for one in fetched.iter().filter(|f| asked.contains(f.query.query())) {
            match (&one.query.query().shape, &one.query.query().metric) {
                (Shape::Distinct { .. }, Some(metric)) => {
                    found.status(metric, one.query.query().part, &distinct_rows(one)?);
                }
                (Shape::Distinct { of, .. }, None) => found.names(one, of)?,
                (Shape::Rank { .. }, _) => {
                    for ranked in read_rank(one, &[Dim::Service, Dim::Pod], Aggregation::Count)? {
                        let Some(service) = ranked.entity.get("service") else { continue };
                        found.services.insert(service.clone());
                        if let Some(pod) = ranked.entity.get("pod") {
                            found.pods.insert(pod.clone(), service.clone());
                        }
                        found.spans = found.spans.saturating_add(ranked.count);
                    }
                }
                (Shape::Series { .. } | Shape::Samples { .. } | Shape::Rows { .. } | Shape::LabelKeys { .. }, _) => {}
            }
        }
        Ok(found)
    }

    /// The label under which every value is a status.
    fn status(&mut self, metric: &str, part: MetricPart, rows: &[EvidenceRow]) {
        let key = STATUS.into_iter().find(|key| {
            let mut values = rows.iter().filter_map(|row| row.entity.get(*key)).filter(|v| !v.is_empty()).peekable();
            values.peek().is_some() && values.all(|value| is_status(value))
        });
        if let Some(key) = key {
            self.statuses.insert(metric.to_owned(), (part, key.to_owned()));
        }
    }

    fn names(&mut self, fetched: &Fetched, of: &[Dim]) -> Result<(), ToolError> {
        let by_service = of.contains(&Dim::Service);
        let level = match of {
            _ if by_service => Level::Service,
            [_, Dim::Node] => Level::Node,
            _ => Level::Pod,
        };
        let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
        for row in distinct_rows(fetched)? {
            let of = |key: &str| row.entity.get(key).filter(|value| !value.is_empty());
            let Some(name) = of("metric") else { continue };
            *numbers.entry(name.clone()).or_insert(0) += 1;
            self.names.entry(name.clone()).or_default().insert(level);
            match (level, of("service"), of("pod"), of("node")) {
                (Level::Service, Some(service), ..) => {
                    self.services.insert(service.clone());
                    self.owners.entry(name.clone()).or_default().insert(service.clone());
                }
                (Level::Pod, _, Some(pod), Some(node)) => {
                    self.places.insert(pod.clone(), node.clone());
                }
                _ => {}
            }
        }
        self.series = self.series.max(numbers.values().copied().max().unwrap_or(0));
        Ok(())
    }

    /// The service that a pod belongs to: as its spans say, or as its name begins.
    pub(super) fn service_of(&self, pod: &str) -> Option<&String> {
        let begins = |service: &&String| {
            pod.strip_prefix(service.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        self.pods.get(pod).or_else(|| self.services.iter().filter(begins).max_by_key(|service| service.len()))
    }
}

/// The third round: everything that some cause looks at.
pub(super) fn survey(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    fetched: &[Fetched],
) -> Result<Vec<Wanted>, ToolError> {
    let found = Discovered::read(context, inventory, fetched)?;
    let recent = recent(inventory);
    let mut windows = vec![(recent, false)];
    windows.extend(past(inventory).map(|range| (range, true)));
    let mut wanted = Vec::new();
    let names = Names { levels: &found.names, owners: &found.owners, statuses: &found.statuses };
    for item in items(context, &names) {
        // Pods are several to a service.
        let most = found.series.max(found.services.len() as u64);
        let series = if item.level == Level::Service { most } else { 4 * most };
        for (range, past) in &windows {
            let step = step_ms(context, *range, series, *past);
            for part in item.how.parts() {
                let query = item.query(context, *part, *range, step);
                wanted
                    .push(Wanted { purpose: Purpose::Metric { item: item.clone(), part: *part, past: *past }, query });
            }
        }
    }
    if context.may_read(Dataset::Metrics) {
        wanted.push(calls(context, inventory));
        wanted.extend(mesh_calls(context, inventory, &found));
    }
    if found.spans > 0 {
        wanted.extend(spans(context, &found, &windows));
        wanted.push(Wanted { purpose: Purpose::Traces, query: traces(context, recent, found.spans) });
    }
    if context.may_read(Dataset::Logs) {
        wanted.extend(lines(context, inventory, &found, &windows));
    }
    if context.may_read(Dataset::Events) {
        let shape = Shape::Rows { order: Order::Descending, limit: context.max_rows.min(MAX_LINES) };
        wanted.push(Wanted { purpose: Purpose::Events, query: query(Dataset::Events, recent, Vec::new(), shape) });
    }
    Ok(wanted)
}

fn spans(context: &ToolContext<'_>, found: &Discovered, windows: &[(TimeRange, bool)]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (range, past) in windows {
        for (by_pod, counted) in [(false, false), (false, true), (true, false)] {
            let group_by = if by_pod { vec![Dim::Service, Dim::Pod] } else { vec![Dim::Service] };
            let series = if by_pod { found.pods.len() } else { found.services.len() } as u64;
            let aggregation = if counted { Aggregation::Count } else { Aggregation::Avg };
            let step_ms = step_ms(context, *range, series, *past);
            let shape = Shape::Series { step_ms, align: Align::Epoch, group_by, aggregation, limit: context.max_rows };
            let purpose = Purpose::Spans { by_pod, counted, past: *past };
            wanted.push(Wanted { purpose, query: query(Dataset::Spans, *range, Vec::new(), shape) });
        }
    }
    wanted
}

/// Whole traces, all or those whose id ends in some digit: ids are drawn at random or counted up, and either way their ends are
/// spread evenly, while their beginnings may be alike.
fn traces(context: &ToolContext<'_>, range: TimeRange, spans: u64) -> Query {
    let ending = match spans / SAMPLE_SPANS.max(1) {
        0 => None,
        1 => Some("[02468aceACE]$"),
        2..=3 => Some("[048cC]$"),
        4..=31 => Some("0$"),
        32..=511 => Some("00$"),
        _ => Some("000$"),
    };
    let matches = |pattern: &str| Filter::Dim { dim: Dim::TraceId, matches: Match::Regex(pattern.to_owned()) };
    let shape = Shape::Rows { order: Order::Ascending, limit: context.max_rows };
    query(Dataset::Spans, range, ending.map(matches).into_iter().collect(), shape)
}

fn calls(context: &ToolContext<'_>, inventory: &Inventory) -> Wanted {
    let of = ["from", "to"].map(|key| Dim::Label(key.to_owned())).to_vec();
    let from = inventory.window.to().checked_sub(CALLS_BACK).unwrap_or(inventory.range.from());
    let range = TimeRange::new(from.min(inventory.range.from()), inventory.window.to()).unwrap_or(inventory.range);
    let mut edges = query(Dataset::Metrics, range, Vec::new(), Shape::Distinct { of, limit: context.max_rows });
    edges.metric = Some("service_graph_edge".to_owned());
    Wanted { purpose: Purpose::Calls, query: edges }
}

/// Who calls whom as a mesh counts it: its counter of requests carries both ends.
fn mesh_calls(context: &ToolContext<'_>, inventory: &Inventory, found: &Discovered) -> Option<Wanted> {
    let stored = |name: &str| context.catalogue.by_stored(name).is_some_and(|metric| metric.id() == MESH);
    found.names.keys().any(|name| stored(name)).then(|| {
        let of = vec![Dim::Label("source_workload".to_owned()), Dim::Service];
        let shape = Shape::Distinct { of, limit: context.max_rows };
        let mut edges = query(Dataset::Metrics, inventory.range, Vec::new(), shape);
        edges.metric = Some(MESH.to_owned());
        Wanted { purpose: Purpose::Calls, query: edges }
    })
}

/// The mesh's counter of requests.
const MESH: &str = "istio_requests";

fn lines(
    context: &ToolContext<'_>,
    inventory: &Inventory,
    found: &Discovered,
    windows: &[(TimeRange, bool)],
) -> Vec<Wanted> {
    let severe = SEVERE.iter().map(|s| (*s).to_owned()).collect();
    let filters = vec![present(Dim::Service), Filter::Dim { dim: Dim::Severity, matches: Match::In(severe) }];
    let mut wanted = Vec::new();
    for (range, past) in windows {
        let step_ms = step_ms(context, *range, found.services.len() as u64, *past);
        let shape = Shape::Series {
            step_ms,
            align: Align::Epoch,
            group_by: vec![Dim::Service],
            aggregation: Aggregation::Count,
            limit: context.max_rows,
        };
        let query = query(Dataset::Logs, *range, filters.clone(), shape);
        wanted.push(Wanted { purpose: Purpose::ErrorLines { past: *past }, query });
    }
    let shape = Shape::Rows { order: Order::Ascending, limit: context.max_rows.min(MAX_LINES) };
    let rows = query(Dataset::Logs, inventory.window, filters, shape);
    wanted.push(Wanted { purpose: Purpose::Lines, query: rows });
    wanted
}

/// The length of a step so that all series together stay well within what may be read at once.
fn step_ms(context: &ToolContext<'_>, range: TimeRange, series: u64, past: bool) -> u64 {
    let (least, most) = if past { PAST_STEPS } else { RECENT_STEPS };
    let steps = (u64::from(context.max_rows) / 4 / series.max(1)).clamp(least, most);
    let millis = range.millis().unsigned_abs();
    let wanted = (millis / 1000).div_ceil(steps).max(if past { LEAST_PAST_STEP } else { 1 });
    let seconds = STEPS.into_iter().find(|s| *s >= wanted).unwrap_or(wanted);
    // A step is never longer than its window.
    (seconds * 1000).min(millis.max(1000))
}

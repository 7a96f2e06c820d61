//! What whole traces tell that single spans do not: the time that is a service's own, the time lost between caller and callee,
//! where failures begin, and who calls whom.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use sightline_model::rows::Labels;
use sightline_model::{Cell, Entity, Point, ResultSet, Series};

use crate::reading::Table;
use crate::tool::ToolError;

/// One span, in microseconds.
struct Span<'a> {
    at: Timestamp,
    start: i64,
    end: i64,
    parent: &'a str,
    service: &'a str,
    pod: &'a str,
    failed: bool,
    outgoing: bool,
    remote: Option<&'a str>,
}

/// What the sample of traces showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Traced {
    /// Own time per trace of each service, microseconds.
    pub(super) own: Vec<Series>,
    /// The same of each pod.
    pub(super) own_by_pod: Vec<Series>,
    /// Share of a service's spans that fail although none of their children does, percent.
    pub(super) failed: Vec<Series>,
    /// The same of each pod.
    pub(super) failed_by_pod: Vec<Series>,
    /// Share of the requests to a service whose span failed, whoever began the failure, percent.
    pub(super) answered: Vec<Series>,
    /// Share of calls that fail at the caller and of which the callee has no span, percent, by `from` and `to`.
    pub(super) unanswered: Vec<Series>,
    /// Time between caller and callee, microseconds, by `from` and `to`.
    pub(super) gaps: Vec<Series>,
    /// Time in a caller before a call that has no span of its own, microseconds, by `from` and `to`.
    pub(super) waits: Vec<Series>,
    /// Who calls whom.
    pub(super) calls: BTreeSet<(String, String)>,
}

/// Labels by which a caller names whom it calls, in the spellings of OpenTelemetry's conventions.
const REMOTE: [&str; 4] = ["peer.service", "server.address", "net.peer.name", "db.system"];

/// Reads the spans of whole traces, with one point a step.
pub(super) fn read(result: &ResultSet, step_ms: i64) -> Result<Traced, ToolError> {
    let table = Table::new(result);
    let column = |name| table.column(name);
    let (time, service, pod) = (column("time")?, column("service")?, column("pod")?);
    let (trace, id, parent) = (column("trace_id")?, column("span_id")?, column("parent_id")?);
    let (duration, labels) = (column("duration_us")?, column("labels")?);
    let mut by_trace: BTreeMap<&str, Vec<(&str, Span<'_>)>> = BTreeMap::new();
    for row in table.rows() {
        let (Some(at), Some(length)) = (table.time(row, time), row.get(duration).and_then(Cell::number)) else {
            continue;
        };
        let start = at.as_microsecond();
        let labels = table.labels(row, labels);
        let span = Span {
            at,
            start,
            end: start.saturating_add(length.max(0.0) as i64),
            parent: table.text(row, parent),
            service: table.text(row, service),
            pod: table.text(row, pod),
            failed: labels.is_some_and(failed),
            outgoing: labels.is_some_and(outgoing),
            remote: labels.and_then(|l| REMOTE.iter().find_map(|key| l.get(*key))).map(String::as_str),
        };
        by_trace.entry(table.text(row, trace)).or_default().push((table.text(row, id), span));
    }
    let mut sums = Sums { step_ms: step_ms.max(1), ..Sums::default() };
    for spans in by_trace.values() {
        sums.add_trace(spans);
    }
    Ok(sums.finish())
}

/// Whether the labels say that the span failed: OpenTracing's `error`, OpenTelemetry's status, a server's HTTP status.
fn failed(labels: &Labels) -> bool {
    let says = |key: &str, values: &[&str]| {
        labels.get(key).is_some_and(|found| values.iter().any(|value| found.eq_ignore_ascii_case(value)))
    };
    let http = ["http.status_code", "http.response.status_code", "http_status"];
    says("error", &["true", "1", "yes"])
        || ["status", "otel.status_code", "status_code", "status.code"]
            .iter()
            .any(|key| says(key, &["error", "STATUS_CODE_ERROR", "2", "failed", "failure"]))
        || http.iter().any(|key| labels.get(*key).is_some_and(|code| code.len() == 3 && code.starts_with('5')))
}

/// Whether the labels say that the span is a call to somebody else.
fn outgoing(labels: &Labels) -> bool {
    ["span.kind", "kind", "span_kind"].iter().any(|key| {
        labels
            .get(*key)
            .is_some_and(|kind| kind.eq_ignore_ascii_case("client") || kind.eq_ignore_ascii_case("SPAN_KIND_CLIENT"))
    })
}

/// A sum with the number of what was added up.
type Mean = (f64, u64);

#[derive(Default)]
struct Sums {
    step_ms: i64,
    own: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    failed: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    answered: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    /// By caller and callee: of calls that have a span of their own, those that fail with nothing behind them.
    unanswered: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    /// By caller and callee: gaps of spans that are calls, and waits before calls of spans that are not.
    calls: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    waits: BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
    edges: BTreeSet<(String, String)>,
}

impl Sums {
    fn add_trace(&mut self, spans: &[(&str, Span<'_>)]) {
        let index: HashMap<&str, usize> = spans.iter().enumerate().map(|(i, (id, _))| (*id, i)).collect();
        let mut children: BTreeMap<usize, Vec<&Span<'_>>> = BTreeMap::new();
        for (_, span) in spans {
            if let Some(parent) = index.get(span.parent) {
                children.entry(*parent).or_default().push(span);
            }
        }
        let mut own: BTreeMap<(&str, &str), (Timestamp, f64)> = BTreeMap::new();
        for (i, (_, span)) in spans.iter().enumerate() {
            let below = children.get(&i).map_or(&[][..], Vec::as_slice);
            let up = index.get(span.parent).and_then(|p| spans.get(*p)).map(|(_, parent)| parent.service);
            let elsewhere: BTreeSet<&str> = below.iter().map(|c| c.service).filter(|s| *s != span.service).collect();
            for callee in &elsewhere {
                self.edges.insert((span.service.to_owned(), (*callee).to_owned()));
            }
            if let Some(remote) = span.remote.filter(|name| below.is_empty() && *name != span.service) {
                self.edges.insert((span.service.to_owned(), remote.to_owned()));
            }
            let at = self.step_of(span.at);
            self.add_answer(span, below, at);
            if up != Some(span.service) {
                // Not a part of a request inside of the service, but the request to it.
                let place = self.answered.entry((span.service.to_owned(), span.pod.to_owned())).or_default();
                add(place, at, if span.failed { 100.0 } else { 0.0 });
            }
            let begins_failure = span.failed && !below.iter().any(|c| c.failed);
            let place = self.failed.entry((span.service.to_owned(), span.pod.to_owned())).or_default();
            add(place, at, if begins_failure { 100.0 } else { 0.0 });
            let rest = (span.end - span.start - covered(span, below)).max(0) as f64;
            // A span inside a service that does nothing but call one other service is the call as the caller sees it.
            let is_call = elsewhere.len() == 1
                && below.len() == 1
                && (span.outgoing || up.is_some_and(|parent| parent == span.service));
            if let (true, Some(callee)) = (is_call, elsewhere.first()) {
                let place = self.calls.entry((span.service.to_owned(), (*callee).to_owned())).or_default();
                add(place, at, rest);
                continue;
            }
            self.add_waits(span, below, at);
            let (_, sum) = own.entry((span.service, span.pod)).or_insert((at, 0.0));
            *sum += rest;
        }
        for ((service, pod), (at, sum)) in own {
            add(self.own.entry((service.to_owned(), pod.to_owned())).or_default(), at, sum);
        }
    }

    /// A call that has a span of its own: whether it failed with nothing behind it. A refused connection leaves its callee no span.
    fn add_answer(&mut self, span: &Span<'_>, below: &[&Span<'_>], at: Timestamp) {
        let answering = below.iter().map(|c| c.service).find(|callee| *callee != span.service);
        let Some(callee) = answering.or(span.remote).filter(|name| span.outgoing && *name != span.service) else {
            return;
        };
        let place = self.unanswered.entry((span.service.to_owned(), callee.to_owned())).or_default();
        add(place, at, if span.failed && below.is_empty() { 100.0 } else { 0.0 });
    }

    /// Before each call: from what the span did last (its beginning, or the end of a call before) until the callee's span begins.
    fn add_waits(&mut self, span: &Span<'_>, below: &[&Span<'_>], at: Timestamp) {
        for child in below.iter().filter(|c| c.service != span.service) {
            let ends = below.iter().map(|other| other.end).filter(|end| *end <= child.start);
            let since = ends.max().unwrap_or(span.start).max(span.start);
            let wait = (child.start - since).max(0) as f64;
            add(self.waits.entry((span.service.to_owned(), child.service.to_owned())).or_default(), at, wait);
        }
    }

    fn step_of(&self, at: Timestamp) -> Timestamp {
        let millis = at.as_millisecond();
        Timestamp::from_millisecond(millis - millis.rem_euclid(self.step_ms)).unwrap_or(at)
    }

    fn finish(self) -> Traced {
        let gaps = self.calls;
        let mut waits = self.waits;
        waits.retain(|edge, _| !gaps.contains_key(edge));
        let edge = |(from, to): &(String, String)| {
            Entity::from([("from".to_owned(), from.clone()), ("to".to_owned(), to.clone())])
        };
        Traced {
            own: series(&by_service(&self.own), |service| entity(service, "")),
            own_by_pod: series(&self.own, |(service, pod)| entity(service, pod)),
            failed: series(&by_service(&self.failed), |service| entity(service, "")),
            answered: series(&by_service(&self.answered), |service| entity(service, "")),
            failed_by_pod: series(&self.failed, |(service, pod)| entity(service, pod)),
            unanswered: series(&self.unanswered, edge),
            gaps: series(&gaps, edge),
            waits: series(&waits, edge),
            calls: self.edges,
        }
    }
}

/// The time of a span that its children account for: overlapping ones once, cut to the span.
fn covered(span: &Span<'_>, below: &[&Span<'_>]) -> i64 {
    let mut parts: Vec<(i64, i64)> =
        below.iter().map(|c| (c.start.max(span.start), c.end.min(span.end))).filter(|(from, to)| from < to).collect();
    parts.sort_unstable();
    let mut sum = 0;
    let mut until = i64::MIN;
    for (from, to) in parts {
        let from = from.max(until);
        if to > from {
            sum += to - from;
            until = to;
        }
    }
    sum
}

fn add(place: &mut BTreeMap<Timestamp, Mean>, at: Timestamp, value: f64) {
    let (sum, count) = place.entry(at).or_insert((0.0, 0));
    *sum += value;
    *count += 1;
}

fn by_service(
    by_pod: &BTreeMap<(String, String), BTreeMap<Timestamp, Mean>>,
) -> BTreeMap<String, BTreeMap<Timestamp, Mean>> {
    let mut together: BTreeMap<String, BTreeMap<Timestamp, Mean>> = BTreeMap::new();
    for ((service, _), steps) in by_pod {
        let place = together.entry(service.clone()).or_default();
        for (at, (sum, count)) in steps {
            let (all, number) = place.entry(*at).or_insert((0.0, 0));
            *all += sum;
            *number += count;
        }
    }
    together
}

fn entity(service: &str, pod: &str) -> Entity {
    let mut entity = Entity::from([("service".to_owned(), service.to_owned())]);
    if !pod.is_empty() {
        entity.insert("pod".to_owned(), pod.to_owned());
    }
    entity
}

/// Means by step, each weighed by how many were added up.
fn series<K>(sums: &BTreeMap<K, BTreeMap<Timestamp, Mean>>, entity: impl Fn(&K) -> Entity) -> Vec<Series> {
    let point = |(time, (sum, count)): (&Timestamp, &Mean)| {
        let value = sum / (*count).max(1) as f64;
        Point { time: *time, value, min: value, max: value, count: *count }
    };
    sums.iter().map(|(key, steps)| Series { entity: entity(key), points: steps.iter().map(point).collect() }).collect()
}

#[cfg(test)]
#[path = "traces_tests.rs"]
mod tests;

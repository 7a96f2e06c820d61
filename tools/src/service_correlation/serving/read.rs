//! From what was fetched to the observations of a service, with the evidence they rest on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_diagnosis::{Grain, How, ServingObservations, ServingObserved, ServingSignal, Span};
use sightline_model::{Aggregation, Dataset, Dim, Evidence, EvidenceId, EvidenceRow, MetricKind, Point, Series, Unit};
use sightline_query::{MetricPart, Shape};

use crate::absence::distinct_rows;
use crate::list_rows::list_rows;
use crate::measure::step_ms;
use crate::reading::{Content, derived, described, evidence, read_series};
use crate::service_correlation::NAME;
use crate::service_correlation::inventory::Inventory;
use crate::service_correlation::serving::starts::starts;
use crate::service_correlation::serving::{Source, VERSIONS, measure, near_range, sources};
use crate::tool::{Fetched, ToolContext, ToolError};

/// One piece of evidence and what it is for.
#[derive(Clone, Debug)]
enum Piece {
    Known(Evidence),
    Series(ServingSignal, Grain, Span, Evidence),
    Starts(Evidence),
    Versions(Evidence),
    Events(Evidence),
    Kernel(Evidence),
}

impl Piece {
    fn evidence(&self) -> &Evidence {
        match self {
            Self::Known(e)
            | Self::Series(_, _, _, e)
            | Self::Starts(e)
            | Self::Versions(e)
            | Self::Events(e)
            | Self::Kernel(e) => e,
        }
    }
}

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseFile {
    pieces: Vec<Piece>,
    /// What a reader should know about the reading.
    pub(super) notes: Vec<String>,
}

impl CaseFile {
    /// Reads what was fetched.
    pub(super) fn read(
        context: &ToolContext<'_>,
        inventory: &Inventory,
        fetched: &[Fetched],
    ) -> Result<Self, ToolError> {
        let mut file = Self::default();
        for one in fetched.iter().filter(|f| f.round == 0 && f.query.dataset() == Dataset::Metrics).take(1) {
            file.pieces.push(Piece::Known(evidence(one, NAME, file.next(), Content::Rows(distinct_rows(one)?))));
        }
        for source in sources(inventory) {
            for span in [Span::Near, Span::Past, Span::Close] {
                file.add_source(context, inventory, fetched, &source, span)?;
            }
        }
        file.compute(inventory);
        file.add_lists(inventory, fetched)?;
        if !context.may_read(Dataset::Events) {
            file.notes.push("events were not looked at: your role may not read them".to_owned());
        }
        Ok(file)
    }

    fn next(&self) -> usize {
        self.pieces.len() + 1
    }

    fn push(&mut self, inventory: &Inventory, signal: ServingSignal, grain: Grain, span: Span, mut found: Evidence) {
        for (key, value) in &inventory.component {
            found.labels.insert(key.clone(), value.clone());
        }
        self.pieces.push(Piece::Series(signal, grain, span, found));
    }

    fn add_source(
        &mut self,
        context: &ToolContext<'_>,
        inventory: &Inventory,
        fetched: &[Fetched],
        source: &Source,
        span: Span,
    ) -> Result<(), ToolError> {
        let Some(measure) = measure(context, source) else { return Ok(()) };
        let read: Vec<&Fetched> = fetched.iter().filter(|f| is_of(f, inventory, source, span)).collect();
        if read.iter().any(|f| f.result.truncated) {
            if span == Span::Near {
                self.notes.push(format!(
                    "{} was left out: it has more rows than your role may read at once",
                    source.signal.words()
                ));
            }
            return Ok(());
        }
        for (grain, dims) in grains(inventory) {
            let measured = measure.series(&read, &dims)?;
            if measured.series.is_empty() {
                continue;
            }
            let found = measure.series_evidence(&read, &dims, measured, NAME, self.next())?;
            if let Some(head) = found.into_iter().next() {
                self.push(inventory, source.signal, grain, span, head);
            }
        }
        if matches!(source.signal, ServingSignal::FirstToken | ServingSignal::RequestLatency) {
            self.add_served(inventory, &read, span)?;
        }
        Ok(())
    }

    /// The observations of a latency are requests: their rate is that of the requests that got so far.
    fn add_served(&mut self, inventory: &Inventory, read: &[&Fetched], span: Span) -> Result<(), ToolError> {
        let Some(counts) = read.iter().find(|f| f.query.query().part == MetricPart::Count) else { return Ok(()) };
        for (grain, dims) in grains(inventory) {
            let series = read_series(counts, &dims, Aggregation::Rate)?;
            if series.is_empty() {
                continue;
            }
            let mut found = evidence(counts, NAME, self.next(), Content::Series(series));
            found.aggregation = Some(described(Aggregation::Rate, step_ms(counts)));
            found.unit = Unit::RequestsPerSecond;
            self.push(inventory, ServingSignal::Served, grain, span, found);
        }
        Ok(())
    }

    fn find(&self, signal: ServingSignal, grain: Grain, span: Span) -> Option<&Evidence> {
        self.pieces.iter().find_map(|piece| match piece {
            Piece::Series(s, g, p, e) if (*s, *g, *p) == (signal, grain, span) => Some(e),
            Piece::Series(..)
            | Piece::Known(_)
            | Piece::Starts(_)
            | Piece::Versions(_)
            | Piece::Events(_)
            | Piece::Kernel(_) => None,
        })
    }

    /// What follows from several signals.
    fn compute(&mut self, inventory: &Inventory) {
        for span in [Span::Near, Span::Past, Span::Close] {
            for grain in [Grain::Service, Grain::Replicas] {
                let rate = self.hit_rate(grain, span);
                let front = self.front_end(grain, span);
                let prompt = self.length(ServingSignal::PromptLength, ServingSignal::PromptTokens, grain, span);
                let answer = self.length(ServingSignal::AnswerLength, ServingSignal::GenerationTokens, grain, span);
                for (signal, found) in [
                    (ServingSignal::HitRate, rate),
                    (ServingSignal::FrontEnd, front),
                    (ServingSignal::PromptLength, prompt),
                    (ServingSignal::AnswerLength, answer),
                ] {
                    if let Some(mut found) = found.filter(|e| !e.series.is_empty()) {
                        found.id = crate::tool::evidence_id(self.next());
                        self.push(inventory, signal, grain, span, found);
                    }
                }
            }
        }
    }

    fn hit_rate(&self, grain: Grain, span: Span) -> Option<Evidence> {
        let hits = self.find(ServingSignal::PrefixHits, grain, span)?;
        // Where lookups are not counted, every prompt token is one.
        let lookups = self
            .find(ServingSignal::PrefixQueries, grain, span)
            .or_else(|| self.find(ServingSignal::PromptTokens, grain, span))?;
        let series = combined(&hits.series, &[&lookups.series], |hits, others| match others {
            [lookups] if *lookups > 0.0 => Some((hits / lookups).clamp(0.0, 1.0)),
            _ => None,
        });
        let mut found = derived(hits, self.next(), series);
        found.unit = Unit::Ratio;
        found.labels.extend(lookups.canonical_metric.clone().map(|m| ("divided_by".to_owned(), m)));
        found.metric = None;
        Some(found)
    }

    /// Where an engine keeps no histogram of lengths (SGLang), tokens by requests are their mean.
    fn length(&self, length: ServingSignal, tokens: ServingSignal, grain: Grain, span: Span) -> Option<Evidence> {
        if self.find(length, grain, span).is_some() {
            return None;
        }
        let tokens = self.find(tokens, grain, span)?;
        let requests = self
            .find(ServingSignal::Arrivals, grain, span)
            .or_else(|| self.find(ServingSignal::Served, grain, span))?;
        let series = combined(&tokens.series, &[&requests.series], |tokens, others| match others {
            [requests] if *requests > 0.0 => Some(tokens / requests),
            _ => None,
        });
        let mut found = derived(tokens, self.next(), series);
        found.unit = Unit::Tokens;
        found.labels.extend(requests.canonical_metric.clone().map(|m| ("divided_by".to_owned(), m)));
        found.metric = None;
        Some(found)
    }

    fn front_end(&self, grain: Grain, span: Span) -> Option<Evidence> {
        let first = self.find(ServingSignal::FirstToken, grain, span)?;
        let queue = self.find(ServingSignal::QueueTime, grain, span)?;
        let prefill = self.find(ServingSignal::PrefillTime, grain, span)?;
        let series = combined(&first.series, &[&queue.series, &prefill.series], |first, others| match others {
            [queue, prefill] => Some((first - queue - prefill).max(0.0)),
            _ => None,
        });
        let mut found = derived(first, self.next(), series);
        let less = [queue, prefill].iter().filter_map(|e| e.canonical_metric.clone()).collect::<Vec<_>>();
        found.labels.insert("less".to_owned(), less.join(", "));
        found.metric = None;
        Some(found)
    }

    fn add_lists(&mut self, inventory: &Inventory, fetched: &[Fetched]) -> Result<(), ToolError> {
        let near = near_range(inventory);
        let counter = fetched.iter().find(|f| {
            let grows = f.query.metric().is_some_and(|m| m.kind == MetricKind::Counter)
                || f.query.query().part == MetricPart::Count;
            f.round == 1 && f.query.range() == near && grows && !f.result.rows.is_empty() && !f.result.truncated
        });
        if let Some(counter) = counter {
            let rows = starts(counter, &inventory.replicas.dims)?;
            self.pieces.push(Piece::Starts(evidence(counter, NAME, self.next(), Content::Rows(rows))));
        }
        for one in fetched.iter().filter(|f| f.round == 1) {
            match (one.query.dataset(), &one.query.query().shape) {
                (Dataset::Events, Shape::Rows { .. }) => {
                    let found = evidence(one, NAME, self.next(), Content::Rows(list_rows(one)?));
                    if found.truncated {
                        self.notes.push(format!("only the first {} rows of events were looked at", found.returned));
                    }
                    self.pieces.push(Piece::Events(found));
                }
                (Dataset::Logs, Shape::Rows { .. }) => {
                    if let Some(nodes) = nodes(inventory, fetched)? {
                        let mut rows = list_rows(one)?;
                        rows.retain(|row| row.entity.get("node").is_some_and(|node| nodes.contains(node)));
                        let found = evidence(one, NAME, self.next(), Content::Rows(rows));
                        self.pieces.push(Piece::Kernel(found));
                    }
                }
                (Dataset::Metrics, Shape::Distinct { of, .. }) if of.as_slice() == [Dim::Node] => {}
                (Dataset::Metrics, Shape::Distinct { .. }) => {
                    let rows = versions(&distinct_rows(one)?);
                    if rows.len() > 1 {
                        let n = self.next();
                        self.pieces.push(Piece::Versions(evidence(one, NAME, n, Content::Rows(rows))));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The case as the diagnosis takes it.
    pub(super) fn observations(&self, inventory: &Inventory) -> ServingObservations<'_> {
        let mut observations = ServingObservations {
            service: inventory.component.clone(),
            window: inventory.window,
            observed: Vec::new(),
            starts: None,
            events: None,
            logs: None,
            versions: None,
        };
        for piece in &self.pieces {
            match piece {
                Piece::Series(signal, grain, span, evidence) => {
                    let (signal, grain, span) = (*signal, *grain, *span);
                    observations.observed.push(ServingObserved { signal, grain, span, evidence });
                }
                Piece::Starts(evidence) => observations.starts = Some(evidence),
                Piece::Versions(evidence) => observations.versions = Some(evidence),
                Piece::Events(evidence) => observations.events = Some(evidence),
                Piece::Kernel(evidence) => observations.logs = Some(evidence),
                Piece::Known(_) => {}
            }
        }
        observations
    }

    /// The id of the list of what is there.
    pub(super) fn first_id(&self) -> Option<EvidenceId> {
        self.pieces.first().map(|p| p.evidence().id.clone())
    }

    /// All evidence, in order.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        self.pieces.iter().map(|p| p.evidence().clone()).collect()
    }
}

/// The nodes that the replicas run on, by their own rows and by those of their pods; none when nothing tells.
fn nodes(inventory: &Inventory, fetched: &[Fetched]) -> Result<Option<BTreeSet<String>>, ToolError> {
    let mut nodes = inventory.replicas.nodes.clone();
    let is_list =
        |f: &&Fetched| matches!(&f.query.query().shape, Shape::Distinct { of, .. } if of.as_slice() == [Dim::Node]);
    for one in fetched.iter().filter(|f| f.round == 1).filter(is_list) {
        nodes.extend(distinct_rows(one)?.into_iter().filter_map(|row| row.entity.get("node").cloned()));
    }
    Ok((!nodes.is_empty()).then_some(nodes))
}

/// The service as one, and its replicas apart.
fn grains(inventory: &Inventory) -> [(Grain, Vec<Dim>); 2] {
    [(Grain::Service, Vec::new()), (Grain::Replicas, inventory.replicas.dims.clone())]
}

/// Whether a result is of this source over this span.
fn is_of(fetched: &Fetched, inventory: &Inventory, source: &Source, span: Span) -> bool {
    let query = fetched.query.query();
    let in_span = match span {
        Span::Near => fetched.round == 1 && query.range == near_range(inventory),
        Span::Past => fetched.round == 1 && query.range != near_range(inventory),
        Span::Close => fetched.round == 2,
    };
    let part = match source.signal.how() {
        How::Mean => query.part != MetricPart::Samples,
        How::Level | How::Rate | How::Computed => query.part == MetricPart::Samples,
    };
    let filtered = source.filter.as_ref().is_none_or(|filter| query.filters.contains(filter));
    let plain = source.filter.is_some() || query.filters.len() == 1;
    in_span
        && part
        && filtered
        && plain
        && fetched.query.metric().is_some_and(|m| m.canonical == source.metric)
        && matches!(query.shape, Shape::Series { .. })
}

/// Series with each point combined with the points of others at the same instant; none where one of them is missing.
fn combined(head: &[Series], others: &[&[Series]], combine: impl Fn(f64, &[f64]) -> Option<f64>) -> Vec<Series> {
    let by_time = |all: &[Series], entity: &sightline_model::Entity| -> BTreeMap<Timestamp, f64> {
        let same = all.iter().find(|s| s.entity == *entity);
        same.into_iter().flat_map(|s| &s.points).map(|p| (p.time, p.value)).collect()
    };
    head.iter()
        .map(|one| {
            let maps: Vec<BTreeMap<Timestamp, f64>> = others.iter().map(|all| by_time(all, &one.entity)).collect();
            let points = one.points.iter().filter_map(|point| {
                let there: Vec<f64> = maps.iter().filter_map(|map| map.get(&point.time).copied()).collect();
                let value = combine(point.value, &there).filter(|_| there.len() == maps.len())?;
                Some(Point { value, min: value, max: value, ..*point })
            });
            Series { entity: one.entity.clone(), points: points.collect() }
        })
        .filter(|s| !s.points.is_empty())
        .collect()
}

/// Versions with the first sample of each as the row's time.
fn versions(rows: &[EvidenceRow]) -> Vec<EvidenceRow> {
    let mut found: Vec<EvidenceRow> = Vec::new();
    for row in rows {
        let version = VERSIONS.iter().find_map(|key| row.entity.get(*key));
        let first = row.fields.get("first_seen").and_then(|t| t.parse().ok());
        if let (Some(version), Some(first)) = (version, first) {
            let fields = BTreeMap::from([("version".to_owned(), version.clone())]);
            found.push(EvidenceRow { time: Some(first), fields, ..EvidenceRow::default() });
        }
    }
    found.sort_by_key(|row| row.time);
    found
}

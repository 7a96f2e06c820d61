//! From what was fetched to the observations, with the evidence they rest on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_diagnosis::{Call, Role, ServiceObservations, ServiceSeries};
use sightline_model::{Aggregation, Dim, Entity, Evidence, EvidenceRow, Point, Series, Unit};
use sightline_query::{MetricPart, Shape};

use crate::absence::distinct_rows;
use crate::list_rows::list_rows;
use crate::reading::{Content, derived, entity_key, evidence, histogram_mean, read_series};
use crate::service_correlation::NAME;
use crate::service_correlation::inventory::Inventory;
use crate::service_correlation::services::item::{How, Item, Level, Part};
use crate::service_correlation::services::plan::{Discovered, Purpose, Wanted, survey};
use crate::service_correlation::services::traces;
use crate::tool::{Fetched, ToolContext, ToolError, evidence_id};

/// Steps of the series that are computed from a sample of traces, milliseconds: a minute of a sample holds enough of them.
const TRACE_STEP_MS: i64 = 60_000;

/// Series of a role: its past and the window, as places in the list of evidence.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    past: Option<usize>,
    recent: Option<usize>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct CaseFile {
    evidence: Vec<Evidence>,
    pairs: Vec<(Role, String, Pair)>,
    calls: Vec<Call>,
    calls_at: Option<usize>,
    events_at: Option<usize>,
    lines_at: Option<usize>,
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
        let found = Discovered::read(context, inventory, fetched)?;
        let wanted = survey(context, inventory, fetched)?;
        let of = |wanted: &Wanted| fetched.iter().find(|f| *f.query.query() == wanted.query);
        let mut metrics: BTreeMap<(Item, bool), Vec<(Part, &Fetched)>> = BTreeMap::new();
        let mut spans: BTreeMap<(bool, bool), Pair> = BTreeMap::new();
        let mut errors = Pair::default();
        for (one, fetched) in wanted.iter().filter_map(|w| Some((w, of(w)?))) {
            match &one.purpose {
                Purpose::Metric { item, part, past } => {
                    metrics.entry((item.clone(), *past)).or_default().push((*part, fetched));
                }
                Purpose::Spans { by_pod, counted, past } => {
                    let at = file.spans(fetched, *by_pod, *counted)?;
                    let pair = spans.entry((*by_pod, *counted)).or_default();
                    *(if *past { &mut pair.past } else { &mut pair.recent }) = at;
                }
                Purpose::Traces => file.traces(fetched)?,
                Purpose::Calls => file.recorded_calls(fetched, &found)?,
                Purpose::ErrorLines { past } => {
                    let series = read_series(fetched, &[Dim::Service], Aggregation::Count)?;
                    let at = file.series(fetched, series, |_| {});
                    *(if *past { &mut errors.past } else { &mut errors.recent }) = at;
                }
                Purpose::Lines => {
                    file.lines_at = Some(file.push(evidence(fetched, NAME, 1, Content::Rows(list_rows(fetched)?))))
                }
                Purpose::Events => {
                    file.events_at = Some(file.push(evidence(fetched, NAME, 1, Content::Rows(list_rows(fetched)?))))
                }
            }
        }
        let items: BTreeSet<Item> = metrics.keys().map(|(item, _)| item.clone()).collect();
        for item in items {
            // One pair, or one a stored name where each service has a name of its own.
            let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
            for past in [true, false] {
                let Some(parts) = metrics.get(&(item.clone(), past)) else { continue };
                for (name, at) in file.metric(&item, parts, &found)? {
                    let pair = pairs.entry(name).or_default();
                    *(if past { &mut pair.past } else { &mut pair.recent }) = Some(at);
                }
            }
            let family = item.how.family().to_owned();
            file.pairs.extend(pairs.into_values().map(|pair| (item.role, family.clone(), pair)));
        }
        for ((_, counted), pair) in spans {
            file.pairs.push((if counted { Role::Requests } else { Role::Latency }, "spans".to_owned(), pair));
        }
        file.pairs.push((Role::ErrorLines, "lines".to_owned(), errors));
        Ok(file)
    }

    /// Adds a piece and gives back its place.
    fn push(&mut self, mut piece: Evidence) -> usize {
        piece.id = evidence_id(self.evidence.len() + 1);
        self.evidence.push(piece);
        self.evidence.len() - 1
    }

    /// Adds series, unless there are none or the rows are cut: judging from cut data would mislead.
    fn series(&mut self, fetched: &Fetched, series: Vec<Series>, fit: impl FnOnce(&mut Evidence)) -> Option<usize> {
        if fetched.result.truncated {
            let what =
                fetched.query.query().metric.clone().unwrap_or_else(|| fetched.query.dataset().as_str().to_owned());
            self.notes.push(format!("{what} was left out: it has more rows than your role may read at once"));
            return None;
        }
        if series.is_empty() {
            return None;
        }
        let mut piece = evidence(fetched, NAME, 1, Content::Series(series));
        fit(&mut piece);
        Some(self.push(piece))
    }

    fn metric(
        &mut self,
        item: &Item,
        parts: &[(Part, &Fetched)],
        found: &Discovered,
    ) -> Result<Vec<(String, usize)>, ToolError> {
        let part_of = |wanted: Part| parts.iter().find(|(part, _)| *part == wanted).map(|(_, fetched)| *fetched);
        let part = |wanted: MetricPart| part_of(Part { part: wanted, failed: false });
        let group_by = item.level.group_by();
        let (fetched, series) = match &item.how {
            How::Mean(_) => {
                let (Some(sum), Some(count)) = (part(MetricPart::Sum), part(MetricPart::Count)) else {
                    return Ok(Vec::new());
                };
                if count.result.truncated {
                    return Ok(Vec::new());
                }
                (sum, histogram_mean(sum, count, &group_by)?.series)
            }
            How::FailedShare { observed, .. } => {
                let counted = if *observed { MetricPart::Count } else { MetricPart::Samples };
                let failed = part_of(Part { part: counted, failed: true });
                let (Some(all), Some(failed)) = (part(counted), failed) else { return Ok(Vec::new()) };
                if failed.result.truncated {
                    return Ok(Vec::new());
                }
                let of = |one| read_series(one, &group_by, Aggregation::Increase);
                (all, shares(&of(all)?, &of(failed)?))
            }
            How::Gauge(_) | How::Unknown(_) | How::Counter(_) => {
                let Some(one) = part(MetricPart::Samples) else { return Ok(Vec::new()) };
                (one, read_series(one, &group_by, item.how.aggregation())?)
            }
            How::Columns { .. } => {
                let Some(one) = part(MetricPart::Samples) else { return Ok(Vec::new()) };
                return self.columns(item, one);
            }
        };
        let series = match item.level {
            Level::Pod => with_services(series, found),
            Level::Node => on_nodes(&series, found),
            Level::Service | Level::ServicePod => series,
        };
        let name = item.how.family().to_owned();
        let at = self.series(fetched, series, |piece| match &item.how {
            How::Unknown(stored) => {
                piece.metric = Some(stored.clone());
                piece.unit = Unit::None;
            }
            How::Mean(id) => {
                piece.aggregation = piece.aggregation.as_ref().map(|a| a.replace("increase", "mean"));
                piece.labels.insert("metric".to_owned(), id.clone());
            }
            How::FailedShare { status, .. } => {
                let step = piece.step_seconds.unwrap_or_default();
                piece.unit = Unit::Percent;
                piece.aggregation = Some(format!("share of requests whose {status} is a failure, per {step} s"));
            }
            How::Gauge(_) | How::Counter(_) | How::Columns { .. } => {}
        });
        Ok(at.map(|at| (name, at)).into_iter().collect())
    }

    /// A piece for each stored name, since each is a service's.
    fn columns(&mut self, item: &Item, fetched: &Fetched) -> Result<Vec<(String, usize)>, ToolError> {
        let mut group_by = item.level.group_by();
        group_by.push(Dim::Metric);
        let mut by_name: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for mut series in read_series(fetched, &group_by, item.how.aggregation())? {
            let Some(name) = series.entity.remove("metric") else { continue };
            by_name.entry(name).or_default().push(series);
        }
        let mut pieces = Vec::new();
        for (name, series) in by_name {
            let at = self.series(fetched, series, |piece| {
                piece.metric = Some(name.clone());
                piece.unit = Unit::None;
            });
            pieces.extend(at.map(|at| (name, at)));
        }
        Ok(pieces)
    }

    fn spans(&mut self, fetched: &Fetched, by_pod: bool, counted: bool) -> Result<Option<usize>, ToolError> {
        let group_by = if by_pod { vec![Dim::Service, Dim::Pod] } else { vec![Dim::Service] };
        let aggregation = if counted { Aggregation::Count } else { Aggregation::Avg };
        let series = read_series(fetched, &group_by, aggregation)?;
        Ok(self.series(fetched, series, |piece| {
            if !counted {
                piece.unit = Unit::Microseconds;
            }
        }))
    }

    /// The sample of traces: what is computed from it, followed by the evidence for it.
    fn traces(&mut self, fetched: &Fetched) -> Result<(), ToolError> {
        if fetched.result.truncated {
            self.notes.push("traces were left out: there are more spans than your role may read at once".to_owned());
            return Ok(());
        }
        let traced = traces::read(&fetched.result, TRACE_STEP_MS)?;
        let mut sample = evidence(fetched, NAME, 1, Content::Rows(Vec::new()));
        sample.coverage.seen = fetched.result.rows.len() as u64;
        (sample.total, sample.returned) = (sample.coverage.seen, sample.coverage.seen);
        for (role, series, unit, described) in [
            (Role::OwnTime, traced.own, Unit::Microseconds, "mean own time per trace, per 60 s"),
            (Role::OwnTime, traced.own_by_pod, Unit::Microseconds, "mean own time per trace, per 60 s"),
            (Role::OwnErrors, traced.failed, Unit::Percent, "share of spans that fail by themselves, per 60 s"),
            (Role::OwnErrors, traced.failed_by_pod, Unit::Percent, "share of spans that fail by themselves, per 60 s"),
            (Role::Errors, traced.answered, Unit::Percent, "share of requests whose span failed, per 60 s"),
            (Role::Unanswered, traced.unanswered, Unit::Percent, "share of calls that fail unanswered, per 60 s"),
            (Role::Gap, traced.gaps, Unit::Microseconds, "mean time between caller and callee, per 60 s"),
            (Role::Wait, traced.waits, Unit::Microseconds, "mean time in the caller before the call, per 60 s"),
        ] {
            if series.is_empty() {
                continue;
            }
            let mut piece = derived(&sample, 1, series);
            piece.unit = unit;
            piece.aggregation = Some(described.to_owned());
            piece.step_seconds = Some(TRACE_STEP_MS as f64 / 1000.0);
            let at = self.push(piece);
            self.pairs.push((role, "traces".to_owned(), Pair { past: None, recent: Some(at) }));
        }
        let calls = traced.calls.into_iter().map(|(caller, callee)| Call { caller, callee }).collect();
        self.calls_from(derived(&sample, 1, Vec::new()), calls);
        self.push(sample);
        Ok(())
    }

    fn recorded_calls(&mut self, fetched: &Fetched, found: &Discovered) -> Result<(), ToolError> {
        let Shape::Distinct { of, .. } = &fetched.query.query().shape else { return Ok(()) };
        let [caller, callee] = of.as_slice() else { return Ok(()) };
        let rows = distinct_rows(fetched)?;
        let named = |row: &EvidenceRow, dim: &Dim| {
            let name = row.entity.get(entity_key(dim)).filter(|name| !name.is_empty())?;
            Some(without_version(name, found).to_owned())
        };
        let calls = rows
            .iter()
            .filter_map(|row| Some(Call { caller: named(row, caller)?, callee: named(row, callee)? }))
            .collect();
        self.calls_from(evidence(fetched, NAME, 1, Content::Rows(Vec::new())), calls);
        Ok(())
    }

    /// Adds calls, and evidence for them with a row for each: the callee as its service.
    fn calls_from(&mut self, mut piece: Evidence, calls: Vec<Call>) {
        if calls.is_empty() {
            return;
        }
        let row = |call: &Call| EvidenceRow {
            entity: Entity::from([("service".to_owned(), call.callee.clone())]),
            fields: [("called_by".to_owned(), call.caller.clone())].into(),
            ..EvidenceRow::default()
        };
        piece.rows = calls.iter().map(row).collect();
        (piece.total, piece.returned) = (piece.rows.len() as u64, piece.rows.len() as u64);
        piece.aggregation = None;
        match self.calls_at.and_then(|at| self.evidence.get_mut(at)) {
            // One list of both: what is recorded, and what traces show.
            Some(there) => {
                there.rows.extend(piece.rows);
                (there.total, there.returned) = (there.rows.len() as u64, there.rows.len() as u64);
            }
            None => self.calls_at = Some(self.push(piece)),
        }
        self.calls.extend(calls);
    }

    /// The observations as the diagnosis takes them.
    pub(super) fn observations(&self, inventory: &Inventory) -> ServiceObservations<'_> {
        let at = |place: Option<usize>| place.and_then(|place| self.evidence.get(place));
        ServiceObservations {
            service: inventory.name.clone(),
            window: inventory.window,
            series: self
                .pairs
                .iter()
                .filter_map(|(role, family, pair)| {
                    Some(ServiceSeries {
                        role: *role,
                        family: family.as_str(),
                        past: at(pair.past),
                        recent: at(pair.recent)?,
                    })
                })
                .collect(),
            calls: self.calls.clone(),
            calls_evidence: at(self.calls_at),
            events: at(self.events_at),
            error_lines: at(self.lines_at),
        }
    }

    /// All evidence, in order.
    pub(super) fn into_evidence(self) -> Vec<Evidence> {
        self.evidence
    }
}

/// A workload of a mesh goes by its service with a version behind it (`reviews-v2`); what is no service without it stays as it is.
fn without_version<'n>(workload: &'n str, found: &Discovered) -> &'n str {
    let is_version =
        |end: &str| end.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    match workload.rsplit_once('-') {
        Some((service, end)) if is_version(end) && found.services.contains(service) => service,
        _ => workload,
    }
}

/// Which share of all failed, percent, by step. Where all are counted, no count of failures means that there was none.
fn shares(all: &[Series], failed: &[Series]) -> Vec<Series> {
    let counts: BTreeMap<(&Entity, Timestamp), f64> =
        failed.iter().flat_map(|s| s.points.iter().map(move |p| ((&s.entity, p.time), p.value))).collect();
    let of = |series: &Series| Series {
        entity: series.entity.clone(),
        points: series
            .points
            .iter()
            .filter(|p| p.value > 0.0)
            .map(|p| {
                let failed = counts.get(&(&series.entity, p.time)).copied().unwrap_or(0.0);
                let value = (100.0 * failed / p.value).clamp(0.0, 100.0);
                Point { time: p.time, value, min: value, max: value, count: (p.value.round() as u64).max(1) }
            })
            .collect(),
    };
    all.iter().map(of).filter(|series| !series.points.is_empty()).collect()
}

/// Series of containers with the service their pod belongs to: as its spans say, as the container is called, or as the pod's name
/// begins. A pod of none of the known services is left out.
fn with_services(series: Vec<Series>, found: &Discovered) -> Vec<Series> {
    let service = |entity: &Entity| -> Option<String> {
        let pod = entity.get("pod")?;
        let container = entity.get("container").filter(|c| found.services.contains(*c));
        found.pods.get(pod).or(container).or_else(|| found.service_of(pod)).cloned()
    };
    series
        .into_iter()
        .filter_map(|mut series| {
            let service = service(&series.entity)?;
            series.entity.insert("service".to_owned(), service);
            Some(series)
        })
        .collect()
}

/// Series of nodes, once for each service that has a pod there.
fn on_nodes(series: &[Series], found: &Discovered) -> Vec<Series> {
    let mut by_node: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for (pod, node) in &found.places {
        by_node.entry(node.as_str()).or_default().extend(found.service_of(pod));
    }
    let of = |series: &Series| -> Vec<Series> {
        let services = series.entity.get("node").and_then(|node| by_node.get(node.as_str()));
        let with = |service: &&String| {
            let mut entity = series.entity.clone();
            entity.insert("service".to_owned(), (*service).clone());
            Series { entity, points: series.points.clone() }
        };
        services.into_iter().flatten().map(with).collect()
    };
    series.iter().flat_map(of).collect()
}

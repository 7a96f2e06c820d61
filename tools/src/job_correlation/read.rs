//! From what was fetched to the observations of a case, with the evidence they rest on.

use std::collections::BTreeMap;

use sightline_diagnosis::{EarlierRun, Job, Observations, Observed, Signal, parse_bus_id};
use sightline_model::{Aggregation, Dataset, Dim, Evidence};
use sightline_query::{Query, Shape};

use crate::job_correlation::queries::{aggregation, group_by};
use crate::job_correlation::scope::Scope;
use crate::job_correlation::{NAME, history};
use crate::list_rows::list_rows;
use crate::reading::{Content, Table, entity_key, evidence, read_series};
use crate::tool::{Fetched, ToolContext, ToolError};

/// Signals whose absence is evidence too: without them the GPUs or the pace cannot be judged.
const VITAL: [Signal; 5] =
    [Signal::StepTime, Signal::SmClock, Signal::GpuTemperature, Signal::Power, Signal::Utilization];

/// One piece of evidence and what it is for.
#[derive(Clone, Debug)]
enum Piece {
    Jobs(Evidence),
    Series(Signal, Evidence),
    Logs(Evidence),
    Events(Evidence),
    History(history::Part, Evidence),
}

impl Piece {
    fn evidence(&self) -> &Evidence {
        match self {
            Self::Jobs(e) | Self::Series(_, e) | Self::Logs(e) | Self::Events(e) | Self::History(_, e) => e,
        }
    }
}

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseFile {
    pieces: Vec<Piece>,
    bus_ids: BTreeMap<(String, u32, u8, u8), String>,
    /// How many GPUs each earlier run held.
    sizes: BTreeMap<String, usize>,
    /// What a reader should know about the reading.
    pub(super) notes: Vec<String>,
}

impl CaseFile {
    /// Reads what was fetched, in the order it was asked for.
    pub(super) fn read(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<Self, ToolError> {
        let mut file = Self { notes: scope.notes.clone(), ..Self::default() };
        for one in fetched {
            file.add(context, scope, one)?;
        }
        file.notes.extend(not_looked_at(context));
        Ok(file)
    }

    fn add(&mut self, context: &ToolContext<'_>, scope: &Scope, fetched: &Fetched) -> Result<(), ToolError> {
        let n = self.pieces.len() + 1;
        let query = fetched.query.query();
        if let Some(part) = history::part(scope, query) {
            return self.add_history(part, fetched, n);
        }
        match query.dataset {
            Dataset::Jobs | Dataset::JobGpus => {
                self.pieces.push(Piece::Jobs(evidence(fetched, NAME, n, Content::Rows(list_rows(fetched)?))));
            }
            Dataset::Logs | Dataset::Events => {
                let found = evidence(fetched, NAME, n, Content::Rows(list_rows(fetched)?));
                if found.truncated {
                    self.notes
                        .push(format!("only the first {} rows of {} were looked at", found.returned, query.dataset));
                }
                self.pieces.push(match query.dataset {
                    Dataset::Logs => Piece::Logs(found),
                    _ => Piece::Events(found),
                });
            }
            Dataset::Metrics if matches!(query.shape, Shape::Distinct { .. }) => self.add_bus_ids(fetched)?,
            Dataset::Metrics => self.add_series(context, scope, fetched, query, n)?,
            Dataset::Spans => {}
        }
        Ok(())
    }

    fn add_series(
        &mut self,
        context: &ToolContext<'_>,
        scope: &Scope,
        fetched: &Fetched,
        query: &Query,
        n: usize,
    ) -> Result<(), ToolError> {
        let Some(metric) = fetched.query.metric().map(|m| m.canonical.clone()) else { return Ok(()) };
        let Some(signal) = Signal::ALL.iter().copied().find(|s| s.metrics().contains(&metric.as_str())) else {
            return Ok(());
        };
        if fetched.result.truncated {
            // Judging from cut data would mislead; a signal that is left out counts as not collected. Without a closer look
            // the survey still stands.
            if fetched.round > 1 {
                return Ok(());
            }
            self.notes
                .push(format!("{} was left out: it has more rows than your role may read at once", signal.words()));
            return Ok(());
        }
        let combine = match &query.shape {
            Shape::Series { aggregation, .. } => *aggregation,
            Shape::Samples { .. }
            | Shape::Rank { .. }
            | Shape::Rows { .. }
            | Shape::Distinct { .. }
            | Shape::LabelKeys { .. } => aggregation(context, &metric).unwrap_or(Aggregation::Avg),
        };
        let series = read_series(fetched, &group_by(signal), combine)?;
        if series.is_empty() && !VITAL.contains(&signal) {
            return Ok(());
        }
        let mut found = evidence(fetched, NAME, n, Content::Series(series));
        found.labels.insert("metric".to_owned(), metric);
        found.labels.insert("job".to_owned(), scope.job.clone());
        self.pieces.push(Piece::Series(signal, found));
        Ok(())
    }

    fn add_history(&mut self, part: history::Part, fetched: &Fetched, n: usize) -> Result<(), ToolError> {
        match part {
            history::Part::Held => self.sizes = history::sizes(fetched)?,
            history::Part::Drivers | history::Part::Runs | history::Part::Pace => {
                if let Some(found) = history::piece(part, fetched, n)? {
                    self.pieces.push(Piece::History(part, found));
                }
            }
        }
        Ok(())
    }

    fn add_bus_ids(&mut self, fetched: &Fetched) -> Result<(), ToolError> {
        let table = Table::new(&fetched.result);
        let bus = Dim::Label("pci_bus_id".to_owned());
        let columns = [table.column("node")?, table.column(entity_key(&Dim::Gpu))?, table.column(bus.as_str())?];
        for row in table.rows() {
            let [node, gpu, address] = columns.map(|column| table.text(row, column));
            if let Some((domain, bus, device)) = parse_bus_id(address) {
                self.bus_ids.insert((node.to_owned(), domain, bus, device), gpu.to_owned());
            }
        }
        Ok(())
    }

    /// The case as the diagnosis takes it.
    pub(super) fn observations(&self, scope: &Scope) -> Observations<'_> {
        let first = |is: fn(&Piece) -> bool| self.pieces.iter().find(|p| is(p)).map(Piece::evidence);
        Observations {
            job: Job {
                id: scope.job.clone(),
                placements: scope.placements.clone(),
                start: scope.start,
                end: scope.end,
                state: scope.state.clone(),
                evidence: first(|p| matches!(p, Piece::Jobs(_))).map(|e| e.id.clone()),
            },
            window: scope.window,
            observed: self
                .pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Series(signal, evidence) => Some(Observed { signal: *signal, evidence }),
                    Piece::Jobs(_) | Piece::Logs(_) | Piece::Events(_) | Piece::History(..) => None,
                })
                .collect(),
            logs: first(|p| matches!(p, Piece::Logs(_))),
            events: first(|p| matches!(p, Piece::Events(_))),
            drivers: first(|p| matches!(p, Piece::History(history::Part::Drivers, _))),
            history: first(|p| matches!(p, Piece::History(history::Part::Runs, _))),
            earlier: self.earlier(),
            bus_ids: self.bus_ids.clone(),
        }
    }

    /// The earlier runs whose size and pace are known.
    fn earlier(&self) -> Vec<EarlierRun<'_>> {
        let of = |part: history::Part| {
            self.pieces.iter().filter_map(move |p| match p {
                Piece::History(its, evidence) if *its == part => Some(evidence),
                _ => None,
            })
        };
        let Some(runs) = of(history::Part::Runs).next() else { return Vec::new() };
        let known = |pace: &&Evidence| {
            let job = pace.series.first()?.entity.get("job")?;
            let row = runs.rows.iter().position(|row| history::job_of(row) == job)?;
            Some((row, *self.sizes.get(job)?))
        };
        of(history::Part::Pace)
            .filter_map(|pace| known(&pace).map(|(row, gpus)| EarlierRun { row, gpus, pace }))
            .collect()
    }

    /// All evidence, in order.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        self.pieces.iter().map(|p| p.evidence().clone()).collect()
    }
}

/// Whether a piece of evidence is shown whatever the sentences cite: the job itself, and what it was judged by first.
pub(super) fn always_shown(evidence: &Evidence) -> bool {
    let vital = |metric: &String| VITAL.iter().any(|s| s.metrics().contains(&metric.as_str()));
    evidence.dataset == Dataset::Jobs.as_str()
        || evidence.dataset == Dataset::JobGpus.as_str()
        || evidence.canonical_metric.as_ref().is_some_and(vital)
}

/// What the asker's role keeps out of the judgement.
fn not_looked_at(context: &ToolContext<'_>) -> Option<String> {
    let kept_out = [Dataset::Logs, Dataset::Events].into_iter().filter(|dataset| !context.may_read(*dataset));
    let names: Vec<&str> = kept_out.map(Dataset::as_str).collect();
    (!names.is_empty()).then(|| format!("{} were not looked at: your role may not read them", names.join(" and ")))
}

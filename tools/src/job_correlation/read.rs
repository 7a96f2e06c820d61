//! From what was fetched to the observations of a case, with the evidence they rest on.

use std::collections::{BTreeMap, BTreeSet};

use sightline_diagnosis::{Attempt, EarlierRun, Job, Observations, Observed, OtherRun, Signal, parse_bus_id};
use sightline_model::{Aggregation, Dataset, Dim, Evidence};
use sightline_query::Shape;

use crate::job_correlation::batches::{Part, apart, metrics};
use crate::job_correlation::books::{attempts, others, place};
use crate::job_correlation::queries::{aggregation, group_by};
use crate::job_correlation::scope::Scope;
use crate::job_correlation::{NAME, history, whole};
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
    Held(Evidence),
    Beside(Evidence),
    Series(Signal, Evidence),
    Logs(Evidence),
    Events(Evidence),
    History(history::Part, Evidence),
}

impl Piece {
    fn into_evidence(self) -> Evidence {
        match self {
            Self::Jobs(e) | Self::Held(e) | Self::Beside(e) | Self::Logs(e) | Self::Events(e) => e,
            Self::Series(_, e) | Self::History(_, e) => e,
        }
    }

    fn evidence(&self) -> &Evidence {
        match self {
            Self::Jobs(e) | Self::Held(e) | Self::Beside(e) | Self::Logs(e) | Self::Events(e) => e,
            Self::Series(_, e) | Self::History(_, e) => e,
        }
    }
}

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct CaseFile {
    pieces: Vec<Piece>,
    bus_ids: BTreeMap<(String, u32, u8, u8), String>,
    /// What runs of the same name held.
    held: history::Held,
    attempts: Vec<Attempt>,
    others: Vec<OtherRun>,
    /// What a reader should know about the reading.
    pub(super) notes: Vec<String>,
}

impl CaseFile {
    /// Reads what was fetched, in the order it was asked for.
    pub(super) fn read(context: &ToolContext<'_>, scope: &Scope, fetched: &[Fetched]) -> Result<Self, ToolError> {
        let mut file = Self { notes: scope.notes.clone(), ..Self::default() };
        // What moved was read again, step by step: then the look at the whole is not needed any more.
        let steps = fetched.iter().filter(|f| matches!(f.query.query().shape, Shape::Series { .. }));
        let again: BTreeSet<String> = steps.flat_map(|f| metrics(context, f)).collect();
        for one in fetched {
            file.add(context, scope, one, &again)?;
        }
        file.notes.extend(not_looked_at(context));
        Ok(file)
    }

    fn add(
        &mut self,
        context: &ToolContext<'_>,
        scope: &Scope,
        fetched: &Fetched,
        again: &BTreeSet<String>,
    ) -> Result<(), ToolError> {
        let n = self.pieces.len() + 1;
        let query = fetched.query.query();
        if let Some(part) = history::part(scope, query) {
            return self.add_history(part, fetched, n);
        }
        let rows = || Ok::<_, ToolError>(evidence(fetched, NAME, n, Content::Rows(list_rows(fetched)?)));
        match (query.dataset, fetched.round) {
            (Dataset::Jobs, 0) => self.pieces.push(Piece::Jobs(rows()?)),
            (Dataset::JobGpus, 0) => {
                let held = rows()?;
                self.attempts = attempts(&held, scope);
                self.pieces.push(Piece::Held(held));
            }
            (Dataset::Jobs, _) => {
                let beside = rows()?;
                self.others = others(&beside, scope);
                self.pieces.push(Piece::Beside(beside));
            }
            (Dataset::JobGpus, _) => place(&mut self.others, &list_rows(fetched)?),
            (Dataset::Logs | Dataset::Events, _) => {
                let found = rows()?;
                if found.truncated {
                    self.notes
                        .push(format!("only the first {} rows of {} were looked at", found.returned, query.dataset));
                }
                self.pieces.push(match query.dataset {
                    Dataset::Logs => Piece::Logs(found),
                    _ => Piece::Events(found),
                });
            }
            (Dataset::Metrics, _) => match &query.shape {
                Shape::Distinct { .. } => self.add_bus_ids(fetched)?,
                Shape::Series { aggregation, .. } => self.add_series(context, scope, fetched, *aggregation, None)?,
                Shape::Rank { .. } => self.add_series(context, scope, fetched, Aggregation::Last, Some(again))?,
                Shape::Samples { .. } | Shape::Rows { .. } | Shape::LabelKeys { .. } => {
                    let metric = metrics(context, fetched).into_iter().next().unwrap_or_default();
                    let combine = aggregation(context, &metric).unwrap_or(Aggregation::Avg);
                    self.add_series(context, scope, fetched, combine, None)?;
                }
            },
            (Dataset::Spans, _) => {}
        }
        Ok(())
    }

    /// Adds the series of every metric that was read; `whole` names those that were read better besides.
    fn add_series(
        &mut self,
        context: &ToolContext<'_>,
        scope: &Scope,
        fetched: &Fetched,
        combine: Aggregation,
        whole: Option<&BTreeSet<String>>,
    ) -> Result<(), ToolError> {
        let names = metrics(context, fetched);
        let known = |metric: &String| Signal::ALL.iter().copied().find(|s| s.metrics().contains(&metric.as_str()));
        let Some(first) = names.iter().find_map(known) else { return Ok(()) };
        if fetched.result.truncated {
            // Judging from cut data would mislead; a signal that is left out counts as not collected. Without a closer look
            // the survey still stands.
            if fetched.round > 1 {
                return Ok(());
            }
            let words: Vec<&str> = names.iter().filter_map(known).map(Signal::words).collect();
            let words = words.join(", ");
            self.notes.push(format!("{words} was left out: it has more rows than your role may read at once"));
            return Ok(());
        }
        let parts = apart(context, fetched, &group_by(first), |by| match whole {
            Some(_) => whole::series(fetched, by),
            None => read_series(fetched, by, combine),
        })?;
        for Part { alone, series, stored } in parts {
            let Some((metric, signal)) =
                alone.query.metric().and_then(|m| Some((m.canonical.clone(), known(&m.canonical)?)))
            else {
                continue;
            };
            let read_again = whole.is_some_and(|again| again.contains(&metric));
            if read_again || series.is_empty() && !VITAL.contains(&signal) {
                continue;
            }
            let mut found = evidence(&alone, NAME, self.pieces.len() + 1, Content::Series(series));
            if names.len() > 1 {
                // The text and its parameters are those of one query for all of them.
                let of = stored.as_deref().unwrap_or(metric.as_str());
                found.labels.insert(
                    "rows_of_query".to_owned(),
                    format!("those of {of}; one query reads {} metrics", names.len()),
                );
            }
            found.metric = stored;
            found.labels.insert("metric".to_owned(), metric);
            found.labels.insert("job".to_owned(), scope.job.clone());
            self.pieces.push(Piece::Series(signal, found));
        }
        Ok(())
    }

    fn add_history(&mut self, part: history::Part, fetched: &Fetched, n: usize) -> Result<(), ToolError> {
        match part {
            history::Part::Held => self.held = history::held(fetched)?,
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
                    Piece::Jobs(_)
                    | Piece::Held(_)
                    | Piece::Beside(_)
                    | Piece::Logs(_)
                    | Piece::Events(_)
                    | Piece::History(..) => None,
                })
                .collect(),
            logs: first(|p| matches!(p, Piece::Logs(_))),
            events: first(|p| matches!(p, Piece::Events(_))),
            drivers: self.of(history::Part::Drivers).next(),
            history: first(|p| matches!(p, Piece::History(history::Part::Runs, _))),
            siblings: self
                .of(history::Part::Runs)
                .next()
                .map(|runs| history::siblings(runs, &self.held.nodes))
                .unwrap_or_default(),
            earlier: self.earlier(),
            held: first(|p| matches!(p, Piece::Held(_))),
            attempts: self.attempts.clone(),
            beside: first(|p| matches!(p, Piece::Beside(_))),
            others: self.others.clone(),
            bus_ids: self.bus_ids.clone(),
        }
    }

    fn of(&self, part: history::Part) -> impl Iterator<Item = &Evidence> {
        self.pieces.iter().filter_map(move |p| match p {
            Piece::History(its, evidence) if *its == part => Some(evidence),
            _ => None,
        })
    }

    /// The earlier runs whose size and pace are known.
    fn earlier(&self) -> Vec<EarlierRun<'_>> {
        let Some(runs) = self.of(history::Part::Runs).next() else { return Vec::new() };
        let known = |pace: &Evidence| {
            let job = pace.series.first()?.entity.get("job")?;
            let row = runs.rows.iter().position(|row| history::job_of(row) == job)?;
            Some((row, *self.held.sizes.get(job)?))
        };
        self.of(history::Part::Pace)
            .filter_map(|pace| known(pace).map(|(row, gpus)| EarlierRun { row, gpus, pace }))
            .collect()
    }

    /// All evidence, in order.
    pub(super) fn into_evidence(self) -> Vec<Evidence> {
        self.pieces.into_iter().map(Piece::into_evidence).collect()
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

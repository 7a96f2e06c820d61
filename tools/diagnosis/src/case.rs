//! The case as the checks see it: signals by name, the job's pace, slow clocks, Xids, series that stopped.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use jiff::Timestamp;
use sightline_analysis::{Absence, absences};
use sightline_model::claim::Quantity;
use sightline_model::{Component, DraftClaim, Entity, FactPath, FactRef, Relation, TimeRange};

use crate::cause::Finding;
use crate::causes::slow_worker::StandingOut;
use crate::clocks::{LowClock, Reason, low_clocks};
use crate::lines::{Line, lines};
use crate::observation::{Observations, Placement};
use crate::pace::{Onset, Pace, first_holding};
use crate::sentence::Sentence;
use crate::signal::{Scope, Signal};
use crate::stall::{Stall, stall};
use crate::view::{Member, View, just_after, placed, shift};
use crate::xid_events::{XidEvent, xid_events};

/// Sources are up to 40 s apart in time (dcgm-exporter collects every 30 s, then the scrape), so nothing is ordered inside
/// a minute; five minutes also let a gradual fault reach the job's pace.
const COINCIDENCE_MS: i64 = 300_000;

/// A series that misses this many samples while its peers go on has stopped; scrapes fail one or two at a time.
const ABSENT_STEPS: f64 = 4.0;

/// Every signal that was observed.
#[derive(Debug)]
pub(crate) struct Views<'a> {
    coarse: BTreeMap<Signal, View<'a>>,
    fine: BTreeMap<Signal, Vec<View<'a>>>,
    /// Evidence without samples, to be cited where something is missing.
    empty: BTreeMap<Signal, sightline_model::EvidenceId>,
}

impl<'a> Views<'a> {
    fn new(observations: &Observations<'a>) -> Self {
        let mut views = Self { coarse: BTreeMap::new(), fine: BTreeMap::new(), empty: BTreeMap::new() };
        let placed = placed(observations);
        for observed in &observations.observed {
            let view = View::new(&placed, observed.signal, observed.evidence);
            if view.members.is_empty() {
                views.empty.entry(observed.signal).or_insert_with(|| observed.evidence.id.clone());
                continue;
            }
            match views.coarse.entry(observed.signal) {
                Entry::Vacant(place) => {
                    place.insert(view);
                }
                // The same metric again is a closer look; another metric of the same signal is not needed any more.
                Entry::Occupied(first) if first.get().metric() == view.metric() => {
                    views.fine.entry(observed.signal).or_default().push(view);
                }
                Entry::Occupied(_) => {}
            }
        }
        views
    }

    pub(crate) fn coarse(&self, signal: Signal) -> Option<&View<'a>> {
        self.coarse.get(&signal)
    }

    pub(crate) fn fine(&self, signal: Signal) -> &[View<'a>] {
        self.fine.get(&signal).map_or(&[], Vec::as_slice)
    }

    /// Dates a change of a member more finely where samples as stored are there, else by its own points.
    pub(crate) fn refine(
        &self,
        view: &View<'a>,
        member: &Member<'a>,
        around: Timestamp,
        before: f64,
        after: f64,
    ) -> Onset<'a> {
        let (from, to) = (shift(around, -2 * view.step_ms), shift(around, 2 * view.step_ms));
        for fine in self.fine(view.signal) {
            let Some(same) = fine.members.iter().find(|m| m.entity == member.entity) else { continue };
            if let Some(at) = first_holding(&same.samples, from, to, before, after) {
                return Onset { at, evidence: fine.evidence, entity: same.entity };
            }
        }
        let at = first_holding(&member.samples, from, to, before, after)
            .or_else(|| member.first_from(around).map(|p| p.time))
            .unwrap_or(around);
        Onset { at, evidence: view.evidence, entity: member.entity }
    }

    /// A silent member's last sample, as it was stored where that was fetched.
    fn last_sample(&self, view: &View<'a>, member: &Member<'a>, absence: &Absence) -> Onset<'a> {
        let closer = self.fine(view.signal).iter().find_map(|fine| {
            let same = fine.members.iter().find(|m| m.entity == member.entity)?;
            let last = same.points.last().filter(|p| p.time >= absence.last_seen)?;
            Some(Onset { at: last.time, evidence: fine.evidence, entity: same.entity })
        });
        closer.unwrap_or(Onset { at: absence.last_seen, evidence: view.evidence, entity: member.entity })
    }
}

/// A GPU of the job whose series stopped while its peers went on.
#[derive(Clone, Debug)]
pub(crate) struct Stopped<'a> {
    pub(crate) placement: &'a Placement,
    pub(crate) signal: Signal,
    /// Where its last sample stands, in the finest resolution there is.
    pub(crate) last: Onset<'a>,
}

/// The case.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a Observations<'a>,
    pub(crate) window: TimeRange,
    pub(crate) views: Views<'a>,
    pub(crate) pace: Pace<'a>,
    pub(crate) clocks: Vec<LowClock<'a>>,
    pub(crate) xids: Vec<XidEvent<'a>>,
    pub(crate) stopped: Vec<Stopped<'a>>,
    /// Log lines of libraries and schedulers, in order of time.
    pub(crate) lines: Vec<Line<'a>>,
    /// The longest stretch in which the job held its GPUs and got nowhere.
    pub(crate) stall: Option<Stall<'a>>,
    pub(crate) found: Found,
}

/// What several checks ask and is dear to tell: found once, when it is asked first.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The rank that all others wait for.
    pub(crate) standing_out: OnceCell<Option<StandingOut>>,
    /// Whether ranks take turns at being the last.
    pub(crate) takes_turns: OnceCell<bool>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(observations: &'a Observations<'a>) -> Self {
        let views = Views::new(observations);
        let window = observations.window;
        let pace = Pace::of(&views, window);
        let clocks = low_clocks(&views, observations, window);
        let xids = xid_events(&views, observations);
        let stopped = stopped(&views, observations);
        let lines = lines(observations);
        let stall = stall(&views, observations);
        Self { observations, window, views, pace, clocks, xids, stopped, lines, stall, found: Found::default() }
    }

    pub(crate) fn view(&self, signal: Signal) -> Option<&View<'a>> {
        self.views.coarse(signal)
    }

    /// "Needs … , which has no samples": the finding of a check whose signals are missing.
    pub(crate) fn no_data(&self, needs: &[Signal]) -> Finding {
        let missing: Vec<&str> = needs.iter().filter(|s| self.view(**s).is_none()).map(|s| s.words()).collect();
        let text = format!("Not judged: there are no samples of {} for this job in this window.", list(&missing));
        let mut sentence = Sentence::new(&text);
        for signal in needs {
            if let Some(id) = self.views.empty.get(signal) {
                sentence = sentence.cite(id);
            }
        }
        Finding::NoData(sentence.claim())
    }

    /// A sentence about a component, with the evidence that it stands in; `gpu` is said of one GPU, `other`, without places, of
    /// anything else.
    pub(crate) fn about(&self, component: &Component, gpu: &str, other: &str) -> Sentence {
        let text = if component.contains_key("gpu") { gpu } else { other };
        let stands = |e: &Entity| component.iter().all(|(key, value)| e.get(key) == Some(value));
        let views = self.views.coarse.values();
        match views.clone().find(|v| v.members.iter().any(|m| stands(m.entity))) {
            Some(view) => Sentence::new(text).entity(view.evidence, component),
            None => Sentence::new(other),
        }
    }

    /// Whether something began when the job became slower, or when it came to a halt.
    pub(crate) fn coincides(&self, onset: Option<Timestamp>, step_ms: i64) -> Option<bool> {
        let onset = onset?.as_millisecond();
        let near = |at: Timestamp, other_ms: i64| (onset - at.as_millisecond()).abs() <= tolerance(step_ms, other_ms);
        let slower = self.pace.slowdown().and_then(|s| Some(near(s.onset.as_ref()?.at, s.step_ms)));
        let halted = self.stall.as_ref().map(|s| near(s.last.at, s.step_ms));
        match (slower, halted) {
            (None, None) => None,
            (slower, halted) => Some(slower == Some(true) || halted == Some(true)),
        }
    }

    /// A claim that something began together with the slowdown; `None` when it did not or is not known.
    pub(crate) fn coincidence(&self, onset: &Onset<'a>, step_ms: i64) -> Option<DraftClaim> {
        let slowdown = self.pace.slowdown()?;
        let slower = slowdown.onset.as_ref()?;
        let apart = onset.at.as_millisecond() - slower.at.as_millisecond();
        if apart.abs() > tolerance(step_ms, slowdown.step_ms) {
            return None;
        }
        let time = |o: &Onset<'_>| {
            let path = FactPath::Instant { entity: o.entity.clone(), at: o.at };
            Quantity::Fact(FactRef { evidence: o.evidence.id.clone(), path })
        };
        let apart = Quantity::Difference(Box::new(time(onset)), Box::new(time(slower)));
        let bound = tolerance(step_ms, slowdown.step_ms) as f64;
        let sentence = Sentence::new("It began at {onset}, when the job's pace changed too ({slower}).")
            .instant("onset", onset.evidence, onset.entity, onset.at)
            .instant("slower", slower.evidence, slower.entity, slower.at)
            .holds(apart.clone(), Relation::AtMost, Quantity::Constant(bound))
            .holds(apart, Relation::AtLeast, Quantity::Constant(-bound));
        Some(sentence.claim())
    }

    /// The stretch in which to look: the slow one if the job became slower, else the window.
    pub(crate) fn focus(&self) -> TimeRange {
        self.pace.slowdown().and_then(|s| s.slow.intersect(&self.window)).unwrap_or(self.window)
    }

    /// The part of the job before the slowdown, if both are known.
    pub(crate) fn before(&self) -> Option<TimeRange> {
        let onset = self.pace.slowdown()?.onset.as_ref()?.at;
        TimeRange::new(self.observations.job.start, onset)
    }

    /// The job as a whole, as the component of what is nobody's in particular.
    pub(crate) fn whole_job(&self) -> Vec<Component> {
        vec![Component::from([("job".to_owned(), self.observations.job.id.clone())])]
    }

    /// Whether the job came to a bad end, and the window holds it. A job that reached its time limit or was cancelled did not.
    pub(crate) fn failed(&self) -> bool {
        let job = &self.observations.job;
        let state = job.state.to_ascii_lowercase();
        let badly = ["fail", "error", "oom", "out_of_memory", "crash"].iter().any(|word| state.contains(word));
        badly && job.end.is_some_and(|end| end <= just_after(self.window.to()))
    }

    /// Whether the job has only just begun, so that its pace has no past to be compared with.
    pub(crate) fn just_started(&self) -> bool {
        self.window.from() <= self.observations.job.start && self.window.seconds() < LEAST_SEEN_S
    }

    /// Whether some GPU has a low clock under load.
    pub(crate) fn has_slow_clock(&self) -> bool {
        self.clocks.iter().any(|c| c.reason != Reason::Idle)
    }

    /// GPUs of the job per node.
    pub(crate) fn gpus_on(&self, node: &str) -> usize {
        self.observations.job.placements.iter().filter(|p| p.node == node).count()
    }
}

/// Twenty samples at the exporter's default interval: loading a model, compiling and the first steps take minutes, and fewer samples
/// than that do not tell a level from its scatter.
const LEAST_SEEN_S: f64 = 600.0;

fn tolerance(step_ms: i64, other_step_ms: i64) -> i64 {
    COINCIDENCE_MS.max(3 * step_ms.max(other_step_ms))
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn stopped<'a>(views: &Views<'a>, observations: &'a Observations<'a>) -> Vec<Stopped<'a>> {
    // The exporter writes these for every healthy GPU at every scrape, idle or not.
    let always_there =
        [Signal::GpuTemperature, Signal::Power, Signal::SmClock, Signal::Utilization, Signal::MemoryUsed];
    for signal in always_there {
        debug_assert_eq!(signal.scope(), Scope::Gpu);
        let Some(view) = views.coarse(signal) else { continue };
        // What happens after the job's end is none of its business.
        let end = observations.job.end.map_or(Timestamp::MAX, |end| just_after(shift(end, AFTER_END_MS)));
        let series: Vec<Vec<sightline_analysis::Sample>> =
            view.members.iter().map(|m| m.samples.iter().filter(|s| s.time < end).copied().collect()).collect();
        let found: Vec<Stopped<'a>> = absences(&series, view.step_ms, ABSENT_STEPS)
            .into_iter()
            .filter_map(|absence| {
                let member = view.members.get(absence.index)?;
                let placement = observations.job.placements.iter().find(|p| crate::view::names(member.entity, p))?;
                Some(Stopped { placement, signal, last: views.last_sample(view, member, &absence) })
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// A job dies soon after a GPU of its does; samples of the minutes after its end show that the peers go on.
pub(crate) const AFTER_END_MS: i64 = 900_000;

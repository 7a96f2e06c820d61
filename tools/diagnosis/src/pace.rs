//! Whether the job itself became slower, and since when: from its step time, else from its throughput.

use jiff::Timestamp;
use sightline_analysis::{Direction, Sample};
use sightline_model::{DraftClaim, Entity, Evidence, Relation, Stat, TimeRange};

use crate::case::Views;
use crate::cause::MIN_RELATIVE;
use crate::level::{Excursion, Segment, best_level, excursion, segments};
use crate::sentence::{Sentence, stat};
use crate::signal::Signal;
use crate::view::{Member, View};

/// The first sample at which a changed level holds, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onset<'a> {
    pub(crate) at: Timestamp,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
}

/// A job that became slower.
#[derive(Clone, Debug)]
pub(crate) struct Slowdown<'a> {
    pub(crate) signal: Signal,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
    pub(crate) onset: Option<Onset<'a>>,
    pub(crate) slow: TimeRange,
    /// A stretch at the job's best level.
    pub(crate) good: TimeRange,
    /// Slow level over good level for step time, good over slow for throughput: above 1.
    pub(crate) factor: f64,
    pub(crate) step_ms: i64,
}

/// A job that kept its pace.
#[derive(Clone, Debug)]
pub(crate) struct Steady<'a> {
    pub(crate) signal: Signal,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
    pub(crate) within: TimeRange,
}

/// What the job's own numbers say about its pace in the window.
#[derive(Clone, Debug)]
pub(crate) enum Pace<'a> {
    /// It became slower.
    Slower(Slowdown<'a>),
    /// It did not.
    Steady(Steady<'a>),
    /// It was not recorded.
    Unknown,
}

impl<'a> Pace<'a> {
    pub(crate) fn of(views: &Views<'a>, window: TimeRange) -> Self {
        for (signal, worse) in [(Signal::StepTime, Direction::Rise), (Signal::Throughput, Direction::Fall)] {
            if let Some(view) = views.coarse(signal)
                && let Some(pace) = judge(views, view, signal, worse, window)
            {
                return pace;
            }
        }
        Self::Unknown
    }

    pub(crate) fn slowdown(&self) -> Option<&Slowdown<'a>> {
        match self {
            Self::Slower(slowdown) => Some(slowdown),
            Self::Steady(_) | Self::Unknown => None,
        }
    }

    /// What it says, as a claim.
    pub(crate) fn claim(&self) -> Option<DraftClaim> {
        match self {
            Self::Slower(s) => Some(s.claim()),
            Self::Steady(s) => {
                let median = stat(s.evidence, s.entity, Stat::Median, Some(s.within));
                let text = format!("The job's {} stayed at one level, {{level}} at the median.", s.signal.words());
                Some(Sentence::new(&text).number("level", median, 2, s.evidence.unit).claim())
            }
            Self::Unknown => None,
        }
    }
}

impl Slowdown<'_> {
    fn claim(&self) -> DraftClaim {
        let before = stat(self.evidence, self.entity, Stat::Median, Some(self.good));
        let after = stat(self.evidence, self.entity, Stat::Median, Some(self.slow));
        let (verb, relation) = match self.signal {
            Signal::StepTime => ("rose", Relation::Above),
            _ => ("fell", Relation::Below),
        };
        let since = if self.onset.is_some() { " at {onset}" } else { "" };
        let text =
            format!("The job's {} {verb} from {{before}} to {{after}}, by {{change}}{since}.", self.signal.words());
        let mut sentence = Sentence::new(&text)
            .number("before", before.clone(), 2, self.evidence.unit)
            .number("after", after.clone(), 2, self.evidence.unit)
            .percent("change", before.clone(), after.clone())
            .holds(after, relation, before);
        if let Some(onset) = &self.onset {
            sentence = sentence.instant("onset", onset.evidence, onset.entity, onset.at);
        }
        sentence.claim()
    }
}

fn judge<'a>(
    views: &Views<'a>,
    view: &View<'a>,
    signal: Signal,
    worse: Direction,
    window: TimeRange,
) -> Option<Pace<'a>> {
    // Ranks of a synchronous job report the same pace: the fullest series stands for all.
    let member = view.members.iter().max_by_key(|m| m.points.len())?;
    member.median(window)?;
    let found = segments(&member.samples, MIN_RELATIVE);
    let better = match worse {
        Direction::Rise => Direction::Fall,
        Direction::Fall => Direction::Rise,
    };
    let reference = best_level(&found, better)?;
    let slow = excursion(&found, reference, worse, MIN_RELATIVE, window);
    let good = found.iter().find(|s| s.level == reference);
    let entity = member.entity;
    let evidence = view.evidence;
    let slower = slow.and_then(|slow| slowdown(views, view, member, signal, slow, good?));
    Some(slower.map_or(Pace::Steady(Steady { signal, evidence, entity, within: window }), Pace::Slower))
}

fn slowdown<'a>(
    views: &Views<'a>,
    view: &View<'a>,
    member: &Member<'a>,
    signal: Signal,
    slow: Excursion,
    good: &Segment,
) -> Option<Slowdown<'a>> {
    let (slow_range, good_range) = (slow.range()?, TimeRange::new(good.from, good.to)?);
    let (before, after) = (member.median(good_range)?, member.median(slow_range)?);
    let factor = match signal {
        Signal::StepTime => after / before,
        _ => before / after,
    };
    let onset = slow.onset().map(|at| views.refine(view, member, at, before, after));
    (factor > 1.0 + MIN_RELATIVE / 2.0).then_some(Slowdown {
        signal,
        evidence: view.evidence,
        entity: member.entity,
        onset,
        slow: slow_range,
        good: good_range,
        factor,
        step_ms: view.step_ms,
    })
}

/// The first sample in the neighbourhood of `around` from which three samples in a row lie on the new side of half-way
/// between both levels.
pub(crate) fn first_holding(
    samples: &[Sample],
    from: Timestamp,
    to: Timestamp,
    before: f64,
    after: f64,
) -> Option<Timestamp> {
    let half = (before + after) / 2.0;
    let changed = |s: &Sample| (s.value > half) == (after > before);
    samples
        .windows(3)
        .filter(|w| w.first().is_some_and(|s| from <= s.time && s.time < to))
        .find(|w| w.iter().all(changed))
        .and_then(|w| w.first())
        .map(|s| s.time)
}

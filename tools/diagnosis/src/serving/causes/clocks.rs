//! The GPUs that serve run at a low clock: because they are hot, or because less power is allowed.
//!
//! Needs the SM clock of the service's pods, and their temperature. Speaks for heat: the clock fell when the service became slower,
//! and the GPUs are hotter than before or than those of the other replicas. Speaks for a power limit: it fell on GPUs that are no
//! hotter. Rules both out: a clock as usual. Trap: utilisation stays at 100 % all the while.

use sightline_model::{DraftClaim, Relation, Stat, TimeRange};

use crate::cause::{Finding, Strength};
use crate::sentence::{Sentence, peers};
use crate::serving::case::Case;
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::change::Change;
use crate::serving::signal::ServingSignal as S;

pub(crate) const THERMAL: ServingCheck = ServingCheck { id: "thermal_throttling", assess: thermal };
pub(crate) const POWER: ServingCheck = ServingCheck { id: "power_capping", assess: power };

/// The smallest fall of a clock that users can feel: boards of one model differ by a percent or two.
const MIN_FALL: f64 = 0.1;

/// So much hotter than before or than the others, in degrees Celsius, is hot; places in a chassis differ by less.
const HOTTER: f64 = 5.0;

fn thermal(case: &Case<'_>) -> Finding {
    let fell = match fallen(case) {
        Ok(fell) => fell,
        Err(finding) => return finding,
    };
    if case.track(S::GpuTemperature).is_none() {
        return case.no_data(&[S::GpuTemperature]);
    }
    let Some(hot) = hot(case, fell.range) else {
        return case.ruled_out("the clock fell, but the GPUs are no hotter", &[S::SmClock, S::GpuTemperature]);
    };
    let mut found = Found::by(case, &fell, Strength::Proof);
    found.claims.push(hot);
    found.finding(case)
}

fn power(case: &Case<'_>) -> Finding {
    let fell = match fallen(case) {
        Ok(fell) => fell,
        Err(finding) => return finding,
    };
    if case.track(S::GpuTemperature).is_none() {
        return case.no_data(&[S::GpuTemperature]);
    }
    if hot(case, fell.range).is_some() {
        return case.ruled_out("the clock fell because the GPUs are hot", &[S::SmClock, S::GpuTemperature]);
    }
    Found::by(case, &fell, Strength::Pattern).finding(case)
}

/// The fall of the clock while requests run; a GPU without work lowers it too.
fn fallen<'a>(case: &Case<'a>) -> Result<Change<'a>, Finding> {
    if case.track(S::SmClock).is_none() {
        return Err(case.no_data(&[S::SmClock]));
    }
    if case.complaint().is_none() {
        return Err(case.ruled_out("nothing is slower than usual", &[S::SmClock]));
    }
    let works = case.typical(S::Running).is_none_or(|running| running > 0.0);
    match case.fall(S::SmClock, MIN_FALL).filter(|_| works && case.gone().is_empty()) {
        Some(fell) => Ok(fell),
        None => Err(case.ruled_out("the GPUs run at their usual clock", &[S::SmClock])),
    }
}

/// That the subject's GPUs are hotter than before, or than those of the other replicas.
fn hot(case: &Case<'_>, range: TimeRange) -> Option<DraftClaim> {
    let track = case.track(S::GpuTemperature)?;
    let now = track.median(range)?;
    let fact = track.fact(Stat::Median, range);
    let unit = track.evidence.unit;
    let before = TimeRange::new(track.points.first()?.time, range.from());
    if let Some((before, level)) = before.and_then(|b| Some((b, track.median(b)?)))
        && now >= level + HOTTER
    {
        let past = track.fact(Stat::Median, before);
        let text = "Meanwhile the GPU temperature was {now}, against {past} before.";
        let sentence = Sentence::new(text).number("now", fact.clone(), 0, unit).number("past", past.clone(), 0, unit);
        return Some(sentence.holds(fact, Relation::Above, past).claim());
    }
    let others: Vec<f64> = case
        .tracks
        .parts(S::GpuTemperature)
        .iter()
        .filter(|t| t.entity != track.entity)
        .filter_map(|t| t.median(range))
        .collect();
    let level = sightline_analysis::median(&others).filter(|_| case.subject().is_some())?;
    (now >= level + HOTTER).then(|| {
        let others = peers(track.evidence, track.entity, Stat::Median, Some(range));
        Sentence::new("Meanwhile the GPU temperature was {now}, that of the other replicas {others}.")
            .number("now", fact.clone(), 0, unit)
            .number("others", others.clone(), 0, unit)
            .holds(fact, Relation::Above, others)
            .claim()
    })
}

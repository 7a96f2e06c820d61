//! Somebody else's load on what the job shares: its nodes, or the storage and network behind them.
//!
//! Needs other runs that the asker may see. Speaks for it: one of them begins on the job's nodes, or in its cluster, when the job becomes slower,
//! while the job's own load on the shared part does not rise. Rules it out: no other run begins then, the job's own load rose, or a worker of
//! the job has a fault of its own. Trap: most runs that begin at the time have nothing to do with it; without a sign that what is
//! shared is short, it stays a hint at most.

use sightline_analysis::median;
use sightline_model::{Component, DraftClaim, Relation, Stat};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::clocks::Reason;
use crate::observation::OtherRun;
use crate::pace::{Pace, Slowdown};
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View};

pub(crate) const CHECK: Check = Check { id: "noisy_neighbour", assess };

/// A run needs some minutes from its start to its load; clocks of scheduler and trainer differ by less.
const STARTUP_MS: i64 = 600_000;

/// What the nodes share with others is short when waiting for it at least doubles.
const TIMES_BEFORE: f64 = 2.0;

/// The job's own traffic may not have risen by more than this share: then it waits for itself.
const OWN_RISE: f64 = 1.2;

/// Signs that something shared is short, and the job's own use of it.
const SHARED: [(Signal, [Signal; 2]); 2] = [
    (Signal::IoPressure, [Signal::NetworkReceived, Signal::NetworkSent]),
    (Signal::TcpRetransmissions, [Signal::NetworkSent, Signal::NetworkReceived]),
];

fn assess(case: &Case<'_>) -> Finding {
    let Some(runs) = case.observations.beside else {
        let claim = Sentence::new("Not judged: other runs beside this job were not read.").claim();
        return Finding::NoData(claim);
    };
    let ruled_out = |text: &str| Finding::RuledOut(Sentence::new(text).cite(&runs.id).claim());
    if matches!(case.pace, Pace::Unknown) {
        return case.no_data(&[Signal::StepTime, Signal::Throughput]);
    }
    let Some(slowdown) = case.pace.slowdown() else {
        return ruled_out("Ruled out: the job's pace shows no slowdown that a neighbour would have to explain.");
    };
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) || !case.stopped.is_empty() {
        return ruled_out("Ruled out: a fault of the job's own explains the pace.");
    }
    let Some(neighbour) = neighbour(case, slowdown) else {
        return ruled_out(
            "Ruled out as far as you may see: no other run began on the job's nodes or in its cluster when it became slower.",
        );
    };
    let shares = case.observations.job.placements.iter().any(|p| neighbour.nodes.contains(&p.node));
    let short = short(case, slowdown);
    let strength = match (shares, &short) {
        (_, Some(short)) if short.own_rose => {
            return ruled_out("Ruled out: the job's own traffic rose as well, so it waits for itself.");
        }
        (true, Some(_)) | (false, Some(_)) => Strength::Proof,
        (true, None) => Strength::Pattern,
        // It came and went with the other run, and what it waited for in between is its input, which comes over what both share.
        (false, None) if came_and_went(case, slowdown, neighbour) && input_was_late(case) => Strength::Proof,
        (false, None) => {
            return ruled_out(
                "Ruled out as far as it is collected: another run began at the time, but nothing that both share became short.",
            );
        }
    };
    let began = Sentence::new("Another run that you may see began at {began}, about when the job became slower.")
        .row_time("began", runs, neighbour.row)
        .claim();
    let mut claims = vec![began];
    claims.extend(came_and_went(case, slowdown, neighbour).then(|| ended(runs, neighbour)));
    let is_short = short.is_some();
    claims.extend(short.map(|s| s.claims).unwrap_or_default());
    let text = match (shares, is_short) {
        (true, _) => "Another run began on nodes of the job when it became slower, and takes what they share.",
        (false, false) => {
            "The job was slow for as long as another run lasted, and waited for its input, which comes over what both share."
        }
        (false, true) => {
            "What the job shares with others became short when another run began, while the job's own traffic did not rise."
        }
    };
    Finding::Supported(Box::new(Support {
        strength,
        coincides: Some(true),
        // A saturated resource with a known taker says more than the same resource without one.
        magnitude: 10.0 * slowdown.factor,
        components: vec![Component::from([("job".to_owned(), neighbour.job.clone())])],
        onset: slowdown.onset.map(|o| o.at),
        why: Sentence::new(text).cite_all(&claims).claim(),
        claims,
        fault: true,
    }))
}

/// The run that began when the job became slower; one on its nodes goes first.
fn neighbour<'c>(case: &'c Case<'_>, slowdown: &Slowdown<'_>) -> Option<&'c OtherRun> {
    let onset = slowdown.onset.as_ref()?.at.as_millisecond();
    let reach = STARTUP_MS.max(3 * slowdown.step_ms);
    let shares = |run: &OtherRun| case.observations.job.placements.iter().any(|p| run.nodes.contains(&p.node));
    let distance = |run: &OtherRun| onset - run.from.as_millisecond();
    case.observations
        .others
        .iter()
        // It may have begun before the job felt it, and by another clock a little after.
        .filter(|run| (-reach / 2..=reach).contains(&distance(run)))
        .min_by_key(|run| (!shares(run), distance(run).abs()))
}

/// How near the job's recovery the other run must end: the minute within which sources are not ordered, and a little.
const RECOVERY_MS: i64 = 180_000;

/// Whether the job recovered when the other run ended; a job that is slow to the end of what was looked at did not.
fn came_and_went(case: &Case<'_>, slowdown: &Slowdown<'_>, run: &OtherRun) -> bool {
    let recovered = slowdown.slow.to();
    let went_on = case
        .view(slowdown.signal)
        .and_then(View::span)
        .is_some_and(|span| span.to().as_millisecond() - recovered.as_millisecond() >= 3 * slowdown.step_ms);
    let reach = RECOVERY_MS.max(3 * slowdown.step_ms);
    went_on && run.to.is_some_and(|to| (to.as_millisecond() - recovered.as_millisecond()).abs() <= reach)
}

fn input_was_late(case: &Case<'_>) -> bool {
    matches!(super::data_loader_bottleneck::judge(case), Finding::Supported(_))
}

fn ended(runs: &sightline_model::Evidence, run: &OtherRun) -> DraftClaim {
    Sentence::new("It ended at {end}, about when the job had its pace again.")
        .quote("end", runs, run.row, "end")
        .claim()
}

struct Short {
    claims: Vec<DraftClaim>,
    own_rose: bool,
}

/// A shared resource that most of the job's nodes wait for since it became slower.
fn short(case: &Case<'_>, slowdown: &Slowdown<'_>) -> Option<Short> {
    SHARED.into_iter().find_map(|(signal, own)| {
        let view = case.view(signal)?;
        let risen: Vec<&Member<'_>> =
            view.members.iter().filter(|m| ratio(m, slowdown).is_some_and(|r| r >= TIMES_BEFORE)).collect();
        let first = risen.first().filter(|_| risen.len() * 2 > view.members.len())?;
        let own: Vec<(&View<'_>, f64)> = own
            .into_iter()
            .filter_map(|s| {
                let view = case.view(s)?;
                let rises: Vec<f64> = view.members.iter().filter_map(|m| usual_ratio(m, slowdown)).collect();
                Some((view, median(&rises)?))
            })
            .collect();
        let mut claims = vec![rise_claim(view, first, slowdown)];
        let own_rose = own.iter().any(|(_, rise)| *rise > OWN_RISE);
        if let Some((view, _)) = own.first().filter(|_| !own_rose) {
            claims.extend(view.members.first().and_then(|m| kept_claim(view, m, slowdown)));
        }
        Some(Short { claims, own_rose })
    })
}

fn ratio(member: &Member<'_>, slowdown: &Slowdown<'_>) -> Option<f64> {
    let (before, after) = (member.mean(slowdown.good)?, member.mean(slowdown.slow)?);
    (after > 0.0).then(|| after / before.max(after / 100.0))
}

/// The same for the usual step of time: a checkpoint is a burst that comes before and after alike, but not equally often.
fn usual_ratio(member: &Member<'_>, slowdown: &Slowdown<'_>) -> Option<f64> {
    let (before, after) = (member.median(slowdown.good)?, member.median(slowdown.slow)?);
    (before > 0.0).then(|| after / before)
}

fn rise_claim(view: &View<'_>, member: &Member<'_>, slowdown: &Slowdown<'_>) -> DraftClaim {
    let before = stat(view.evidence, member.entity, Stat::Mean, Some(slowdown.good));
    let after = stat(view.evidence, member.entity, Stat::Mean, Some(slowdown.slow));
    let text = format!(
        "The {} of {} rose from {{before}} to {{after}} per step of time, as on most nodes of the job.",
        view.signal.words(),
        who(member.entity)
    );
    Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("before", before.clone(), 2, view.unit())
        .number("after", after.clone(), 2, view.unit())
        .holds(after, Relation::Above, before)
        .claim()
}

fn kept_claim(view: &View<'_>, member: &Member<'_>, slowdown: &Slowdown<'_>) -> Option<DraftClaim> {
    usual_ratio(member, slowdown).filter(|r| *r <= OWN_RISE)?;
    let before = stat(view.evidence, member.entity, Stat::Median, Some(slowdown.good));
    let after = stat(view.evidence, member.entity, Stat::Median, Some(slowdown.slow));
    let text = format!(
        "The {} of {} did not rise with it: {{before}} before and {{after}} after, in the usual step of time.",
        view.signal.words(),
        who(member.entity)
    );
    let sentence = Sentence::new(&text)
        .entity(view.evidence, member.entity)
        .number("before", before, 0, view.unit())
        .number("after", after, 0, view.unit());
    Some(sentence.claim())
}

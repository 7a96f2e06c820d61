//! Storage that keeps the job's nodes waiting.
//!
//! Needs a sign of waiting for I/O on the nodes. Speaks for it: I/O pressure, CPUs idle for I/O, blocked tasks, repeated NFS calls or
//! busy disks rose on most nodes with the slowdown, or are high while input has been late from the start; lines of a file system's
//! client. Rules it out: signs that stayed still; CPUs that are used up, which is preprocessing; waits that come with checkpoints while
//! input is in time, which is writing and not reading. Trap: the job feels storage in its data loader, whose timer rises too.

use sightline_model::{Component, DraftClaim, TimeRange};

use crate::case::Case;
use crate::cause::{Check, Finding, Strength, Support};
use crate::causes::{checkpoint_stall, data_loader_bottleneck};
use crate::clocks::Reason;
use crate::host::{WAITS_FOR_IO, mostly_saturated, rate, rise_claim};
use crate::records::lines;
use crate::sentence::{Sentence, stat, who};
use crate::signal::Signal;
use crate::view::{Member, View};

pub(crate) const CHECK: Check = Check { id: "storage_bottleneck", assess };

/// Signs of waiting, each with the level from which it matters at all: a share of time, tasks, calls per second, a share of time.
const SIGNS: [(Signal, f64); 4] = [
    (Signal::IoPressure, WAITS_FOR_IO),
    // One task that waits at every look.
    (Signal::BlockedTasks, 1.0),
    // A client repeats a call after seconds without an answer, so that one in ten seconds is a server that does not answer.
    (Signal::NfsRetransmissions, 0.1),
    // A disk that serves requests four fifths of the time has a queue.
    (Signal::DiskBusy, 0.8),
];

/// And at least twice as much as before the slowdown.
const TIMES_BEFORE: f64 = 2.0;

/// What clients of file systems and object stores write when the other side does not keep up.
const LINES: [&str; 6] = [
    "not responding, still trying",
    "not responding, timed out",
    "SlowDown",
    "blocked for more than",
    "slow requests",
    "Please reduce your request rate",
];

/// Nodes that wait, by the first sign that shows it.
struct Waiting<'v, 'a> {
    view: &'v View<'a>,
    members: Vec<&'v Member<'a>>,
    /// Of how many.
    all: usize,
}

fn assess(case: &Case<'_>) -> Finding {
    let looked: Vec<&View<'_>> = SIGNS.into_iter().filter_map(|(s, _)| case.view(s)).collect();
    let told = lines(case, &LINES);
    let Some(view) = looked.first().copied().or_else(|| case.view(Signal::IoPressure)) else {
        if told.is_empty() {
            return case.no_data(&[Signal::IoPressure, Signal::BlockedTasks]);
        }
        return case.no_data(&[Signal::IoPressure]);
    };
    let ruled_out = |text: &str| Finding::RuledOut(Sentence::new(text).cite(&view.evidence.id).claim());
    if case.clocks.iter().any(|c| c.reason != Reason::Idle) {
        return ruled_out("Ruled out: a slow GPU explains the pace.");
    }
    let late = data_loader_bottleneck::judge(case);
    let input_is_late = matches!(late, Finding::Supported(_));
    if case.pace.slowdown().is_none() && !input_is_late {
        return ruled_out("Ruled out: the job's pace shows no slowdown that storage would have to explain.");
    }
    let Some(found) = looked.iter().find_map(|view| waiting(case, view)) else {
        return ruled_out("Ruled out: the nodes do not wait more for I/O than before the slowdown.");
    };
    if !input_is_late && checkpoint_stall::holds(case) {
        return ruled_out(
            "Ruled out as a cause of its own: the nodes wait for I/O when checkpoints are written, and input is in time.",
        );
    }
    if found.view.signal != Signal::IoPressure && mostly_saturated(case) == Some(true) {
        return ruled_out("Ruled out: the nodes' CPUs are used up, and not idle for I/O.");
    }
    let few = found.members.len() * 2 <= found.all;
    if few && !(input_is_late && slowest_loader_is_among(case, &found)) {
        return ruled_out("Ruled out: a few nodes wait for I/O, and the job does not wait for them.");
    }
    let mut claims: Vec<DraftClaim> =
        found.members.first().and_then(|m| sign_claim(case, &found, m)).into_iter().collect();
    claims.extend(told.first().map(crate::records::Record::claim));
    supported(case, &found, few, claims)
}

fn supported(case: &Case<'_>, found: &Waiting<'_, '_>, few: bool, claims: Vec<DraftClaim>) -> Finding {
    let slowdown = case.pace.slowdown();
    let components: Vec<Component> =
        if few { found.members.iter().map(|m| node_of(m)).collect() } else { case.whole_job() };
    let why = match (slowdown, few) {
        (Some(_), false) => "The nodes of the job wait for storage since it became slower.",
        (None, false) => "The nodes of the job wait for storage, and its input is late.",
        (_, true) => "Some nodes wait for storage, and the others wait for the input of their ranks.",
    };
    Finding::Supported(Box::new(Support {
        // The loader's timer tells that input came late, the nodes' pressure tells why: the reason goes first.
        strength: Strength::Proof,
        coincides: slowdown.and_then(|s| s.onset).map(|_| true),
        magnitude: 1.0 + slowdown.map_or(0.0, |s| s.factor),
        components,
        onset: slowdown.and_then(|s| s.onset).map(|o| o.at),
        why: Sentence::new(why).cite(&found.view.evidence.id).claim(),
        claims,
        fault: true,
    }))
}

fn node_of(member: &Member<'_>) -> Component {
    member.entity.get("node").map(|n| Component::from([("node".to_owned(), n.clone())])).unwrap_or_default()
}

fn waiting<'v, 'a>(case: &Case<'_>, view: &'v View<'a>) -> Option<Waiting<'v, 'a>> {
    let least = SIGNS.into_iter().find(|(s, _)| *s == view.signal).map(|(_, least)| least)?;
    let now = case.focus();
    let waits = |m: &&Member<'_>| {
        let Some(level) = rate(view, m, now) else { return false };
        let risen = case
            .pace
            .slowdown()
            .is_none_or(|s| rate(view, m, s.good).is_some_and(|before| level >= TIMES_BEFORE * before));
        level >= least && risen
    };
    let members: Vec<&Member<'a>> = view.members.iter().filter(waits).collect();
    (!members.is_empty()).then_some(Waiting { view, members, all: view.members.len() })
}

/// Whether the rank that loads longest runs on a node that waits.
fn slowest_loader_is_among(case: &Case<'_>, found: &Waiting<'_, '_>) -> bool {
    let Some(loading) = case.view(Signal::DataLoading) else { return false };
    let range = case.focus();
    let slowest = loading.members.iter().filter_map(|m| Some((m, m.mean(range)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let node = slowest.and_then(|(m, _)| crate::ranks::placement_of(case, m)).map(|p| &p.node);
    node.is_some_and(|node| found.members.iter().any(|m| m.entity.get("node") == Some(node)))
}

fn sign_claim(case: &Case<'_>, found: &Waiting<'_, '_>, member: &Member<'_>) -> Option<DraftClaim> {
    if let Some(slowdown) = case.pace.slowdown() {
        return rise_claim(found.view, member, slowdown.good, slowdown.slow);
    }
    let now: TimeRange = case.focus();
    let text = format!(
        "The {} of {} was {{level}} per step of time, at the mean.",
        found.view.signal.words(),
        who(member.entity)
    );
    let level = stat(found.view.evidence, member.entity, sightline_model::Stat::Mean, Some(now));
    Some(
        Sentence::new(&text)
            .entity(found.view.evidence, member.entity)
            .number("level", level, 2, found.view.unit())
            .claim(),
    )
}

//! What is worse than usual for those who use the service, and whether it is so on one replica or on all.

use sightline_analysis::Direction;
use sightline_model::{Entity, TimeRange};

use crate::serving::case::Tracks;
use crate::serving::change::{Change, Level, level};
use crate::serving::signal::ServingSignal;

/// The smallest rise of a latency that counts: users' latencies scatter with what they ask, and a quarter is what a chart of
/// minutes shows at a glance. Reported regressions begin at twice this (vLLM pull request 44594, issues 14845 and 32494).
pub(crate) const MIN_LATENCY: f64 = 0.3;

/// The same for a single replica of several, where more series are looked at and chance has more to choose from.
const MIN_OF_ONE: f64 = 0.5;

/// Latencies recorded in less than this share of a queue's time: hardly anything gets through.
const SILENT: f64 = 0.5;

/// What users notice, in the order in which equals are named.
pub(crate) const LATENCIES: [ServingSignal; 5] = [
    ServingSignal::FirstToken,
    ServingSignal::InterToken,
    ServingSignal::RequestLatency,
    ServingSignal::QueueTime,
    ServingSignal::ClientLatency,
];

/// Something that became worse.
#[derive(Clone, Debug)]
pub(crate) struct Complaint<'a> {
    /// By how much and since when: of the whole service, or of the worst replica.
    pub(crate) change: Change<'a>,
    /// The replicas it is confined to; empty when it is the whole service.
    pub(crate) replicas: Vec<&'a Entity>,
}

/// The complaints about a service, the worst first, and what only looks like one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Complaints<'a> {
    pub(crate) worse: Vec<Complaint<'a>>,
    /// Rises that the days before show too.
    pub(crate) daily: Vec<Change<'a>>,
}

impl<'a> Complaints<'a> {
    pub(crate) fn of(tracks: &Tracks<'a>, window: TimeRange) -> Self {
        let mut found = Self::default();
        // The time to first token holds the queue: where it is as usual, nobody feels the wait.
        let is_felt =
            |s: &ServingSignal| *s != ServingSignal::QueueTime || !is_seen(tracks, ServingSignal::FirstToken, window);
        for signal in LATENCIES.into_iter().filter(is_felt) {
            found.look(tracks, signal, window);
        }
        found.worse.sort_by(|a, b| b.change.factor().total_cmp(&a.change.factor()));
        if found.worse.is_empty() {
            // In a stall nothing finishes and no latency is recorded; what waits is.
            found.look(tracks, ServingSignal::Waiting, window);
            found.worse.retain(|c| stalls(tracks, &c.change, window));
        }
        found
    }

    fn look(&mut self, tracks: &Tracks<'a>, signal: ServingSignal, window: TimeRange) {
        let parts = tracks.parts(signal);
        let of = |part: &crate::serving::track::Track<'a>, least: f64| {
            let past = tracks.past_part(signal, part.entity);
            level(part, past, tracks.close(signal), Direction::Rise, least, window)
        };
        let mut changed: Vec<Change<'a>> = parts.iter().filter_map(|p| of(p, MIN_OF_ONE).changed()).collect();
        changed.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
        // Of those that are there when it is so: a replica that went away leaves its load to the others.
        let alive = changed.first().map_or(0, |worst| parts.iter().filter(|p| p.is_alive(worst.range)).count());
        let few = alive >= 2 && changed.len() * 2 <= alive;
        if few {
            let replicas = changed.iter().map(|c| c.entity).collect();
            if let Some(change) = changed.into_iter().next() {
                self.worse.push(Complaint { change, replicas });
            }
            return;
        }
        let Some(whole) = tracks.whole(signal) else { return };
        let past = tracks.past_whole(signal);
        match level(whole, past, tracks.close(signal), Direction::Rise, MIN_LATENCY, window) {
            Level::Changed(change) => self.worse.push(Complaint { change, replicas: Vec::new() }),
            Level::AsOnOtherDays(change) => self.daily.push(change),
            Level::Usual => {}
        }
    }
}

/// Whether a signal of the service has samples in the window.
fn is_seen(tracks: &Tracks<'_>, signal: ServingSignal, window: TimeRange) -> bool {
    tracks.whole(signal).is_some_and(|t| t.count(window) > 0)
}

/// Whether a queue is a complaint by itself: fewer requests get through than usual, or no latency is collected that would show the
/// wait. A queue with latencies and a rate as ever is how a batch fills.
fn stalls(tracks: &Tracks<'_>, queue: &Change<'_>, window: TimeRange) -> bool {
    if !LATENCIES.into_iter().any(|s| is_seen(tracks, s, window)) {
        return true;
    }
    let inside = queue.range.intersect(&window).unwrap_or(window);
    let recorded = |s: ServingSignal| tracks.whole(s).map_or(0.0, |t| t.covered(inside));
    if LATENCIES.into_iter().map(recorded).fold(0.0, f64::max) < SILENT {
        return true;
    }
    let served = tracks.whole(ServingSignal::Served);
    served.is_some_and(|served| {
        let past = tracks.past_whole(ServingSignal::Served);
        level(served, past, &[], Direction::Fall, MIN_LATENCY, window).changed().is_some()
    })
}

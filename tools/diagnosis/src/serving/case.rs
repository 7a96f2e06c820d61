//! The case as the checks see it: series by signal, the complaint, and whose series the causes are looked for in.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jiff::Timestamp;
use sightline_analysis::Direction;
use sightline_model::{Component, DraftClaim, Entity, TimeRange};

use crate::case::list;
use crate::cause::Finding;
use crate::sentence::Sentence;
use crate::serving::change::{Change, Level, level};
use crate::serving::complaint::{Complaint, Complaints};
use crate::serving::observation::{Grain, ServingObservations, Span};
use crate::serving::signal::ServingSignal;
use crate::serving::track::Track;

/// The smallest relative change of load, batch or cache that counts: as for latencies.
pub(crate) const MIN_CHANGE: f64 = 0.25;

/// Sources are up to 40 s apart in time, nothing is ordered inside a minute, and a queue takes minutes to build up.
const COINCIDENCE_MS: i64 = 300_000;

/// Every series that was observed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracks<'a> {
    all: BTreeMap<(ServingSignal, Grain, Span), Vec<Track<'a>>>,
}

impl<'a> Tracks<'a> {
    fn new(observations: &ServingObservations<'a>) -> Self {
        let mut all: BTreeMap<(ServingSignal, Grain, Span), Vec<Track<'a>>> = BTreeMap::new();
        for one in &observations.observed {
            let tracks = Track::all(one.signal, one.evidence);
            if tracks.is_empty() {
                continue;
            }
            let place = all.entry((one.signal, one.grain, one.span)).or_default();
            // Of several metrics that carry a signal the first one with samples is used; closer looks add up.
            if place.is_empty() || one.span == Span::Close {
                place.extend(tracks);
            }
        }
        Self { all }
    }

    fn get(&self, signal: ServingSignal, grain: Grain, span: Span) -> &[Track<'a>] {
        self.all.get(&(signal, grain, span)).map_or(&[], Vec::as_slice)
    }

    /// The service's own series.
    pub(crate) fn whole(&self, signal: ServingSignal) -> Option<&Track<'a>> {
        self.get(signal, Grain::Service, Span::Near).first()
    }

    /// The replicas' series.
    pub(crate) fn parts(&self, signal: ServingSignal) -> &[Track<'a>] {
        self.get(signal, Grain::Replicas, Span::Near)
    }

    pub(crate) fn part(&self, signal: ServingSignal, entity: &Entity) -> Option<&Track<'a>> {
        self.parts(signal).iter().find(|t| t.entity == entity)
    }

    pub(crate) fn past_whole(&self, signal: ServingSignal) -> Option<&Track<'a>> {
        self.get(signal, Grain::Service, Span::Past).first()
    }

    pub(crate) fn past_part(&self, signal: ServingSignal, entity: &Entity) -> Option<&Track<'a>> {
        self.get(signal, Grain::Replicas, Span::Past).iter().find(|t| t.entity == entity)
    }

    pub(crate) fn close(&self, signal: ServingSignal) -> &[Track<'a>] {
        // A service's series has no entity and a replica's has one, so that both can stand together.
        let own = self.get(signal, Grain::Service, Span::Close);
        if own.is_empty() { self.get(signal, Grain::Replicas, Span::Close) } else { own }
    }

    /// The best coverage of the window by any series of the service, 0 to 1.
    pub(crate) fn covered(&self, window: TimeRange) -> f64 {
        let near = self.all.iter().filter(|((_, grain, span), _)| *grain == Grain::Service && *span == Span::Near);
        near.flat_map(|(_, tracks)| tracks).map(|t| t.covered(window)).fold(0.0, f64::max)
    }
}

/// What a check asked of a signal: which way, and by how much at least.
type Asked = (ServingSignal, Direction, f64);

/// The case.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) observations: &'a ServingObservations<'a>,
    pub(crate) window: TimeRange,
    pub(crate) tracks: Tracks<'a>,
    pub(crate) complaints: Complaints<'a>,
    /// Levels that were asked for: several checks ask for the same.
    asked: RefCell<Vec<(Asked, Level<'a>)>>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(observations: &'a ServingObservations<'a>) -> Self {
        let tracks = Tracks::new(observations);
        let window = observations.window;
        let complaints = Complaints::of(&tracks, window);
        Self { observations, window, tracks, complaints, asked: RefCell::default() }
    }

    /// The worst complaint.
    pub(crate) fn complaint(&self) -> Option<&Complaint<'a>> {
        self.complaints.worse.first()
    }

    /// The complaint about one signal.
    pub(crate) fn complaint_of(&self, signal: ServingSignal) -> Option<&Complaint<'a>> {
        self.complaints.worse.iter().find(|c| c.change.signal == signal)
    }

    /// The replica whose series the causes are looked for in; none for the whole service.
    pub(crate) fn subject(&self) -> Option<&'a Entity> {
        self.complaint()?.replicas.first().copied()
    }

    /// The subject's series of a signal.
    pub(crate) fn track(&self, signal: ServingSignal) -> Option<&Track<'a>> {
        match self.subject() {
            Some(entity) => self.tracks.part(signal, entity),
            None => self.tracks.whole(signal),
        }
    }

    /// Whether a signal left its usual level on the subject.
    pub(crate) fn level(&self, signal: ServingSignal, direction: Direction, least: f64) -> Level<'a> {
        let key = (signal, direction, least);
        if let Some((_, known)) = self.asked.borrow().iter().find(|(asked, _)| *asked == key) {
            return known.clone();
        }
        let found = self.judged(signal, direction, least);
        self.asked.borrow_mut().push((key, found.clone()));
        found
    }

    fn judged(&self, signal: ServingSignal, direction: Direction, least: f64) -> Level<'a> {
        let Some(near) = self.track(signal) else { return Level::Usual };
        let past = match self.subject() {
            Some(entity) => self.tracks.past_part(signal, entity),
            None => self.tracks.past_whole(signal),
        };
        self.meanwhile(level(near, past, self.tracks.close(signal), direction, least, self.window))
    }

    /// A change counts for the complaint only if it holds while the service is slow. What a degraded service no longer reaches, its
    /// rate say, was higher before, and that is no rise.
    fn meanwhile(&self, level: Level<'a>) -> Level<'a> {
        let (Level::Changed(change) | Level::AsOnOtherDays(change)) = &level else { return level };
        let (focus, inside) = (self.focus(), change.range.intersect(&self.window));
        let shared = inside.and_then(|inside| inside.intersect(&focus)).map_or(0, |both| both.millis());
        let shorter = inside.map_or(0, |inside| inside.millis().min(focus.millis()));
        if 3 * shared >= shorter { level } else { Level::Usual }
    }

    /// The rise of a signal of the whole service, whoever the subject is.
    pub(crate) fn rise_of_service(&self, signal: ServingSignal, least: f64) -> Option<Change<'a>> {
        let near = self.tracks.whole(signal)?;
        let past = self.tracks.past_whole(signal);
        let found = level(near, past, self.tracks.close(signal), Direction::Rise, least, self.window);
        self.meanwhile(found).changed()
    }

    /// The series that show which replicas there are.
    fn presence(&self) -> &[Track<'a>] {
        let shown = [ServingSignal::Running, ServingSignal::GenerationTokens, ServingSignal::FirstToken];
        shown.into_iter().map(|s| self.tracks.parts(s)).find(|parts| !parts.is_empty()).unwrap_or_default()
    }

    /// Whether the replica at this place still has samples late in the stretch that is looked at.
    pub(crate) fn is_alive(&self, entity: &Entity) -> bool {
        let same = |t: &&Track<'a>| entity.iter().all(|(key, value)| t.entity.get(key) == Some(value));
        self.presence().iter().filter(same).any(|t| t.is_alive(self.focus()))
    }

    /// The replicas that went away before or when the service became slower, if fewer are left.
    pub(crate) fn gone(&self) -> Vec<&Track<'a>> {
        let focus = self.focus();
        let before = TimeRange::new(self.observations_from(), focus.from());
        let was = |t: &Track<'a>| before.is_some_and(|range| t.is_alive(range));
        let all = self.presence();
        let gone: Vec<&Track<'a>> = all.iter().filter(|t| was(t) && !t.is_alive(focus)).collect();
        let new = all.iter().filter(|t| !was(t) && t.is_alive(focus)).count();
        if gone.len() > new { gone } else { Vec::new() }
    }

    /// The first sample of any replica.
    fn observations_from(&self) -> Timestamp {
        let first = self.presence().iter().filter_map(|t| t.points.first()).map(|p| p.time).min();
        first.unwrap_or(self.window.from())
    }

    /// The rise of a signal on the subject that is none of every day.
    pub(crate) fn rise(&self, signal: ServingSignal, least: f64) -> Option<Change<'a>> {
        self.level(signal, Direction::Rise, least).changed()
    }

    /// The fall of a signal on the subject that is none of every day.
    pub(crate) fn fall(&self, signal: ServingSignal, least: f64) -> Option<Change<'a>> {
        self.level(signal, Direction::Fall, least).changed()
    }

    /// The stretch in which to look: that of the worst complaint within the window, else the window.
    pub(crate) fn focus(&self) -> TimeRange {
        self.complaint().and_then(|c| c.change.range.intersect(&self.window)).unwrap_or(self.window)
    }

    /// A signal's median on the subject in the stretch that is looked at.
    pub(crate) fn typical(&self, signal: ServingSignal) -> Option<f64> {
        self.track(signal)?.median(self.focus())
    }

    /// Whether the requests that wait can hold this share of what first tokens take longer: by Little's law a request waits for as many seconds
    /// as there wait requests for one served a second. Taken to be so where one of the three is not known.
    pub(crate) fn queue_holds(&self, share: f64) -> bool {
        let signals = (self.typical(ServingSignal::Waiting), self.typical(ServingSignal::Served));
        let (Some(late), (Some(waiting), Some(served))) = (self.complaint_of(ServingSignal::FirstToken), signals)
        else {
            return true;
        };
        // A level is the mean over replicas, a rate their sum.
        let replicas =
            if self.subject().is_some() { 1 } else { self.tracks.parts(ServingSignal::Waiting).len().max(1) };
        served <= 0.0 || waiting * replicas as f64 / served >= share * (late.change.after - late.change.before)
    }

    /// The culprits: the replicas that the complaint is confined to, else the service.
    pub(crate) fn components(&self) -> Vec<Component> {
        match self.complaint().map(|c| c.replicas.as_slice()) {
            Some(replicas) if !replicas.is_empty() => replicas.iter().map(|r| self.replica(r)).collect(),
            Some(_) | None => vec![self.observations.service.clone()],
        }
    }

    /// What names a replica.
    pub(crate) fn replica(&self, entity: &Entity) -> Component {
        let mut component = self.observations.service.clone();
        component.extend(entity.iter().map(|(key, value)| (key.clone(), value.clone())));
        component
    }

    /// Whether something began together with what callers feel; `None` when one of both is not known. Each complaint counts: tokens come
    /// late at once where blocks run out, and the queue that makes first tokens late takes minutes to build up.
    pub(crate) fn coincides(&self, onset: Option<Timestamp>) -> Option<bool> {
        let onset = onset?;
        let together = |change: &Change<'_>| {
            let apart = (onset.as_millisecond() - change.onset.as_ref()?.at.as_millisecond()).abs();
            Some(apart <= COINCIDENCE_MS.max(3 * change.step_ms))
        };
        self.complaint()?.change.onset.as_ref()?;
        Some(self.complaints.worse.iter().filter_map(|c| together(&c.change)).any(|together| together))
    }

    /// "Not judged: …": the finding of a check whose signals are missing.
    pub(crate) fn no_data(&self, needs: &[ServingSignal]) -> Finding {
        let missing: Vec<&str> = needs.iter().filter(|s| self.track(**s).is_none()).map(|s| s.words()).collect();
        let text = format!("Not judged: there are no samples of {} for this service in this window.", list(&missing));
        Finding::NoData(self.resting(Sentence::new(&text)))
    }

    /// "Ruled out: …", resting on the signals that say so.
    pub(crate) fn ruled_out(&self, why: &str, by: &[ServingSignal]) -> Finding {
        let mut sentence = Sentence::new(&format!("Ruled out: {why}."));
        let mut cites = false;
        for track in by.iter().filter_map(|s| self.track(*s)) {
            sentence = sentence.cite(&track.evidence.id);
            cites = true;
        }
        Finding::RuledOut(if cites { sentence.claim() } else { self.resting(sentence) })
    }

    /// A sentence that cites what the service was judged by first, so that it rests on something.
    pub(crate) fn resting(&self, sentence: Sentence) -> DraftClaim {
        let complaint = self.complaint().map(|c| &c.change.evidence.id);
        let any = crate::serving::complaint::LATENCIES.into_iter().find_map(|s| self.tracks.whole(s));
        match complaint.or(any.map(|t| &t.evidence.id)) {
            Some(id) => sentence.cite(id).claim(),
            None => sentence.claim(),
        }
    }
}

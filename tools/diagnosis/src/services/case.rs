//! The case as the checks see it: every change, the symptom of the service that was asked about, the suspects.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sightline_model::{Component, Evidence, TimeRange};

use crate::cause::{Finding, Strength, Support};
use crate::sentence::Sentence;
use crate::services::graph::Graph;
use crate::services::observed::ServiceObservations;
use crate::services::role::Role;
use crate::services::shift::Shift;
use crate::services::suspects::{Field, Suspect, Symptom};
use crate::view::seconds_of;

/// Sources may be a minute apart, steps longer; what began within five minutes began together.
const COINCIDENCE: SignedDuration = SignedDuration::from_mins(5);

/// The service that was asked about. Where none was named, users see what nobody else calls; of several such the one that is off the
/// most; and where it is not known who calls whom, of all services.
fn entry(observations: &ServiceObservations<'_>, graph: &Graph, shifts: &[Shift<'_>]) -> String {
    if !observations.service.is_empty() {
        return observations.service.clone();
    }
    let mut worst: BTreeMap<&str, f64> = BTreeMap::new();
    let seen = [Role::Availability, Role::Errors, Role::OwnErrors, Role::Latency];
    for shift in shifts.iter().filter(|s| seen.contains(&s.role) && !s.service().is_empty()) {
        let score = if shift.is_change() { shift.score } else { 0.0 };
        let there = worst.entry(shift.service()).or_insert(0.0);
        *there = there.max(score);
    }
    let is_front = |service: &str| {
        graph.callees(service).next().is_some() && !graph.callers(service).any(|caller| worst.contains_key(caller))
    };
    let front = |only: bool| worst.iter().filter(move |(service, _)| !only || is_front(service));
    let most = |only: bool| front(only).max_by(|a, b| a.1.total_cmp(b.1)).map(|(service, _)| (*service).to_owned());
    most(true).or_else(|| most(false)).unwrap_or_default()
}

/// The case.
pub(crate) struct ServiceCase<'a> {
    pub(crate) observations: &'a ServiceObservations<'a>,
    /// The service that was asked about, or the one that users see.
    pub(crate) entry: String,
    pub(crate) graph: Graph,
    pub(crate) shifts: Vec<Shift<'a>>,
    /// What the service that was asked about shows; none when it is as it always is.
    pub(crate) symptom: Option<(Symptom, Shift<'a>)>,
    /// Whether the symptom is seen behind the service only.
    pub(crate) faint: bool,
    /// Where it comes from, the likeliest first.
    pub(crate) suspects: Vec<Suspect<'a>>,
}

impl<'a> ServiceCase<'a> {
    pub(crate) fn new(observations: &'a ServiceObservations<'a>) -> Self {
        let graph = Graph::new(&observations.calls);
        let shifts: Vec<Shift<'a>> =
            observations.series.iter().flat_map(|series| Shift::all(series, observations.window)).collect();
        let entry = entry(observations, &graph, &shifts);
        let field = Field { observations, entry: &entry, shifts: &shifts, graph: &graph };
        let own = field.symptom();
        let faint = own.is_none();
        let symptom = own.or_else(|| field.faint());
        let suspects = symptom.as_ref().map(|(kind, shift)| field.suspects(*kind, shift)).unwrap_or_default();
        Self { observations, entry, graph, shifts, symptom, faint, suspects }
    }

    /// The stretch in which it happens.
    pub(crate) fn stretch(&self) -> TimeRange {
        self.symptom.as_ref().map_or(self.observations.window, |(_, shift)| shift.stretch)
    }

    /// The likeliest suspect.
    pub(crate) fn suspect(&self) -> Option<&Suspect<'a>> {
        self.suspects.first()
    }

    pub(crate) fn is_about(&self, symptom: Symptom) -> bool {
        self.symptom.as_ref().is_some_and(|(kind, _)| *kind == symptom)
    }

    /// Whether a change of some time per call is enough to be felt: a tenth of what the asked service's requests take longer, or,
    /// where they fail, a tenth of what they take. True where no unit of time is known.
    pub(crate) fn is_felt(&self, shift: &Shift<'_>) -> bool {
        const PART: f64 = 0.1;
        let whole = match &self.symptom {
            Some((Symptom::Latency, symptom)) => Some((symptom.level - symptom.usual.level, symptom.evidence.unit)),
            _ => self.series(&self.entry, Role::Latency).map(|latency| (latency.level, latency.evidence.unit)),
        };
        let part = seconds_of(shift.evidence.unit).map(|unit| (shift.level - shift.usual.level) * unit);
        let whole = whole.and_then(|(value, unit)| Some(value * seconds_of(unit)?));
        part.zip(whole).is_none_or(|(part, whole)| part >= PART * whole)
    }

    /// The changes of a role that belong to a service's stretch, the worst first.
    pub(crate) fn changes(&self, service: &str, role: Role) -> Vec<&Shift<'a>> {
        let stretch = self.stretch();
        let mut found: Vec<&Shift<'a>> = self
            .shifts
            .iter()
            .filter(|s| s.role == role && s.service() == service && s.is_change() && s.near(stretch))
            .collect();
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// The series of a role of a service, changed or not, the worst first.
    pub(crate) fn series(&self, service: &str, role: Role) -> Option<&Shift<'a>> {
        let of = self.shifts.iter().filter(|s| s.role == role && s.service() == service);
        of.max_by(|a, b| a.score.total_cmp(&b.score))
    }

    /// Whether a service gets another number of requests than it usually does; none where they are not counted.
    pub(crate) fn is_asked_otherwise(&self, service: &str) -> Option<bool> {
        self.series(service, Role::Requests).map(Shift::is_change)
    }

    /// Whether anything of this role is recorded, of any service.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.shifts.iter().any(|s| s.role == role)
    }

    /// Services that a cause of a resource may sit in: the suspect first, then what it calls; everything where nobody is known to
    /// call anybody.
    pub(crate) fn field(&self) -> Vec<&str> {
        let Some(suspect) = self.suspect() else { return vec![self.entry.as_str()] };
        let mut services = vec![suspect.service.as_str()];
        if self.graph.knows(&suspect.service) {
            services.extend(self.graph.callees(&suspect.service));
        } else {
            services.extend(self.suspects.iter().skip(1).map(|s| s.service.as_str()));
        }
        services
    }

    /// The change of some of these roles in the field that is the likeliest: the suspect's own before its callees', then the worst.
    pub(crate) fn worst(&self, roles: &[Role]) -> Option<&Shift<'a>> {
        self.field().into_iter().find_map(|service| {
            let of = roles.iter().filter_map(|role| self.changes(service, *role).first().copied());
            of.max_by(|a, b| a.score.total_cmp(&b.score))
        })
    }

    /// Packets that a service loses, where they grew by more than its traffic did: as many again for each request.
    pub(crate) fn lost_packets(&self, service: &str) -> Option<&Shift<'a>> {
        const AGAIN: f64 = 1.5;
        let ratio = |s: &Shift<'_>| if s.usual.level > 0.0 { s.level / s.usual.level } else { f64::INFINITY };
        let traffic = |of: &str| self.changes(of, Role::Requests).first().map_or(1.0, |s| ratio(s));
        let traffic = traffic(service).max(traffic(&self.entry)).max(1.0);
        let lost = self.changes(service, Role::NetworkErrors).into_iter();
        lost.filter(|s| s.level > s.usual.level).find(|s| ratio(s) >= AGAIN * traffic)
    }

    /// Whether something began when the symptom did.
    pub(crate) fn coincides(&self, onset: Option<Timestamp>) -> Option<bool> {
        let symptom = self.symptom.as_ref().and_then(|(_, shift)| shift.onset)?;
        let apart = onset?.duration_since(symptom).abs();
        let step = self.symptom.as_ref().map_or(0, |(_, shift)| shift.step_ms);
        Some(apart <= COINCIDENCE.max(SignedDuration::from_millis(2 * step)))
    }

    /// When it began at this service: the change itself, else the symptom.
    pub(crate) fn onset(&self, shift: &Shift<'a>) -> Option<Timestamp> {
        shift.onset.or_else(|| self.symptom.as_ref().and_then(|(_, s)| s.onset))
    }

    /// The component that names a service, with the replica that is off.
    pub(crate) fn component(&self, service: &str, pod: Option<&str>) -> Component {
        let known = self.suspects.iter().find(|s| s.service == service).and_then(|s| s.pod.as_deref());
        let mut component = Component::from([("service".to_owned(), service.to_owned())]);
        if let Some(pod) = pod.or(known) {
            component.insert("pod".to_owned(), pod.to_owned());
        }
        component
    }

    /// The pod of a change, where the service has others that do not show it.
    pub(crate) fn only_pod(&self, shift: &Shift<'a>) -> Option<&'a str> {
        let pod = shift.entity.get("pod")?;
        let alike = self.shifts.iter().filter(|s| s.role == shift.role && s.service() == shift.service());
        let mut others = alike.filter(|s| s.entity.get("pod").is_some_and(|p| p != pod)).peekable();
        (others.peek().is_some() && others.all(|s| !s.is_change())).then_some(pod.as_str())
    }

    /// A supported finding that rests on one change.
    pub(crate) fn supported(&self, strength: Strength, shift: &Shift<'a>, why: Sentence) -> Box<Support> {
        let onset = self.onset(shift);
        let claims = self.claims(shift);
        // Where it is known who takes the time, or nobody is known to call anybody, what others show is no more than a hint.
        let elsewhere = self.suspect().is_some_and(|suspect| {
            let told = suspect.shift.role == Role::OwnTime || !self.graph.knows(&suspect.service);
            told && !shift.service().is_empty() && shift.service() != suspect.service
        });
        let strength = if elsewhere || self.faint { strength.min(Strength::Hint) } else { strength };
        Box::new(Support {
            strength,
            coincides: self.coincides(onset),
            magnitude: shift.score.min(100.0),
            components: vec![self.component(shift.service(), self.only_pod(shift))],
            onset,
            why: why.claim(),
            claims,
            fault: true,
        })
    }

    /// What stands behind a cause: the symptom, the suspect's own change, the change the cause rests on.
    pub(crate) fn claims(&self, shift: &Shift<'a>) -> Vec<sightline_model::DraftClaim> {
        let mut shifts: Vec<&Shift<'a>> = Vec::new();
        shifts.extend(self.symptom.as_ref().map(|(_, s)| s));
        shifts.extend(self.suspect().map(|s| &s.shift));
        shifts.push(shift);
        let mut claims = Vec::new();
        for shift in shifts {
            let claim = shift.says().claim();
            if !claims.contains(&claim) {
                claims.push(claim);
            }
        }
        if let Some(at) = shift.onset {
            let sentence = Sentence::new("The change of {service} begins at {onset}.");
            if shift.entity.contains_key("service") {
                let sentence = sentence.named("service", shift.evidence, "service", shift.service()).instant(
                    "onset",
                    shift.evidence,
                    shift.entity,
                    at,
                );
                claims.push(sentence.claim());
            }
        }
        claims
    }

    /// "Not judged: … is not recorded": what a check needs and nobody collects.
    pub(crate) fn no_data(&self, what: &str) -> Finding {
        let subject = self.suspect().map_or(self.entry.as_str(), |s| s.service.as_str());
        let text = format!("Not judged: {what} of {{service}} is not recorded in this window.");
        let sentence = match self.evidence_of(subject) {
            Some(evidence) => Sentence::new(&text).named("service", evidence, "service", subject),
            None => Sentence::new(&text.replace("{service}", "the service")),
        };
        Finding::NoData(sentence.claim())
    }

    /// Ruled out by a series that shows no change.
    pub(crate) fn quiet(&self, shift: &Shift<'a>) -> Finding {
        Finding::RuledOut(shift.says_quiet().claim())
    }

    /// Ruled out because the service that was asked about is as it always is.
    pub(crate) fn nothing_happened(&self) -> Option<Finding> {
        if self.symptom.is_some() {
            return None;
        }
        let entry = &self.entry;
        let judged =
            [Role::Availability, Role::Errors, Role::Latency].iter().find_map(|role| self.series(entry, *role));
        Some(match judged {
            Some(shift) => self.quiet(shift),
            None => self.no_data("latency or errors"),
        })
    }

    /// Evidence in which the service stands.
    pub(crate) fn evidence_of(&self, service: &str) -> Option<&'a Evidence> {
        self.shifts.iter().find(|s| s.service() == service).map(|s| s.evidence)
    }
}

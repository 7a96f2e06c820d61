//! Which service adds the time, or the failures: excess of its own, times how often it is called.

use std::collections::{BTreeMap, BTreeSet};

use sightline_model::{TimeRange, Unit};

use crate::services::graph::Graph;
use crate::services::observed::ServiceObservations;
use crate::services::role::Role;
use crate::services::shift::Shift;

/// What the users of the service notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symptom {
    /// Requests fail.
    Errors,
    /// Requests are slow.
    Latency,
}

impl Symptom {
    fn roles(self) -> &'static [Role] {
        match self {
            Self::Errors => &[Role::Availability, Role::OwnErrors, Role::Errors],
            Self::Latency => &[Role::Latency],
        }
    }
}

/// A service that may be where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Suspect<'a> {
    pub(crate) service: String,
    /// The one replica that is off while the others are well.
    pub(crate) pod: Option<String>,
    /// What it adds by itself: seconds (or failed requests) per sampling interval where the number of requests is known.
    pub(crate) own: f64,
    /// The change that says so.
    pub(crate) shift: Shift<'a>,
}

/// The changes of the case, by service.
pub(crate) struct Field<'a, 'b> {
    pub(crate) observations: &'b ServiceObservations<'a>,
    pub(crate) entry: &'b str,
    pub(crate) shifts: &'b [Shift<'a>],
    pub(crate) graph: &'b Graph,
}

impl<'a> Field<'a, '_> {
    /// What the service that was asked about shows, the worst first; failures before slowness, since a request that fails fast is
    /// no quick one.
    pub(crate) fn symptom(&self) -> Option<(Symptom, Shift<'a>)> {
        [Symptom::Errors, Symptom::Latency].into_iter().find_map(|symptom| {
            let of_entry = self.of_service(self.entry, symptom.roles());
            let changed = of_entry.filter(|s| s.is_change());
            Some((symptom, changed.max_by(|a, b| a.score.total_cmp(&b.score))?.clone()))
        })
    }

    /// What shows behind the service although its own latency hardly moves: enough time to be a tenth of all that its requests take.
    /// A mean over all routes hides a slow one.
    pub(crate) fn faint(&self) -> Option<(Symptom, Shift<'a>)> {
        let entry = self.entry;
        let field = self.graph.behind(entry);
        let metric = self.common_metric(Symptom::Latency, &field, "")?;
        let of_metric = || self.shifts.iter().filter(|s| (s.role, s.family) == metric && field.contains(s.service()));
        let own = of_metric().find(|s| s.service() == entry)?;
        let behind = of_metric().filter(|s| s.service() != entry && s.is_change() && s.relative() >= 0.5);
        let weighed = behind.map(|s| (self.amount(s, s.stretch), s));
        let (amount, shift) = weighed.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let total = own.level * self.requests(entry, shift.stretch);
        (amount >= FAINT * total).then(|| (Symptom::Latency, shift.clone()))
    }

    fn of_service<'s>(&'s self, service: &'s str, roles: &'static [Role]) -> impl Iterator<Item = &'s Shift<'a>> {
        let here = move |s: &&Shift<'a>| s.service() == service && !s.entity.contains_key("pod");
        self.shifts.iter().filter(here).filter(move |s| roles.contains(&s.role))
    }

    /// Where it comes from, the likeliest first.
    pub(crate) fn suspects(&self, symptom: Symptom, shown: &Shift<'a>) -> Vec<Suspect<'a>> {
        let stretch = shown.stretch;
        let entry = self.entry;
        let known = self.graph.knows(entry);
        let all: BTreeSet<&str> = self.shifts.iter().map(Shift::service).filter(|s| !s.is_empty()).collect();
        let field: BTreeSet<&str> =
            if known { self.graph.behind(entry).intersection(&all).copied().collect() } else { all };
        let mut found = match symptom {
            Symptom::Latency => self.by_own_time(&field, stretch),
            Symptom::Errors => self.by_own_errors(&field, stretch),
        };
        if found.is_empty() {
            found = self.by_excess((symptom, shown.family), &field, stretch, known);
        }
        found.sort_by(|a, b| b.own.total_cmp(&a.own));
        for suspect in &mut found {
            suspect.pod = self.odd_pod(&suspect.service, stretch);
        }
        found
    }

    /// Traces say by themselves who takes the time, and how much of it.
    fn by_own_time(&self, field: &BTreeSet<&str>, stretch: TimeRange) -> Vec<Suspect<'a>> {
        self.by_trace(Role::OwnTime, field, stretch)
    }

    /// Traces say where failures begin: a span that fails although its children do not.
    fn by_own_errors(&self, field: &BTreeSet<&str>, stretch: TimeRange) -> Vec<Suspect<'a>> {
        self.by_trace(Role::OwnErrors, field, stretch)
    }

    fn by_trace(&self, role: Role, field: &BTreeSet<&str>, stretch: TimeRange) -> Vec<Suspect<'a>> {
        let changed = self.shifts.iter().filter(|s| s.role == role && s.is_change() && s.near(stretch));
        let here = changed.filter(|s| field.contains(s.service()) && !s.entity.contains_key("pod"));
        here.map(|shift| {
            let calls = samples_in(shift);
            let own = (shift.level - shift.usual.level) * calls;
            Suspect { service: shift.service().to_owned(), pod: None, own, shift: shift.clone() }
        })
        .collect()
    }

    /// What each service has too much of, less what its callees have too much of.
    fn by_excess(
        &self,
        (symptom, family): (Symptom, &str),
        field: &BTreeSet<&str>,
        stretch: TimeRange,
        known: bool,
    ) -> Vec<Suspect<'a>> {
        let Some(metric) = self.common_metric(symptom, field, family) else { return Vec::new() };
        let mut excess: BTreeMap<&str, (f64, &Shift<'a>)> = BTreeMap::new();
        let of_metric = self.shifts.iter().filter(|s| (s.role, s.family) == metric && !s.entity.contains_key("pod"));
        for shift in of_metric.filter(|s| field.contains(s.service()) && s.near(stretch)) {
            let amount = if shift.score >= QUIET { self.amount(shift, stretch) } else { 0.0 };
            excess.insert(shift.service(), (amount, shift));
        }
        let of = |service: &str| excess.get(service).map_or(0.0, |(amount, _)| *amount);
        let mut found = Vec::new();
        for (service, (amount, shift)) in &excess {
            let inherited: f64 = if known { self.graph.callees(service).map(of).sum() } else { 0.0 };
            let own = if known { amount - inherited } else { self.weight(service, stretch) };
            if shift.is_change() && own > 0.0 {
                found.push(Suspect { service: (*service).to_owned(), pod: None, own, shift: (*shift).clone() });
            }
        }
        if !known {
            if symptom == Symptom::Errors {
                self.add_silent(&mut found, field, stretch);
            }
            if !self.observations.service.is_empty() {
                self.leave_to_others(&mut found, stretch);
            }
        }
        found
    }

    /// A service that is down receives no request and counts no failure, its callers do; what it uses tells of it.
    fn add_silent(&self, found: &mut Vec<Suspect<'a>>, field: &BTreeSet<&str>, stretch: TimeRange) {
        let named: BTreeSet<String> = found.iter().map(|s| s.service.clone()).collect();
        for service in field.iter().filter(|service| !named.contains(**service)) {
            let used = self.shifts.iter().filter(|s| s.service() == *service && s.is_change() && s.began_in(stretch));
            let used = used.filter(|s| RESOURCES.iter().any(|roles| roles.contains(&s.role)));
            let Some(shift) = used.max_by(|a, b| a.score.total_cmp(&b.score)) else { continue };
            let own = self.weight(service, stretch);
            found.push(Suspect { service: (*service).to_owned(), pod: None, own, shift: shift.clone() });
        }
    }

    /// The service that was asked about is the one whose users wait: where it is not known who calls whom, its latency and its errors
    /// are what is to be explained, and what changed with it may explain them. A service that gets more requests than the asked one
    /// does not lie behind it, and explains nothing of it.
    fn leave_to_others(&self, found: &mut [Suspect<'a>], stretch: TimeRange) {
        const AS_MANY: f64 = 1.1;
        let asked = self.requests(self.entry, stretch);
        let behind = |s: &Suspect<'_>| s.service != self.entry && self.requests(&s.service, stretch) <= AS_MANY * asked;
        if found.iter().any(behind) {
            for suspect in found.iter_mut().filter(|s| s.service == self.entry) {
                suspect.own = self.weight_of(self.entry, stretch, &RESOURCES);
            }
        }
    }

    /// The metric that tells it for the most services, means before percentiles: only means add up along calls. Of
    /// several percentiles, that in which the symptom shows.
    fn common_metric(&self, symptom: Symptom, field: &BTreeSet<&str>, family: &str) -> Option<(Role, &'a str)> {
        let mut standings: BTreeMap<(Role, &'a str), (usize, usize)> = BTreeMap::new();
        for series in &self.observations.series {
            let Some(preference) = symptom.roles().iter().rev().position(|role| *role == series.role) else { continue };
            let services = series
                .recent
                .series
                .iter()
                .filter(|s| s.entity.get("service").is_some_and(|n| field.contains(n.as_str())));
            let number = services.filter(|s| !s.entity.contains_key("pod")).count();
            let name = series.recent.metric.as_deref().unwrap_or_default().to_ascii_lowercase();
            let aggregated = series.recent.aggregation.as_deref().unwrap_or_default();
            let is_mean = ["avg", "mean", "sum"].iter().any(|word| name.contains(word))
                || name.is_empty() && aggregated.starts_with("avg");
            let standing = standings.entry((series.role, series.family)).or_insert((0, 0));
            standing.0 = preference * 2 + usize::from(is_mean);
            standing.1 += number;
        }
        let known = standings.into_iter().filter(|(_, (_, number))| *number > 0);
        known.max_by_key(|((_, name), standing)| (*standing, *name == family)).map(|(metric, _)| metric)
    }

    /// Seconds, or failed requests, too many in a sampling interval.
    fn amount(&self, shift: &Shift<'a>, stretch: TimeRange) -> f64 {
        let difference = (shift.level - shift.usual.level).abs();
        let per_request = match (shift.role, shift.evidence.unit) {
            (Role::Availability, _) | (Role::Errors | Role::OwnErrors, Unit::Percent) => difference / 100.0,
            _ => difference,
        };
        let is_number = shift.role == Role::Errors && !matches!(shift.evidence.unit, Unit::Percent | Unit::Ratio);
        if is_number { per_request } else { per_request * self.requests(shift.service(), stretch) }
    }

    /// Requests of a service in a sampling interval of the stretch; one where they are not recorded.
    fn requests(&self, service: &str, stretch: TimeRange) -> f64 {
        // The metric that tells it of the most services; of each service, where each has a metric of its own.
        let counted = self.observations.series.iter().filter(|s| s.role == Role::Requests);
        let of = counted.filter_map(|series| {
            let own = series.recent.series.iter().find(|s| s.entity.get("service").is_some_and(|n| n == service))?;
            Some((series.recent.series.len(), own))
        });
        let of = of.max_by_key(|(services, _)| *services).map(|(_, own)| own);
        let points = of.into_iter().flat_map(|s| &s.points).filter(|p| stretch.contains(p.time));
        let (sum, count) = points.fold((0.0, 0_u32), |(sum, count), p| (sum + p.value, count + 1));
        if count == 0 { 1.0 } else { sum / f64::from(count) }
    }

    /// How much is off at a service, over all that is recorded of it: where it is not known who calls whom, nothing else tells callers
    /// from callees. A caller is off by less than what it waits for, and its resources not at all: those count twice. Each kind of
    /// series counts by the logarithm of its score, so that several kinds say more than one that is off the scale.
    fn weight(&self, service: &str, stretch: TimeRange) -> f64 {
        self.weight_of(service, stretch, &HANDED_ON) + 2.0 * self.weight_of(service, stretch, &RESOURCES)
    }

    fn weight_of(&self, service: &str, stretch: TimeRange, kinds: &[&[Role]]) -> f64 {
        let near = || self.shifts.iter().filter(|s| s.service() == service && s.is_change() && s.near(stretch));
        let worst = |roles: &[Role]| {
            let scores = near().filter(|s| roles.contains(&s.role)).map(|s| s.score);
            scores.reduce(f64::max).map_or(0.0, f64::ln_1p)
        };
        kinds.iter().map(|roles| worst(roles)).sum()
    }

    /// The pod that is off while the other pods of the service are well.
    fn odd_pod(&self, service: &str, stretch: TimeRange) -> Option<String> {
        let mut pods: BTreeMap<&str, f64> = BTreeMap::new();
        let roles = [
            Role::OwnTime,
            Role::OwnErrors,
            Role::Latency,
            Role::Availability,
            Role::Errors,
            Role::Cpu,
            Role::Memory,
            Role::CpuThrottle,
        ];
        for shift in self.shifts.iter().filter(|s| s.service() == service && roles.contains(&s.role)) {
            let Some(pod) = shift.entity.get("pod") else { continue };
            let is_off = shift.is_change() && shift.near(stretch);
            let worst = pods.entry(pod.as_str()).or_insert(0.0);
            *worst = worst.max(if is_off { shift.score } else { 0.0 });
        }
        let off: Vec<&str> = pods.iter().filter(|(_, score)| **score > 0.0).map(|(pod, _)| *pod).collect();
        match off.as_slice() {
            [one] if pods.len() > 1 => Some((*one).to_owned()),
            _ => None,
        }
    }
}

/// A score from which a callee's part is taken off its callers'.
const QUIET: f64 = 2.0;

/// The share of the asked service's time from which something behind it matters to it.
const FAINT: f64 = 0.1;

/// Kinds of series that say different things of a service, and that it may have from what it calls.
const HANDED_ON: [&[Role]; 4] = [
    &[Role::Latency, Role::OwnTime],
    &[Role::Availability, Role::Errors, Role::OwnErrors],
    // Connections pile up at whoever waits.
    &[Role::Network],
    &[Role::ErrorLines],
];

/// Kinds that are its own. Its traffic is its callers' doing.
const RESOURCES: [&[Role]; 5] = [
    &[Role::Cpu, Role::CpuThrottle],
    &[Role::Memory, Role::MajorFaults],
    &[Role::Disk],
    &[Role::NetworkErrors],
    &[Role::Restarts, Role::OomKills],
];

/// How many spans the stretch of a series rests on.
fn samples_in(shift: &Shift<'_>) -> f64 {
    let series = shift.evidence.series.iter().find(|s| s.entity == *shift.entity);
    let points = series.into_iter().flat_map(|s| &s.points).filter(|p| shift.stretch.contains(p.time));
    points.map(|p| p.count as f64).sum::<f64>().max(1.0)
}

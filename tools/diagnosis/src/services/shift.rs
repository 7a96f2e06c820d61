//! How far a series left its usual level within the window, and since when.
//!
//! A service's incident may be two samples long, and its past two days or two samples: so it is the worst stretch of some ten
//! minutes that is held against the past. What the past itself does now and then, and what it did at the same hour the day before,
//! is no change.

use jiff::{SignedDuration, Timestamp};
use sightline_analysis::{Sample, median, quantile, robust_scale, typical_step};
use sightline_model::{Entity, Evidence, Point, Series, Stat, TimeRange};

use crate::sentence::{Sentence, stat};
use crate::services::observed::ServiceSeries;
use crate::services::role::Role;
use crate::view::just_after;

/// The length of the stretch that is compared: alerting on services usually waits that long before it wakes anybody.
const STRETCH_MS: i64 = 600_000;

/// Points of the past from which its scatter is known; below, the window's own earlier samples stand in.
const ENOUGH_PAST: usize = 12;

/// A modified z-score from which a level is an outlier (Iglewicz and Hoaglin, 1993).
const OUTLIER: f64 = 3.5;

/// The step assumed for a series of one point, milliseconds.
const DEFAULT_STEP_MS: i64 = 60_000;

/// The usual level that a stretch is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) within: Option<TimeRange>,
    pub(crate) level: f64,
}

/// A series' worst stretch within the window.
#[derive(Clone, Debug)]
pub(crate) struct Shift<'a> {
    pub(crate) role: Role,
    pub(crate) family: &'a str,
    pub(crate) evidence: &'a Evidence,
    pub(crate) entity: &'a Entity,
    pub(crate) stretch: TimeRange,
    /// From when to when it lasted: the worst stretch lies somewhere within.
    pub(crate) extent: TimeRange,
    pub(crate) level: f64,
    pub(crate) usual: Usual<'a>,
    /// How far, in units of the usual scatter; positive towards what hurts.
    pub(crate) score: f64,
    /// The first point of the changed level; `None` where the series begins in it.
    pub(crate) onset: Option<Timestamp>,
    pub(crate) step_ms: i64,
}

impl<'a> Shift<'a> {
    /// The worst stretch of each series of a metric.
    pub(crate) fn all(series: &ServiceSeries<'a>, window: TimeRange) -> Vec<Self> {
        series.recent.series.iter().filter_map(|s| Self::of(series, s, window)).collect()
    }

    fn of(metric: &ServiceSeries<'a>, series: &'a Series, window: TimeRange) -> Option<Self> {
        let role = metric.role;
        let points: Vec<&Point> = series.points.iter().filter(|p| p.value.is_finite()).collect();
        let samples: Vec<Sample> = points.iter().map(|p| Sample { time: p.time, value: p.value }).collect();
        let step_ms = typical_step(&samples).unwrap_or(DEFAULT_STEP_MS).max(1);
        let inside: Vec<&Point> = points.iter().filter(|p| window.contains(p.time)).copied().collect();
        let most = (inside.len() / 2).max(1);
        let length = usize::try_from(STRETCH_MS / step_ms).unwrap_or(1).clamp(2.min(most), most);
        let sign = if role.falls() { -1.0 } else { 1.0 };
        let worst = inside.windows(length).max_by(|a, b| (sign * mean(a)).total_cmp(&(sign * mean(b))))?;
        let stretch = TimeRange::new(worst.first()?.time, just_after(worst.last()?.time))?;
        let level = mean(worst);
        let past = metric.past.and_then(|e| Some((e, e.series.iter().find(|s| s.entity == series.entity)?)));
        let (usual, scale) = usual(metric, past, &points, stretch, window)?;
        let scale = scale.max(role.floor(usual.level, metric.recent.unit));
        let score = if let Some(sampled) = Sampled::of(metric, worst, &points, &usual) {
            sampled.score()
        } else if role.counts(metric.recent.unit) {
            // Events of a stretch scatter as the square root of their number, or more where the past was unruly.
            let n = length as f64;
            let by_number = sign * (level - usual.level) * n / (usual.level.abs() * n).max(1.0).sqrt();
            if scale > 0.0 { by_number.min(sign * (level - usual.level) / scale) } else { by_number }
        } else if scale > 0.0 {
            sign * (level - usual.level) / scale
        } else {
            // From a level of nothing everything is new; how much of it matters is the role's to say.
            if level == usual.level { 0.0 } else { sign * (level - usual.level).signum() * 2.0 * OUTLIER }
        };
        let seasonal = past.is_some_and(|(_, p)| did_so_a_day_before(p, stretch, usual.level, level, sign));
        let score = if seasonal { 0.0 } else { score };
        let half = usual.level + (level - usual.level) / 2.0;
        let off = |p: &&&Point| sign * p.value >= sign * half;
        let before: Vec<&&Point> = points.iter().filter(|p| p.time <= stretch.from()).collect();
        let run = lasting(before.iter().rev().copied(), off);
        let ahead = lasting(points.iter().filter(|p| p.time >= stretch.to()), off);
        let onset = before.len().checked_sub(run).filter(|first| *first > 0 || past.is_some());
        let onset = onset.and_then(|first| before.get(first)).map(|p| p.time);
        // A stretch may begin with a quiet point when it is longer than the fault.
        let onset = onset.or_else(|| worst.iter().find(|p| sign * p.value >= sign * half).map(|p| p.time));
        let onset = onset.filter(|at| points.first().is_some_and(|p| p.time < *at));
        let begin =
            before.len().checked_sub(run).and_then(|first| before.get(first)).map_or(stretch.from(), |p| p.time);
        let end = points.iter().filter(|p| p.time >= stretch.to()).take(ahead).last();
        let end = end.map_or(stretch.to(), |p| just_after(p.time));
        let extent = TimeRange::new(begin, end).unwrap_or(stretch);
        Some(Self {
            role,
            family: metric.family,
            evidence: metric.recent,
            entity: &series.entity,
            stretch,
            extent,
            level,
            usual,
            score,
            onset,
            step_ms,
        })
    }

    /// Whether it is a change that anybody should hear of.
    pub(crate) fn is_change(&self) -> bool {
        self.score >= OUTLIER && self.role.matters(self.usual.level, self.level, self.evidence.unit)
    }

    /// The change as a share of the usual level; infinite from nothing.
    pub(crate) fn relative(&self) -> f64 {
        let change = (self.level - self.usual.level).abs();
        if self.usual.level == 0.0 {
            if change > 0.0 { f64::INFINITY } else { 0.0 }
        } else {
            change / self.usual.level.abs()
        }
    }

    pub(crate) fn service(&self) -> &'a str {
        self.entity.get("service").map_or("", String::as_str)
    }

    /// Whether both lie near each other in time: sources may be apart by some steps. What lasts for an hour has its worst minutes
    /// anywhere in it, so it is the whole of it that counts.
    pub(crate) fn near(&self, stretch: TimeRange) -> bool {
        let slack = SignedDuration::from_millis(STRETCH_MS.max(2 * self.step_ms));
        let earlier = stretch.from().checked_sub(slack).unwrap_or(stretch.from());
        let later = stretch.to().checked_add(slack).unwrap_or(stretch.to());
        self.extent.from() <= later && earlier <= self.extent.to()
    }

    /// Whether it began when something else was going on, or just before.
    pub(crate) fn began_in(&self, stretch: TimeRange) -> bool {
        let slack = SignedDuration::from_millis(STRETCH_MS.max(2 * self.step_ms));
        let earlier = stretch.from().checked_sub(slack).unwrap_or(stretch.from());
        self.onset.is_some_and(|onset| earlier <= onset && onset <= stretch.to())
    }

    /// A sentence in which `{before}`, `{level}`, `{change}`, `{service}`, `{pod}`, `{from}` and `{to}` may stand.
    pub(crate) fn sentence(&self, text: &str) -> Sentence {
        let before = stat(self.usual.evidence, self.entity, Stat::Median, self.usual.within);
        let level = stat(self.evidence, self.entity, Stat::Mean, Some(self.stretch));
        let unit = self.evidence.unit;
        let decimals = decimals(self.usual.level.abs().max(self.level.abs()));
        let mut sentence = Sentence::new(text)
            .number("before", before.clone(), decimals, unit)
            .number("level", level.clone(), decimals, unit)
            .cite(&self.evidence.id)
            .cite(&self.usual.evidence.id);
        if self.usual.level != 0.0 {
            sentence = sentence.percent("change", before, level);
        }
        for key in ["service", "pod", "node", "from", "to"] {
            if let Some(value) = self.entity.get(key) {
                sentence = sentence.named(key, self.evidence, key, value);
            }
        }
        sentence
    }

    /// "{what} of {who} rose from … to …", as it is.
    pub(crate) fn says(&self) -> Sentence {
        let who = match (self.entity.contains_key("from"), self.entity.contains_key("pod")) {
            (true, _) => "from {from} to {to}",
            (false, true) => "of {service} (pod {pod})",
            (false, false) => "of {service}",
        };
        let verb = if self.level > self.usual.level { "rose" } else { "fell" };
        let text = format!("The {} {who} {verb} from {{before}} to {{level}}.", self.role.words());
        let relation = if self.level > self.usual.level {
            sightline_model::Relation::Above
        } else {
            sightline_model::Relation::AtMost
        };
        self.sentence(&text).holds(
            stat(self.evidence, self.entity, Stat::Mean, Some(self.stretch)),
            relation,
            stat(self.usual.evidence, self.entity, Stat::Median, self.usual.within),
        )
    }

    /// "{what} of {who} stayed near …".
    pub(crate) fn says_quiet(&self) -> Sentence {
        let who = if self.entity.contains_key("from") { "from {from} to {to}" } else { "of {service}" };
        self.sentence(&format!(
            "The {} {who} shows no change beyond its usual scatter: {{level}} at worst, {{before}} usually.",
            self.role.words()
        ))
    }
}

/// How many points from the first one on belong to a change: one that falls back for a sample or two goes on, since a sample rests on
/// few requests.
fn lasting<'p>(points: impl Iterator<Item = &'p &'p Point>, off: impl Fn(&&&Point) -> bool) -> usize {
    const DIPS: usize = 2;
    let (mut reached, mut dips) = (0, 0);
    for (index, point) in points.enumerate() {
        if off(&point) {
            (reached, dips) = (index + 1, 0);
        } else {
            dips += 1;
            if dips > DIPS {
                break;
            }
        }
    }
    reached
}

/// A share that is known from a sample of spans: so many of so many. What a hundred spans show scatters by some points without any
/// change, and a share that was nought in a few hundred need not be nought.
struct Sampled {
    share: f64,
    number: f64,
    usual: f64,
    usual_number: f64,
}

impl Sampled {
    fn of(metric: &ServiceSeries<'_>, worst: &[&Point], points: &[&Point], usual: &Usual<'_>) -> Option<Self> {
        let is_sampled =
            metric.family == SAMPLED && matches!(metric.role, Role::OwnErrors | Role::Errors | Role::Unanswered);
        let within = usual.within.filter(|_| is_sampled)?;
        let count = |points: &[&Point]| points.iter().map(|p| p.count as f64).sum::<f64>();
        let before: Vec<&Point> = points.iter().filter(|p| within.contains(p.time)).copied().collect();
        let (number, usual_number) = (count(worst), count(&before));
        Some(Self { share: mean(worst) / 100.0, number, usual: mean(&before) / 100.0, usual_number })
    }

    /// How far the share lies above the highest that the usual spans allow (Wilson's upper bound, two deviations), in deviations of
    /// a sample of its size.
    fn score(&self) -> f64 {
        if self.number < 1.0 || self.usual_number < 1.0 {
            return 0.0;
        }
        const Z: f64 = 2.0;
        let (p, n) = (self.usual, self.usual_number);
        let spread = (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).max(0.0).sqrt();
        let bound = (p + Z * Z / (2.0 * n) + Z * spread) / (1.0 + Z * Z / n);
        (self.share - bound) / (bound * (1.0 - bound) / self.number).sqrt().max(f64::MIN_POSITIVE)
    }
}

/// The family of series that are computed from a sample of whole traces; the counts of their points are numbers of spans.
const SAMPLED: &str = "traces";

/// The level a stretch is held against, with its scatter.
fn usual<'a>(
    metric: &ServiceSeries<'a>,
    past: Option<(&'a Evidence, &'a Series)>,
    points: &[&Point],
    stretch: TimeRange,
    window: TimeRange,
) -> Option<(Usual<'a>, f64)> {
    if let Some((evidence, series)) = past
        && series.points.len() >= ENOUGH_PAST
    {
        let values: Vec<f64> = series.points.iter().map(|p| p.value).collect();
        let level = median(&values)?;
        // What it does in a fiftieth of the time it does now and then: a wide tail is scatter too.
        let tail = quantile(&values, if metric.role.falls() { 0.02 } else { 0.98 })?;
        let scale = robust_scale(&values)?.max((tail - level).abs() / 2.05);
        return Some((Usual { evidence, within: None, level }, scale));
    }
    let first = points.first()?.time;
    let last = points.last()?.time;
    // What lasts has its worst minutes anywhere in it: before these it was as high, so what comes before the window says more.
    let lead = TimeRange::new(first, window.from());
    let count = |within: &TimeRange| points.iter().filter(|p| within.contains(p.time)).count();
    let lead = lead.filter(|lead| count(lead) >= ENOUGH_PAST);
    let before = TimeRange::new(first, stretch.from());
    let after = TimeRange::new(stretch.to(), just_after(last));
    for within in [lead, before, after].into_iter().flatten() {
        let values: Vec<f64> = points.iter().filter(|p| within.contains(p.time)).map(|p| p.value).collect();
        if let (Some(level), Some(scale)) = (median(&values), robust_scale(&values)) {
            return Some((Usual { evidence: metric.recent, within: Some(within), level }, scale));
        }
    }
    None
}

/// Whether the series did at least seven tenths of it at the same time of some day before: a daily pattern, not a fault.
fn did_so_a_day_before(past: &Series, stretch: TimeRange, usual: f64, level: f64, sign: f64) -> bool {
    const DAY_MS: i64 = 86_400_000;
    const AROUND_MS: i64 = 900_000;
    (1..=2).any(|days| {
        let (from, to) = (stretch.from().as_millisecond(), stretch.to().as_millisecond());
        let shifted = (from - days * DAY_MS - AROUND_MS)..(to - days * DAY_MS + AROUND_MS);
        let values: Vec<f64> =
            past.points.iter().filter(|p| shifted.contains(&p.time.as_millisecond())).map(|p| p.value).collect();
        median(&values).is_some_and(|then| sign * (then - usual) >= 0.7 * sign * (level - usual) && level != usual)
    })
}

/// The mean by samples, as a claim's `mean` is recomputed.
fn mean(points: &[&Point]) -> f64 {
    let count: u64 = points.iter().map(|p| p.count).sum();
    points.iter().map(|p| p.value * p.count as f64).sum::<f64>() / (count.max(1)) as f64
}

/// Three significant digits.
pub(crate) fn decimals(size: f64) -> u8 {
    match size {
        s if s >= 100.0 || s == 0.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.1 => 3,
        s if s >= 0.01 => 4,
        _ => 5,
    }
}

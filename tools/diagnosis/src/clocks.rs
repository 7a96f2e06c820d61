//! GPUs whose clock is low, and why: the one place where thermal, power and unexplained slow clocks are told apart.
//!
//! In synchronous training the waiting peers lose power and tensor activity too, but not clock: a low clock under load
//! marks the culprit. Physics separates the reasons: a power-limited or clock-locked GPU runs cooler than its peers, so a
//! slow GPU that is hotter has a cooling fault.

use jiff::Timestamp;
use sightline_analysis::{Direction, Sample, median, quantile, ratio_to_peers, robust_scale};
use sightline_model::{Entity, TimeRange};

use crate::case::Views;
use crate::cause::{MIN_RELATIVE, OUTLIER_Z};
use crate::level::{Excursion, best_level, excursion, segments};
use crate::observation::{Observations, Placement};
use crate::pace::Onset;
use crate::signal::Signal;
use crate::view::{Member, View, shift};

/// Peers that agree more closely than this are taken to scatter this much, as a share of their median: healthy boards of
/// one model differ by a percent or two in clock under a common power limit.
const CLOCK_SCATTER: f64 = 0.015;

/// The same for temperatures: places in a chassis differ by some degrees.
const TEMPERATURE_SCATTER: f64 = 0.03;

/// A level must hold for this many points to be judged.
const MIN_POINTS: usize = 4;

/// Bits of DCGM field 112 (dcgm_fields.h).
pub(crate) mod bits {
    pub(crate) const GPU_IDLE: u64 = 0x1;
    pub(crate) const SW_POWER_CAP: u64 = 0x4;
    pub(crate) const HW_SLOWDOWN: u64 = 0x8;
    pub(crate) const SYNC_BOOST: u64 = 0x10;
    pub(crate) const SW_THERMAL: u64 = 0x20;
    pub(crate) const HW_THERMAL: u64 = 0x40;
    pub(crate) const HW_POWER_BRAKE: u64 = 0x80;
}

/// What a clock was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The job's other GPUs at the same time.
    Peers,
    /// The same GPU at another time.
    OwnPast,
}

/// Why a clock is low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Heat.
    Thermal,
    /// A power limit.
    Power,
    /// No load.
    Idle,
    /// Nothing that is collected says.
    Unexplained,
}

/// A GPU with a low clock.
#[derive(Clone, Debug)]
pub(crate) struct LowClock<'a> {
    pub(crate) placement: &'a Placement,
    pub(crate) entity: &'a Entity,
    pub(crate) basis: Basis,
    pub(crate) reason: Reason,
    /// Whether a counter, a reason bit or a limit says so, and not only the shape.
    pub(crate) proven: bool,
    pub(crate) range: TimeRange,
    /// A stretch of its own at its best level, where there is one.
    pub(crate) good: Option<TimeRange>,
    pub(crate) onset: Option<Onset<'a>>,
    /// How far it is below, as a share.
    pub(crate) depth: f64,
    pub(crate) step_ms: i64,
}

/// Every GPU whose clock was low in the window.
pub(crate) fn low_clocks<'a>(
    views: &Views<'a>,
    observations: &'a Observations<'a>,
    window: TimeRange,
) -> Vec<LowClock<'a>> {
    let Some(view) = views.coarse(Signal::SmClock) else { return Vec::new() };
    let by_peers = view.members.len() >= 3;
    let ratios = if by_peers { ratio_to_peers(&view.members, view.step_ms) } else { Vec::new() };
    let mut found = Vec::new();
    for (index, member) in view.members.iter().enumerate() {
        let (basis, low) = match ratios.get(index) {
            Some(ratio) => (Basis::Peers, below_peers(view, member, ratio, window)),
            None => (Basis::OwnPast, below_own_past(&member.samples, window)),
        };
        let Some(low) = low else { continue };
        let Some(range) = low.range() else { continue };
        if member.within(range).count() < MIN_POINTS {
            continue;
        }
        let Some(placement) = observations.job.placements.iter().find(|p| crate::view::names(member.entity, p)) else {
            continue;
        };
        let own = segments(&member.samples, MIN_RELATIVE);
        let best = best_level(&own, Direction::Rise);
        let (reason, proven) = explain(views, placement, range, basis);
        let good = own.iter().find(|s| Some(s.level) == best).and_then(|s| TimeRange::new(s.from, s.to));
        let before = good.and_then(|g| member.median(g)).or_else(|| view.peers(member.entity, range));
        let after = member.median(range);
        let onset = match (low.onset(), before, after) {
            (Some(at), Some(before), Some(after)) => Some(views.refine(view, member, at, before, after)),
            _ => None,
        };
        found.push(LowClock {
            placement,
            entity: member.entity,
            basis,
            reason,
            proven,
            range,
            good,
            onset,
            depth: low.depth,
            step_ms: view.step_ms,
        });
    }
    let followers: Vec<bool> = found.iter().map(|low| follows(views, low, &found)).collect();
    let mut follower = followers.into_iter();
    found.retain(|_| follower.next() != Some(true));
    found.sort_by(|a, b| b.depth.total_cmp(&a.depth));
    found
}

/// Whether a GPU is only held at the clock of another of its boost group, which has a reason of its own.
fn follows(views: &Views<'_>, low: &LowClock<'_>, all: &[LowClock<'_>]) -> bool {
    let member = views.coarse(Signal::ClockReasons).and_then(|view| view.of(low.placement));
    let boosted =
        member.and_then(|m| bit_share(m, bits::SYNC_BOOST, low.range)).is_some_and(|share| share >= BIT_SHARE);
    boosted
        && low.reason == Reason::Unexplained
        && all.iter().any(|other| {
            other.placement.node == low.placement.node && matches!(other.reason, Reason::Thermal | Reason::Power)
        })
}

fn below_peers(view: &View<'_>, member: &Member<'_>, ratio: &[Sample], window: TimeRange) -> Option<Excursion> {
    let found = segments(ratio, MIN_RELATIVE / 2.0);
    let low = excursion(&found, 1.0, Direction::Fall, MIN_RELATIVE, window)?;
    let range = low.range()?;
    let value = member.median(range)?;
    let others: Vec<f64> =
        view.members.iter().filter(|m| m.entity != member.entity).filter_map(|m| m.median(range)).collect();
    let peers = median(&others)?;
    let off = distance(&others, peers, value, Side::Low, CLOCK_SCATTER)?;
    (value < peers * (1.0 - MIN_RELATIVE / 2.0) && off >= OUTLIER_Z).then_some(low)
}

fn below_own_past(samples: &[Sample], window: TimeRange) -> Option<Excursion> {
    let found = segments(samples, MIN_RELATIVE);
    let best = best_level(&found, Direction::Rise)?;
    excursion(&found, best, Direction::Fall, MIN_RELATIVE, window)
}

/// On which side of its peers a value is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Below them.
    Low,
    /// Above them.
    High,
}

/// How far a value lies from its peers in units of their scatter. The scatter is taken from the side that the value is
/// not on, so that several culprits among few peers do not hide each other.
pub(crate) fn distance(others: &[f64], peers: f64, value: f64, side: Side, floor: f64) -> Option<f64> {
    let spread = match side {
        Side::Low => quantile(others, 0.75)? - peers,
        Side::High => peers - quantile(others, 0.25)?,
    };
    // A quartile lies 0.6745 standard deviations from the median.
    let scale = (spread / 0.6745).max(floor * peers.abs());
    let off = match side {
        Side::Low => peers - value,
        Side::High => value - peers,
    };
    (scale > 0.0).then(|| off / scale)
}

/// The share of a member's points in a window with any of these bits set; `None` without points.
pub(crate) fn bit_share(member: &Member<'_>, mask: u64, range: TimeRange) -> Option<f64> {
    let (mut set, mut all) = (0_u32, 0_u32);
    for point in member.within(range) {
        all += 1;
        set += u32::from((point.value as u64) & mask != 0);
    }
    (all > 0).then(|| f64::from(set) / f64::from(all))
}

/// The typical share of the other members with any of these bits set.
fn peer_bit_share(view: &View<'_>, placement: &Placement, mask: u64, range: TimeRange) -> f64 {
    let shares: Vec<f64> = view
        .members
        .iter()
        .filter(|m| !crate::view::names(m.entity, placement))
        .filter_map(|m| bit_share(m, mask, range))
        .collect();
    median(&shares).unwrap_or(0.0)
}

/// A bit is taken as the reason when it is set in this share of the points, and more often than at the peers. It is an
/// instantaneous flag, so a steady throttle does not show in every sample.
const BIT_SHARE: f64 = 0.2;

fn explain(views: &Views<'_>, placement: &Placement, range: TimeRange, basis: Basis) -> (Reason, bool) {
    let reasons = views.coarse(Signal::ClockReasons);
    let flagged = |mask: u64| {
        let Some(view) = reasons else { return false };
        let share = view.of(placement).and_then(|m| bit_share(m, mask, range)).unwrap_or(0.0);
        share >= BIT_SHARE && share > 2.0 * peer_bit_share(view, placement, mask, range)
    };
    if is_idle(views, placement, range) {
        return (Reason::Idle, true);
    }
    let hot = is_hot(views, placement, range, basis);
    if flagged(bits::SW_THERMAL | bits::HW_THERMAL) || grew(views, Signal::ThermalViolation, placement, range) {
        return (Reason::Thermal, true);
    }
    if below(views, Signal::PowerLimit, placement, range) || flagged(bits::HW_POWER_BRAKE) {
        return (Reason::Power, true);
    }
    if hot {
        return (Reason::Thermal, flagged(bits::HW_SLOWDOWN));
    }
    let draws_less = below(views, Signal::Power, placement, range) || basis == Basis::OwnPast;
    let capped = reasons
        .and_then(|view| view.of(placement))
        .and_then(|m| bit_share(m, bits::SW_POWER_CAP, range))
        .is_some_and(|share| share >= 0.5);
    if draws_less && (capped || grew(views, Signal::PowerViolation, placement, range)) {
        return (Reason::Power, true);
    }
    if flagged(bits::HW_SLOWDOWN) {
        return (Reason::Power, false);
    }
    let says_nothing = reasons.is_some_and(|view| view.of(placement).is_some());
    if !says_nothing && draws_less && !is_free_of_limits(views, placement, range) {
        let governed = regains_clock(views, placement, range)
            .unwrap_or_else(|| power_is_steadier_than_clock(views, placement, range));
        if governed {
            return (Reason::Power, false);
        }
    }
    (Reason::Unexplained, says_nothing)
}

/// A GPU without load lowers its clock by design.
fn is_idle(views: &Views<'_>, placement: &Placement, range: TimeRange) -> bool {
    let by_bit = views
        .coarse(Signal::ClockReasons)
        .and_then(|v| v.of(placement))
        .and_then(|m| bit_share(m, bits::GPU_IDLE, range))
        .is_some_and(|share| share > 0.5);
    let by_load = views
        .coarse(Signal::Utilization)
        .and_then(|v| v.of(placement))
        .and_then(|m| m.median(range))
        .is_some_and(|busy| busy < 5.0);
    by_bit || by_load
}

fn is_hot(views: &Views<'_>, placement: &Placement, range: TimeRange, basis: Basis) -> bool {
    [Signal::GpuTemperature, Signal::MemoryTemperature].into_iter().any(|signal| {
        let Some(view) = views.coarse(signal) else { return false };
        let Some(member) = view.of(placement) else { return false };
        let Some(value) = member.median(range) else { return false };
        let past: Vec<f64> = member.points.iter().filter(|p| p.time < range.from()).map(|p| p.value).collect();
        let warmer = median(&past).is_some_and(|past| value > past * (1.0 + TEMPERATURE_SCATTER));
        match basis {
            Basis::OwnPast => warmer,
            Basis::Peers => {
                let others: Vec<f64> =
                    view.members.iter().filter(|m| m.entity != member.entity).filter_map(|m| m.median(range)).collect();
                let Some(peers) = median(&others) else { return false };
                let off = distance(&others, peers, value, Side::High, TEMPERATURE_SCATTER).unwrap_or(0.0);
                // Two scatters suffice: without a cooling fault a slower GPU would be the cooler one. For the same
                // reason one scatter does when it became warmer as it became slower.
                off >= 2.0 || off >= 1.0 && warmer
            }
        }
    })
}

/// Whether a member is below its peers by more than the smallest change that counts.
fn below(views: &Views<'_>, signal: Signal, placement: &Placement, range: TimeRange) -> bool {
    let Some(view) = views.coarse(signal) else { return false };
    let Some(member) = view.of(placement) else { return false };
    match (member.median(range), view.peers(member.entity, range)) {
        (Some(value), Some(peers)) => value < peers * (1.0 - MIN_RELATIVE),
        _ => false,
    }
}

/// Whether a time counter grew by at least a tenth of the window, and ten times as much as at the peers.
fn grew(views: &Views<'_>, signal: Signal, placement: &Placement, range: TimeRange) -> bool {
    let Some(view) = views.coarse(signal).filter(|v| v.is_increase()) else { return false };
    let Some(member) = view.of(placement) else { return false };
    let Some(own) = member.sum(range) else { return false };
    let others: Vec<f64> =
        view.members.iter().filter(|m| m.entity != member.entity).filter_map(|m| m.sum(range)).collect();
    let peers = median(&others).unwrap_or(0.0);
    own >= 0.1 * range.seconds() * 1e9 && own >= 10.0 * peers
}

/// Whether what is collected speaks against a power limit: time under power limits does not grow, or the limit is known and
/// the GPU draws far less.
fn is_free_of_limits(views: &Views<'_>, placement: &Placement, range: TimeRange) -> bool {
    let value = |signal: Signal| views.coarse(signal)?.of(placement)?.median(range);
    let not_counted = views
        .coarse(Signal::PowerViolation)
        .filter(|view| view.is_increase())
        .and_then(|view| view.of(placement))
        .is_some_and(|m| m.sum(range) == Some(0.0));
    let far_below = match (value(Signal::Power), value(Signal::PowerLimit)) {
        (Some(power), Some(limit)) => power < limit * LIGHTER,
        _ => false,
    };
    not_counted || far_below
}

/// Load has lightened when power falls below this share of its level: several times its scatter under a steady load.
const LIGHTER: f64 = 0.8;

/// So often must the load lighten for the clock's answer to be judged.
const MIN_LIGHT: usize = 3;

/// Whether the clock comes back when the load lightens. A power limit gives it back as soon as there is power to spare; a
/// clock that is held down otherwise stays where it is. `None` when the load did not lighten, or nothing tells what a full
/// clock is.
fn regains_clock(views: &Views<'_>, placement: &Placement, range: TimeRange) -> Option<bool> {
    let (power_view, clock_view) = (views.coarse(Signal::Power)?, views.coarse(Signal::SmClock)?);
    let (power, clock) = (power_view.of(placement)?, clock_view.of(placement)?);
    let (usual, low) = (power.median(range)?, clock.median(range)?);
    let own_best = clock.points.iter().map(|p| p.value).reduce(f64::max);
    let full = clock_view.peers(clock.entity, range).or(own_best).filter(|full| *full > low)?;
    let step = power_view.step_ms.max(clock_view.step_ms);
    // At its ends the stretch may hold the change itself.
    let inner = TimeRange::new(shift(range.from(), 2 * step), shift(range.to(), -2 * step))?;
    let light: Vec<Timestamp> = power.within(inner).filter(|p| p.min < LIGHTER * usual).map(|p| p.time).collect();
    let back = |at: &&Timestamp| {
        let near = TimeRange::new(shift(**at, -step), shift(**at, step));
        near.and_then(|near| clock.max(near)).is_some_and(|most| most > (low + full) / 2.0)
    };
    (light.len() >= MIN_LIGHT).then(|| light.iter().filter(back).count() * 2 >= light.len())
}

/// A power limit holds power still while the clock moves to obey it; a locked clock stands still while power moves.
fn power_is_steadier_than_clock(views: &Views<'_>, placement: &Placement, range: TimeRange) -> bool {
    let variation = |signal: Signal| {
        let member = views.coarse(signal)?.of(placement)?;
        let values: Vec<f64> = member.within(range).map(|p| p.value).collect();
        let level = median(&values).filter(|m| *m != 0.0)?;
        Some(robust_scale(&values)? / level.abs())
    };
    match (variation(Signal::Power), variation(Signal::SmClock)) {
        (Some(power), Some(clock)) => power < clock,
        _ => false,
    }
}

//! The causes of a slow inference service, one file each. To add one: a file with a `CHECK`, an entry in `CHECKS`, an entry in
//! `data/causes/serving.toml`.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim};

use crate::cause::{Finding, Strength, Support};
use crate::serving::case::Case;
use crate::serving::change::Change;

mod batching_inefficiency;
mod clocks;
mod cold_start;
mod collective_hang;
mod gpu_saturation;
mod hardware;
mod kv_cache_pressure;
mod memory_leak;
mod prefix_cache_loss;
mod queue_saturation;
pub(crate) mod rate_limiting;
mod release;
mod tokenizer_bottleneck;
mod traffic_mix_shift;
mod traffic_surge;

/// One cause: its id and its check.
pub(crate) struct ServingCheck {
    pub(crate) id: &'static str,
    pub(crate) assess: fn(&Case<'_>) -> Finding,
}

/// Every check. The order decides nothing: supported causes are ranked by their standing.
pub(crate) const CHECKS: &[ServingCheck] = &[
    queue_saturation::CHECK,
    kv_cache_pressure::CHECK,
    prefix_cache_loss::CHECK,
    batching_inefficiency::CHECK,
    tokenizer_bottleneck::CHECK,
    gpu_saturation::CHECK,
    cold_start::CHECK,
    rate_limiting::CHECK,
    traffic_surge::CHECK,
    traffic_mix_shift::CHECK,
    release::SOFTWARE,
    release::CONFIG,
    clocks::THERMAL,
    clocks::POWER,
    memory_leak::CHECK,
    hardware::BUS,
    hardware::LINK,
    hardware::BOARD,
    collective_hang::CHECK,
];

/// What a check that holds says.
pub(crate) struct Found {
    pub(crate) strength: Strength,
    pub(crate) onset: Option<Timestamp>,
    pub(crate) magnitude: f64,
    pub(crate) components: Vec<Component>,
    pub(crate) why: DraftClaim,
    pub(crate) claims: Vec<DraftClaim>,
}

impl Found {
    /// A cause that is told by a change on the case's subject.
    pub(crate) fn by(case: &Case<'_>, change: &Change<'_>, strength: Strength) -> Self {
        Self {
            strength,
            onset: change.onset.as_ref().map(|o| o.at),
            magnitude: change.factor() - 1.0,
            components: case.components(),
            why: crate::serving::say::changed(change).claim(),
            claims: Vec::new(),
        }
    }

    /// The finding.
    pub(crate) fn finding(self, case: &Case<'_>) -> Finding {
        Finding::Supported(Box::new(Support {
            strength: self.strength,
            coincides: case.coincides(self.onset),
            magnitude: self.magnitude,
            components: self.components,
            onset: self.onset,
            why: self.why,
            claims: self.claims,
            fault: true,
        }))
    }
}

//! The causes, one file each. To add one: a file with an `assess`, a line in `CHECKS`, its id in `IDS`, its entry in
//! `data/causes/services.toml`.

use crate::cause::Finding;
use crate::services::case::ServiceCase;

mod cpu_contention;
mod dependency_failure;
mod error_spike;
mod events;
mod memory_pressure;
mod network_delay;
mod storage_bottleneck;
mod traffic_surge;

/// A check: the cause's id, and what is to be seen.
pub(crate) type ServiceCheck = (&'static str, fn(&ServiceCase<'_>) -> Finding);

/// Every check. The order decides nothing.
pub(crate) const CHECKS: &[ServiceCheck] = &[
    ("network_delay", network_delay::assess),
    ("cpu_contention", cpu_contention::assess),
    ("memory_pressure", memory_pressure::assess),
    ("storage_bottleneck", storage_bottleneck::assess),
    ("dependency_failure", dependency_failure::assess),
    ("error_spike", error_spike::assess),
    ("software_regression", events::software_regression),
    ("config_mismatch", events::config_mismatch),
    ("traffic_surge", traffic_surge::assess),
];

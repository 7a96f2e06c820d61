//! The causes, one file each. To add one: a file with a `CHECK`, an entry in `CHECKS`, an entry in the family's file in `data/causes/`.

use crate::cause::Check;

mod ambient_variation;
mod checkpoint_stall;
mod collective_hang;
mod compute_bound;
mod data_loader_bottleneck;
mod gpu_fell_off_bus;
mod hardware_degradation;
mod memory_bandwidth_bound;
mod memory_leak;
mod network_congestion;
mod network_link_fault;
mod node_failure;
mod noisy_neighbour;
mod nvlink_fault;
mod pcie_degradation;
mod power_capping;
mod preemption;
mod slow_worker;
mod storage_bottleneck;
pub(crate) mod telemetry_artifact;
pub(crate) mod telemetry_gap;
mod thermal_throttling;

/// Every check. The order decides nothing: supported causes are ranked by their standing.
pub(crate) const CHECKS: &[Check] = &[
    thermal_throttling::CHECK,
    power_capping::CHECK,
    slow_worker::CHECK,
    gpu_fell_off_bus::CHECK,
    node_failure::CHECK,
    hardware_degradation::CHECK,
    nvlink_fault::CHECK,
    network_link_fault::CHECK,
    network_congestion::CHECK,
    pcie_degradation::CHECK,
    data_loader_bottleneck::CHECK,
    storage_bottleneck::CHECK,
    checkpoint_stall::CHECK,
    memory_leak::CHECK,
    telemetry_gap::CHECK,
    compute_bound::CHECK,
    memory_bandwidth_bound::CHECK,
    ambient_variation::CHECK,
    collective_hang::CHECK,
    preemption::CHECK,
    noisy_neighbour::CHECK,
    telemetry_artifact::CHECK,
];

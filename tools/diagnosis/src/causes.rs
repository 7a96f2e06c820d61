//! The causes, one file each. To add one: a file with a `CHECK`, an entry in `CHECKS`, an entry in the family's file in `data/causes/`.

use crate::cause::Check;

mod ambient_variation;
mod checkpoint_stall;
mod collective_hang;
pub(crate) mod compute_bound;
mod config_mismatch;
mod cpu_preprocessing_bottleneck;
mod data_loader_bottleneck;
mod driver_regression;
mod gpu_fell_off_bus;
mod hardware_degradation;
mod host_to_device_bottleneck;
mod inefficient_kernels;
mod memory_bandwidth_bound;
mod memory_leak;
mod network_congestion;
mod network_link_fault;
mod node_failure;
mod noisy_neighbour;
mod nvlink_fault;
mod out_of_memory;
mod pcie_degradation;
mod pipeline_stage_imbalance;
mod power_capping;
mod preemption;
pub(crate) mod slow_worker;
mod software_regression;
mod storage_bottleneck;
pub(crate) mod telemetry_artifact;
pub(crate) mod telemetry_gap;
mod thermal_throttling;
mod workload_imbalance;

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
    cpu_preprocessing_bottleneck::CHECK,
    host_to_device_bottleneck::CHECK,
    checkpoint_stall::CHECK,
    memory_leak::CHECK,
    out_of_memory::CHECK,
    workload_imbalance::CHECK,
    pipeline_stage_imbalance::CHECK,
    inefficient_kernels::CHECK,
    driver_regression::CHECK,
    software_regression::CHECK,
    config_mismatch::CHECK,
    telemetry_gap::CHECK,
    compute_bound::CHECK,
    memory_bandwidth_bound::CHECK,
    ambient_variation::CHECK,
    collective_hang::CHECK,
    preemption::CHECK,
    noisy_neighbour::CHECK,
    telemetry_artifact::CHECK,
];

//! Why any service is slow or fails: its own time, its callees, its resources, its errors.
//!
//! Callers inherit the latency and the errors of what they call, so the service that users see failing is seldom the cause. What is
//! ranked is the time (or the number of failed requests) that a service adds by itself: what it has too much of, less what its
//! callees have too much of, both times how often they are called.

mod case;
mod causes;
mod graph;
mod observed;
mod role;
mod shift;
mod suspects;
mod verdict;

#[cfg(test)]
mod shop_tests;
#[cfg(test)]
mod shop_traps_tests;
#[cfg(test)]
mod shop_world;

pub use observed::{Call, ServiceObservations, ServiceSeries};
pub use role::Role;
pub use verdict::diagnose_service;

/// The ids of the causes that are checked here.
#[cfg(test)]
pub(crate) const IDS: &[&str] = &[
    "network_delay",
    "cpu_contention",
    "memory_pressure",
    "storage_bottleneck",
    "dependency_failure",
    "error_spike",
    "software_regression",
    "config_mismatch",
    "traffic_surge",
];

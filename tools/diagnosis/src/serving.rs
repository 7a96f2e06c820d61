//! Why an inference service is slow: time to first token, inter-token latency, queue, prefill, decode, KV cache, traffic.
//!
//! A service is judged against its own past: the hours before, and the same hours of the days before, so that a daily peak is no
//! fault. Where one replica of several is slow, the causes are looked for in that replica's own series.
//!
//! Trap of all of this: queue, prefill, decode and whole-request times are recorded when a request finishes. In a stall they
//! look fine while requests pile up, so the number that waits is a complaint of its own.

mod case;
mod causes;
mod change;
mod complaint;
mod diagnose;
mod observation;
mod say;
mod signal;
mod track;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

pub use diagnose::{diagnose_serving, serving_focus};
pub use observation::{Grain, ServingObservations, ServingObserved, Span};
pub use signal::{How, ServingSignal};

/// The ids of the causes that are checked here.
#[cfg(test)]
pub(crate) const IDS: &[&str] = &[
    "queue_saturation",
    "kv_cache_pressure",
    "prefix_cache_loss",
    "batching_inefficiency",
    "tokenizer_bottleneck",
    "gpu_saturation",
    "cold_start",
    "rate_limiting",
    "traffic_surge",
    "traffic_mix_shift",
    "software_regression",
    "config_mismatch",
    "thermal_throttling",
    "power_capping",
    "memory_leak",
    "gpu_fell_off_bus",
    "nvlink_fault",
    "hardware_degradation",
    "collective_hang",
];

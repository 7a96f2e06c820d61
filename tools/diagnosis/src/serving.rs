//! Why an inference service is slow: time to first token, inter-token latency, queue, prefill, decode, KV cache.

/// The ids of the causes that are checked here.
#[cfg(test)]
pub(crate) const IDS: &[&str] = &[];

//! The measurements of an inference service, by the catalogue's names.

/// How a signal is read from what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Mean of a histogram's observations in each step.
    Mean,
    /// A gauge's mean in each step.
    Level,
    /// A counter's growth per second.
    Rate,
    /// Computed from other signals.
    Computed,
}

macro_rules! signals {
    ($($(#[$doc:meta])* $name:ident = $how:ident, $words:literal, $floor:literal, [$($metric:literal),*];)*) => {
        /// A measurement that some cause of a slow inference service looks at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ServingSignal {
            $($(#[$doc])* $name,)*
        }

        impl ServingSignal {
            /// Every signal.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// How it is read.
            pub fn how(self) -> How {
                match self { $(Self::$name => How::$how,)* }
            }

            /// What it is called in a sentence; without digits.
            pub fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// The catalogue's metrics that carry it; the first one with samples is used.
            pub fn metrics(self) -> &'static [&'static str] {
                match self { $(Self::$name => &[$($metric),*],)* }
            }

            /// An amount, in the signal's own unit, that is added to both sides of a relative change: below it a change is of
            /// no consequence, however large a multiple of nearly nothing it is.
            pub(crate) fn floor(self) -> f64 {
                match self { $(Self::$name => $floor,)* }
            }
        }
    };
}

signals! {
    /// Time to first token.
    FirstToken = Mean, "time to first token", 0.02, ["time_to_first_token"];
    /// Time between two tokens.
    InterToken = Mean, "inter-token latency", 0.002, ["inter_token_latency", "request_mean_time_per_output_token", "tgi_mean_time_per_token"];
    /// Time of a whole request.
    RequestLatency = Mean, "request latency", 0.05, ["request_latency"];
    /// What callers see.
    ClientLatency = Mean, "latency seen by clients", 0.05, ["genai_client_operation_duration", "http_request_duration"];
    /// Time before a request is scheduled.
    QueueTime = Mean, "queue time", 0.02, ["request_queue_time"];
    /// Time in prefill.
    PrefillTime = Mean, "prefill time", 0.02, ["request_prefill_time"];
    /// Time in decode.
    DecodeTime = Mean, "decode time", 0.05, ["request_decode_time"];
    /// Time to check and tokenize a request, where an engine counts it.
    TokenizeTime = Mean, "time to validate and tokenize", 0.01, ["tgi_validation_duration"];
    /// Tokens of a prompt.
    PromptLength = Mean, "prompt length", 10.0, ["request_prompt_length"];
    /// Tokens of an answer.
    AnswerLength = Mean, "answer length", 10.0, ["request_generation_length"];
    /// Tokens of one step of the engine.
    StepTokens = Mean, "tokens per engine step", 4.0, ["iteration_tokens"];
    /// Requests in the batch.
    Running = Level, "number of running requests", 1.0, ["requests_running", "tgi_batch_size"];
    /// Requests that wait.
    Waiting = Level, "number of waiting requests", 2.0, ["requests_waiting"];
    /// Share of the KV cache in use.
    KvUsage = Level, "KV cache usage", 0.05, ["kv_cache_usage"];
    /// Prompt tokens per second.
    PromptTokens = Rate, "rate of prompt tokens", 10.0, ["prompt_tokens"];
    /// Generated tokens per second.
    GenerationTokens = Rate, "rate of generated tokens", 5.0, ["generation_tokens"];
    /// Tokens looked up in the prefix cache per second.
    PrefixQueries = Rate, "rate of prefix cache lookups", 10.0, ["prefix_cache_queries"];
    /// Tokens found there per second.
    PrefixHits = Rate, "rate of prefix cache hits", 10.0, ["prefix_cache_hits", "cached_prompt_tokens"];
    /// The hit rate as an engine reports it.
    HitRateGauge = Level, "prefix cache hit rate", 0.02, ["cache_hit_rate", "vllm_prefix_cache_hit_rate"];
    /// Hits by lookups.
    HitRate = Computed, "prefix cache hit rate", 0.02, [];
    /// Requests thrown out of the batch per second.
    Preemptions = Rate, "rate of preemptions", 0.02, ["preemptions", "sglang_retracted_requests"];
    /// Requests that came in per second, where an engine counts them.
    Arrivals = Rate, "rate of arriving requests", 0.05, ["sglang_requests", "tgi_requests"];
    /// Requests per second that got a first token, or finished.
    Served = Computed, "request rate", 0.05, [];
    /// Requests finished per second, however they ended.
    Finished = Rate, "rate of finished requests", 0.05, ["requests_finished"];
    /// Requests given up per second.
    Aborted = Rate, "rate of aborted requests", 0.02, ["requests_aborted", "requests_finished"];
    /// Requests refused per second for coming too fast.
    Rejected = Rate, "rate of refused requests", 0.02, ["http_requests", "tgi_request_failures"];
    /// Time to first token less queue and prefill.
    FrontEnd = Computed, "time before the queue and outside prefill", 0.02, [];
    /// Share of cycles in which an SM had work.
    SmActive = Level, "SM activity", 0.05, ["sm_active"];
    /// Share of time with a kernel running.
    GpuUtilization = Level, "GPU utilisation", 5.0, ["gpu_utilization"];
    /// SM clock.
    SmClock = Level, "SM clock", 1.0, ["sm_clock"];
    /// Die temperature.
    GpuTemperature = Level, "GPU temperature", 1.0, ["gpu_temperature"];
    /// Memory that a replica holds on its host.
    Memory = Level, "host memory", 1e8, ["container_memory_working_set", "process_resident_memory"];
}

impl ServingSignal {
    /// Whether it is of the GPUs that serve and not of the engine.
    pub fn is_of_gpus(self) -> bool {
        matches!(self, Self::SmActive | Self::GpuUtilization | Self::SmClock | Self::GpuTemperature)
    }

    /// Whether it carries the name of a pod and not always that of the service.
    pub fn is_of_pods(self) -> bool {
        self.is_of_gpus() || self == Self::Memory
    }

    /// Digits behind the point in which it is printed.
    pub(crate) fn decimals(self) -> u8 {
        match self {
            Self::FirstToken
            | Self::InterToken
            | Self::QueueTime
            | Self::PrefillTime
            | Self::TokenizeTime
            | Self::FrontEnd => 3,
            Self::RequestLatency
            | Self::ClientLatency
            | Self::DecodeTime
            | Self::KvUsage
            | Self::HitRateGauge
            | Self::HitRate
            | Self::Preemptions
            | Self::Arrivals
            | Self::Served
            | Self::Finished
            | Self::Aborted
            | Self::Rejected
            | Self::SmActive => 2,
            Self::Running | Self::Waiting => 1,
            Self::PromptLength
            | Self::AnswerLength
            | Self::StepTokens
            | Self::PromptTokens
            | Self::GenerationTokens
            | Self::PrefixQueries
            | Self::PrefixHits
            | Self::GpuUtilization
            | Self::SmClock
            | Self::GpuTemperature
            | Self::Memory => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_no_digits_so_that_they_can_stand_in_a_claim() {
        assert!(ServingSignal::ALL.iter().all(|s| !s.words().contains(|c: char| c.is_ascii_digit())));
    }

    #[test]
    fn what_is_computed_is_not_read_and_what_is_read_has_a_metric() {
        assert!(ServingSignal::ALL.iter().all(|s| s.metrics().is_empty() == (s.how() == How::Computed)));
    }
}

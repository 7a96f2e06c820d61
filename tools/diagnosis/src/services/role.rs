//! What a series of a service tells, by the words of its name: sites name such metrics as they please.

use sightline_model::Unit;

/// What a series is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// How long requests take.
    Latency,
    /// Share of requests that succeed, percent.
    Availability,
    /// Requests that fail: a share or a number.
    Errors,
    /// Requests received.
    Requests,
    /// CPU used.
    Cpu,
    /// Time or periods in which a container was held back by its CPU limit.
    CpuThrottle,
    /// Memory used.
    Memory,
    /// The limit that memory may reach.
    MemoryLimit,
    /// Pages that had to be read back.
    MajorFaults,
    /// Processes killed for want of memory.
    OomKills,
    /// Containers started again.
    Restarts,
    /// What disks do.
    Disk,
    /// Packets lost, dropped or sent again.
    NetworkErrors,
    /// Connections and bytes on the network.
    Network,
    /// Log lines of severity error.
    ErrorLines,
    /// Time of a span that none of its children accounts for.
    OwnTime,
    /// Spans that fail although none of their children does.
    OwnErrors,
    /// Calls that fail at the caller and of which the callee shows nothing.
    Unanswered,
    /// Time between a caller and a callee: what the call takes beyond the callee's own span.
    Gap,
    /// Time in a caller before the callee's span begins, where the call has no span of its own: the way there, or the caller's work.
    Wait,
}

/// Words of metric names, the telling ones first; a name takes the first role of which a word stands in it.
const WORDS: [(Role, &[&str]); 14] = [
    (Role::OomKills, &["oom"]),
    (Role::Restarts, &["restart"]),
    (Role::MajorFaults, &["majfault", "pgmajfault", "major_fault", "majorfault", "page_fault", "pagefault"]),
    (Role::CpuThrottle, &["throttl"]),
    (Role::MemoryLimit, &["memory_limit", "mem_limit", "memory_max", "resource_limits_memory"]),
    (
        Role::NetworkErrors,
        &[
            "retrans",
            "packet_loss",
            "packets_dropped",
            "dropped",
            "drop_total",
            "receive_drop",
            "transmit_drop",
            "loss",
        ],
    ),
    (Role::Availability, &["availability", "success_rate", "success_ratio"]),
    (
        Role::Disk,
        &[
            "disk",
            "diskio",
            "blkio",
            "fs_reads",
            "fs_writes",
            "fs_io",
            "iops",
            "io_time",
            "iowait",
            "io_wait",
            "storage",
        ],
    ),
    (Role::Latency, &["latency", "duration", "response_time", "responsetime", "elapsed"]),
    (Role::Errors, &["error", "fail", "exception"]),
    (Role::Cpu, &["cpu"]),
    (Role::Memory, &["memory", "mem", "rss", "working_set", "heap"]),
    (Role::Network, &["network", "socket", "tcp", "net_", "connections"]),
    (Role::Requests, &["requests", "request_count", "workload", "rps", "qps", "calls", "throughput"]),
];

/// Names that are no measurement of a service's work: what was granted, what was configured, the parts of histograms.
const NO_MEASUREMENT: [&str; 8] =
    ["_bucket", "_limit", "limits", "quota", "requested", "resource_requests", "_info", "graph_edge"];

impl Role {
    /// The role of a metric by its stored or canonical name; `None` for what no cause looks at.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |word: &&str| match *word {
            // Too short to be looked for inside other words.
            "mem" | "rss" | "oom" | "rps" | "qps" | "loss" | "iops" | "tcp" => {
                name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == *word)
            }
            word => name.contains(word),
        };
        // `load` alone is the load on a service; inside other names it is a node's run queue, or what is loaded.
        if name == "load" {
            return Some(Self::Requests);
        }
        let role = WORDS.iter().find(|(_, words)| words.iter().any(has)).map(|(role, _)| *role)?;
        let excluded = role != Self::MemoryLimit && NO_MEASUREMENT.iter().any(|word| name.contains(word));
        (!excluded).then_some(role)
    }

    /// What it is called in a sentence; without digits.
    pub fn words(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Availability => "availability",
            Self::Errors => "errors",
            Self::Requests => "requests",
            Self::Cpu => "CPU use",
            Self::CpuThrottle => "CPU throttling",
            Self::Memory => "memory in use",
            Self::MemoryLimit => "memory limit",
            Self::MajorFaults => "page faults",
            Self::OomKills => "out-of-memory kills",
            Self::Restarts => "restarts",
            Self::Disk => "disk activity",
            Self::NetworkErrors => "lost or repeated packets",
            Self::Network => "network traffic",
            Self::ErrorLines => "error lines",
            Self::OwnTime => "own time per span",
            Self::OwnErrors => "spans that fail by themselves",
            Self::Unanswered => "calls that nobody answers",
            Self::Gap => "time between caller and callee",
            Self::Wait => "time before the call",
        }
    }

    /// Whether it is of a call from one service to another.
    pub(crate) fn is_of_a_call(self) -> bool {
        matches!(self, Self::Gap | Self::Wait)
    }

    /// Whether a fall is what hurts; a rise otherwise.
    pub(crate) fn falls(self) -> bool {
        self == Self::Availability
    }

    /// Whether its values are numbers of events, which scatter as the square root of their number.
    pub(crate) fn counts(self, unit: Unit) -> bool {
        match self {
            Self::ErrorLines | Self::OomKills | Self::Restarts => true,
            Self::Errors => !matches!(unit, Unit::Percent | Unit::Ratio),
            Self::NetworkErrors => unit == Unit::Count,
            _ => false,
        }
    }

    /// The least scale around a level that counts as scatter: a tenth of the level (services differ that much from one ten minutes
    /// to the next without any fault), and half a point of a percentage.
    pub(crate) fn floor(self, level: f64, unit: Unit) -> f64 {
        match self {
            Self::Availability => 0.5 * point(level),
            Self::OwnErrors | Self::Unanswered => 0.5_f64.max(0.1 * level.abs()),
            Self::Errors if unit == Unit::Percent => 0.5_f64.max(0.1 * level.abs()),
            Self::Errors if unit == Unit::Ratio => 0.005_f64.max(0.1 * level.abs()),
            _ => 0.1 * level.abs(),
        }
    }

    /// Whether a change from one level to another is large enough to matter to anybody.
    pub(crate) fn matters(self, before: f64, after: f64, unit: Unit) -> bool {
        let difference = (after - before).abs();
        let relative = if before.abs() > 0.0 { difference / before.abs() } else { f64::INFINITY };
        match self {
            // A point of availability is one request in a hundred.
            Self::Availability => difference >= point(before),
            Self::OwnErrors | Self::Unanswered => difference >= 1.0,
            Self::Errors if unit == Unit::Percent => difference >= 1.0,
            Self::Errors if unit == Unit::Ratio => difference >= 0.01,
            Self::Latency | Self::Memory | Self::OwnTime | Self::Gap | Self::Wait => relative >= 0.2,
            Self::Cpu | Self::Requests | Self::Disk | Self::Network => relative >= 0.3,
            Self::Errors
            | Self::CpuThrottle
            | Self::MajorFaults
            | Self::NetworkErrors
            | Self::ErrorLines
            | Self::OomKills
            | Self::Restarts => relative >= 0.5,
            Self::MemoryLimit => false,
        }
    }
}

/// A point of a share that runs to a hundred, or to one.
fn point(level: f64) -> f64 {
    if level.abs() <= 1.0 { 0.01 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_sites_are_told_by_their_words() {
        for (name, role) in [
            ("service_latency_p95_seconds", Some(Role::Latency)),
            ("latency-50", Some(Role::Latency)),
            ("http.server.request.duration", Some(Role::Latency)),
            ("service_availability_percent", Some(Role::Availability)),
            ("error", Some(Role::Errors)),
            ("http_requests_failed_total", Some(Role::Errors)),
            ("workload", Some(Role::Requests)),
            ("load", Some(Role::Requests)),
            ("node_load1", None),
            ("istio_requests", Some(Role::Requests)),
            ("istio_request_duration", Some(Role::Latency)),
            ("service_requests", Some(Role::Requests)),
            ("cpu", Some(Role::Cpu)),
            ("container_cpu_usage_seconds_total", Some(Role::Cpu)),
            ("container_cpu_cfs_throttled_periods_total", Some(Role::CpuThrottle)),
            ("mem", Some(Role::Memory)),
            ("container_memory_working_set_bytes", Some(Role::Memory)),
            ("container_spec_memory_limit_bytes", Some(Role::MemoryLimit)),
            ("container_oom_events_total", Some(Role::OomKills)),
            ("kube_pod_container_status_restarts_total", Some(Role::Restarts)),
            ("diskio", Some(Role::Disk)),
            ("socket", Some(Role::Network)),
            ("container_network_receive_packets_dropped_total", Some(Role::NetworkErrors)),
            ("node_netstat_Tcp_RetransSegs", Some(Role::NetworkErrors)),
            ("service_graph_edge", None),
            ("kube_pod_container_resource_requests", None),
            ("http_request_duration_seconds_bucket", None),
            ("container_spec_cpu_quota", None),
            ("room_temperature", None),
        ] {
            assert_eq!(Role::of(name), role, "{name}");
        }
    }
}

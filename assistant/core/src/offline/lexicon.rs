//! Words that tell question classes apart, as data.

mod names;
mod unwell;

pub(super) use names::{JOB, LEADS, LIKE_NAMES, PERCENTILES, PLACES, PLAIN, SERVICE};
pub(super) use unwell::{MOVED, SEEKS, SLOW, UNWELL};

/// Asks to be shown something.
pub(super) const SHOWS: &[&str] =
    &["show", "list", "plot", "graph", "give", "get", "compare", "top", "display", "print", "rank"];

/// Ranking, largest first.
pub(super) const MOST: &[&str] = &[
    "top",
    "highest",
    "most",
    "largest",
    "biggest",
    "greatest",
    "hottest",
    "warmest",
    "busiest",
    "maximum of all",
    "max of all",
    "worst",
];

/// Ranking, smallest first.
pub(super) const LEAST: &[&str] = &["lowest", "least", "smallest", "coolest", "coldest", "bottom", "idlest"];

/// Ranking words that name their metric, by canonical id.
pub(super) const RANKS_BY: &[(&str, &str)] = &[
    ("hottest", "gpu_temperature"),
    ("warmest", "gpu_temperature"),
    ("coolest", "gpu_temperature"),
    ("coldest", "gpu_temperature"),
    ("busiest", "gpu_utilization"),
    ("idlest", "gpu_utilization"),
];

/// Two windows side by side.
pub(super) const COMPARE: &[&str] =
    &["compare", "compared", "comparison", "versus", "vs", "than", "differ", "difference", "changed", "change"];

/// The window before the one that was named.
pub(super) const BEFORE: &[&str] = &[
    "the day before",
    "the hour before",
    "the week before",
    "the same time before",
    "before that",
    "previous",
    "the previous day",
    "the previous hour",
    "the one before",
    "prior",
];

/// Asks for a number over a window.
pub(super) const VALUE: &[&str] = &[
    "what was",
    "what is",
    "what were",
    "what are",
    "show",
    "show me",
    "plot",
    "graph",
    "how hot",
    "how much",
    "how high",
    "how low",
    "how fast",
    "how many",
    "how full",
    "how busy",
    "value",
    "values",
    "give me",
    "tell me",
    "get",
];

/// Which aggregation a word asks for.
pub(super) const AGGREGATION: &[(&str, &str)] = &[
    ("average", "avg"),
    ("avg", "avg"),
    ("mean", "avg"),
    ("maximum", "max"),
    ("max", "max"),
    ("peak", "max"),
    ("minimum", "min"),
    ("min", "min"),
    ("median", "p50"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
    ("total", "sum"),
    ("sum", "sum"),
    ("latest", "last"),
    ("last value", "last"),
];

/// Asks for log lines.
pub(super) const LOGS: &[&str] =
    &["log", "logs", "log lines", "dmesg", "kernel messages", "kernel log", "xid", "xids", "sxid"];

/// Who cannot log in asks for no log.
pub(super) const LOGS_IN: &[&str] = &["log in", "log into", "log on", "logged in"];

/// Asks for Xid lines among them.
pub(super) const XID: &[&str] = &["xid", "xids", "sxid"];

/// Asks for events.
pub(super) const EVENTS: &[&str] =
    &["event", "events", "alert", "alerts", "deploys", "deployments", "driver upgrades", "maintenance"];

/// Kinds of events by the word that asks for them.
pub(super) const EVENT_KINDS: &[(&str, &str)] = &[
    ("alert", "alert"),
    ("alerts", "alert"),
    ("deploys", "deploy"),
    ("deployments", "deploy"),
    ("driver upgrades", "driver_upgrade"),
    ("maintenance", "maintenance"),
];

/// Asks for a change of the world. Sightline only reads.
pub(super) const WRITES: &[&str] = &[
    "restart", "reboot", "kill", "delete", "drain", "cordon", "reset", "cancel", "stop", "scale", "deploy", "rollback",
    "drop", "insert", "update", "patch", "upgrade", "evict", "requeue", "resubmit",
];

/// A question that begins so wants a yes or a no.
pub(super) const YES_OR_NO: &[&str] = &["was", "is", "were", "are", "did", "does", "do", "has", "have", "had"];

/// Words that ask rather than command; a write word behind one of these is asked about, not commanded.
pub(super) const ASKS: &[&str] = &[
    "why", "what", "when", "which", "who", "how", "did", "does", "do", "was", "is", "were", "are", "show", "list",
    "has", "have",
];

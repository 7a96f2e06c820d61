//! What was fetched about one inference service.

use sightline_model::{Component, Evidence, TimeRange};

use crate::serving::signal::ServingSignal;

/// Whose series a piece of evidence holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// One series of the whole service.
    Service,
    /// One series a replica.
    Replicas,
}

/// Which stretch of time it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// The window and some hours before it.
    Near,
    /// The days before, in long steps.
    Past,
    /// A few minutes around a change, in short steps.
    Close,
}

/// Evidence for one signal.
#[derive(Clone, Copy, Debug)]
pub struct ServingObserved<'a> {
    /// Which signal.
    pub signal: ServingSignal,
    /// Whose.
    pub grain: Grain,
    /// When.
    pub span: Span,
    /// Its series.
    pub evidence: &'a Evidence,
}

/// Everything that is known about the case.
#[derive(Clone, Debug)]
pub struct ServingObservations<'a> {
    /// What names the service: `service=…`, or `model=…`.
    pub service: Component,
    /// The window that was asked about.
    pub window: TimeRange,
    /// The series.
    pub observed: Vec<ServingObserved<'a>>,
    /// Replicas that started: rows with the replica as entity and the first sample after the start as time.
    pub starts: Option<&'a Evidence>,
    /// Events: rows with fields `kind` and `body`; none when they were not read.
    pub events: Option<&'a Evidence>,
    /// Kernel lines that name an Xid on the replicas' nodes: rows with the node as entity and field `body`; none when logs were not read.
    pub logs: Option<&'a Evidence>,
    /// Versions: rows with field `version` and the first sample of each as time.
    pub versions: Option<&'a Evidence>,
}

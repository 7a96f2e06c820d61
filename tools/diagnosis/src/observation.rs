//! What was fetched about one job: the case file before anyone has looked at it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_model::{Component, Evidence, TimeRange};

use crate::signal::Signal;

/// One GPU of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The node.
    pub node: String,
    /// The GPU's index on it.
    pub gpu: String,
    /// The rank that ran there, if known.
    pub rank: Option<String>,
}

impl Placement {
    /// The component that names it.
    pub fn component(&self) -> Component {
        Component::from([("node".to_owned(), self.node.clone()), ("gpu".to_owned(), self.gpu.clone())])
    }
}

/// The job in question.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its GPUs.
    pub placements: Vec<Placement>,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; none while it runs.
    pub end: Option<Timestamp>,
    /// Its state as the scheduler has it.
    pub state: String,
    /// The evidence that says so.
    pub evidence: Option<sightline_model::EvidenceId>,
}

/// One attempt of the job: from when to when it held GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, as the scheduler counts.
    pub number: String,
    /// When it got its first GPU.
    pub from: Timestamp,
    /// When it gave its last one back; none while it holds one.
    pub to: Option<Timestamp>,
    /// The nodes it ran on.
    pub nodes: BTreeSet<String>,
    /// The row of `Observations::held` with its first GPU.
    pub row: usize,
}

/// Another run that the asker may see: one that held GPUs of the job's nodes, or ran in its cluster at the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// Its job.
    pub job: String,
    /// What it is called; runs of the same program have the same name.
    pub name: String,
    /// When it began.
    pub from: Timestamp,
    /// When it ended; none while it runs.
    pub to: Option<Timestamp>,
    /// How it ended, as the scheduler has it.
    pub state: String,
    /// The nodes it is known to have run on; of a run that shared no node with the job none may be known.
    pub nodes: BTreeSet<String>,
    /// Its row in `Observations::beside`.
    pub row: usize,
}

/// A run of the same name that ended before the job began.
#[derive(Clone, Copy, Debug)]
pub struct EarlierRun<'a> {
    /// Its row in `Observations::history`.
    pub row: usize,
    /// How many GPUs it held.
    pub gpus: usize,
    /// Its step time: one series.
    pub pace: &'a Evidence,
}

/// Evidence for one signal.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// Which signal.
    pub signal: Signal,
    /// Its series; none in it means that the window holds no samples.
    pub evidence: &'a Evidence,
}

/// Everything that is known about the case.
#[derive(Clone, Debug)]
pub struct Observations<'a> {
    /// The job.
    pub job: Job,
    /// The window that was asked about, cut to the job's own span.
    pub window: TimeRange,
    /// The series. A metric may come twice: over the whole range first, then with finer steps around a moment.
    pub observed: Vec<Observed<'a>>,
    /// Kernel log lines (rows with field `body` and entity `node`); none when they were not read.
    pub logs: Option<&'a Evidence>,
    /// Events (rows with fields `kind` and `body`); none when they were not read.
    pub events: Option<&'a Evidence>,
    /// Which GPUs the job held when (rows with entities `node` and `gpu`); none when that was not read.
    pub held: Option<&'a Evidence>,
    /// Its attempts, in order.
    pub attempts: Vec<Attempt>,
    /// Other runs in the job's cluster at the time (rows with entity `job`); none when they were not read.
    pub beside: Option<&'a Evidence>,
    /// Other runs, none of them of this job.
    pub others: Vec<OtherRun>,
    /// The drivers of the nodes (rows with field `driver_version` and entity `node`, dated by when they were first seen); none when
    /// they were not read.
    pub drivers: Option<&'a Evidence>,
    /// Runs of the same name (rows dated by their start, with fields `job_id`, `end` and the labels of the run), the job itself
    /// among them; none when they were not read.
    pub history: Option<&'a Evidence>,
    /// Those of them whose nodes are known, the job among them; their rows are those of `history`.
    pub siblings: Vec<OtherRun>,
    /// Those of them that came before the job.
    pub earlier: Vec<EarlierRun<'a>>,
    /// Which GPU sits at which bus address of a node: (node, domain, bus, device) to GPU index.
    pub bus_ids: BTreeMap<(String, u32, u8, u8), String>,
}

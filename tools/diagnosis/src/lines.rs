//! Log lines in which a library, a switch or a scheduler says what happened to the job, by kind.
//!
//! The texts are those that NCCL, PyTorch's process group, the kernel and Slurm print; only their fixed parts are looked for, since the
//! rest is free.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim, Entity, Evidence};

use crate::observation::Observations;
use crate::sentence::Sentence;
use crate::view::shift;

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A port of the node's network card had an error (NCCL: async event; the kernel: link down).
    PortError,
    /// A transfer to or from another node failed (NCCL: completion with error): said by who waits, not by who is at fault.
    TransferFailed,
    /// A collective did not end in time (PyTorch's watchdog): said by those that entered it.
    Watchdog,
    /// The scheduler took the job's place.
    Preempted,
    /// The scheduler gave a node up.
    NodeDown,
}

/// The fixed parts of the lines of each kind. The first that is found decides.
const MARKS: [(&str, LineKind); 13] = [
    ("Got async event : port error", LineKind::PortError),
    ("Port: 1 Link DOWN", LineKind::PortError),
    ("Link DOWN", LineKind::PortError),
    ("Got completion with error", LineKind::TransferFailed),
    ("Got completion from peer", LineKind::TransferFailed),
    ("Watchdog caught collective operation timeout", LineKind::Watchdog),
    ("Some NCCL operations have failed or timed out", LineKind::Watchdog),
    ("DUE TO PREEMPTION", LineKind::Preempted),
    ("reempted", LineKind::Preempted),
    ("not responding, setting DOWN", LineKind::NodeDown),
    ("DUE TO NODE FAILURE", LineKind::NodeDown),
    ("status is now: NodeNotReady", LineKind::NodeDown),
    ("marked down", LineKind::NodeDown),
];

/// One line that concerns the job.
#[derive(Clone, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) at: Timestamp,
    pub(crate) kind: LineKind,
    pub(crate) node: Option<&'a str>,
    /// The rank that says it.
    pub(crate) rank: Option<String>,
    /// The number of the collective it speaks of, where the library counts them.
    pub(crate) collective: Option<u64>,
    evidence: &'a Evidence,
    row: usize,
}

impl Line<'_> {
    /// What it says.
    pub(crate) fn body(&self) -> &str {
        self.evidence.rows.get(self.row).and_then(|row| row.fields.get("body")).map_or("", String::as_str)
    }

    /// The node it comes from, as a component.
    pub(crate) fn node_component(&self) -> Option<Component> {
        Some(Component::from([("node".to_owned(), self.node?.to_owned())]))
    }

    /// "The log of … has … at …".
    pub(crate) fn claim(&self) -> DraftClaim {
        let text = match self.node {
            Some(_) => "The log of {node} has {line} at {at}.",
            None => "The log has {line} at {at}.",
        };
        let mut sentence = Sentence::new(text);
        if let Some(node) = self.node {
            sentence = sentence.entity(self.evidence, &Entity::from([("node".to_owned(), node.to_owned())]));
        }
        sentence.quote("line", self.evidence, self.row, "body").row_time("at", self.evidence, self.row).claim()
    }
}

/// A job's last words come late: lines up to this long after the window are still its own.
const AFTER_MS: i64 = 120_000;

/// The lines that concern the job, in order of time.
pub(crate) fn lines<'a>(observations: &Observations<'a>) -> Vec<Line<'a>> {
    let Some(evidence) = observations.logs else { return Vec::new() };
    let start = observations.job.start.min(observations.window.from());
    let end = shift(observations.window.to(), AFTER_MS);
    let mut found: Vec<Line<'a>> = Vec::new();
    for (row, line) in evidence.rows.iter().enumerate() {
        let (Some(at), Some(body)) = (line.time, line.fields.get("body")) else { continue };
        let field = |key: &str| line.entity.get(key).or_else(|| line.fields.get(key)).map(String::as_str);
        let others = field("job").is_some_and(|job| job != observations.job.id);
        if others || at < start || at >= end {
            continue;
        }
        let Some((_, kind)) = MARKS.iter().find(|(mark, _)| body.contains(mark)) else { continue };
        let node = line.entity.get("node").map(String::as_str);
        let rank = field("rank").map(str::to_owned).or_else(|| rank_in(body));
        found.push(Line { at, kind: *kind, node, rank, collective: number_after(body, "SeqNum="), evidence, row });
    }
    found.sort_by_key(|l| l.at);
    found
}

/// The rank at a line's beginning: `[Rank 5]`, `[rank5]`.
fn rank_in(body: &str) -> Option<String> {
    let from = body.find("[Rank ").map(|i| i + 6).or_else(|| body.find("[rank").map(|i| i + 5))?;
    let rest = body.get(from..)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits).filter(|d| !d.is_empty()).map(str::to_owned)
}

fn number_after(body: &str, mark: &str) -> Option<u64> {
    let (_, rest) = body.split_once(mark)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_counts_are_read_in_both_spellings() {
        let line = "[Rank 12] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE)";
        assert_eq!((rank_in(line).as_deref(), number_after(line, "SeqNum=")), (Some("12"), Some(4711)));
        assert_eq!(rank_in("[rank3]:[E ProcessGroupNCCL.cpp] Watchdog").as_deref(), Some("3"));
        assert_eq!((rank_in("no rank"), number_after("SeqNum=", "SeqNum=")), (None, None));
    }
}

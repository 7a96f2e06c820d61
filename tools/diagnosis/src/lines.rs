//! Log lines in which a library, a switch or a scheduler says what happened to the job, by kind: what the table of log lines decodes,
//! with who says it and of which collective.

use jiff::Timestamp;
use sightline_model::{Component, DraftClaim};

use crate::log_lines::decode_line;
use crate::observation::Observations;
use crate::records::{Record, records};
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

impl LineKind {
    /// The kind of a line that the table calls so; none for those that no check here asks for.
    fn of(id: &str) -> Option<Self> {
        match id {
            "nccl-ib-port-error" | "ib-link-down" | "mlx5-cable" => Some(Self::PortError),
            "nccl-ib-completion-12" | "nccl-ib-completion" => Some(Self::TransferFailed),
            "nccl-watchdog" => Some(Self::Watchdog),
            "scheduler-preempted" | "preempted" => Some(Self::Preempted),
            "scheduler-node-fail" | "node-down" => Some(Self::NodeDown),
            _ => None,
        }
    }
}

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
    record: Record<'a>,
}

impl Line<'_> {
    /// What it says.
    pub(crate) fn body(&self) -> &str {
        self.record.body()
    }

    /// The node it comes from, as a component.
    pub(crate) fn node_component(&self) -> Option<Component> {
        Some(Component::from([("node".to_owned(), self.node?.to_owned())]))
    }

    /// What was written, where and when.
    pub(crate) fn claim(&self) -> DraftClaim {
        self.record.claim()
    }
}

/// A job's last words come late: lines up to this long after the window are still its own.
const AFTER_MS: i64 = 120_000;

/// The lines that concern the job, in order of time.
pub(crate) fn lines<'a>(observations: &Observations<'a>) -> Vec<Line<'a>> {
    let start = observations.job.start.min(observations.window.from());
    let end = shift(observations.window.to(), AFTER_MS);
    let mut found: Vec<Line<'a>> = records(observations.logs)
        .filter(|record| start <= record.at && record.at < end)
        .filter(|record| record.name("job").is_none_or(|job| job == observations.job.id))
        .filter_map(|record| {
            let kind = LineKind::of(&decode_line(record.body())?.id)?;
            let rank = record.name("rank").map(str::to_owned).or_else(|| rank_in(record.body()));
            let (node, collective) = (record.node(), number_after(record.body(), "SeqNum="));
            Some(Line { at: record.at, kind, node, rank, collective, record })
        })
        .collect();
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

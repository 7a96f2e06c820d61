//! Runs of one program that fail on one host only, without any sign of its hardware: correlated with the host, and not proven.
//!
//! A host that corrupts what it computes writes no error (microsoft/dion issue 76: parameters became NaN on one machine until its board was
//! replaced). What tells is who failed and who did not; Fisher's exact test says whether that is more than chance.

use std::collections::BTreeSet;

use sightline_model::{Component, DraftClaim, Evidence};

use crate::case::Case;
use crate::cause::{Finding, Strength, Support};
use crate::observation::OtherRun;
use crate::records::{Record, lines};
use crate::sentence::Sentence;
use crate::signal::{Scope, Signal};

/// The chance below which a pattern is taken for one: the usual level of a test, for one host out of those of the job.
const LEVEL: f64 = 0.05;

/// Runs that are cited of each kind.
const CITED: usize = 3;

/// Whether a scheduler's state says that a run failed by itself.
pub fn failed(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    ["fail", "error", "crash", "abort"].iter().any(|word| state.contains(word))
}

fn ended_well(state: &str) -> bool {
    let state = state.to_ascii_lowercase();
    ["complete", "succe", "pass", "finished", "done"].iter().any(|word| state.contains(word))
}

/// Who failed where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Table {
    failed_here: usize,
    well_here: usize,
    failed_elsewhere: usize,
    well_elsewhere: usize,
}

impl Table {
    fn of(runs: &[&OtherRun], node: &str) -> Self {
        let mut table = Self::default();
        for run in runs {
            let place = match (run.nodes.contains(node), failed(&run.state)) {
                (true, true) => &mut table.failed_here,
                (true, false) => &mut table.well_here,
                (false, true) => &mut table.failed_elsewhere,
                (false, false) => &mut table.well_elsewhere,
            };
            *place += 1;
        }
        table
    }

    /// The chance that at least so many of the failed runs were on this host, had they been dealt out blindly (Fisher 1934, one-sided).
    fn chance(self) -> f64 {
        let here = self.failed_here + self.well_here;
        let failed = self.failed_here + self.failed_elsewhere;
        let all = here + self.failed_elsewhere + self.well_elsewhere;
        let most = here.min(failed);
        (self.failed_here..=most).map(|k| ways(failed, k) * ways(all - failed, here - k) / ways(all, here)).sum()
    }
}

/// How many ways there are to choose `k` of `n`; none when there are fewer.
fn ways(n: usize, k: usize) -> f64 {
    if k > n { 0.0 } else { (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product() }
}

/// The host on which alone runs of the job's name fail, if the job is one of them.
pub(crate) fn finding(case: &Case<'_>) -> Option<Finding> {
    let (observations, history) = (case.observations, case.observations.history?);
    if !failed(&observations.job.state) {
        return None;
    }
    let runs: Vec<&OtherRun> = observations
        .siblings
        .iter()
        .filter(|run| !run.nodes.is_empty() && (failed(&run.state) || ended_well(&run.state)))
        .collect();
    let nodes: BTreeSet<&str> = observations.job.placements.iter().map(|p| p.node.as_str()).collect();
    let alone: Vec<&str> = nodes
        .into_iter()
        .filter(|node| {
            let table = Table::of(&runs, node);
            table.failed_elsewhere == 0 && table.chance() <= LEVEL
        })
        .collect();
    let [node] = alone.as_slice() else { return None };
    let component = Component::from([("node".to_owned(), (*node).to_owned())]);
    let mut claims = cited(history, &runs, node);
    claims.extend(lines(case, &["NaN"]).first().map(Record::claim));
    let text = "Host-correlated, not proven: runs of this name failed on {node} and on no other host, and nothing that is collected of its hardware says why.";
    let placed = [Signal::GpuTemperature, Signal::Power, Signal::SmClock, Signal::Utilization];
    debug_assert!(placed.iter().all(|s| s.scope() == Scope::Gpu));
    let view = placed.into_iter().find_map(|s| case.view(s))?;
    let why = Sentence::new(text).entity(view.evidence, &component).cite(&history.id).cite_all(&claims);
    Some(Finding::Supported(Box::new(Support {
        strength: Strength::Hint,
        coincides: None,
        magnitude: 0.0,
        components: vec![component],
        onset: None,
        why: why.claim(),
        claims,
        fault: true,
    })))
}

/// What the scheduler's books say of them: some that failed there, some that ended well elsewhere.
fn cited(history: &Evidence, runs: &[&OtherRun], node: &str) -> Vec<DraftClaim> {
    let claim = |run: &&OtherRun, text: &str| {
        Sentence::new(text).quote("state", history, run.row, "state").row_time("from", history, run.row).claim()
    };
    let here = runs.iter().filter(|r| r.nodes.contains(node) && failed(&r.state)).take(CITED);
    let elsewhere = runs.iter().filter(|r| !r.nodes.contains(node)).take(CITED);
    let here = here.map(|r| claim(r, "A run of this name that began at {from} on the same host ended as {state}."));
    let elsewhere = elsewhere.map(|r| claim(r, "One that began at {from} elsewhere ended as {state}."));
    here.chain(elsewhere).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(failed_here: usize, well_here: usize, failed_elsewhere: usize, well_elsewhere: usize) -> Table {
        Table { failed_here, well_here, failed_elsewhere, well_elsewhere }
    }

    #[test]
    fn the_chance_is_that_of_the_exact_test() {
        // Fisher's own example, the lady who tastes tea: three of four right.
        assert!((table(3, 1, 1, 3).chance() - 17.0 / 70.0).abs() < 1e-12);
        assert!((table(4, 0, 0, 4).chance() - 1.0 / 70.0).abs() < 1e-12);
        assert!((table(3, 0, 0, 4).chance() - 1.0 / 35.0).abs() < 1e-12);
        assert!(table(2, 0, 0, 4).chance() > LEVEL);
        assert!((table(0, 3, 2, 2).chance() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn states_of_several_schedulers_are_read() {
        assert!(
            failed("FAILED") && failed("Failed") && failed("NODE_FAIL") && !failed("COMPLETED") && !failed("RUNNING")
        );
        assert!(ended_well("COMPLETED") && ended_well("Succeeded") && ended_well("Pass") && !ended_well("CANCELLED"));
    }
}

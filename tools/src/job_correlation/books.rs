//! The scheduler's books as the diagnosis takes them: the attempts of the job, and other runs at the time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sightline_diagnosis::{Attempt, OtherRun};
use sightline_model::{Evidence, EvidenceRow};

use crate::job_correlation::scope::Scope;
use crate::list_rows::text_of;

/// The attempts of the job's run, in order: from the first GPU that one got to the last that it gave back.
pub(super) fn attempts(held: &Evidence, scope: &Scope) -> Vec<Attempt> {
    let mut found: BTreeMap<(u64, String), Attempt> = BTreeMap::new();
    for (row, one) in held.rows.iter().enumerate() {
        let Some(from) = one.time.filter(|_| text_of(one, "cluster") == scope.cluster) else { continue };
        let to = end_of(one);
        // A run before this one may have had the same id.
        if to.is_some_and(|to| to <= scope.start) || scope.end.is_some_and(|end| end <= from) {
            continue;
        }
        let number = text_of(one, "attempt");
        let node = text_of(one, "node").to_owned();
        let key = (number.parse().unwrap_or(0), number.to_owned());
        let attempt = found.entry(key).or_insert_with(|| Attempt {
            number: number.to_owned(),
            from,
            to,
            nodes: BTreeSet::new(),
            row,
        });
        if from < attempt.from {
            (attempt.from, attempt.row) = (from, row);
        }
        attempt.to = attempt.to.zip(to).map(|(a, b)| a.max(b));
        attempt.nodes.insert(node);
    }
    let mut attempts: Vec<Attempt> = found.into_values().collect();
    attempts.sort_by_key(|a| a.from);
    attempts
}

/// Runs of other jobs.
pub(super) fn others(beside: &Evidence, scope: &Scope) -> Vec<OtherRun> {
    let run = |(row, one): (usize, &EvidenceRow)| {
        let job = text_of(one, "job");
        (job != scope.job && !job.is_empty()).then_some(())?;
        Some(OtherRun {
            job: job.to_owned(),
            name: text_of(one, "name").to_owned(),
            from: one.time?,
            to: end_of(one),
            state: text_of(one, "state").to_owned(),
            nodes: BTreeSet::new(),
            row,
        })
    };
    beside.rows.iter().enumerate().filter_map(run).collect()
}

/// Puts runs onto the nodes that they held.
pub(super) fn place(others: &mut [OtherRun], held: &[EvidenceRow]) {
    for one in held {
        let (job, node) = (text_of(one, "job"), text_of(one, "node"));
        let same = |run: &&mut OtherRun| {
            let from = one.time.is_none_or(|from| run.to.is_none_or(|to| from < to));
            let to = end_of(one).is_none_or(|to| run.from < to);
            run.job == job && from && to
        };
        for run in others.iter_mut().filter(same) {
            run.nodes.insert(node.to_owned());
        }
    }
}

fn end_of(row: &EvidenceRow) -> Option<Timestamp> {
    row.fields.get("end")?.parse().ok()
}

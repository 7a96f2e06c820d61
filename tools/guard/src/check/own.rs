//! Holds a query against the rows that are the asker's own, knowing nothing of how it was narrowed.

use std::collections::BTreeMap;

use sightline_model::Dataset;
use sightline_policies::{JobRows, OwnRows};

use crate::check::fault::{Fault, FaultKind};
use crate::check::rules::window_bind;
use crate::mapping::MappedTable;
use crate::own::JOB_LABEL;
use crate::param::ParamValue;
use crate::tree::{Comparison, Condition, Scalar, Select};

/// What lets through rows that are not the asker's own.
pub(crate) fn own_rows(
    select: &Select,
    table: &MappedTable,
    values: &[(&str, &ParamValue)],
    own: &OwnRows,
) -> Vec<Fault> {
    let held = Held { select, values: values.iter().copied().collect() };
    let fault = |what: &str| vec![Fault::new(FaultKind::OwnRows, what)];
    match own {
        OwnRows::JobsOf { user } => {
            let is_own = match table.dataset() {
                Dataset::Jobs => held.column("user", &[user]),
                Dataset::JobGpus => held.column("job_id", &[]),
                Dataset::Metrics | Dataset::Logs | Dataset::Spans | Dataset::Events => held.label(&[]),
            };
            if is_own { Vec::new() } else { fault("the rows are not limited to the asker's own jobs") }
        }
        OwnRows::Job(job) => {
            let is_own = match table.dataset() {
                Dataset::Metrics => held.places(job),
                Dataset::Logs | Dataset::Events => held.places(job) || held.label(&[&job.job_id]),
                Dataset::Spans => held.label(&[&job.job_id]),
                Dataset::Jobs => held.column("job_id", &[&job.job_id]) && held.column("user", &[&job.user]),
                Dataset::JobGpus => held.column("job_id", &[&job.job_id]),
            };
            if !is_own || !held.column("cluster", &[&job.cluster]) {
                return fault("the rows are not limited to the asker's own job");
            }
            if !held.in_time(job) && !held.lets_nothing_through() {
                return fault("the window reaches beyond the time of the asker's own job");
            }
            Vec::new()
        }
    }
}

struct Held<'a> {
    select: &'a Select,
    values: BTreeMap<&'a str, &'a ParamValue>,
}

impl Held<'_> {
    fn value(&self, index: usize) -> Option<&ParamValue> {
        self.values.get(format!("p{index}").as_str()).copied()
    }

    /// Whether some condition lets through only rows where `is` this is one of these.
    fn list(&self, is: impl Fn(&Scalar) -> bool, allowed: &[&String]) -> bool {
        self.select.filters.iter().any(|condition| match condition {
            Condition::In(left, bind) if is(left) => match self.value(bind.index) {
                Some(ParamValue::TextList(list)) => list.iter().all(|text| allowed.contains(&text)),
                Some(_) | None => false,
            },
            _ => false,
        })
    }

    fn column(&self, name: &str, allowed: &[&String]) -> bool {
        self.list(|left| matches!(left, Scalar::Column(column) if column == name), allowed)
    }

    fn label(&self, allowed: &[&String]) -> bool {
        let is_job = |left: &Scalar| match left {
            Scalar::Label(key) => {
                matches!(self.value(key.index), Some(ParamValue::Text(label)) if label == JOB_LABEL)
            }
            Scalar::Column(_) | Scalar::ColumnAsText(_) | Scalar::KeptStep => false,
        };
        self.list(is_job, allowed)
    }

    fn places(&self, job: &JobRows) -> bool {
        self.pairs().is_some_and(|pairs| pairs.iter().all(|pair| job.slots.contains(pair)))
    }

    /// The placement. That it is one of node and GPU, in this order, is a rule of the shape.
    fn pairs(&self) -> Option<&Vec<(String, String)>> {
        self.select.prewhere.iter().find_map(|condition| match condition {
            Condition::PairIn(_, _, bind) => match self.value(bind.index) {
                Some(ParamValue::PairList(pairs)) => Some(pairs),
                Some(_) | None => None,
            },
            _ => None,
        })
    }

    fn in_time(&self, job: &JobRows) -> bool {
        let end = |comparison| match window_bind(self.select, comparison).and_then(|bind| self.value(bind.index)) {
            Some(ParamValue::Time(time)) => Some(*time),
            Some(_) | None => None,
        };
        end(Comparison::AtLeast).is_some_and(|from| from >= job.from)
            && end(Comparison::Less).is_some_and(|to| to <= job.to)
    }

    /// Whether some list is empty, so that no row can pass whatever the window.
    fn lets_nothing_through(&self) -> bool {
        let no_text = self.select.filters.iter().any(|condition| match condition {
            Condition::In(_, bind) => {
                matches!(self.value(bind.index), Some(ParamValue::TextList(list)) if list.is_empty())
            }
            _ => false,
        });
        no_text || self.pairs().is_some_and(Vec::is_empty)
    }
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;

//! From findings to causes: supported ones first, by their standing; what was ruled out or not judged after them.

use sightline_model::CauseStatus;
use sightline_model::DraftClaim;
use sightline_model::claim::DraftCause;

use crate::cause::{Finding, Support};
use crate::knowledge::cause_info;

/// What the checks found, ranked.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    /// The causes that hold, the likeliest first.
    pub(crate) supported: Vec<(&'static str, Support)>,
    others: Vec<DraftCause>,
}

impl Ranking {
    /// Ranks findings, each with its cause's id.
    pub(crate) fn of(findings: impl IntoIterator<Item = (&'static str, Finding)>) -> Self {
        let mut ranking = Self { supported: Vec::new(), others: Vec::new() };
        for (id, finding) in findings {
            match finding {
                Finding::Supported(support) => ranking.supported.push((id, *support)),
                Finding::RuledOut(why) => ranking.others.push(unsupported(id, CauseStatus::RuledOut, why)),
                Finding::NoData(why) => ranking.others.push(unsupported(id, CauseStatus::NoData, why)),
            }
        }
        ranking.supported.sort_by(|(_, a), (_, b)| {
            b.standing().total_cmp(&a.standing()).then_with(|| b.magnitude.total_cmp(&a.magnitude))
        });
        ranking
    }

    /// Next steps and runbooks of the first supported cause.
    pub(crate) fn advice(&self) -> (Vec<String>, Vec<String>) {
        let first = self.supported.first().and_then(|(id, _)| cause_info(id));
        first.map_or_else(Default::default, |info| (info.next_steps.clone(), vec![info.runbook.clone()]))
    }

    /// All causes: supported ones by rank, then the others.
    pub(crate) fn into_causes(self) -> Vec<DraftCause> {
        let ranked = self.supported.into_iter().enumerate();
        let mut causes: Vec<DraftCause> = ranked
            .map(|(index, (id, support))| draft(id, u32::try_from(index + 1).unwrap_or(u32::MAX), support))
            .collect();
        causes.extend(self.others);
        causes
    }
}

fn draft(id: &str, rank: u32, support: Support) -> DraftCause {
    let info = cause_info(id);
    DraftCause {
        id: id.to_owned(),
        status: CauseStatus::Supported,
        rank,
        components: support.components,
        onset: support.onset,
        why: support.why,
        claims: support.claims,
        next_steps: info.map(|i| i.next_steps.clone()).unwrap_or_default(),
        runbooks: info.map(|i| vec![i.runbook.clone()]).unwrap_or_default(),
    }
}

fn unsupported(id: &str, status: CauseStatus, why: DraftClaim) -> DraftCause {
    DraftCause {
        id: id.to_owned(),
        status,
        rank: 0,
        components: Vec::new(),
        onset: None,
        why,
        claims: Vec::new(),
        next_steps: Vec::new(),
        runbooks: Vec::new(),
    }
}

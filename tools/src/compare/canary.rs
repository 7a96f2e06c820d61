//! Promote, hold or roll back: what the judgements of several metrics mean for a canary.
//!
//! To promote, no metric may have got worse, and the data must exclude that one got much worse: not having seen a regression is no
//! proof without enough data. What has no better end (load, length of prompts) must be alike, else the sides did not do the same.

use crate::compare::judge::{Judgement, Verdict};

/// Points each side needs: twenty steps are long enough to see more than a warm-up.
const MIN_POINTS: usize = 20;

/// To promote, the worse end of each interval must lie below this share of the base. Chosen: twice what counts as a change.
pub(super) const TOLERATED: f64 = 0.10;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advice {
    /// It is as good or better.
    Promote,
    /// Something is worse: by its index among the metrics.
    RollBack(usize),
    /// Not yet: why.
    Hold(Reason),
    /// Nothing can be said.
    TooLittle,
}

/// Why to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The sides did not carry the same: by the metric's index.
    Unlike(usize),
    /// A metric may have got worse by more than is tolerated.
    Unsure(usize),
    /// No metric has a better end.
    NothingToJudge,
}

pub(super) fn advice(judgements: &[Judgement]) -> Advice {
    let enough = |j: &Judgement| j.test.is_some_and(|t| t.first.min(t.second) >= MIN_POINTS);
    if judgements.is_empty() || !judgements.iter().all(enough) {
        return Advice::TooLittle;
    }
    let first = |wanted: &dyn Fn(&Judgement) -> bool| judgements.iter().position(wanted);
    let unlike = first(&|j| matches!(j.verdict, Verdict::Higher | Verdict::Lower));
    let regressed = first(&|j| j.verdict == Verdict::Regressed);
    match (regressed, unlike) {
        // Worse under another load may be the load.
        (Some(_), Some(load)) => return Advice::Hold(Reason::Unlike(load)),
        (Some(worse), None) => return Advice::RollBack(worse),
        (None, Some(load)) => return Advice::Hold(Reason::Unlike(load)),
        (None, None) => {}
    }
    if judgements.iter().all(|j| j.worst_share.is_none()) {
        return Advice::Hold(Reason::NothingToJudge);
    }
    match first(&|j| j.worst_share.is_some_and(|share| share >= TOLERATED)) {
        Some(unsure) => Advice::Hold(Reason::Unsure(unsure)),
        None => Advice::Promote,
    }
}

#[cfg(test)]
mod tests {
    use sightline_analysis::CohortTest;

    use super::*;

    fn judgement(verdict: Verdict, points: usize, worst_share: Option<f64>) -> Judgement {
        let test =
            CohortTest { first: points, second: points, shift: 0.0, interval: (0.0, 0.0), delta: 0.0, p_value: 1.0 };
        Judgement { verdict, test: Some(test), p_value: 1.0, worst_share }
    }

    #[test]
    fn advice_follows_the_worst_and_the_least_sure() {
        let fine = judgement(Verdict::Unchanged, 60, Some(0.02));
        let worse = judgement(Verdict::Regressed, 60, Some(0.4));
        let loaded = judgement(Verdict::Higher, 60, None);
        let unsure = judgement(Verdict::Unclear, 60, Some(0.2));
        let same_load = judgement(Verdict::Unchanged, 60, None);
        let cases = [
            (vec![fine, same_load], Advice::Promote),
            (vec![fine, worse], Advice::RollBack(1)),
            (vec![worse, loaded], Advice::Hold(Reason::Unlike(1))),
            (vec![fine, loaded], Advice::Hold(Reason::Unlike(1))),
            (vec![fine, unsure], Advice::Hold(Reason::Unsure(1))),
            (vec![same_load], Advice::Hold(Reason::NothingToJudge)),
            (vec![fine, judgement(Verdict::Unchanged, 12, Some(0.0))], Advice::TooLittle),
            (vec![], Advice::TooLittle),
        ];
        for (judgements, wanted) in cases {
            assert_eq!(advice(&judgements), wanted, "{judgements:?}");
        }
    }
}

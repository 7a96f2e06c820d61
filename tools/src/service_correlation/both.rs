//! A service that is judged by its engine and by its spans: two diagnoses made one.

use sightline_model::{CauseStatus, Outcome};

use crate::job_correlation::citing::numbered_after;
use crate::tool::ToolOutput;

/// The two diagnoses as one. The first leads, since an engine's own numbers say more about it than its callers' do, unless only
/// the second found a cause; what holds in the second follows, ranked after them. A cause that both judged is told once.
pub(super) fn together(first: ToolOutput, second: ToolOutput) -> ToolOutput {
    let second = numbered_after(second, first.evidence.len());
    let leads = first.outcome == Some(Outcome::Answered) || second.outcome != Some(Outcome::Answered);
    let (mut lead, mut rest) = (first, second);
    let evidence: Vec<_> = lead.evidence.drain(..).chain(rest.evidence.drain(..)).collect();
    if !leads {
        std::mem::swap(&mut lead, &mut rest);
    }
    for cause in rest.causes {
        let place = lead.causes.iter().position(|c| c.id == cause.id);
        match place.and_then(|at| lead.causes.get_mut(at)) {
            // What holds by one of both holds.
            Some(there) if there.status != CauseStatus::Supported && cause.status == CauseStatus::Supported => {
                *there = cause
            }
            Some(_) => {}
            None => lead.causes.push(cause),
        }
    }
    lead.causes.sort_by_key(|cause| match cause.status {
        CauseStatus::Supported => 0,
        CauseStatus::RuledOut | CauseStatus::NoData => 1,
    });
    let mut rank = 0;
    for cause in lead.causes.iter_mut().filter(|c| c.status == CauseStatus::Supported) {
        rank += 1;
        cause.rank = rank;
    }
    lead.claims.extend(rest.claims);
    for line in rest.data_health {
        if !lead.data_health.contains(&line) {
            lead.data_health.push(line);
        }
    }
    if lead.next_steps.is_empty() {
        lead.next_steps = rest.next_steps;
    }
    if lead.runbooks.is_empty() {
        lead.runbooks = rest.runbooks;
    }
    lead.suggestions.extend(rest.suggestions);
    ToolOutput { evidence, ..lead }
}

//! Other requests than usual: longer prompts or longer answers.
//!
//! Needs the length of prompts or answers. Speaks for it: one of both grows when the service becomes slower. Rules it out: both
//! are as usual. Trap: lengths are recorded when a request finishes, so long answers show late.

use crate::cause::{Finding, Strength};
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "traffic_mix_shift", assess };

fn assess(case: &Case<'_>) -> Finding {
    let lengths = [S::PromptLength, S::AnswerLength];
    if lengths.iter().all(|s| case.track(*s).is_none()) {
        return case.no_data(&lengths);
    }
    let mut longer: Vec<_> = lengths.into_iter().filter_map(|s| case.rise(s, MIN_CHANGE)).collect();
    longer.sort_by(|a, b| b.factor().total_cmp(&a.factor()));
    let Some(main) = longer.first() else {
        return case.ruled_out("prompts and answers are as long as usual", &lengths);
    };
    if case.complaint().is_none() {
        return case.ruled_out("requests are longer, but nothing is slower than usual", &lengths);
    }
    let mut found = Found::by(case, main, Strength::Pattern);
    found.claims.extend(longer.iter().skip(1).map(|c| changed(c).claim()));
    for signal in [S::PromptTokens, S::GenerationTokens] {
        found.claims.extend(case.rise(signal, MIN_CHANGE).map(|c| changed(&c).claim()));
    }
    found.finding(case)
}

//! Requests are refused or given up while the engine has room.
//!
//! Needs refusals (HTTP status 429, "overloaded") or aborted requests. Speaks for it: they rise to a share that users notice while
//! nothing waits in the engine. Rules it out: none is refused, or the engine is the one that is late: then clients give up because
//! it is slow. Trap: the engine's own latencies look fine, because refused requests never reach it.

use sightline_model::{Quantity, Relation, Stat};

use crate::cause::{Finding, Strength};
use crate::sentence::Sentence;
use crate::serving::case::{Case, MIN_CHANGE};
use crate::serving::causes::{Found, ServingCheck};
use crate::serving::say::changed;
use crate::serving::signal::ServingSignal as S;

pub(crate) const CHECK: ServingCheck = ServingCheck { id: "rate_limiting", assess };

/// Refusals per served request from which users notice.
const NOTICED: f64 = 0.05;

fn assess(case: &Case<'_>) -> Finding {
    let signals = [S::Rejected, S::Aborted];
    if signals.iter().all(|s| case.track(*s).is_none()) {
        return case.no_data(&signals);
    }
    let window = case.window;
    let rises = signals.into_iter().filter_map(|s| case.rise(s, MIN_CHANGE));
    let felt = rises.filter(|c| served(case).is_none_or(|served| c.after >= NOTICED * served)).collect::<Vec<_>>();
    let Some(main) = felt.first() else {
        return case.ruled_out("no more requests than usual are refused or given up", &signals);
    };
    if main.signal == S::Aborted && case.tracks.whole(S::FirstToken).is_none_or(|t| t.count(window) == 0) {
        // Whether clients gave up on a slow engine cannot be told without what they waited for.
        return case.no_data(&[S::Rejected, S::FirstToken]);
    }
    let late = [S::Waiting, S::FirstToken, S::InterToken].into_iter().find(|s| case.rise(*s, MIN_CHANGE).is_some());
    if let (S::Aborted, Some(late)) = (main.signal, late) {
        return case.ruled_out("requests are given up because the engine is late", &[main.signal, late]);
    }
    let strength = if main.signal == S::Rejected { Strength::Proof } else { Strength::Pattern };
    let mut found = Found::by(case, main, strength);
    if let Some(served) = case.track(S::Served).filter(|t| t.count(window) > 0) {
        let fact = served.fact(Stat::Median, main.range);
        let ratio = Quantity::Ratio(Box::new(main.after_fact.clone()), Box::new(fact.clone()));
        found.claims.push(
            Sentence::new("Meanwhile {served} were served.")
                .number("served", fact, S::Served.decimals(), served.evidence.unit)
                .holds(ratio, Relation::AtLeast, Quantity::Constant(NOTICED))
                .claim(),
        );
    }
    for signal in [S::Running, S::Served] {
        found.claims.extend(case.fall(signal, MIN_CHANGE).map(|c| changed(&c).claim()));
    }
    found.finding(case)
}

fn served(case: &Case<'_>) -> Option<f64> {
    case.track(S::Served)?.median(case.window)
}

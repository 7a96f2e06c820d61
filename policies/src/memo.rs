//! Decisions that were made before.
//!
//! A decision rests on the request and on rules that never change, so it may be kept. One evaluation of the rules
//! takes longer than all the rest of admitting a query, and an admin needs one for every tenant.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;

use hashlink::LruCache;
use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::decision::Decision;
use crate::request::Request;

/// The most decisions kept: 600 principals that use 25 pairs of tool and dataset each. The one that was not asked for longest goes.
const MOST: usize = 16_384;

/// What a request comes down to for the rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    /// The tenants that are asked about.
    pub(crate) candidates: &'a BTreeSet<String>,
    /// Whose the job is that the call resolved to.
    pub(crate) job_owner: Option<&'a str>,
}

/// Everything that a decision rests on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    principal: String,
    role: Role,
    every_tenant: bool,
    jobs_of: Option<String>,
    candidates: BTreeSet<String>,
    job_owner: Option<String>,
    tool: String,
    dataset: Dataset,
}

/// The decisions of one policy set.
pub(crate) struct Memo {
    decisions: Mutex<LruCache<Key, Decision>>,
}

impl Default for Memo {
    fn default() -> Self {
        Self { decisions: Mutex::new(LruCache::new(MOST)) }
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").finish_non_exhaustive()
    }
}

impl Memo {
    /// The decision on this request, made by `decide` unless it was made before.
    ///
    /// What is remembered is what the rules said. Which rows a scope is narrowed to is no part of it: that is put on after.
    pub(crate) fn decision(
        &self,
        request: &Request<'_>,
        reading: &Reading<'_>,
        decide: impl FnOnce() -> Decision,
    ) -> Decision {
        let key = Key::new(request, reading);
        // A poisoned lock means that a thread died while it held the decisions: each is then made anew.
        let before = self.decisions.lock().ok().and_then(|mut kept| kept.get(&key).cloned());
        if let Some(decision) = before {
            return decision;
        }
        let decision = decide();
        if let Ok(mut kept) = self.decisions.lock() {
            kept.insert(key, decision.clone());
        }
        decision
    }
}

impl Key {
    fn new(request: &Request<'_>, reading: &Reading<'_>) -> Self {
        let Reading { candidates, job_owner } = *reading;
        let Request { principal, tool, dataset, known_tenants: _, job: _ } = *request;
        let Principal { id, role, tenants, jobs_of } = principal;
        Self {
            principal: id.clone(),
            role: *role,
            every_tenant: matches!(tenants, TenantScope::All),
            jobs_of: jobs_of.clone(),
            candidates: candidates.clone(),
            job_owner: job_owner.map(str::to_owned),
            tool: tool.to_owned(),
            dataset,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Policies;

    #[test]
    fn what_is_asked_again_and_again_stays_however_many_others_ask() {
        let policies = Policies::builtin().unwrap();
        let template = policies.principal("viewer@atlas").unwrap();
        let known = BTreeSet::from(["atlas".to_owned()]);
        let made = Cell::new(0);
        let memo = Memo::default();
        let ask = |id: String| {
            let principal = Principal { id, ..template.clone() };
            let request = Request {
                principal: &principal,
                tool: "gpu_summary",
                dataset: Dataset::Metrics,
                known_tenants: &known,
                job: None,
            };
            let reading = Reading { candidates: &known, job_owner: None };
            memo.decision(&request, &reading, || {
                made.set(made.get() + 1);
                Decision::deny(Vec::new(), Vec::new())
            });
        };
        // A day's 200 people, each with its 25 pairs, fit twice over; a crowd passes by, and one person goes on asking.
        for n in 0..2 * MOST {
            ask(format!("passer-by-{n}"));
            if n % 100 == 0 {
                ask("ann".to_owned());
            }
        }
        assert_eq!(made.get(), 2 * MOST + 1);
        assert_eq!(memo.decisions.lock().unwrap().len(), MOST);
    }
}

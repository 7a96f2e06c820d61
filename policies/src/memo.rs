//! Decisions that were made before.
//!
//! A decision rests on the request and on rules that never change, so it may be kept. One evaluation of the rules
//! takes longer than all the rest of admitting a query, and an admin needs one for every tenant.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::decision::Decision;
use crate::request::Request;

/// The most decisions kept: 40 principals that use 25 pairs of tool and dataset each.
const MOST: usize = 1_000;

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
#[derive(Debug, Default)]
pub(crate) struct Memo {
    decisions: Mutex<HashMap<Key, Decision>>,
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
        let before = self.decisions.lock().ok().and_then(|kept| kept.get(&key).cloned());
        if let Some(decision) = before {
            return decision;
        }
        let decision = decide();
        if let Ok(mut kept) = self.decisions.lock() {
            // All at once: which of them would be asked again is not known, and a full memo is rare.
            if kept.len() >= MOST {
                kept.clear();
            }
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

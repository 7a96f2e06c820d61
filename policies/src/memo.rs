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

/// Everything that a decision rests on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    principal: String,
    role: Role,
    every_tenant: bool,
    jobs_of: Option<String>,
    candidates: BTreeSet<String>,
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
    pub(crate) fn decision(&self, request: &Request<'_>, decide: impl FnOnce() -> Decision) -> Decision {
        let key = Key::new(request);
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
    fn new(request: &Request<'_>) -> Self {
        let Request { principal, tool, dataset, known_tenants } = *request;
        let Principal { id, role, tenants, jobs_of } = principal;
        let (every_tenant, candidates) = match tenants {
            TenantScope::Only(own) => (false, own),
            TenantScope::All => (true, known_tenants),
        };
        Self {
            principal: id.clone(),
            role: *role,
            every_tenant,
            jobs_of: jobs_of.clone(),
            candidates: candidates.clone(),
            tool: tool.to_owned(),
            dataset,
        }
    }
}

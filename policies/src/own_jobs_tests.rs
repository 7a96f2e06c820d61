//! Who may read own jobs only.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::{Action, Decision, JobRows, OwnRows, Policies, Request};

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn job(user: &str, tenant: &str) -> Arc<JobRows> {
    Arc::new(JobRows {
        job_id: "4711".to_owned(),
        user: user.to_owned(),
        tenant: tenant.to_owned(),
        cluster: "east".to_owned(),
        slots: BTreeSet::from([("n01".to_owned(), "0".to_owned())]),
        from: Timestamp::UNIX_EPOCH,
        to: Timestamp::UNIX_EPOCH,
    })
}

fn ann(tenants: &[&str]) -> Principal {
    Principal {
        id: format!("ann@{}", tenants.join(",")),
        role: Role::Operator,
        tenants: TenantScope::Only(names(tenants)),
        jobs_of: Some("ann".to_owned()),
    }
}

fn decide(policies: &Policies, principal: &Principal, dataset: Dataset, job: Option<&Arc<JobRows>>) -> Decision {
    let known_tenants = names(&["atlas", "borealis"]);
    policies.decide(&Request { principal, tool: "any", dataset, known_tenants: &known_tenants, job })
}

fn own(decision: &Decision) -> Option<OwnRows> {
    decision.scope().and_then(|scope| scope.own().cloned())
}

#[test]
fn an_own_job_opens_every_dataset_for_its_rows_and_its_tenant_alone() {
    let policies = Policies::builtin().unwrap();
    let job = job("ann", "borealis");
    for dataset in Dataset::ALL {
        let decision = decide(&policies, &ann(&["atlas", "borealis"]), dataset, Some(&job));
        assert_eq!(own(&decision), Some(OwnRows::Job(Arc::clone(&job))), "{dataset}: {decision}");
        assert_eq!(decision.scope().unwrap().tenants(), &names(&["borealis"]));
    }
}

#[test]
fn without_a_job_only_the_own_jobs_can_be_listed() {
    let policies = Policies::builtin().unwrap();
    for dataset in Dataset::ALL {
        let decision = decide(&policies, &ann(&["atlas"]), dataset, None);
        if dataset == Dataset::Jobs {
            assert_eq!(own(&decision), Some(OwnRows::JobsOf { user: "ann".to_owned() }));
        } else {
            assert_eq!(decision.rules(), ["own-jobs-only"], "{dataset}: {decision}");
            assert_eq!(decision.to_string(), "denied: it may read only its own jobs; ask about one of them by its id");
        }
    }
}

#[test]
fn a_job_of_another_user_or_tenant_is_refused_in_the_same_words() {
    let policies = Policies::builtin().unwrap();
    for dataset in Dataset::ALL {
        let decisions = [job("bob", "atlas"), job("ann", "borealis"), job("bob", "borealis"), job("", "atlas")]
            .map(|job| decide(&policies, &ann(&["atlas"]), dataset, Some(&job)));
        for decision in &decisions {
            assert_eq!(decision.scope(), None, "{dataset}");
            assert_eq!(decision, &decisions[0], "{dataset}");
        }
        assert_eq!(decisions[0].rules(), ["own-jobs-only"]);
    }
}

#[test]
fn who_reads_whole_tenants_is_never_narrowed() {
    let policies = Policies::builtin().unwrap();
    let operator = policies.principal("operator@atlas").unwrap();
    for job in [None, Some(&job("bob", "atlas"))] {
        let decision = decide(&policies, &operator, Dataset::Metrics, job);
        assert!(decision.allowed());
        assert_eq!(own(&decision), None);
    }
}

#[test]
fn decisions_of_two_jobs_and_of_none_are_never_mixed_up() {
    let policies = Policies::builtin().unwrap();
    let [first, second] = [("ann", "atlas"), ("ann", "atlas")].map(|(user, tenant)| job(user, tenant));
    let second = Arc::new(JobRows { job_id: "4712".to_owned(), ..(*second).clone() });
    let whole = Principal { jobs_of: None, ..ann(&["atlas"]) };
    for _again in 0..2 {
        for job in [&first, &second] {
            let decision = decide(&policies, &ann(&["atlas"]), Dataset::Jobs, Some(job));
            assert_eq!(own(&decision), Some(OwnRows::Job(Arc::clone(job))));
        }
        assert_eq!(
            own(&decide(&policies, &ann(&["atlas"]), Dataset::Jobs, None)),
            Some(OwnRows::JobsOf { user: "ann".to_owned() })
        );
        assert_eq!(own(&decide(&policies, &whole, Dataset::Jobs, None)), None);
        assert!(!decide(&policies, &ann(&["atlas"]), Dataset::Jobs, Some(&job("bob", "atlas"))).allowed());
    }
}

#[test]
fn whether_it_may_read_at_all_is_asked_as_of_an_own_job() {
    let policies = Policies::builtin().unwrap();
    let ann = ann(&["atlas"]);
    assert!(policies.check(&ann, Action::Read(Dataset::Metrics), "any").allowed());
    assert!(policies.may_name_tenant(&ann, "atlas").allowed());
    assert!(!policies.may_name_tenant(&ann, "borealis").allowed());
    // The fleet is more than one's jobs.
    assert_eq!(policies.check(&ann, Action::ViewFleet, "").rules(), ["own-jobs-only"]);
    let viewer = Principal { role: Role::Viewer, ..ann };
    assert!(!policies.check(&viewer, Action::Read(Dataset::Logs), "any").allowed());
}

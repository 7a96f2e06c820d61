use std::collections::BTreeSet;

use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::{Action, Decision, Policies, Request, Source, Sources, bundle_principal};

fn tenants(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn policies() -> Policies {
    Policies::builtin().unwrap()
}

fn decide(principal: &Principal, dataset: Dataset, known_tenants: &[&str]) -> Decision {
    policies().decide(&Request { principal, tool: "any", dataset, known_tenants: &tenants(known_tenants), job: None })
}

fn scope(decision: &Decision) -> Option<BTreeSet<String>> {
    decision.scope().map(|scope| scope.tenants().clone())
}

#[test]
fn tools_that_a_rule_tells_apart_stand_apart_in_the_matrix() {
    let fence = Source {
        name: "rules/fence.cedar",
        text: "@id(\"fence\")\n@reason(\"r\")\n@deny(\"operator@t read_logs t tool=search_logs\")\nforbid (principal, action == Action::\"read_logs\", resource) when { context.tool == \"search_logs\" };",
    };
    let rules = [Sources::SHIPPED.rules, &[fence]].concat();
    let fenced = Policies::from_sources(&Sources { rules: &rules, ..Sources::SHIPPED }).unwrap();
    let tools = ["metric_range", "search_logs", "metric_rank"];
    let heads = |policies: &Policies| -> Vec<String> {
        let matrix = policies.matrix(&tools, "atlas");
        matrix.lines().filter(|line| line.ends_with(':')).map(str::to_owned).collect()
    };
    assert_eq!(heads(&policies()), ["Reads through metric_range, search_logs, metric_rank:", "Everything else:"]);
    let mut apart = heads(&fenced);
    apart.sort();
    assert_eq!(apart, ["Everything else:", "Reads through metric_range, metric_rank:", "Reads through search_logs:"]);
}

#[test]
fn every_denial_of_the_shipped_policies_is_worded_as_reviewed() {
    let policies = policies();
    let known = tenants(&["atlas", "borealis"]);
    let mut lines = Vec::new();
    for principal in policies.principals() {
        for action in Action::all() {
            let decision = match action {
                Action::Read(dataset) => policies.decide(&Request {
                    principal: &principal,
                    tool: "any",
                    dataset,
                    known_tenants: &known,
                    job: None,
                }),
                _ => policies.check(&principal, action, "any"),
            };
            lines.push(format!("{:<18} {:<20} {decision}", principal.id, action.id()));
        }
    }
    insta::assert_snapshot!("decisions", lines.join("\n"));
}

#[test]
fn a_viewer_reads_the_rows_of_its_own_tenant_whatever_tenants_there_are() {
    let viewer = policies().principal("viewer@atlas").unwrap();
    for known in [&["atlas", "borealis"][..], &["borealis"], &[]] {
        let decision = decide(&viewer, Dataset::Metrics, known);
        assert_eq!(scope(&decision), Some(tenants(&["atlas"])));
        assert_eq!(decision.rules(), ["viewer-reads-numbers-and-jobs"]);
        assert_eq!(decision.reasons(), ["a viewer reads metrics, jobs and their GPUs of its own tenants"]);
    }
}

#[test]
fn a_principal_of_two_tenants_reads_both() {
    let principal = Principal {
        id: "operator@atlas,borealis".to_owned(),
        role: Role::Operator,
        tenants: TenantScope::Only(tenants(&["atlas", "borealis"])),
        jobs_of: None,
    };
    let decision = decide(&principal, Dataset::Logs, &["atlas", "borealis", "cetus"]);
    assert_eq!(scope(&decision), Some(tenants(&["atlas", "borealis"])));
}

#[test]
fn an_admin_reads_every_known_tenant_and_rows_without_one() {
    let admin = policies().principal("admin").unwrap();
    let decision = decide(&admin, Dataset::Logs, &["", "atlas", "borealis"]);
    assert_eq!(scope(&decision), Some(tenants(&["", "atlas", "borealis"])));
}

#[test]
fn an_admin_without_any_rows_to_read_is_told_so() {
    let admin = policies().principal("admin").unwrap();
    let decision = decide(&admin, Dataset::Metrics, &[]);
    assert_eq!(
        decision.to_string(),
        "denied: no tenant has any rows yet, so there is nothing to read; load data first"
    );
    assert_eq!(decision.scope(), None);
}

#[test]
fn a_denied_decision_carries_no_scope_and_no_rule() {
    let viewer = policies().principal("viewer@atlas").unwrap();
    let decision = decide(&viewer, Dataset::Logs, &["atlas"]);
    assert!(!decision.allowed());
    assert_eq!(decision.scope(), None);
    assert_eq!(decision.rules(), [] as [&str; 0]);
    assert_eq!(decision.reasons(), ["no rule lets role `viewer` read logs; ask an operator"]);
}

#[test]
fn a_check_opens_no_rows() {
    let operator = policies().principal("operator@atlas").unwrap();
    let decision = policies().check(&operator, Action::Read(Dataset::Logs), "search_logs");
    assert!(decision.allowed());
    assert_eq!(decision.scope(), None);
}

#[test]
fn naming_another_tenant_is_refused_in_the_same_words_whether_or_not_it_exists() {
    let policies = policies();
    let viewer = policies.principal("viewer@borealis").unwrap();
    let words = |tenant: &str| policies.may_name_tenant(&viewer, tenant).to_string().replace(tenant, "…");
    assert_eq!(words("atlas"), "denied: `viewer@borealis` may not ask about tenant `…`; it reads `borealis` only");
    assert_eq!(words("atlas"), words("no-such-tenant"));
}

#[test]
fn a_principal_may_name_its_own_tenants_and_an_admin_any() {
    let policies = policies();
    let may = |id: &str, tenant: &str| policies.may_name_tenant(&policies.principal(id).unwrap(), tenant).allowed();
    assert_eq!(
        [
            may("viewer@atlas", "atlas"),
            may("operator@atlas", "borealis"),
            may("admin", "borealis"),
            may("auditor", "atlas")
        ],
        [true, false, true, false]
    );
}

#[test]
fn a_tenant_called_like_an_id_of_another_kind_gains_nothing() {
    let odd = bundle_principal(Role::Viewer, "admin\" || true || \"");
    let decision = decide(&odd, Dataset::Metrics, &["atlas"]);
    assert_eq!(scope(&decision), Some(tenants(&["admin\" || true || \""])));
    assert!(!decide(&odd, Dataset::Logs, &["atlas"]).allowed());
}

#[test]
fn a_bundle_principal_is_its_role_and_tenant() {
    let expected = Principal {
        id: "operator@petshop".to_owned(),
        role: Role::Operator,
        tenants: TenantScope::Only(tenants(&["petshop"])),
        jobs_of: None,
    };
    assert_eq!(bundle_principal(Role::Operator, "petshop"), expected);
    assert_eq!(bundle_principal(Role::Admin, "petshop").tenants, TenantScope::All);
    assert_eq!(bundle_principal(Role::Auditor, "petshop").tenants, TenantScope::Only(BTreeSet::new()));
}

#[test]
fn limits_follow_the_role() {
    let policies = policies();
    let seconds = |role| policies.limits(&bundle_principal(role, "atlas")).max_seconds;
    assert_eq!(
        [seconds(Role::Viewer), seconds(Role::Operator), seconds(Role::Admin), seconds(Role::Auditor)],
        [10, 30, 60, 1]
    );
}

#[test]
fn a_decision_made_before_is_made_the_same_and_never_for_another_request() {
    let policies = policies();
    let ask = |id: &str, dataset, known_tenants: &[&str]| {
        let principal = policies.principal(id).unwrap();
        let known_tenants = tenants(known_tenants);
        scope(&policies.decide(&Request {
            principal: &principal,
            tool: "any",
            dataset,
            known_tenants: &known_tenants,
            job: None,
        }))
    };
    for _again in 0..2 {
        assert_eq!(ask("admin", Dataset::Logs, &["atlas"]), Some(tenants(&["atlas"])));
        assert_eq!(ask("admin", Dataset::Logs, &["borealis"]), Some(tenants(&["borealis"])));
        assert_eq!(ask("viewer@atlas", Dataset::Metrics, &["atlas"]), Some(tenants(&["atlas"])));
        assert_eq!(ask("viewer@atlas", Dataset::Logs, &["atlas"]), None);
        assert_eq!(ask("operator@atlas", Dataset::Logs, &["atlas"]), Some(tenants(&["atlas"])));
        assert_eq!(ask("viewer@borealis", Dataset::Metrics, &["atlas"]), Some(tenants(&["borealis"])));
    }
}

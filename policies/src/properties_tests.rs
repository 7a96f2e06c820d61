//! What holds for every request, every set of claims and every text.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use sightline_model::{Dataset, Principal, Role, TenantScope};

use crate::{Action, JobRows, OwnRows, Policies, Request, Source, Sources};
use crate::{identity, limits, principals};

/// Everybody reads everything of everybody, as far as rules can say so.
const OPEN: &str = r#"
@id("open")
@reason("everything is open")
@allow("viewer@t read_logs u; auditor read_metrics t; viewer@t/ann read_spans u")
@deny("viewer@t manage_tokens")
permit (
  principal,
  action in
    [Action::"read_metrics",
     Action::"read_logs",
     Action::"read_spans",
     Action::"read_events",
     Action::"read_jobs",
     Action::"read_job_gpus"],
  resource
);
"#;

const IDENTITY: &str = r#"
[[oidc]]
name = "corp"
issuer = "https://login.example.com/"
audience = "sightline"
jwks_url = "https://login.example.com/keys"
[oidc.roles]
r0 = "viewer"
r1 = "operator"
r2 = "admin"
[oidc.tenants]
t0 = "atlas"
t1 = "borealis"
[oidc.principals]
root = "admin"

[[slack]]
user = "U024BE7LH"
principal = "operator@atlas"
"#;

static SHIPPED: LazyLock<Policies> = LazyLock::new(|| {
    let identity = Some(Source { name: "identity.toml", text: IDENTITY });
    Policies::from_sources(&Sources { identity, ..Sources::SHIPPED }).unwrap()
});

static WIDE: LazyLock<Policies> = LazyLock::new(|| {
    let rules = [Source { name: "open.cedar", text: OPEN }];
    Policies::from_sources(&Sources { rules: &rules, ..Sources::SHIPPED }).unwrap()
});

fn tenant() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["atlas", "borealis", "cetus", ""]).prop_map(str::to_owned)
}

fn user() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["ann", "bob", ""]).prop_map(str::to_owned)
}

fn principal() -> impl Strategy<Value = Principal> {
    let role = prop::sample::select(vec![Role::Viewer, Role::Operator, Role::Admin, Role::Auditor]);
    let tenants = prop_oneof![
        4 => prop::collection::btree_set(tenant(), 0..3).prop_map(TenantScope::Only),
        1 => Just(TenantScope::All),
    ];
    (role, tenants, prop::option::of(user())).prop_map(|(role, tenants, jobs_of)| Principal {
        id: "somebody".to_owned(),
        role,
        tenants,
        jobs_of,
    })
}

fn job() -> impl Strategy<Value = Arc<JobRows>> {
    (user(), tenant()).prop_map(|(user, tenant)| {
        Arc::new(JobRows {
            job_id: "4711".to_owned(),
            cluster: String::new(),
            user,
            tenant,
            slots: BTreeSet::new(),
            from: Timestamp::UNIX_EPOCH,
            to: Timestamp::UNIX_EPOCH,
        })
    })
}

/// A text with some of its bytes exchanged, taken out or put in twice.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let edit = (any::<prop::sample::Index>(), 0_usize..12, prop::collection::vec(any::<u8>(), 0..6));
    prop::collection::vec(edit, 1..6).prop_map(move |edits| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, gone, new) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, new);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_request_opens_a_tenant_that_is_not_the_principals(
        principal in principal(),
        dataset in prop::sample::select(Dataset::ALL.to_vec()),
        known_tenants in prop::collection::btree_set(tenant(), 0..4),
        job in prop::option::of(job()),
        wide in any::<bool>(),
    ) {
        let policies = if wide { &*WIDE } else { &*SHIPPED };
        let request =
            Request { principal: &principal, tool: "any", dataset, known_tenants: &known_tenants, job: job.as_ref() };
        let decision = policies.decide(&request);
        prop_assert_eq!(decision.allowed(), decision.scope().is_some());
        let Some(scope) = decision.scope() else { return Ok(()) };
        let own = match &principal.tenants {
            TenantScope::Only(own) => own,
            TenantScope::All => &known_tenants,
        };
        prop_assert!(!scope.tenants().is_empty() && scope.tenants().is_subset(own));
        match (&principal.jobs_of, scope.own()) {
            (None, None) => {}
            (Some(user), Some(OwnRows::JobsOf { user: of })) => {
                prop_assert!(!user.is_empty() && user == of && dataset == Dataset::Jobs && job.is_none());
            }
            (Some(user), Some(OwnRows::Job(rows))) => {
                prop_assert_eq!(Some(rows), job.as_ref());
                prop_assert!(!user.is_empty() && &rows.user == user);
                prop_assert_eq!(scope.tenants(), &BTreeSet::from([rows.tenant.clone()]));
            }
            (jobs_of, own) => prop_assert!(false, "{jobs_of:?} with {own:?}"),
        }
        // What is decided a second time comes from memory, and is the same.
        prop_assert_eq!(policies.decide(&request), decision);
    }

    #[test]
    fn what_a_query_may_read_a_question_may_name_and_a_tool_may_plan(
        principal in principal(),
        dataset in prop::sample::select(Dataset::ALL.to_vec()),
        job in prop::option::of(job()),
    ) {
        let known_tenants = BTreeSet::from(["atlas".to_owned(), "borealis".to_owned()]);
        let request =
            Request { principal: &principal, tool: "any", dataset, known_tenants: &known_tenants, job: job.as_ref() };
        let decision = SHIPPED.decide(&request);
        for tenant in decision.scope().iter().flat_map(|scope| scope.tenants()) {
            prop_assert!(SHIPPED.may_name_tenant(&principal, tenant).allowed());
        }
        if decision.allowed() {
            prop_assert!(SHIPPED.check(&principal, Action::Read(dataset), "any").allowed());
        }
    }

    #[test]
    fn claims_open_what_their_groups_are_mapped_to_and_nothing_else(
        who in "[ -~а]{0,12}|root|admin|operator@atlas",
        groups in prop::collection::btree_set(prop::sample::select(vec!["r0", "r1", "r2", "t0", "t1", "x"]), 0..6),
    ) {
        let claims: Value = json!({ "sub": who, "groups": groups });
        let Value::Object(claims) = claims else { unreachable!() };
        let Ok(principal) = SHIPPED.issuers()[0].principal(&claims) else {
            // Refused are the nameless, those without a role, and those without a tenant whose role needs one.
            let usable = !who.is_empty() && who.chars().all(|c| c.is_ascii_graphic());
            let roles = ["r0", "r1", "r2"].iter().any(|role| groups.contains(role));
            let placed = groups.contains("r2") || groups.contains("t0") || groups.contains("t1");
            prop_assert!(!(usable && roles && placed) && who != "root");
            return Ok(());
        };
        if who == "root" {
            prop_assert_eq!(Some(principal), SHIPPED.principal("admin"));
            return Ok(());
        }
        prop_assert_eq!(&principal.id, &format!("corp:{who}"));
        prop_assert!(SHIPPED.principal(&principal.id).is_none());
        let role = if groups.contains("r2") { Role::Admin } else if groups.contains("r1") { Role::Operator } else { Role::Viewer };
        prop_assert_eq!(principal.role, role);
        let tenants: BTreeSet<String> =
            [("t0", "atlas"), ("t1", "borealis")].into_iter().filter(|(group, _)| groups.contains(group)).map(|(_, tenant)| tenant.to_owned()).collect();
        let expected = if role == Role::Admin { TenantScope::All } else { TenantScope::Only(tenants) };
        prop_assert_eq!(principal.tenants, expected);
    }

    #[test]
    fn no_text_makes_a_parser_fail_and_what_loads_is_whole(
        limits in mutated(Sources::SHIPPED.limits.text),
        principals in mutated(Sources::SHIPPED.principals.text),
        identity in mutated(IDENTITY),
    ) {
        let source = |name, text| Source { name, text };
        if let Ok(limits) = limits::parse(source("limits.toml", &limits)) {
            for limits in limits.all() {
                prop_assert!(limits.max_rows_read > 0 && limits.bytes_per_day >= limits.max_bytes_read, "{limits:?}");
            }
        }
        if let Ok(principals) = principals::parse(source("principals.toml", &principals)) {
            prop_assert!(principals.values().all(is_placed), "{principals:?}");
        }
        let listed = SHIPPED.principals().into_iter().map(|principal| (principal.id.clone(), principal)).collect();
        if let Ok(identity) = identity::parse(source("identity.toml", &identity), &listed) {
            for issuer in identity.issuers {
                prop_assert!(!issuer.audience.is_empty() && issuer.leeway_seconds <= 300);
                let safe = issuer.issuer.starts_with("https://") || issuer.issuer.starts_with("http://127.");
                prop_assert!(safe, "{}", issuer.issuer);
            }
        }
    }
}

proptest! {
    // Loading rules takes long where nothing is optimized.
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_text_makes_the_loader_fail(rules in mutated(Sources::SHIPPED.rules[0].text)) {
        let mutated = [Source { name: "site.cedar", text: &rules }];
        if let Err(errors) = Policies::from_sources(&Sources { rules: &mutated, ..Sources::SHIPPED }) {
            let lines = rules.bytes().filter(|byte| *byte == b'\n').count() + 1;
            prop_assert!(errors.faults().iter().all(|fault| (1..=lines).contains(&fault.line)), "{errors}");
        }
    }
}

/// Whether a listed principal has the tenants that its role needs, and an id that no claim can have.
fn is_placed(principal: &Principal) -> bool {
    let placed = match (&principal.tenants, principal.role) {
        (TenantScope::Only(own), Role::Viewer | Role::Operator) => !own.is_empty(),
        (TenantScope::Only(own), Role::Auditor) => own.is_empty(),
        (scope, Role::Admin) => *scope == TenantScope::All,
        (TenantScope::All, _) => false,
    };
    placed && !principal.id.contains(':')
}

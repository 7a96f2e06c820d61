use std::collections::BTreeSet;

use sightline_model::{Dataset, Role};

use crate::{Action, Policies, Request, Source, Sources, bundle_principal};

const SCHEMA: &str = include_str!("../schema.cedarschema");
const LIMITS: &str = include_str!("../limits.toml");
const PRINCIPALS: &str = include_str!("../principals.toml");

fn load(schema: &str, rules: &str, limits: &str, principals: &str) -> Result<Policies, String> {
    let source = |name, text| Source { name, text };
    Policies::from_sources(&Sources {
        schema: source("schema.cedarschema", schema),
        rules: &[source("rules/site.cedar", rules)],
        limits: source("limits.toml", limits),
        principals: source("principals.toml", principals),
        identity: None,
    })
    .map_err(|errors| errors.to_string())
}

fn rule_errors(rules: &str) -> String {
    load(SCHEMA, rules, LIMITS, PRINCIPALS).map(|_| "it loads".to_owned()).unwrap_or_else(|errors| errors)
}

/// A rule with id, reason and examples around this scope: it is about reading logs.
fn rule(id: &str, effect: &str, scope: &str) -> String {
    let examples = match effect {
        "permit" => "@allow(\"admin read_logs borealis\")\n@deny(\"viewer@t manage_tokens\")",
        _ => "@deny(\"admin read_logs borealis tool=search_logs\")",
    };
    format!("@id(\"{id}\")\n@reason(\"the reason of {id}\")\n{examples}\n{effect} ({scope});\n")
}

#[test]
fn broken_rules_are_refused_with_file_line_and_what_to_do() {
    let long_name = rule("ok", "permit", "principal, action == Action::\"read_logs\", resource");
    let cases = [
        ("syntax", "permit (principal, action\n  resource);".to_owned()),
        ("no id", "\n\npermit (principal, action, resource);".to_owned()),
        ("no reason", "@id(\"a\")\npermit (principal, action, resource);".to_owned()),
        ("empty reason", "@id(\"a\")\n@reason(\" \")\npermit (principal, action, resource);".to_owned()),
        ("same id twice", format!("{long_name}\n{long_name}")),
        ("unknown role", rule("a", "permit", "principal in Role::\"viwer\", action, resource")),
        ("unknown action", rule("a", "permit", "principal, action == Action::\"read_log\", resource")),
        (
            "unknown attribute",
            rule("a", "permit", "principal, action, resource").replace(';', "\nwhen { principal.team == \"x\" };"),
        ),
        ("a cluster", rule("a", "forbid", "principal, action == Action::\"read_logs\", resource in Cluster::\"c1\"")),
        (
            "a job in a condition",
            rule("a", "permit", "principal, action == Action::\"read_logs\", resource")
                .replace(';', "\nwhen { resource is Job };"),
        ),
        (
            "the wrong resource",
            rule("a", "permit", "principal, action == Action::\"read_audit\", resource == Tenant::\"t\""),
        ),
        ("a template", rule("a", "permit", "principal == ?principal, action, resource")),
    ];
    let report: Vec<String> = cases.iter().map(|(name, text)| format!("# {name}\n{}", rule_errors(text))).collect();
    assert!(!report.join("\n").contains("it loads"));
    insta::assert_snapshot!("broken_rules", report.join("\n\n"));
}

#[test]
fn broken_schemas_limits_and_principals_are_refused_with_file_line_and_what_to_do() {
    let good = rule("a", "permit", "principal, action == Action::\"read_logs\", resource");
    let schema = |text: &str| load(text, &good, LIMITS, PRINCIPALS);
    let limits = |text: &str| load(SCHEMA, &good, text, PRINCIPALS);
    let principals = |text: &str| load(SCHEMA, &good, LIMITS, text);
    let cases = [
        ("schema: syntax", schema("entity Role\nentity Tenant;")),
        ("schema: an action is missing", schema(&SCHEMA.replace("action read_audit", "action read_the_audit"))),
        ("schema: an action on something else", schema(&SCHEMA.replace("resource: AuditLog", "resource: Tenant"))),
        ("limits: syntax", limits("[viewer]\nmax_points = \n")),
        ("limits: unknown key", limits(&LIMITS.replacen("max_points =", "max_point =", 1))),
        ("limits: unknown role", limits(&format!("{LIMITS}\n[guest]\nmax_points = 1\n"))),
        ("limits: a role is missing", limits(LIMITS.split("[auditor]").next().unwrap())),
        ("limits: negative", limits(&LIMITS.replacen("max_seconds = 10", "max_seconds = -10", 1))),
        ("limits: zero, twice", limits(&LIMITS.replacen("11_000", "0", 2))),
        (
            "limits: a day under a query",
            limits(&LIMITS.replacen("bytes_per_day = 250_000_000_000", "bytes_per_day = 1", 1)),
        ),
        (
            "limits: a tenant of nobody",
            limits(&format!("{LIMITS}\n[tenant.borealis]\nmax_points = 1\n[tenant.atlsa]\nmax_points = 1")),
        ),
        ("principals: unknown key", principals("[[principal]]\nid = \"a@b\"\nrole = \"viewer\"\nteam = \"x\"")),
        ("principals: unknown role", principals("[[principal]]\nid = \"a@b\"\nrole = \"root\"")),
        (
            "principals: twice",
            principals(
                "[[principal]]\nid = \"a@b\"\nrole = \"viewer\"\n[[principal]]\nid = \"a@b\"\nrole = \"operator\"",
            ),
        ),
        ("principals: no tenant", principals("[[principal]]\nid = \"ann\"\nrole = \"viewer\"")),
        ("principals: a tenant too many", principals("[[principal]]\nid = \"ann@atlas\"\nrole = \"admin\"")),
        ("principals: an empty tenant", principals("[[principal]]\nid = \"ann@atlas,\"\nrole = \"viewer\"")),
        ("principals: a tenant twice", principals("[[principal]]\nid = \"ann@atlas,atlas\"\nrole = \"viewer\"")),
        (
            "principals: a user without the restriction",
            principals("[[principal]]\nid = \"a@b\"\nrole = \"viewer\"\nuser = \"x\""),
        ),
        (
            "principals: own jobs of an admin",
            principals("[[principal]]\nid = \"a\"\nrole = \"admin\"\nown_jobs_only = true"),
        ),
        (
            "principals: own jobs of nobody",
            principals("[[principal]]\nid = \"a@b\"\nrole = \"viewer\"\nown_jobs_only = true\nuser = \"\""),
        ),
        ("principals: no name", principals("[[principal]]\nid = \"a b@atlas\"\nrole = \"viewer\"")),
    ];
    let report: Vec<String> = cases
        .into_iter()
        .map(|(name, loaded)| {
            format!("# {name}\n{}", loaded.map(|_| "it loads".to_owned()).unwrap_or_else(|errors| errors))
        })
        .collect();
    assert!(!report.join("\n").contains("it loads"));
    insta::assert_snapshot!("broken_sources", report.join("\n\n"));
}

#[test]
fn all_faults_of_all_files_are_named_at_once() {
    let errors = load(SCHEMA, "permit (principal, action, resource);", "[viewer]", "principal = 1").unwrap_err();
    let files: Vec<&str> =
        errors.lines().filter_map(|line| line.split(':').next()).filter(|file| file.contains('.')).collect();
    assert_eq!(files, ["limits.toml", "principals.toml", "rules/site.cedar"]);
}

fn decide(rules: &str, role: Role) -> String {
    let policies = load(SCHEMA, rules, LIMITS, PRINCIPALS).unwrap();
    let principal = bundle_principal(role, "atlas");
    let known_tenants = BTreeSet::from(["atlas".to_owned(), "borealis".to_owned()]);
    let request = Request {
        principal: &principal,
        tool: "search_logs",
        dataset: Dataset::Logs,
        known_tenants: &known_tenants,
        job: None,
    };
    let decision = policies.decide(&request);
    let scope: Vec<String> = decision.scope().iter().flat_map(|scope| scope.tenants()).cloned().collect();
    format!("{decision} [{}]", scope.join(","))
}

const PERMIT_ALL: &str = "@id(\"open\")\n@reason(\"everybody reads logs\")\n@allow(\"viewer@t read_logs t\")\n@deny(\"viewer@t read_metrics t\")\npermit (principal, action == Action::\"read_logs\", resource);\n";

#[test]
fn no_rule_is_a_deny() {
    assert_eq!(
        decide("", Role::Admin),
        "denied: no rule lets role `admin` read logs, nor any other role; an admin can add one []"
    );
}

#[test]
fn a_rule_that_permits_all_still_opens_own_tenants_only() {
    assert_eq!(decide(PERMIT_ALL, Role::Viewer), "allowed by rule `open`: everybody reads logs [atlas]");
}

#[test]
fn a_forbidding_rule_beats_a_permitting_one_and_gives_its_reason() {
    let freeze =
        rule("freeze", "forbid", "principal, action, resource == Tenant::\"atlas\"").replace("borealis", "atlas");
    assert_eq!(decide(&format!("{PERMIT_ALL}{freeze}"), Role::Viewer), "denied: the reason of freeze []");
}

#[test]
fn a_forbidding_rule_on_one_tenant_takes_it_out_of_an_admins_scope() {
    let fence = rule("fence", "forbid", "principal, action == Action::\"read_logs\", resource == Tenant::\"borealis\"");
    assert_eq!(
        decide(&format!("{PERMIT_ALL}{fence}"), Role::Admin),
        "allowed by rule `open`: everybody reads logs [atlas]"
    );
}

#[test]
fn a_rule_may_rest_on_the_tool() {
    let fence = rule("fence", "forbid", "principal, action, resource")
        .replace(';', "\nwhen { context.tool == \"search_logs\" };");
    assert_eq!(decide(&format!("{PERMIT_ALL}{fence}"), Role::Viewer), "denied: the reason of fence []");
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies_even_where_another_permits() {
    // Long addition overflows at evaluation: the validator cannot know.
    let overflow = rule("overflow", "forbid", "principal, action, resource").replace("search_logs", "frozen").replace(
        ';',
        "\nwhen { context.tool == \"frozen\" || (context.tool == \"search_logs\" && 9223372036854775807 + (if context.tool == \"\" then 0 else 1) == 0) };",
    );
    assert_eq!(
        decide(&format!("{PERMIT_ALL}{overflow}"), Role::Viewer),
        "denied: rule `overflow` could not be evaluated, so nothing is allowed; run `sightline policy check` []"
    );
}

#[test]
fn own_jobs_only_means_the_jobs_of_the_name_before_the_at_unless_another_user_is_given() {
    let restricted = "own_jobs_only = true";
    let jobs_of = |more: &str| {
        let principals = format!("[[principal]]\nid = \"ann@atlas\"\nrole = \"viewer\"\n{more}");
        load(SCHEMA, PERMIT_ALL, LIMITS, &principals).unwrap().principal("ann@atlas").unwrap().jobs_of
    };
    assert_eq!(jobs_of(restricted).as_deref(), Some("ann"));
    assert_eq!(jobs_of(&format!("{restricted}\nuser = \"ann.smith\"")).as_deref(), Some("ann.smith"));
    assert_eq!(jobs_of(""), None);
    assert_eq!(jobs_of("own_jobs_only = false"), None);
}

#[test]
fn rules_that_forget_the_restriction_do_not_lift_it() {
    let reads: Vec<String> =
        Dataset::ALL.iter().map(|dataset| format!("Action::\"{}\"", Action::Read(*dataset).id())).collect();
    let everything = rule("open", "permit", &format!("principal, action in [{}], resource", reads.join(", ")));
    let policies = load(SCHEMA, &everything, LIMITS, PRINCIPALS).unwrap();
    let mut ann = bundle_principal(Role::Viewer, "atlas");
    ann.jobs_of = Some("ann".to_owned());
    let known_tenants = BTreeSet::from(["atlas".to_owned()]);
    for dataset in Dataset::ALL {
        let request = Request { principal: &ann, tool: "any", dataset, known_tenants: &known_tenants, job: None };
        let decision = policies.decide(&request);
        assert_eq!(decision.allowed(), dataset == Dataset::Jobs, "{dataset}: {decision}");
        assert_eq!(decision.allowed(), decision.scope().is_some_and(|scope| scope.own().is_some()));
    }
}

#[test]
fn rules_without_examples_that_hold_are_refused_with_line_and_what_comes_out() {
    let with = |allow: &str, deny: &str| {
        let rule = rule("ok", "permit", "principal, action == Action::\"read_logs\", resource");
        let allow = if allow.is_empty() { String::new() } else { format!("@allow(\"{allow}\")") };
        let deny = if deny.is_empty() { String::new() } else { format!("@deny(\"{deny}\")") };
        rule_errors(
            &rule
                .replace("@allow(\"admin read_logs borealis\")", &allow)
                .replace("@deny(\"viewer@t manage_tokens\")", &deny),
        )
    };
    let good = ("viewer@t read_logs t", "viewer@t read_metrics t");
    assert_eq!(with(good.0, good.1), "it loads");
    assert_eq!(with("admin read_logs t tool=x; viewer@t,u/ann read_logs u job_of=ann ;", good.1), "it loads");
    let forbid = rule("no", "forbid", "principal, action == Action::\"read_logs\", resource");
    let other = rule("other", "permit", "principal, action == Action::\"read_spans\", resource")
        .replace("admin read_logs borealis", "viewer@t read_logs t")
        .replace("viewer@t manage_tokens", "viewer@t read_metrics t");
    let cases = [
        ("none at all", with("", "")),
        ("no deny", with(good.0, "")),
        ("no allow", with("", good.1)),
        ("only separators", with(" ; ; ", good.1)),
        ("it is not allowed", with("viewer@t read_logs t; viewer@t read_spans t", good.1)),
        ("it is not denied", with(good.0, "viewer@t read_spans t; viewer@t read_logs u")),
        ("another rule allows it", rule_errors(&format!("{PERMIT_ALL}{other}"))),
        ("a forbid without a deny", rule_errors(&forbid.replace("@deny", "@note"))),
        ("a forbid that does not bite", rule_errors(&forbid.replace("read_logs borealis", "read_spans borealis"))),
        ("nobody", with("root read_logs t", good.1)),
        ("a viewer of no tenant", with("viewer read_logs t", good.1)),
        ("an admin of a tenant", with("admin@t read_logs t", good.1)),
        ("no action", with("viewer@t", good.1)),
        ("an unknown action", with("viewer@t read_log t", good.1)),
        ("no tenant", with("viewer@t read_logs", good.1)),
        ("two tenants", with("viewer@t read_logs t u", good.1)),
        ("a tenant too many", with(good.0, "viewer@t read_audit t")),
        ("an unknown word", with("viewer@t read_logs t model=x", good.1)),
        ("a job too many", with(good.0, "viewer@t view_fleet t job_of=ann")),
    ];
    let report: Vec<String> = cases.iter().map(|(name, text)| format!("# {name}\n{text}")).collect();
    assert!(!report.join("\n").contains("it loads"));
    insta::assert_snapshot!("broken_examples", report.join("\n\n"));
}

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sightline_model::{Principal, Role, TenantScope};

use super::{Identity, JwksSource};
use crate::error::Source;
use crate::principals;

const PRINCIPALS: &str = include_str!("../../principals.toml");

const CORP: &str = r#"
[[oidc]]
name = "corp"
issuer = "https://login.example.com/"
audience = ["sightline", "sightline-cli"]
jwks_url = "https://login.example.com/keys"
leeway_seconds = 30
principal_claim = "email"
role_claim = "/realm_access/roles"
tenant_claim = "groups"

[oidc.roles]
gpu-readers = "viewer"
gpu-operators = "operator"
gpu-admins = "admin"
gpu-auditors = "auditor"

[oidc.tenants]
team-atlas = "atlas"
team-borealis = "borealis"

[oidc.principals]
"root@example.com" = "admin"

[[slack]]
user = "U024BE7LH"
principal = "operator@atlas"

[[slack]]
email = "Ann@Example.com"
principal = "viewer@borealis"
"#;

fn load(text: &str) -> Result<Identity, String> {
    let principals = principals::parse(Source { name: "principals.toml", text: PRINCIPALS }).unwrap();
    super::parse(Source { name: "identity.toml", text }, &principals).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

fn principal(claims: Value) -> Result<Principal, String> {
    let identity = load(CORP).unwrap();
    let Value::Object(claims) = claims else { panic!("claims are an object") };
    identity.issuers[0].principal(&claims).map_err(|fault| fault.to_string())
}

fn claims(email: &str, roles: &[&str], groups: &[&str]) -> Value {
    json!({ "email": email, "email_verified": true, "realm_access": { "roles": roles }, "groups": groups })
}

fn tenants(names: &[&str]) -> TenantScope {
    TenantScope::Only(names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn groups_become_the_highest_role_and_all_tenants_they_are_mapped_to() {
    let two = principal(claims(
        "ann@example.com",
        &["gpu-readers", "x", "gpu-operators"],
        &["team-atlas", "y", "team-borealis"],
    ));
    let expected = Principal {
        id: "corp:ann@example.com".to_owned(),
        role: Role::Operator,
        tenants: tenants(&["atlas", "borealis"]),
        jobs_of: None,
    };
    assert_eq!(two, Ok(expected));
    let admin = principal(claims("ann@example.com", &["gpu-admins", "gpu-readers"], &[])).unwrap();
    assert_eq!((admin.role, admin.tenants), (Role::Admin, TenantScope::All));
    let auditor = principal(claims("ann@example.com", &["gpu-auditors"], &["team-atlas"])).unwrap();
    assert_eq!((auditor.role, auditor.tenants), (Role::Auditor, TenantScope::Only(BTreeSet::new())));
}

#[test]
fn a_claim_may_be_one_text_in_place_of_a_list() {
    let mut claims = claims("ann@example.com", &[], &[]);
    claims["realm_access"]["roles"] = json!("gpu-readers");
    claims["groups"] = json!("team-atlas");
    assert_eq!(principal(claims).unwrap().tenants, tenants(&["atlas"]));
}

#[test]
fn claims_that_stand_for_nobody_are_refused_with_what_to_do() {
    let good = claims("ann@example.com", &["gpu-readers"], &["team-atlas"]);
    let with = |key: &str, value: Value| {
        let mut claims = good.clone();
        claims[key] = value;
        principal(claims).unwrap_err()
    };
    let cases = [
        with("email", Value::Null),
        with("email", json!(["ann@example.com"])),
        with("email", json!("")),
        with("email", json!("ann smith@example.com")),
        with("email", json!("аnn@example.com")),
        with("email", json!("a".repeat(129))),
        with("email_verified", json!(false)),
        with("email_verified", json!("true")),
        with("realm_access", json!({ "roles": ["gpu-reader"] })),
        with("realm_access", json!("gpu-readers")),
        with("groups", json!([7, null, "team-cetus"])),
    ];
    insta::assert_snapshot!("claim_faults", cases.join("\n"));
}

#[test]
fn no_claim_can_reach_the_rights_of_a_listed_principal_unless_the_file_names_it() {
    for listed in ["admin", "operator@atlas", "auditor", "viewer@borealis"] {
        let made = principal(claims(listed, &["gpu-readers"], &["team-borealis"])).unwrap();
        assert_eq!(made.id, format!("corp:{listed}"));
        assert_eq!((made.role, made.tenants), (Role::Viewer, tenants(&["borealis"])));
    }
    // Who is named has the listed rights, and its groups add and take nothing.
    let named = principal(claims("root@example.com", &["gpu-readers"], &["team-borealis"])).unwrap();
    assert_eq!((named.id.as_str(), named.role, named.tenants), ("admin", Role::Admin, TenantScope::All));
    // A listed id never has the mark that parts a provider from its claim.
    let text = "[[principal]]\nid = \"corp:ann\"\nrole = \"admin\"";
    assert!(principals::parse(Source { name: "principals.toml", text }).is_err());
}

#[test]
fn people_of_a_provider_may_be_kept_to_their_own_jobs() {
    let made = |settings: &str, claims: Value| {
        let identity = load(&CORP.replacen("[oidc.roles]", &format!("{settings}\n[oidc.roles]"), 1)).unwrap();
        let Value::Object(claims) = claims else { panic!("claims are an object") };
        let issuer = &identity.issuers[0];
        // What is kept of the claims with a session says the same.
        let kept = issuer.principal(&issuer.relevant(&claims));
        assert_eq!(issuer.principal(&claims), kept);
        kept.map(|principal| principal.jobs_of).map_err(|fault| fault.to_string())
    };
    let viewer = || claims("ann@example.com", &["gpu-readers"], &["team-atlas"]);
    let with = |claim: &str, value: Value| {
        let mut claims = viewer();
        claims[claim] = value;
        claims
    };
    let user = |name: &str| Ok(Some(name.to_owned()));
    assert_eq!(made("", viewer()), Ok(None));
    assert_eq!(made("own_jobs_only = true", viewer()), user("ann"));
    let operator = claims("ann@example.com", &["gpu-operators"], &["team-atlas"]);
    assert_eq!(made("own_jobs_only = true", operator), user("ann"));
    let named = "own_jobs_only = true\nuser_claim = \"/posix/uid\"";
    assert_eq!(made(named, with("posix", json!({ "uid": "aw17" }))), user("aw17"));
    for nobody in [viewer(), with("posix", json!({ "uid": "" })), with("posix", json!({ "uid": ["root", "aw17"] }))] {
        let said = made(named, nobody).unwrap_err();
        assert!(said.contains("`/posix/uid`") && said.contains("`user_claim` of `corp`"), "{said}");
    }
    assert!(made("own_jobs_only = true", claims("@example.com", &["gpu-readers"], &["team-atlas"])).is_err());
    let subject = CORP.replacen("principal_claim = \"email\"", "own_jobs_only = true", 1);
    let by_subject = load(&subject).unwrap().issuers[0].principal(with("sub", json!("ann-7")).as_object().unwrap());
    assert_eq!(by_subject.unwrap().jobs_of.as_deref(), Some("ann-7"));
    // Who is above tenants has no jobs, and who is listed has the listed rights.
    for role in ["gpu-admins", "gpu-auditors"] {
        assert_eq!(made(named, claims("ann@example.com", &[role], &[])), Ok(None));
    }
    assert_eq!(made(named, claims("root@example.com", &[], &[])), Ok(None));
    let alone = load(&CORP.replacen("[oidc.roles]", "user_claim = \"uid\"\n[oidc.roles]", 1)).unwrap_err();
    assert!(alone.contains("needs `own_jobs_only = true`"), "{alone}");
}

#[test]
fn users_of_slack_are_known_by_id_or_by_a_verified_address() {
    let identity = load(CORP).unwrap();
    let id = |user: &str, email: Option<&str>| identity.principal_of_slack(user, email).map(|principal| principal.id);
    assert_eq!(id("U024BE7LH", None).as_deref(), Some("operator@atlas"));
    assert_eq!(id("U024BE7LH", Some("ann@example.com")).as_deref(), Some("operator@atlas"));
    assert_eq!(id("U0OTHER", Some("ANN@example.com")).as_deref(), Some("viewer@borealis"));
    assert_eq!(id("U0OTHER", None), None);
    assert_eq!(id("U0OTHER", Some("bob@example.com")), None);
    assert_eq!(id("u024be7lh", None), None);
}

#[test]
fn what_is_left_out_has_the_careful_value() {
    let text = "[[oidc]]\nissuer = \"http://127.0.0.1:9/x\"\naudience = \"s\"\njwks_file = \"/etc/keys.json\"\n[oidc.roles]\ng = \"viewer\"";
    let identity = load(text).unwrap();
    let issuer = &identity.issuers[0];
    assert_eq!((issuer.name.as_str(), issuer.leeway_seconds, issuer.principal_claim.name()), ("127.0.0.1", 60, "sub"));
    assert_eq!(issuer.jwks, JwksSource::File("/etc/keys.json".into()));
    assert!(load("").unwrap().issuers.is_empty());
}

#[test]
fn broken_identity_files_are_refused_with_line_and_what_to_do() {
    let change = |from: &str, to: &str| {
        assert!(CORP.contains(from), "{from}");
        load(&CORP.replacen(from, to, 1))
    };
    let cases = [
        ("syntax", change("name = \"corp\"", "name = corp")),
        ("unknown key", change("leeway_seconds", "leeway")),
        ("no issuer", change("issuer = \"https://login.example.com/\"\n", "")),
        ("an issuer without TLS", change("https://login.example.com/\"\naud", "http://login.example.com/\"\naud")),
        (
            "an issuer that only looks local",
            change("https://login.example.com/\"\naud", "http://127.0.0.1@example.com/\"\naud"),
        ),
        ("keys without TLS", change("https://login.example.com/keys", "http://login.example.com/keys")),
        ("keys of a scheme", change("https://login.example.com/keys", "file:///etc/passwd")),
        ("keys twice", change("leeway_seconds = 30", "jwks_file = \"/keys\"")),
        ("no keys", change("jwks_url = \"https://login.example.com/keys\"\n", "")),
        ("keys by half a path", change("jwks_url = \"https://login.example.com/keys\"", "jwks_file = \"keys.json\"")),
        ("too much leeway", change("leeway_seconds = 30", "leeway_seconds = 301")),
        ("no audience", change("audience = [\"sightline\", \"sightline-cli\"]", "audience = []")),
        ("an empty audience", change("audience = [\"sightline\", \"sightline-cli\"]", "audience = \"\"")),
        ("an audience that is a number", change("audience = [\"sightline\", \"sightline-cli\"]", "audience = 7")),
        (
            "a claim that people change",
            change("principal_claim = \"email\"", "principal_claim = \"preferred_username\""),
        ),
        ("a name with a mark", change("name = \"corp\"", "name = \"corp:x\"")),
        ("unknown role", change("\"operator\"", "\"operater\"")),
        ("an odd tenant", change("\"borealis\"", "\"borealis,atlas\"")),
        ("unknown principal", change("\"admin\"\n\n[[slack]]", "\"root\"\n\n[[slack]]")),
        ("an issuer twice", load(&format!("{CORP}{}", CORP.split("[[slack]]").next().unwrap()))),
        ("slack: unknown principal", change("\"viewer@borealis\"", "\"viewer@cetus\"")),
        ("slack: no user id", change("U024BE7LH", "@ann")),
        ("slack: no address", change("Ann@Example.com", "Ann")),
        ("slack: both", change("user = \"U024BE7LH\"", "user = \"U024BE7LH\"\nemail = \"a@b\"")),
        ("slack: twice", change("email = \"Ann@Example.com\"", "user = \"U024BE7LH\"")),
        ("it lets nobody in", load("[[oidc]]\nissuer = \"https://x\"\naudience = \"s\"\njwks_file = \"/k\"")),
    ];
    let report: Vec<String> = cases
        .into_iter()
        .map(|(name, loaded)| format!("# {name}\n{}", loaded.map(|_| "it loads".to_owned()).unwrap_or_else(|e| e)))
        .collect();
    assert!(!report.join("\n").contains("it loads"));
    insta::assert_snapshot!("broken_identity", report.join("\n\n"));
}

#[test]
fn what_is_kept_of_claims_is_enough_for_the_same_principal_and_no_more() {
    let identity = load(CORP).unwrap();
    let Value::Object(mut claims) = claims("ann@example.com", &["gpu-readers"], &["team-atlas"]) else {
        panic!("an object")
    };
    claims.insert("phone_number".to_owned(), json!("555"));
    claims.insert("sub".to_owned(), json!("77"));
    let kept = identity.issuers[0].relevant(&claims);
    let names: std::collections::BTreeSet<&str> = kept.keys().map(String::as_str).collect();
    assert_eq!(names, ["email", "email_verified", "groups", "realm_access"].into());
    assert_eq!(identity.issuers[0].principal(&kept), identity.issuers[0].principal(&claims));
}

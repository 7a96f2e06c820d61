//! The SQL for a server of one's own: what it says, that the engine's parser takes it, and that the client keeps to it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sightline_engine::{AdminSql, ClickHouseEngine, Endpoint, SecondFence, role_name};
use sightline_guard::{Engine as _, EngineError, ExecutableQuery, Mapping};
use sightline_model::Dataset;
use sightline_policies::Limits;

use crate::admitted::{admit, limits, samples};
use crate::engine::TestEngine;
use crate::fake::{FakeServer, never, ok, refusal};

fn tenants() -> BTreeSet<String> {
    ["atlas", "it's `b` \\ \n", ""].map(str::to_owned).into()
}

fn query(id: &str, limits: &Limits) -> ExecutableQuery {
    admit(id, "it's `b` \\ \n", limits, Dataset::Metrics, samples(100))
}

fn statements() -> Vec<String> {
    let widest = query("q", &limits());
    let mapping = Mapping::native("fleet").unwrap();
    AdminSql { user: "sight`line", mapping: &mapping, tenants: &tenants(), widest: widest.bounds() }.statements()
}

#[test]
fn the_script_is_this() {
    let widest = query("q", &limits());
    let mapping = Mapping::native("fleet").unwrap();
    let tenants = BTreeSet::from(["atlas".to_owned(), "it's".to_owned()]);
    let sql = AdminSql { user: "sightline", mapping: &mapping, tenants: &tenants, widest: widest.bounds() };
    insta::assert_snapshot!(sql.script());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engines_own_parser_takes_every_statement() {
    let engine = TestEngine::start().await;
    for statement in statements() {
        let form = reqwest::multipart::Form::new()
            .text("query", "SELECT formatQuery({s:String})")
            .text("param_s", statement.replace('\\', "\\\\").replace('\n', "\\n"));
        let (name, password) = engine.login_writer();
        let request = reqwest::Client::new().post(engine.url()).basic_auth(name, Some(password)).multipart(form);
        let response = request.send().await.unwrap();
        let (status, said) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success() && !said.is_empty(), "{statement}: {said}");
        for word in ["CONST", "CHANGEABLE_IN_READONLY", "DEFAULT ROLE NONE", "PERMISSIVE"] {
            assert_eq!(said.to_uppercase().contains(word), statement.contains(word), "{word} in {statement}: {said}");
        }
    }
}

#[tokio::test]
async fn a_request_takes_the_roles_of_its_tenants_and_sends_no_setting_that_the_profile_lacks() {
    let server = FakeServer::start(|_| ok("")).await;
    let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
    client.run(&query("q-1", &limits())).await.unwrap();
    let asked = server.asked().remove(0);
    assert_eq!(asked.all("role"), [role_name("it's `b` \\ \n")]);
    assert!(asked.all("additional_table_filters").is_empty() && asked.all("readonly").is_empty());
    let all = statements();
    let profile = all.iter().find(|statement| statement.starts_with("CREATE SETTINGS PROFILE")).unwrap();
    let mut constrained = 0;
    for (name, value) in &asked.pairs {
        // What the HTTP interface takes for itself is no setting.
        if ["role", "query_id", "wait_end_of_query", "default_format", "query"].contains(&name.as_str()) {
            continue;
        }
        let line = profile.lines().map(str::trim).find(|line| line.starts_with(&format!("{name} = ")));
        let line = line.unwrap_or_else(|| panic!("`{name}` is sent, and not in the profile"));
        // What may not change is sent as it stands there.
        let constant = [format!("{name} = {value} CONST"), format!("{name} = '{value}' CONST")];
        assert!(
            line.contains("CHANGEABLE_IN_READONLY") || constant.iter().any(|form| line.trim_end_matches(',') == form),
            "`{name}` is sent as `{value}`: {line}"
        );
        constrained += 1;
    }
    assert!(constrained > 15, "{constrained}");
    assert!(profile.contains("readonly = 1 CONST"));
}

#[tokio::test]
async fn a_server_without_the_role_or_the_bound_is_told_apart_from_a_fault_of_ours() {
    for code in [511, 512, 452] {
        let server = FakeServer::start(move |_| refusal(code, "secret")).await;
        let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
        assert_eq!(client.run(&query("q", &limits())).await, Err(EngineError::NotGranted), "{code}");
    }
}

#[tokio::test]
async fn a_query_that_outlives_its_time_at_a_deaf_server_is_killed_and_looked_for() {
    let server = FakeServer::start(|asked| {
        if asked.body.contains("PREWHERE") {
            never()
        } else if asked.body.contains("system.processes") {
            ok("0\n")
        } else {
            ok("")
        }
    })
    .await;
    let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
    let short = Limits { max_seconds: 1, ..limits() };
    let started = Instant::now();
    assert_eq!(client.run(&query("q-deaf", &short)).await, Err(EngineError::TimedOut { seconds: 1 }));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let asked = server.asked();
    let about_it = |word: &str| asked.iter().filter(|a| a.body.contains(word) && a.body.contains("q-deaf")).count();
    assert_eq!((about_it("KILL QUERY"), about_it("system.processes")), (1, 1), "{asked:?}");
}

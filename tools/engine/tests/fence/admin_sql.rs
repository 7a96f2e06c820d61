//! The SQL for a server of one's own: what it says, that the engine's parser takes it, and that the client keeps to it.

use std::collections::BTreeSet;
use std::time::Duration;

use sightline_engine::{AdminSql, ClickHouseEngine, Endpoint, SecondFence, role_name};
use sightline_guard::{Engine as _, EngineError, ExecutableQuery, Mapping};
use sightline_model::Dataset;
use sightline_policies::Limits;

use crate::admitted::{admit, limits, samples};
use crate::engine::TestEngine;
use crate::fake::{Asked, FakeServer, never, ok, refusal};

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
        let request = crate::plain_http::client().post(engine.url()).basic_auth(name, Some(password)).multipart(form);
        let response = request.send().await.unwrap();
        let (status, said) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success() && !said.is_empty(), "{statement}: {said}");
        for word in ["CONST", "CHANGEABLE_IN_READONLY", "DEFAULT ROLE NONE", "PERMISSIVE"] {
            assert_eq!(said.to_uppercase().contains(word), statement.contains(word), "{word} in {statement}: {said}");
        }
    }
}

/// That a request takes the tenant's role and nothing of the other fence, and sends no setting that the profile lacks; gives back how
/// many settings it sends.
fn hold_it_keeps_to_the_script(asked: &Asked) -> usize {
    assert_eq!(asked.all("role"), [role_name("it's `b` \\ \n")]);
    assert!(asked.all("additional_table_filters").is_empty() && asked.all("readonly").is_empty());
    let all = statements();
    let profile = all.iter().find(|statement| statement.starts_with("CREATE SETTINGS PROFILE")).unwrap();
    let mut constrained = 0;
    for (name, value) in &asked.pairs {
        // What the HTTP interface takes for itself is no setting, and a parameter is none either.
        let of_http = ["role", "query_id", "wait_end_of_query", "default_format", "query"].contains(&name.as_str());
        if of_http || name.starts_with("param_") {
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
    assert!(profile.contains("readonly = 1 CONST"));
    constrained
}

#[tokio::test]
async fn a_request_takes_the_roles_of_its_tenants_and_sends_no_setting_that_the_profile_lacks() {
    let server = FakeServer::start(|_| ok("")).await;
    let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
    client.run(&query("q-1", &limits())).await.unwrap();
    let sent = hold_it_keeps_to_the_script(&server.asked()[0]);
    assert!(sent > 15, "{sent}");
}

#[tokio::test]
async fn an_estimate_does_so_too_under_ids_of_its_own() {
    let server = FakeServer::start(|_| ok("[\"db\",\"metrics\",3,16384,2]\n")).await;
    let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
    for _ in 0..2 {
        assert_eq!(client.estimate(&query("q-1", &limits())).await.unwrap().rows, 16_384);
    }
    let asked = server.asked();
    for one in &asked {
        assert!(one.body.contains("EXPLAIN ESTIMATE"), "{one:?}");
        let sent = hold_it_keeps_to_the_script(one);
        assert!(sent > 15, "{sent}");
    }
    let ids: Vec<_> = asked.iter().flat_map(|one| one.all("query_id")).collect();
    assert_eq!(ids, ["q-1-estimate-0", "q-1-estimate-1"]);
}

#[tokio::test]
async fn an_estimate_that_nobody_waits_for_is_killed_and_looked_for() {
    let server = FakeServer::start(|asked| match asked.body.as_str() {
        text if text.contains("EXPLAIN") => never(),
        text if text.contains("system.processes") => ok("0\n"),
        _ => ok(""),
    })
    .await;
    let client = ClickHouseEngine::new(&Endpoint::new(&server.url, "sightline", "p"), SecondFence::AtServer);
    let asking = tokio::spawn(async move { client.estimate(&query("q-left", &limits())).await });
    let seen = |word: &'static str| {
        let server = &server;
        async move {
            while !server.asked().iter().any(|asked| asked.body.contains(word)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, seen("EXPLAIN ESTIMATE")).await.unwrap();
    asking.abort();
    tokio::time::timeout(patience, seen("system.processes")).await.unwrap();
    let asked = server.asked();
    let kill = asked.iter().find(|asked| asked.body.contains("KILL QUERY")).unwrap();
    assert!(format!("{kill:?}").contains("q-left-estimate-0"), "{kill:?}");
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
    // The server answers an hour later; a run that comes back before was ended from here.
    let ran = tokio::time::timeout(Duration::from_secs(120), client.run(&query("q-deaf", &short))).await.unwrap();
    assert_eq!(ran, Err(EngineError::TimedOut { seconds: 1 }));
    let asked = server.asked();
    let about_it = |word: &str| asked.iter().filter(|a| a.body.contains(word) && a.body.contains("q-deaf")).count();
    assert_eq!((about_it("KILL QUERY"), about_it("system.processes")), (1, 1), "{asked:?}");
}

//! The start-up proofs: a right fence passes, and each way to be wrong is found.

use std::collections::BTreeSet;
use std::time::Instant;

use axum::body::Body;
use axum::http::Response;
use sightline_engine::native::{self, CANARY_TABLE, CANARY_TENANT, DatabaseName};
use sightline_engine::{ClickHouseEngine, Endpoint, FenceUnproved, Proof, ProofFault, SecondFence, role_name};
use sightline_guard::Mapping;

use crate::engine::TestEngine;
use crate::fake::{Asked, FakeServer, ok, refusal};

fn mapping() -> Mapping {
    Mapping::native("fleet").unwrap()
}

fn tenants() -> BTreeSet<String> {
    BTreeSet::from(["atlas".to_owned(), "it's".to_owned()])
}

/// A way in which a server's fence may be broken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    Nothing,
    TakesRows,
    CopiesRows,
    MakesTables,
    ReadsBare,
    EndsReadonly,
    ChangesFilters,
    ShowsTheCanary,
    ShowsRows,
    LosesTheCanary,
    ReadsByFunction,
    KnowsNobody,
    LeaksBetweenRoles,
    HasNoRole,
    SaysNothing,
}

/// What a server with that fault answers to a proof.
fn answer(asked: &Asked, broken: Broken, at_server: bool) -> Response<Body> {
    let done = |fault, code| if broken == fault { ok("") } else { refusal(code, "secret") };
    let text = &asked.body;
    let roles = asked.all("role");
    let filters = asked.all("additional_table_filters");
    let tenant = |name: &str| {
        if at_server { roles == [role_name(name)] } else { filters.iter().any(|f| f.contains(name)) }
    };
    if text.starts_with("INSERT") {
        return if text.contains("VALUES") { done(Broken::TakesRows, 164) } else { done(Broken::CopiesRows, 497) };
    }
    if text.starts_with("CREATE") {
        return done(Broken::MakesTables, 497);
    }
    if text.contains("SETTINGS readonly") {
        return done(Broken::EndsReadonly, 164);
    }
    if text.contains("SETTINGS additional") {
        return done(Broken::ChangesFilters, 452);
    }
    if text.contains("merge(") {
        return done(Broken::ReadsByFunction, 164);
    }
    if roles.is_empty() && filters.is_empty() {
        return done(Broken::ReadsBare, 497);
    }
    if at_server && tenant("sightline-nobody") {
        return done(Broken::KnowsNobody, 511);
    }
    if broken == Broken::HasNoRole && tenant("atlas") {
        return refusal(512, "secret");
    }
    if broken == Broken::SaysNothing {
        return ok("");
    }
    let mut lines = String::new();
    for table in ["metrics", "logs", "spans", "events", "jobs", "job_gpus", CANARY_TABLE] {
        if !text.contains(&format!("'{table}' AS a0")) {
            continue;
        }
        let canary = table == CANARY_TABLE;
        let count = match broken {
            Broken::ShowsRows if tenant(CANARY_TENANT) && table == "logs" => 3,
            Broken::LosesTheCanary => 0,
            Broken::ShowsTheCanary if canary => 1,
            Broken::LeaksBetweenRoles if tenant("atlas") && table == "events" => 1,
            _ if canary && tenant(CANARY_TENANT) => 1,
            _ => 0,
        };
        lines.push_str(&format!("[\"{table}\",\"{count}\"]\n"));
    }
    // A server where an aggregate over no row gives no line.
    if at_server {
        lines = lines.lines().filter(|line| !line.ends_with("\"0\"]")).map(|line| format!("{line}\n")).collect();
    }
    ok(&format!("{lines}[\"asked\",1]\n"))
}

async fn prove(broken: Broken, fence: SecondFence) -> Result<Vec<Proof>, FenceUnproved> {
    let at_server = fence == SecondFence::AtServer;
    let server = FakeServer::start(move |asked| answer(asked, broken, at_server)).await;
    ClickHouseEngine::new(&Endpoint::new(&server.url, "u", "p"), fence).prove_fence(&mapping(), &tenants()).await
}

#[tokio::test]
async fn every_way_to_be_broken_is_found_and_no_other() {
    use Broken::{
        ChangesFilters, CopiesRows, EndsReadonly, HasNoRole, KnowsNobody, LeaksBetweenRoles, LosesTheCanary,
        MakesTables, Nothing, ReadsBare, ReadsByFunction, SaysNothing, ShowsRows, ShowsTheCanary, TakesRows,
    };
    let rows = |table: &str| ProofFault::Rows { table: table.to_owned() };
    let both = [SecondFence::InRequest, SecondFence::AtServer];
    let cases: [(Broken, &[SecondFence], usize, ProofFault); 14] = [
        (TakesRows, &both, 1, ProofFault::CarriedOut),
        (CopiesRows, &both, 1, ProofFault::CarriedOut),
        (MakesTables, &both, 1, ProofFault::CarriedOut),
        (EndsReadonly, &both, 1, ProofFault::CarriedOut),
        (ChangesFilters, &both, 1, ProofFault::CarriedOut),
        (ReadsBare, &both, 6, ProofFault::CarriedOut),
        (ShowsRows, &both, 1, rows("logs")),
        (LosesTheCanary, &both, 1, ProofFault::NoCanary),
        (ShowsTheCanary, &both[..1], 1, rows(CANARY_TABLE)),
        (ReadsByFunction, &both[..1], 1, ProofFault::CarriedOut),
        (KnowsNobody, &both[1..], 1, ProofFault::CarriedOut),
        (LeaksBetweenRoles, &both[1..], 1, rows("events")),
        (HasNoRole, &both[1..], 1, ProofFault::NoRole { code: 512 }),
        (SaysNothing, &both[..1], 2, ProofFault::Unreadable),
    ];
    for fence in both {
        let proofs = prove(Nothing, fence).await.unwrap();
        assert!(proofs.len() >= 14, "{fence:?}: {proofs:?}");
    }
    for (broken, fences, failed, fault) in cases {
        for fence in fences {
            let error = prove(broken, *fence).await.unwrap_err();
            let faults: Vec<&ProofFault> = error.proofs.iter().filter_map(|p| p.outcome.as_ref().err()).collect();
            assert_eq!(faults, vec![&fault; failed], "{broken:?} {fence:?}: {error:?}");
            let line = error.to_string();
            assert!(line.contains(&fault.to_string()) && line.contains("sightline doctor"), "{line}");
            assert!(!line.contains('\n') && !line.contains("secret"), "{line}");
        }
    }
}

#[tokio::test]
async fn a_refusal_for_another_reason_or_no_answer_proves_nothing() {
    let other = FakeServer::start(|_| refusal(62, "secret")).await;
    let client = ClickHouseEngine::new(&Endpoint::new(&other.url, "u", "p"), SecondFence::InRequest);
    let error = client.prove_fence(&mapping(), &BTreeSet::new()).await.unwrap_err();
    assert!(error.proofs.iter().all(|p| p.outcome == Err(ProofFault::OtherRefusal { code: 62 })), "{error:?}");
    let nobody = ClickHouseEngine::new(&Endpoint::new("http://127.0.0.1:1", "u", "p"), SecondFence::AtServer);
    let error = nobody.prove_fence(&mapping(), &BTreeSet::new()).await.unwrap_err();
    assert!(error.proofs.iter().all(|p| p.outcome == Err(ProofFault::NoAnswer)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_engines_fence_is_proved_at_little_cost() {
    let engine = TestEngine::start().await;
    let (writer, database) = (engine.writer(), DatabaseName::new("fleet").unwrap());
    native::create(&writer, &database).await.unwrap();
    let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
    let mut times = Vec::new();
    for _ in 0..10 {
        let started = Instant::now();
        let proofs = client.prove_fence(&mapping(), &BTreeSet::new()).await.unwrap();
        assert_eq!(proofs.len(), 14);
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!("proofs take {:.1} ms at the median, {:.1} ms at most", times[5], times[9]);
    // A mapped table with a row of the canary's tenant, a canary that is gone, and a table that is not there.
    let asked = "INSERT INTO fleet.events (tenant, time) VALUES ('sightline-canary', now())";
    engine.ask(asked).await;
    assert_eq!(faults(&client).await, [ProofFault::Rows { table: "events".to_owned() }]);
    engine.ask("TRUNCATE TABLE fleet.events").await;
    engine.ask(&format!("TRUNCATE TABLE fleet.{CANARY_TABLE}")).await;
    assert_eq!(faults(&client).await, [ProofFault::NoCanary]);
    engine.ask("DROP TABLE fleet.spans").await;
    assert!(faults(&client).await.contains(&ProofFault::OtherRefusal { code: 60 }));
}

async fn faults(client: &ClickHouseEngine) -> Vec<ProofFault> {
    let proofs = client.prove_fence(&mapping(), &BTreeSet::new()).await.unwrap_err().proofs;
    proofs.into_iter().filter_map(|proof| proof.outcome.err()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_version_gets_its_canary() {
    let engine = TestEngine::start().await;
    let (writer, database) = (engine.writer(), DatabaseName::new("fleet").unwrap());
    native::create(&writer, &database).await.unwrap();
    engine.ask(&format!("DROP TABLE fleet.{CANARY_TABLE}")).await;
    engine.ask("ALTER DATABASE fleet MODIFY COMMENT 'sightline native 1'").await;
    native::create_or_update(&writer, &database).await.unwrap();
    assert_eq!(native::version(&writer, &database).await.unwrap(), Some(native::NATIVE_VERSION));
    native::create_or_update(&writer, &database).await.unwrap();
    let kept = "SELECT name FROM system.projections WHERE database = 'fleet' AND table = 'metrics'";
    assert_eq!(engine.ask(kept).await, "kept_steps\n");
    assert_eq!(engine.ask(&format!("SELECT tenant FROM fleet.{CANARY_TABLE} FINAL")).await, "sightline-canary\n");
    let client = ClickHouseEngine::new(&engine.reader(), SecondFence::InRequest);
    client.prove_fence(&mapping(), &BTreeSet::new()).await.unwrap();
}

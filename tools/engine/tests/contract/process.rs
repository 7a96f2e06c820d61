//! The engine's process: one owner, restarted after a crash, gone with its parent.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use sightline_engine::{EmbeddedEngine, EmbeddedError, EngineUser, LIBCHDB_VERSION, engine_address};

use crate::target::{Target, options};

async fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let wait = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), wait).await.is_ok(), "waited in vain: {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_engine_comes_back_where_it_was() {
    let Some(target) = Target::embedded().await else { return };
    let target = target.with_metrics().await;
    let first = target.engine().pid().unwrap();
    assert!(Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap().success());
    until("another process", || target.engine().pid().is_some_and(|pid| pid != first)).await;
    let sum = target.reader().query("SELECT sum(value) FROM contract.metrics").fetch_one::<f64>().await.unwrap();
    assert_eq!(sum, 10.0);
    target.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_owner_is_refused_and_a_guest_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path().to_owned());
    let owner = EmbeddedEngine::start(options.clone()).await.unwrap();
    let pid = owner.pid().unwrap();
    let refusal = EmbeddedEngine::start(options.clone()).await.unwrap_err();
    assert!(matches!(refusal, EmbeddedError::Folder(_)));
    assert!(refusal.to_string().contains(&format!("belongs to the engine with pid {pid}")), "{refusal}");
    let by_hand = Command::new(env!("CARGO_BIN_EXE_sightline-engine")).arg(folder.path()).output().unwrap();
    assert!(!by_hand.status.success());
    assert!(String::from_utf8_lossy(&by_hand.stderr).contains(&format!("pid {pid}")));

    let guest = EmbeddedEngine::attach_or_start(options).await.unwrap();
    assert!(!guest.is_owner());
    assert_eq!((guest.url(), guest.pid(), guest.credentials()), (owner.url(), owner.pid(), owner.credentials()));
    guest.stop().await;
    assert!(owner.is_alive());
    owner.stop().await;
    assert!(EmbeddedEngine::attach(folder.path()).unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_want_an_engine_at_once_share_one() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path().to_owned());
    let (first, second) =
        tokio::join!(EmbeddedEngine::attach_or_start(options.clone()), EmbeddedEngine::attach_or_start(options));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.url(), second.url());
    assert_ne!(first.is_owner(), second.is_owner());
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_ends_cleanly_when_its_parent_goes_in_the_middle_of_a_query() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sightline-engine"))
        .arg("--child")
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, r#"{{"credentials":{{"writer":"w","reader":"r"}},"port":0}}"#).unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let address = engine_address(folder.path()).unwrap().unwrap();
    assert_eq!(address.credentials.password(EngineUser::Writer), "w");
    let client = clickhouse::Client::default().with_url(address.url()).with_user("writer").with_password("w");
    let query =
        client.query("SELECT sum(sipHash64(number)) FROM numbers(100000000000000)").with_setting("query_id", "long");
    let running = tokio::spawn(query.fetch_one::<u64>());
    let count = "SELECT count() FROM system.processes WHERE query_id = 'long'";
    while client.query(count).fetch_one::<u64>().await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stdin);
    let mut status = None;
    until("the end of the engine", || {
        status = child.try_wait().unwrap();
        status.is_some()
    })
    .await;
    assert!(status.unwrap().success(), "{status:?}");
    assert!(running.await.unwrap().is_err());
    assert_eq!(engine_address(folder.path()).unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_library_is_one_line_that_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path().to_owned());
    // `env` starts the engine with a home that has no library in its cache.
    let engine = std::mem::replace(&mut options.program, "env".into());
    let home = format!("HOME={}", folder.path().display());
    let arguments = [home.into(), "-u".into(), "SIGHTLINE_LIBCHDB".into()];
    let arguments = [&arguments[1..], &arguments[..1], &[engine.into()]].concat();
    options.arguments.splice(0..0, arguments);
    let error = EmbeddedEngine::start(options).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("libchdb {LIBCHDB_VERSION} is not installed")), "{error}");
    assert!(
        error.ends_with("run `make engine` to fetch it, or set `clickhouse.url` for a server of your own"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_library_that_is_none_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("not-libchdb.so");
    std::fs::write(&library, "text").unwrap();
    let mut options = options(folder.path().join("data"));
    let engine = std::mem::replace(&mut options.program, "env".into());
    let setting = format!("SIGHTLINE_LIBCHDB={}", library.display());
    options.arguments.splice(0..0, [setting.into(), engine.into()]);
    let error = EmbeddedEngine::start(options).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot load `{}`", library.display())), "{error}");
}

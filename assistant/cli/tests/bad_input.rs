//! Bad input and bad days: damaged files, questions that make no sense, an engine that dies, a disk that is full.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{Lab, answer, command, run, signal, stderr, wait_until};
use jiff::Timestamp;
use serde_json::Value;
use service::{Service, accepted, audited, events, hold_audit_log_whole, problem};

/// The one line that a failing command says.
fn one_line(output: &Output, code: i32) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 1, "{said}");
    lines[0].strip_prefix("sightline: ").unwrap().to_owned()
}

fn ask(lab: &Lab, bundle: &Path, question: &str) -> Output {
    let bundle = bundle.to_str().unwrap();
    lab.run(&[
        "ask",
        "--json",
        "--tz",
        "UTC",
        "--bundle",
        bundle,
        "--as",
        "operator@atlas",
        "--as-of",
        worlds::END,
        question,
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_bundles_and_senseless_questions_get_one_clear_sentence() {
    let lab = Lab::start();
    let whole = lab.bundle("thermal", &worlds::thermal().0, "").await;
    missing_files_are_named(&lab, &whole);
    damaged_parquet_is_named(&lab, &whole);
    a_wrong_column_type_names_file_column_expected_and_found(&lab).await;
    a_broken_manifest_names_its_line(&lab, &whole);
    senseless_questions_are_answered_with_what_would_make_sense(&lab, &whole);
    files_of_a_newer_version_are_refused(&lab, &whole);
    // After all that the folder answers as before.
    let why = "Why was training job J4711 slow in the last 4 hours?";
    assert_eq!(answer(&ask(&lab, &whole, why))["outcome"], "answered");
    hold_audit_log_whole(lab.data_dir());
}

fn missing_files_are_named(lab: &Lab, whole: &Path) {
    let nowhere = lab.path("nowhere");
    let said = one_line(&ask(lab, &nowhere, "top 3 hottest GPUs"), 1);
    assert!(said.contains(nowhere.to_str().unwrap()) && said.contains("is no folder"), "{said}");
    let empty = lab.path("empty");
    std::fs::create_dir_all(empty.join("data")).unwrap();
    let said = one_line(&ask(lab, &empty, "top 3 hottest GPUs"), 1);
    assert!(said.contains("holds none of `metrics.parquet`"), "{said}");
    // A file in place of the folder.
    let said = one_line(&ask(lab, &whole.join("bundle.toml"), "top 3 hottest GPUs"), 1);
    assert!(said.contains("is no folder"), "{said}");
}

/// A copy of a bundle whose metrics file is changed.
fn with_metrics(lab: &Lab, whole: &Path, name: &str, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
    let dir = lab.path(name);
    std::fs::create_dir_all(dir.join("data")).unwrap();
    let bytes = std::fs::read(whole.join("data/metrics.parquet")).unwrap();
    std::fs::write(dir.join("data/metrics.parquet"), change(bytes)).unwrap();
    dir
}

/// What is done to a file's bytes.
type Damage = fn(Vec<u8>) -> Vec<u8>;

fn damaged_parquet_is_named(lab: &Lab, whole: &Path) {
    let cases: [(&str, Damage); 5] = [
        ("nothing", |_| Vec::new()),
        ("text", |_| b"time,metric,value\n1,2,3\n".to_vec()),
        ("cut", |bytes| bytes[..bytes.len() / 2].to_vec()),
        ("zeroed-footer", |mut bytes| {
            let end = bytes.len() - 8;
            bytes[end - 200..end].fill(0);
            bytes
        }),
        ("zeroed-rows", |mut bytes| {
            let middle = bytes.len() / 4;
            bytes[4..middle].fill(0xff);
            bytes
        }),
    ];
    for (name, change) in cases {
        let dir = with_metrics(lab, whole, name, change);
        let said = one_line(&ask(lab, &dir, "top 3 hottest GPUs"), 1);
        assert!(said.contains("metrics.parquet"), "{name}: {said}");
        assert!(said.contains("write it again"), "{name}: {said}");
    }
}

async fn a_wrong_column_type_names_file_column_expected_and_found(lab: &Lab) {
    let select = [
        (
            "value",
            "SELECT now64(3, 'UTC') AS time, 'm' AS metric, map('node', 'n') AS labels, 'warm' AS value",
            "String",
        ),
        ("labels", "SELECT now64(3, 'UTC') AS time, 'm' AS metric, 'node=n' AS labels, 1. AS value", "String"),
        ("time", "SELECT 'noon' AS time, 'm' AS metric, map('node', 'n') AS labels, 1. AS value", "String"),
    ];
    for (column, sql, found) in select {
        let dir = lab.path(&format!("wrong-{column}"));
        std::fs::create_dir_all(dir.join("data")).unwrap();
        save(lab, sql, &dir.join("data/metrics.parquet")).await;
        let said = one_line(&ask(lab, &dir, "top 3 hottest GPUs"), 1);
        assert!(said.contains("`metrics.parquet`"), "{said}");
        assert!(said.contains(&format!("column `{column}` must be ")), "{said}");
        assert!(said.contains("found `") && said.contains(found), "{said}");
    }
    let dir = lab.path("no-value");
    std::fs::create_dir_all(dir.join("data")).unwrap();
    save(lab, "SELECT now64(3, 'UTC') AS time, 'm' AS metric", &dir.join("data/metrics.parquet")).await;
    let said = one_line(&ask(lab, &dir, "top 3 hottest GPUs"), 1);
    assert!(said.contains("`metrics.parquet` has no column `"), "{said}");
}

/// Writes a result as Parquet.
async fn save(lab: &Lab, sql: &str, file: &Path) {
    let user = sightline_engine::EngineUser::Writer;
    let response = crate::harness::http()
        .post(lab.address.url())
        .basic_auth(user.name(), Some(lab.address.credentials.password(user)))
        .body(format!("{sql} FORMAT Parquet"))
        .send()
        .await
        .unwrap();
    assert!(response.status().is_success());
    std::fs::write(file, response.bytes().await.unwrap()).unwrap();
}

fn a_broken_manifest_names_its_line(lab: &Lab, whole: &Path) {
    let dir = with_metrics(lab, whole, "manifest", |bytes| bytes);
    std::fs::write(dir.join("bundle.toml"), "[defaults]\ntenant = 7\n").unwrap();
    let said = one_line(&ask(lab, &dir, "top 3 hottest GPUs"), 1);
    assert!(said.contains("`bundle.toml`, line 2: `defaults.tenant` must be a text"), "{said}");
}

fn senseless_questions_are_answered_with_what_would_make_sense(lab: &Lab, whole: &Path) {
    let ask = |question: &str| answer(&ask(lab, whole, question));
    let text = |answer: &Value| answer["headline"].as_str().unwrap().to_owned();

    let misspelt = ask("what was DCGM_FI_DEV_GPU_TMP in the last hour?");
    assert_eq!(misspelt["outcome"], "clarify", "{misspelt}");
    assert!(text(&misspelt).contains("did you mean"), "{misspelt}");
    assert!(misspelt["choices"].to_string().contains("DCGM_FI_DEV_GPU_TEMP"), "{misspelt}");

    let reversed = ask("what was the GPU temperature between 2025-06-02 09:00 and 2025-06-02 08:00?");
    assert!(text(&reversed).contains("ends before it begins"), "{reversed}");
    let future = ask("what was the GPU temperature between 2031-06-02 08:00 and 2031-06-02 09:00?");
    assert!(text(&future).contains("lies in the future"), "{future}");
    // A length that is not understood is never replaced by the default window.
    for length in ["-5 hours", "5 years", "9999999999999999 days"] {
        let unknown = ask(&format!("what was the GPU temperature in the last {length}?"));
        assert!(text(&unknown).contains("is no length of time"), "{unknown}");
    }
    let too_early = ask("what was the GPU temperature between 2025-05-20 08:00 and 2025-05-20 09:00?");
    assert_eq!(too_early["outcome"], "insufficient_data", "{too_early}");

    // The mean of a counter's level says nothing; its growth does.
    let unfit = ask("average of DCGM_FI_DEV_PCIE_REPLAY_COUNTER in the last 2 hours");
    assert_eq!(unfit["outcome"], "answered", "{unfit}");
    assert!(text(&unfit).contains("the rate of pcie_replays"), "{unfit}");

    // Collected nowhere in this world, which is not the same as zero.
    let absent = ask("what was vllm:num_requests_waiting in the last 2 hours?");
    assert_eq!(absent["outcome"], "insufficient_data", "{absent}");
    for senseless in [reversed, future, too_early, unfit, absent] {
        let verification = &senseless["verification"];
        assert_eq!(verification["checked"], verification["passed"], "{senseless}");
    }
}

fn files_of_a_newer_version_are_refused(lab: &Lab, whole: &Path) {
    let path = lab.path("audit.db");
    let set = |version: i64| {
        let file = rusqlite::Connection::open(&path).unwrap();
        let before: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
        before
    };
    let before = set(99);
    let said = one_line(&ask(lab, whole, "top 3 hottest GPUs"), 1);
    assert!(said.contains("audit.db") && said.contains("99") && said.contains("newer"), "{said}");
    set(before);

    std::fs::write(lab.path("tokens.json"), r#"{"version":9,"tokens":[]}"#).unwrap();
    let said = one_line(&lab.run(&["serve", "--listen", "127.0.0.1:0"]), 1);
    assert!(said.contains("tokens.json") && said.contains("format 9") && said.contains("newer"), "{said}");
    std::fs::remove_file(lab.path("tokens.json")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_dies_under_a_question_costs_that_question_alone() {
    let lab = Lab::start();
    lab.fill(&worlds::thermal().0).await;
    let folder = lab.into_folder();
    let mut service = Service::start(folder.path());
    let end: Timestamp = worlds::END.parse().unwrap();
    let engine = service.engine_pid();

    // Stopped first, so that both questions are surely waiting for it when it dies.
    signal(engine, "STOP");
    let mut streamed = service.stream("viewer@atlas", "top 4 hottest GPUs in the last hour", end).await;
    accepted(&mut streamed).await;
    let body = serde_json::json!({ "question": "top 5 hottest GPUs in the last hour", "as_of": end });
    let waiting = tokio::spawn(service.chat("viewer@atlas", &body).send());
    wait_until("both questions have begun", || service.audited("top 5 hottest").len() == 1);
    signal(engine, "KILL");
    let detail = problem(waiting.await.unwrap().unwrap(), 503).await;
    assert!(detail.contains("engine"), "{detail}");
    let last = events(&streamed.text().await.unwrap()).pop().unwrap();
    assert_eq!((last.name.as_str(), last.data["status"].as_u64()), ("error", Some(503)));

    // It comes back by itself, on the same port, and the service never went away.
    let ready = format!("{}/readyz", service.url);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while service.client.get(&ready).send().await.unwrap().status() != 200 {
        assert!(std::time::Instant::now() < deadline, "not ready: {}", service.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_ne!(service.engine_pid(), engine);
    assert_eq!(service.answer("viewer@atlas", "top 3 hottest GPUs in the last hour", end).await["outcome"], "answered");
    assert!(service.terminate().success());
    for question in ["top 4 hottest", "top 5 hottest"] {
        assert_eq!(audited(folder.path(), question)[0].outcome(), "error");
    }
    hold_audit_log_whole(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_engine_dies_says_so_in_one_line_and_leaves_a_whole_record() {
    let lab = Lab::start();
    lab.fill(&worlds::thermal().0).await;
    let question = "top 4 hottest GPUs in the last hour";
    let arguments = ["ask", "--json", "--as", "operator@atlas", "--as-of", worlds::END, question];
    assert_eq!(answer(&lab.run(&arguments))["outcome"], "answered");
    // Under way as soon as its begin record is there; stopped before, so that it cannot be over by then.
    let mut asking = command(lab.data_dir(), &arguments);
    let asking = asking.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let begun =
        |count: usize| lab.data_dir().join("audit.db").exists() && audited(lab.data_dir(), question).len() == count;
    loop {
        // It also asks the engine before the question begins, so it has to run in between.
        signal(lab.address.pid, "STOP");
        if begun(2) {
            break;
        }
        signal(lab.address.pid, "CONT");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    signal(lab.address.pid, "KILL");
    let output = asking.wait_with_output().unwrap();
    if output.status.success() {
        println!("skipped: the answer was there before the engine was stopped");
        return;
    }
    let said = one_line(&output, 1);
    assert!(said.contains("engine"), "{said}");
    assert_eq!(audited(lab.data_dir(), question)[0].outcome(), "error");
    hold_audit_log_whole(lab.data_dir());
}

#[test]
fn without_its_library_the_engine_says_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&["ask", "--as", "admin", "top 3 hottest GPUs"][..], &["serve", "--listen", "127.0.0.1:0"], &["engine"]]
    {
        let output = command(folder.path(), arguments).env("SIGHTLINE_LIBCHDB", "/nonexistent").output().unwrap();
        let said = one_line(&output, 1);
        assert!(said.contains("/nonexistent"), "{said}");
        assert!(said.contains("make engine") || said.contains("clickhouse.url"), "{said}");
    }
    // `doctor` goes on and reports it among its checks.
    let output = command(folder.path(), &["doctor"]).env("SIGHTLINE_LIBCHDB", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("ok    policies") && report.contains("WRONG library"), "{report}");
}

#[test]
fn a_data_folder_is_made_for_its_owners_eyes() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("ask", &["ask", "--as", "admin", "top 3 hottest GPUs"][..]),
        ("serve", &["serve", "--listen", "127.0.0.1:0"]),
        ("engine", &["engine"]),
    ] {
        let path = folder.path().join(name).join("state");
        let output = command(&path, arguments).env("SIGHTLINE_LIBCHDB", "/nonexistent").output().unwrap();
        one_line(&output, 1);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700, "{name}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    // Nobody can make a folder there, not even root.
    let said = one_line(&run(Path::new("/proc/sightline"), &["ask", "--as", "admin", "top 3 hottest GPUs"]), 1);
    assert!(said.contains("`/proc/sightline`"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let said = one_line(&run(&file, &["ask", "--as", "admin", "top 3 hottest GPUs"]), 1);
    assert!(said.contains(file.to_str().unwrap()), "{said}");
}

#[test]
fn configuration_errors_name_file_line_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sightline.toml");
    std::fs::write(&file, "listen = \"nowhere\"\n[evidence]\nkeep_days = \"0\"\n").unwrap();
    let output = run(folder.path(), &["--config", file.to_str().unwrap(), "doctor"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("`listen` is `nowhere`") && said.contains("`evidence.keep_days`"), "{said}");
    std::fs::write(&file, "[clickhouse]\npasword = \"hunter2\"\n").unwrap();
    let output = run(folder.path(), &["--config", file.to_str().unwrap(), "doctor"]);
    let said = stderr(&output);
    assert!(said.contains("line 2") && said.contains("pasword") && !said.contains("hunter2"), "{said}");
}

/// A small file system of its own, if this process may mount one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path()).output();
        let mounted = mounted.is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: only root may mount a small disk");
        }
        mounted.then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_read_only_data_folder_is_named() {
    let Some(disk) = SmallDisk::mount("size=1m,ro") else { return };
    let said = one_line(&run(disk.0.path(), &["ask", "--as", "admin", "top 3 hottest GPUs"]), 1);
    assert!(said.contains(disk.0.path().to_str().unwrap()), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_costs_answers_and_not_the_service() {
    let Some(disk) = SmallDisk::mount("size=96m") else { return };
    let end: Timestamp = worlds::END.parse().unwrap();
    let folder = disk.0.path();
    let mut service = Service::start(folder);
    let question = "top 3 hottest GPUs in the last hour";
    service.answer("viewer@atlas", question, end).await;

    let ballast = folder.join("ballast");
    fill(&ballast);
    // Nothing may be read that cannot be recorded: sooner or later, and for good, questions are turned down with the reason.
    let mut turned_down = None;
    for _ in 0..200 {
        let body = serde_json::json!({ "question": question, "as_of": end });
        let response = service.chat("viewer@atlas", &body).send().await.unwrap();
        if response.status() != 200 {
            turned_down = Some(problem(response, 503).await);
            break;
        }
    }
    let detail = turned_down.unwrap();
    assert!(detail.contains("audit"), "{detail}");
    let health = service.client.get(format!("{}/healthz", service.url)).send().await.unwrap();
    assert_eq!(health.status(), 200);
    let ready = service.client.get(format!("{}/readyz", service.url)).send().await.unwrap();
    assert_eq!(ready.status(), 503);

    std::fs::remove_file(&ballast).unwrap();
    service.answer("viewer@atlas", question, end).await;
    assert!(service.terminate().success(), "{}", service.log());
    hold_audit_log_whole(folder);
}

/// Writes until the disk is full.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(path).unwrap();
    let block = vec![b'x'; 64 * 1024];
    while file.write_all(&block).is_ok() {}
    // The last pages, too.
    while file.write_all(b"x").is_ok() {}
}

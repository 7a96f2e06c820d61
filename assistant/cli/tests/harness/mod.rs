//! What the end-to-end tests share: an engine of their own, the real binary, bundles made from generated rows.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod canary;
#[path = "../../../../tools/engine/tests/ingest_engine/plain_http.rs"]
mod plain_http;

pub(crate) use plain_http::client as http;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use canary::{Watch, planted};
use serde_json::Value;
use sightline_engine::{
    Endpoint, EngineAddress, EngineUser, Scope, Writer, engine_address, export_rows, insert_rows, native,
};
use sightline_model::rows::Rows;
use sightline_query::catalogue::LabelAliases;

/// The binary under test.
pub(crate) const SIGHTLINE: &str = env!("CARGO_BIN_EXE_sightline");

/// A data folder with a living engine in it; both end with this value.
pub(crate) struct Lab {
    // Looks through what was seen, while everything is there still.
    watch: Watch,
    // Dropped in this order: the engine closes its tables before the folder goes.
    engine: EngineProcess,
    folder: tempfile::TempDir,
    pub(crate) address: EngineAddress,
}

impl Lab {
    /// Starts `sightline engine` on a fresh folder and waits until it can be asked.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (engine, address) = start_engine(folder.path());
        Self { watch: Watch::new(folder.path()), engine: EngineProcess(engine), folder, address }
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// A place for files of the test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn writer(&self) -> Writer {
        let password = self.address.credentials.password(EngineUser::Writer);
        Writer::new(&Endpoint::new(self.address.url(), EngineUser::Writer.name(), password))
    }

    /// Writes rows, and those of the tenant that nobody asks as, as a bundle and gives back its folder.
    pub(crate) async fn bundle(&self, name: &str, rows: &Rows, manifest: &str) -> PathBuf {
        self.bundle_of_these_alone(name, &planted(rows), manifest).await
    }

    /// The same without that tenant, for what depends on there being one tenant only.
    pub(crate) async fn bundle_of_these_alone(&self, name: &str, rows: &Rows, manifest: &str) -> PathBuf {
        let dir = self.path(name);
        export_rows(&self.writer(), rows, &dir, manifest).await.unwrap();
        dir
    }

    /// Puts rows, and those of the tenant that nobody asks as, into the database that the service answers from.
    pub(crate) async fn fill(&self, rows: &Rows) {
        self.fill_with_these_alone(&planted(rows)).await;
    }

    /// The same without that tenant, for what asks as an admin.
    pub(crate) async fn fill_with_these_alone(&self, rows: &Rows) {
        let writer = self.writer();
        let database = native::DatabaseName::new("sightline").unwrap();
        if native::version(&writer, &database).await.unwrap().is_none() {
            native::create(&writer, &database).await.unwrap();
        }
        let nobody = Scope { tenant: "default".to_owned(), cluster: "default".to_owned() };
        insert_rows(&writer, &database, rows, &LabelAliases::builtin().unwrap(), &nobody).await.unwrap();
    }

    /// Runs a statement as the writer, and gives back what it prints.
    pub(crate) async fn write(&self, sql: &str) -> String {
        let password = self.address.credentials.password(EngineUser::Writer);
        let request = http().post(self.address.url()).body(sql.to_owned());
        let response = request.basic_auth(EngineUser::Writer.name(), Some(password)).send().await.unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{sql}: {text}");
        text
    }

    /// Runs the binary on this folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let output = run(self.data_dir(), arguments);
        if !arguments.windows(2).any(|pair| pair == ["--as", "admin"]) {
            self.watch.saw(&output.stdout);
            self.watch.saw(&output.stderr);
        }
        output
    }

    /// Looks through what came out of a binary that was started otherwise.
    pub(crate) fn saw(&self, output: &Output) {
        self.watch.saw(&output.stdout);
        self.watch.saw(&output.stderr);
    }

    /// Asks about a bundle and reads the answer.
    pub(crate) fn ask(&self, bundle: &Path, arguments: &[&str], question: &str) -> Value {
        let bundle = bundle.to_str().unwrap();
        let mut all = vec!["ask", "--json", "--tz", "UTC", "--bundle", bundle];
        all.extend(arguments);
        all.push(question);
        answer(&self.run(&all))
    }

    /// Ends the engine and keeps the folder.
    pub(crate) fn into_folder(self) -> tempfile::TempDir {
        let Self { watch, engine, folder, address: _ } = self;
        drop(watch);
        drop(engine);
        folder
    }
}

/// A process that is asked to end, and killed if it does not.
struct EngineProcess(Child);

impl Drop for EngineProcess {
    fn drop(&mut self) {
        // SIGTERM, so that it closes its tables; then whatever is left is killed.
        signal(self.0.id(), "TERM");
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if self.0.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process that a test started.
pub(crate) fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
}

/// Waits until a condition holds, and says which one did not.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start_engine(folder: &Path) -> (Child, EngineAddress) {
    let mut engine = Command::new(SIGHTLINE)
        .args(["engine", "--data-dir"])
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(address) = engine_address(folder).unwrap() {
            return (engine, address);
        }
        if let Some(status) = engine.try_wait().unwrap() {
            panic!("the engine ended before it could be asked: {status}; `make engine` fetches its library");
        }
        assert!(Instant::now() < deadline, "the engine was not ready after two minutes");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs the binary on a data folder.
pub(crate) fn run(data_dir: &Path, arguments: &[&str]) -> Output {
    command(data_dir, arguments).output().unwrap()
}

/// The binary on a data folder, in surroundings of its own: nothing of the developer's environment decides.
pub(crate) fn command(data_dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(SIGHTLINE);
    command.arg("--data-dir").arg(data_dir).args(arguments).stdin(Stdio::null());
    let ours = ["SIGHTLINE_CONFIG", "SIGHTLINE_CLI_PRINCIPAL", "SIGHTLINE_CLICKHOUSE_URL", "SIGHTLINE_LOG"];
    let models = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "SIGHTLINE_LLM_MODEL", "SIGHTLINE_PLANNER"];
    for name in ours.into_iter().chain(models) {
        command.env_remove(name);
    }
    command.env("TZ", "UTC");
    command
}

/// The one JSON document on stdout.
pub(crate) fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "exit {:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Stderr as text.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

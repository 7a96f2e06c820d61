//! What the end-to-end tests share: an engine of their own, the real binary, bundles made from generated rows.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sightline_engine::{Endpoint, EngineAddress, EngineUser, Writer, engine_address, export_rows};
use sightline_model::rows::Rows;

/// The binary under test.
pub const SIGHTLINE: &str = env!("CARGO_BIN_EXE_sightline");

/// A data folder with a living engine in it; both end with this value.
pub struct Lab {
    folder: tempfile::TempDir,
    engine: Child,
    pub address: EngineAddress,
}

impl Lab {
    /// Starts `sightline engine` on a fresh folder and waits until it can be asked.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (engine, address) = start_engine(folder.path());
        Self { folder, engine, address }
    }

    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// A place for files of the test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn writer(&self) -> Writer {
        let password = self.address.credentials.password(EngineUser::Writer);
        Writer::new(&Endpoint::new(self.address.url(), EngineUser::Writer.name(), password))
    }

    /// Writes rows as a bundle and gives back its folder.
    pub async fn bundle(&self, name: &str, rows: &Rows, manifest: &str) -> PathBuf {
        let dir = self.path(name);
        export_rows(&self.writer(), rows, &dir, manifest).await.unwrap();
        dir
    }

    /// Runs the binary on this folder.
    pub fn run(&self, arguments: &[&str]) -> Output {
        run(self.data_dir(), arguments)
    }

    /// Asks about a bundle and reads the answer.
    pub fn ask(&self, bundle: &Path, arguments: &[&str], question: &str) -> Value {
        let bundle = bundle.to_str().unwrap();
        let mut all = vec!["ask", "--json", "--tz", "UTC", "--bundle", bundle];
        all.extend(arguments);
        all.push(question);
        answer(&self.run(&all))
    }

    /// Kills the engine without warning, as the kernel would.
    pub fn kill_engine(&mut self) {
        self.engine.kill().unwrap();
        self.engine.wait().unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // SIGTERM, so that it closes its tables; then whatever is left is killed.
        let _ = Command::new("kill").arg(self.engine.id().to_string()).status();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if self.engine.try_wait().unwrap().is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.engine.kill();
        let _ = self.engine.wait();
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
pub fn run(data_dir: &Path, arguments: &[&str]) -> Output {
    Command::new(SIGHTLINE).arg("--data-dir").arg(data_dir).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The one JSON document on stdout.
pub fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "exit {:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Stderr as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

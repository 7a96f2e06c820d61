//! An engine of the test's own, on a data folder of its own.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sightline_engine::{Endpoint, EngineUser, Writer, engine_address};

/// A running engine; it ends with the test.
pub(crate) struct TestEngine {
    process: Child,
    url: String,
    passwords: [String; 2],
    folder: tempfile::TempDir,
}

impl TestEngine {
    /// Starts it and waits until it says where it is.
    pub(crate) async fn start() -> Self {
        Self::start_in(None).await
    }

    /// The same, with a working directory of its own.
    pub(crate) async fn start_in(cwd: Option<&Path>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_sightline-engine"))
            .arg(folder.path())
            .current_dir(cwd.unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        loop {
            if let Some(address) = engine_address(folder.path()).ok().flatten() {
                let password = |user| address.credentials.password(user).to_owned();
                let passwords = [password(EngineUser::Writer), password(EngineUser::Reader)];
                return Self { process, url: address.url(), passwords, folder };
            }
            assert!(process.try_wait().unwrap().is_none(), "the engine ended before it was ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Where it answers.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        engine_address(self.folder.path()).unwrap().unwrap().pid
    }

    /// Its data folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Name and password of the user that may read.
    pub(crate) fn login_reader(&self) -> (&'static str, &str) {
        (EngineUser::Reader.name(), &self.passwords[1])
    }

    /// Name and password of the user that may write.
    pub(crate) fn login_writer(&self) -> (&'static str, &str) {
        (EngineUser::Writer.name(), &self.passwords[0])
    }

    /// Its user that may read.
    pub(crate) fn reader(&self) -> Endpoint {
        Endpoint::new(&self.url, EngineUser::Reader.name(), &self.passwords[1])
    }

    /// Its user that may write.
    pub(crate) fn writer(&self) -> Writer {
        Writer::new(&Endpoint::new(&self.url, EngineUser::Writer.name(), &self.passwords[0]))
    }

    /// The result of any statement, tab-separated, as the writer sees it.
    pub(crate) async fn ask(&self, sql: &str) -> String {
        let client = clickhouse::Client::default()
            .with_url(&self.url)
            .with_user(EngineUser::Writer.name())
            .with_password(&self.passwords[0])
            .with_compression(clickhouse::Compression::None);
        let bytes = client.query_raw(sql).fetch_bytes("TabSeparated").unwrap().collect().await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Writes a Parquet file from a SELECT.
    pub(crate) async fn parquet(&self, select: &str, path: &std::path::Path) {
        let client = clickhouse::Client::default()
            .with_url(&self.url)
            .with_user(EngineUser::Writer.name())
            .with_password(&self.passwords[0])
            .with_compression(clickhouse::Compression::None);
        let bytes = client.query_raw(select).fetch_bytes("Parquet").unwrap().collect().await.unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for TestEngine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

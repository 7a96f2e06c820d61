//! The ClickHouse under test.

use std::path::PathBuf;
use std::time::Duration;

use clickhouse::Client;
use clickhouse::error::Error;
use sightline_engine::{EmbeddedEngine, EmbeddedOptions, EngineCredentials, EngineUser};
use tempfile::TempDir;

/// A server, and two clients' worth of credentials for it.
pub(crate) struct Target {
    pub(crate) url: String,
    writer: (String, String),
    reader: (String, String),
    embedded: Option<(EmbeddedEngine, TempDir)>,
}

pub(crate) const FILTER: &str = r"{'contract.metrics': 'tenant IN (\'tenant-a\')'}";

impl Target {
    /// The server that the environment names, else a fresh embedded engine.
    pub(crate) async fn any() -> Self {
        match text("SIGHTLINE_TEST_CLICKHOUSE_URL") {
            Some(url) => {
                let user = text("SIGHTLINE_TEST_CLICKHOUSE_USER").unwrap_or_else(|| "default".to_owned());
                let login = (user, text("SIGHTLINE_TEST_CLICKHOUSE_PASSWORD").unwrap_or_default());
                Self { url, writer: login.clone(), reader: login, embedded: None }
            }
            None => Self::started().await,
        }
    }

    /// The server that the environment names, if it does; its user must be an administrator.
    pub(crate) async fn remote() -> Option<Self> {
        if text("SIGHTLINE_TEST_CLICKHOUSE_URL").is_some() { Some(Self::any().await) } else { None }
    }

    /// A fresh embedded engine, unless the tests run against another server.
    pub(crate) async fn embedded() -> Option<Self> {
        if text("SIGHTLINE_TEST_CLICKHOUSE_URL").is_some() { None } else { Some(Self::started().await) }
    }

    async fn started() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = EmbeddedEngine::start(options(folder.path().to_owned())).await.unwrap();
        let login = |user| {
            let (name, password) = engine.login(user);
            (name.to_owned(), password.to_owned())
        };
        let (writer, reader) = (login(EngineUser::Writer), login(EngineUser::Reader));
        Self { url: engine.url(), writer, reader, embedded: Some((engine, folder)) }
    }

    pub(crate) fn engine(&self) -> &EmbeddedEngine {
        &self.embedded.as_ref().unwrap().0
    }

    /// The memory that the engine's process holds now, where it can be seen.
    pub(crate) fn resident_mib(&self) -> Option<u64> {
        let (engine, _) = self.embedded.as_ref()?;
        let status = std::fs::read_to_string(format!("/proc/{}/status", engine.pid()?)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024)
    }

    pub(crate) fn writer(&self) -> Client {
        Client::default().with_url(&self.url).with_user(&self.writer.0).with_password(&self.writer.1)
    }

    /// A client as the service uses it for questions.
    pub(crate) fn reader(&self) -> Client {
        let client = Client::default().with_url(&self.url).with_user(&self.reader.0).with_password(&self.reader.1);
        client.with_setting("readonly", "1").with_setting("additional_table_filters", FILTER)
    }

    /// A plain HTTP request of a user to `/?{query}`.
    pub(crate) async fn post(
        &self,
        user: EngineUser,
        query: &str,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::Response {
        let (name, password) = match user {
            EngineUser::Writer => &self.writer,
            EngineUser::Reader => &self.reader,
        };
        let request =
            crate::plain_http::client().post(format!("{}/?{query}", self.url)).basic_auth(name, Some(password));
        request.body(body).send().await.unwrap()
    }

    /// Two tenants with ten and ten thousand in one table.
    pub(crate) async fn with_metrics(self) -> Self {
        let writer = self.writer();
        for statement in [
            "CREATE DATABASE IF NOT EXISTS contract",
            "CREATE OR REPLACE TABLE contract.metrics (tenant String, node String, value Float64) ENGINE = MergeTree ORDER BY (tenant, node)",
            "CREATE OR REPLACE TABLE contract.secrets (body String) ENGINE = MergeTree ORDER BY body",
            "INSERT INTO contract.metrics SELECT if(number < 10, 'tenant-a', 'tenant-b'), 'n', if(number < 10, 1, 1000) FROM numbers(20)",
        ] {
            writer.query(statement).execute().await.unwrap();
        }
        self
    }

    /// Whether a query of this id runs.
    pub(crate) async fn runs(&self, id: &str) -> bool {
        let count = self.writer().query("SELECT count() FROM system.processes WHERE query_id = {id:String}");
        count.param("id", id).fetch_one::<u64>().await.unwrap() > 0
    }

    /// Waits until a query of this id runs, or runs no more.
    pub(crate) async fn until_runs(&self, id: &str, wanted: bool) {
        let reached = async {
            while self.runs(id).await != wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
        assert!(reached.is_ok(), "`{id}` should {} within 30 s", if wanted { "run" } else { "be gone" });
    }

    pub(crate) async fn end(self) {
        if let Some((engine, _folder)) = self.embedded {
            engine.stop().await;
        }
    }
}

pub(crate) fn options(data_dir: PathBuf) -> EmbeddedOptions {
    EmbeddedOptions {
        program: env!("CARGO_BIN_EXE_sightline-engine").into(),
        arguments: vec!["--child".into(), data_dir.clone().into()],
        data_dir,
        credentials: EngineCredentials::from_random([5; 32]),
        start_timeout: Duration::from_secs(60),
    }
}

/// ClickHouse's number of an error.
pub(crate) fn code(error: &Error) -> u32 {
    let text = error.to_string();
    let number = text.split_once("Code: ").and_then(|(_, rest)| rest.split_once('.'));
    number.unwrap_or_else(|| panic!("no code in `{text}`")).0.parse().unwrap()
}

fn text(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.into_string().unwrap())
}

//! Configuration: a file, the environment and flags, made into one checked value. Read once, at start.

mod llm;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::answers::KeepDays;
pub use llm::{LlmSettings, PlannerChoice, rules};

use llm::RawLlm;

/// Where the service listens unless told otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:8787";
/// Where state lives unless told otherwise.
const DEFAULT_DATA_DIR: &str = "./.sightline";
/// How long evidence points and conversations are kept unless told otherwise.
const DEFAULT_KEEP_DAYS: KeepDays = KeepDays { evidence: 30, conversations: 90 };
/// What stands for a wrong number of days of the audit log until the fault is mended.
const DEFAULT_AUDIT_KEEP_DAYS: i64 = 3650;
/// How often the service writes a heartbeat to the audit log unless told otherwise.
const DEFAULT_HEARTBEAT_SECONDS: u64 = 60;

/// The user of a ClickHouse of one's own unless told otherwise.
pub(crate) const DEFAULT_USER: &str = "sightline";

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    data_dir: Option<PathBuf>,
    listen: Option<String>,
    #[serde(default)]
    engine: RawEngine,
    #[serde(default)]
    clickhouse: RawClickHouse,
    #[serde(default)]
    audit: RawAudit,
    #[serde(default)]
    cli: RawCli,
    #[serde(default)]
    evidence: RawKept,
    #[serde(default)]
    conversations: RawKept,
    #[serde(default)]
    server: RawServer,
    #[serde(default)]
    policies: RawPolicies,
    #[serde(default)]
    site: RawSite,
    #[serde(default)]
    llm: RawLlm,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    public_url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPolicies {
    dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSite {
    dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEngine {
    library: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClickHouse {
    url: Option<String>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAudit {
    key_file: Option<PathBuf>,
    checkpoint_copy: Option<PathBuf>,
    heartbeat_seconds: Option<String>,
    keep_days: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCli {
    principal: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKept {
    keep_days: Option<String>,
}

/// A ClickHouse server of the site's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClickHouse {
    /// Its HTTP address.
    pub url: String,
    /// The read-only user.
    pub user: String,
    /// That user's password.
    pub password: Secret,
    /// The database the tables are in.
    pub database: String,
}

/// Text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

/// The configuration. Guaranteed: every value is usable as far as can be told without opening anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where all state lives.
    pub data_dir: PathBuf,
    /// Where the service listens.
    pub listen: SocketAddr,
    /// Where the engine's library is, if named.
    pub library: Option<PathBuf>,
    /// A ClickHouse of the site's own; the embedded engine otherwise.
    pub clickhouse: Option<ClickHouse>,
    /// The audit log's key, if it lies elsewhere.
    pub audit_key_file: Option<PathBuf>,
    /// A file that the audit log's checkpoints are copied to.
    pub checkpoint_copy: Option<PathBuf>,
    /// Days for which the audit log keeps records; all of them when not set.
    pub audit_keep_days: Option<i64>,
    /// Seconds between two heartbeats of the service in the audit log.
    pub heartbeat_seconds: u64,
    /// The principal of the command line, without `--as`.
    pub cli_principal: Option<String>,
    /// Days for which evidence points and conversations are kept.
    pub keep_days: KeepDays,
    /// Under which URL browsers reach the service; none where that is the address it listens on.
    pub public_url: Option<String>,
    /// The site's own policies; the shipped ones otherwise.
    pub policies_dir: Option<PathBuf>,
    /// The site's own words and runbooks, beside the shipped ones.
    pub site_dir: Option<PathBuf>,
    /// Which planner answers.
    pub planner: PlannerChoice,
    /// How a model is reached; none where no model is named.
    pub llm: Option<LlmSettings>,
    /// The binary to start as the engine; the running one unless given.
    pub program: Option<PathBuf>,
}

/// What the command line says; it wins over environment and file.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--data-dir`
    pub data_dir: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
}

/// Everything that is wrong with a configuration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration cannot be used:\n{}", faults.iter().map(|f| format!("  {f}")).collect::<Vec<_>>().join("\n"))]
pub struct ConfigError {
    /// One line each.
    pub faults: Vec<String>,
}

impl Config {
    /// Reads the file, lays the environment and the flags over it, and checks the whole.
    ///
    /// # Errors
    /// Every fault at once.
    pub fn load(flags: &Flags, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let path = flags.config.clone().or_else(|| env("SIGHTLINE_CONFIG").map(PathBuf::from));
        let raw = match path {
            Some(path) => read(&path)?,
            // A file that nobody named may be missing.
            None if Path::new("sightline.toml").exists() => read(Path::new("sightline.toml"))?,
            None => RawConfig::default(),
        };
        check(overlay(raw, env), flags)
    }
}

fn read(path: &Path) -> Result<RawConfig, ConfigError> {
    let fault = |what: String| ConfigError { faults: vec![what] };
    let text = std::fs::read_to_string(path)
        .map_err(|error| fault(format!("`{}` cannot be read: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        // The error's own text quotes the line; a password may stand there, so only the place and the reason are told.
        let line =
            error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1);
        fault(format!("`{}` line {line}: {}", path.display(), error.message()))
    })
}

/// The environment wins over the file: every key as `SIGHTLINE_…`.
fn overlay(raw: RawConfig, env: &dyn Fn(&str) -> Option<String>) -> RawConfig {
    let path = |name: &str, file: Option<PathBuf>| env(name).map(PathBuf::from).or(file);
    let text = |name: &str, file: Option<String>| env(name).or(file);
    let RawConfig {
        data_dir,
        listen,
        engine,
        clickhouse,
        audit,
        cli,
        evidence,
        conversations,
        server,
        policies,
        site,
        llm,
    } = raw;
    RawConfig {
        data_dir: path("SIGHTLINE_DATA_DIR", data_dir),
        listen: text("SIGHTLINE_LISTEN", listen),
        engine: RawEngine { library: path("SIGHTLINE_LIBCHDB", path("SIGHTLINE_ENGINE_LIBRARY", engine.library)) },
        clickhouse: RawClickHouse {
            url: text("SIGHTLINE_CLICKHOUSE_URL", clickhouse.url),
            user: text("SIGHTLINE_CLICKHOUSE_USER", clickhouse.user),
            password: text("SIGHTLINE_CLICKHOUSE_PASSWORD", clickhouse.password),
            database: text("SIGHTLINE_CLICKHOUSE_DATABASE", clickhouse.database),
        },
        audit: RawAudit {
            key_file: path("SIGHTLINE_AUDIT_KEY_FILE", audit.key_file),
            checkpoint_copy: path("SIGHTLINE_AUDIT_CHECKPOINT_COPY", audit.checkpoint_copy),
            heartbeat_seconds: text("SIGHTLINE_AUDIT_HEARTBEAT_SECONDS", audit.heartbeat_seconds),
            keep_days: text("SIGHTLINE_AUDIT_KEEP_DAYS", audit.keep_days),
        },
        cli: RawCli { principal: text("SIGHTLINE_CLI_PRINCIPAL", cli.principal) },
        evidence: RawKept { keep_days: text("SIGHTLINE_EVIDENCE_KEEP_DAYS", evidence.keep_days) },
        conversations: RawKept { keep_days: text("SIGHTLINE_CONVERSATIONS_KEEP_DAYS", conversations.keep_days) },
        server: RawServer { public_url: text("SIGHTLINE_SERVER_PUBLIC_URL", server.public_url) },
        policies: RawPolicies { dir: path("SIGHTLINE_POLICIES_DIR", policies.dir) },
        site: RawSite { dir: path("SIGHTLINE_SITE_DIR", site.dir) },
        llm: llm.overlay(env),
    }
}

fn check(raw: RawConfig, flags: &Flags) -> Result<Config, ConfigError> {
    let RawConfig {
        data_dir,
        listen,
        engine,
        clickhouse,
        audit,
        cli,
        evidence,
        conversations,
        server,
        policies,
        site,
        llm,
    } = raw;
    let mut faults = Vec::new();
    let (planner, llm) = llm.check(&mut faults);
    let listen = flags.listen.clone().or(listen).unwrap_or_else(|| DEFAULT_LISTEN.to_owned());
    let address = listen.parse::<SocketAddr>();
    if address.is_err() {
        faults.push(format!("`listen` is `{listen}`; write an address and a port, like `{DEFAULT_LISTEN}`"));
    }
    let mut days = |key: &str, raw: RawKept, default: i64| match raw.keep_days.as_deref().map(str::parse::<i64>) {
        None => default,
        Some(Ok(days)) if (1..=3650).contains(&days) => days,
        Some(_) => {
            faults.push(format!("`{key}.keep_days` must be a number of days from 1 to 3650, in quotes"));
            default
        }
    };
    let keep_days = KeepDays {
        evidence: days("evidence", evidence, DEFAULT_KEEP_DAYS.evidence),
        conversations: days("conversations", conversations, DEFAULT_KEEP_DAYS.conversations),
    };
    let audit_keep_days = audit
        .keep_days
        .is_some()
        .then(|| days("audit", RawKept { keep_days: audit.keep_days }, DEFAULT_AUDIT_KEEP_DAYS));
    let heartbeat_seconds = match audit.heartbeat_seconds.as_deref().map(str::parse::<u64>) {
        None => DEFAULT_HEARTBEAT_SECONDS,
        Some(Ok(seconds)) if (1..=3600).contains(&seconds) => seconds,
        Some(_) => {
            faults.push("`audit.heartbeat_seconds` must be a number of seconds from 1 to 3600, in quotes".to_owned());
            DEFAULT_HEARTBEAT_SECONDS
        }
    };
    let clickhouse = clickhouse.url.map(|url| {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            faults.push(
                "`clickhouse.url` must begin with `http://` or `https://`, like `https://clickhouse:8443`".to_owned(),
            );
        }
        ClickHouse {
            url,
            user: clickhouse.user.unwrap_or_else(|| DEFAULT_USER.to_owned()),
            password: Secret(clickhouse.password.unwrap_or_default()),
            database: clickhouse.database.unwrap_or_else(|| "sightline".to_owned()),
        }
    });
    if let Some(url) = server.public_url.as_deref().filter(|url| !is_origin(url)) {
        faults.push(format!(
            "`server.public_url` is `{url}`; write a scheme and a host, like `https://sightline.example.com`"
        ));
    }
    match address {
        Ok(listen) if faults.is_empty() => Ok(Config {
            data_dir: flags.data_dir.clone().or(data_dir).unwrap_or_else(|| PathBuf::from(DEFAULT_DATA_DIR)),
            listen,
            library: engine.library,
            clickhouse,
            audit_key_file: audit.key_file,
            checkpoint_copy: audit.checkpoint_copy,
            heartbeat_seconds,
            audit_keep_days,
            cli_principal: cli.principal,
            keep_days,
            public_url: server.public_url,
            policies_dir: policies.dir,
            site_dir: site.dir,
            planner,
            llm,
            program: None,
        }),
        Ok(_) | Err(_) => Err(ConfigError { faults }),
    }
}

/// Whether this is a scheme, a host and perhaps a port: cookies and origins know no path.
fn is_origin(url: &str) -> bool {
    let name = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_name = |name: &str| {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        !name.is_empty() && name.chars().all(part)
    };
    name.is_some_and(|name| is_name(name.strip_suffix('/').unwrap_or(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_env(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn flags_win_over_environment_and_environment_over_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "listen = \"127.0.0.1:1\"\ndata_dir = \"file\"\n[cli]\nprincipal = \"admin\"\n").unwrap();
        let flags = Flags { config: Some(file), listen: Some("127.0.0.1:3".to_owned()), data_dir: None };
        let env = |name: &str| match name {
            "SIGHTLINE_LISTEN" => Some("127.0.0.1:2".to_owned()),
            "SIGHTLINE_DATA_DIR" => Some("env".to_owned()),
            _ => None,
        };
        let config = Config::load(&flags, &env).unwrap();
        assert_eq!(config.listen.port(), 3);
        assert_eq!(config.data_dir, PathBuf::from("env"));
        assert_eq!(config.cli_principal.as_deref(), Some("admin"));
    }

    #[test]
    fn every_fault_is_told_at_once_and_no_secret_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "listen = \"here\"\n[clickhouse]\nurl = \"ftp://x\"\npassword = \"hunter2\"\n[evidence]\nkeep_days = \"0\"\n[conversations]\nkeep_days = \"soon\"\n").unwrap();
        let flags = Flags { config: Some(file.clone()), ..Flags::default() };
        let error = Config::load(&flags, &no_env).unwrap_err();
        assert_eq!(error.faults.len(), 4, "{error}");
        std::fs::write(&file, "[clickhouse]\npassword = \"hunter2\" oops\n").unwrap();
        let error = Config::load(&flags, &no_env).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_public_url_is_a_scheme_and_a_host() {
        let with = |url: &'static str| {
            let env = move |name: &str| (name == "SIGHTLINE_SERVER_PUBLIC_URL").then(|| url.to_owned());
            Config::load(&Flags::default(), &env).map(|config| config.public_url)
        };
        for url in ["https://sightline.example.com", "http://127.0.0.1:8787/", "https://[::1]:8443"] {
            assert_eq!(with(url).unwrap().as_deref(), Some(url));
        }
        for url in ["sightline.example.com", "https://", "https://a/b", "ftp://a", "https://a b", "https://u@h"] {
            assert!(with(url).unwrap_err().to_string().contains("server.public_url"), "{url}");
        }
    }

    #[test]
    fn an_unknown_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        std::fs::write(&file, "listne = \"127.0.0.1:1\"\n").unwrap();
        let flags = Flags { config: Some(file), ..Flags::default() };
        assert!(Config::load(&flags, &no_env).unwrap_err().to_string().contains("listne"));
    }

    #[test]
    fn a_heartbeat_comes_each_minute_and_copies_go_where_they_are_sent() {
        let env = |name: &str| match name {
            "SIGHTLINE_AUDIT_HEARTBEAT_SECONDS" => Some("5".to_owned()),
            "SIGHTLINE_AUDIT_CHECKPOINT_COPY" => Some("/mnt/elsewhere/checkpoints.jsonl".to_owned()),
            _ => None,
        };
        let told = Config::load(&Flags::default(), &env).unwrap();
        assert_eq!(told.heartbeat_seconds, 5);
        assert_eq!(told.checkpoint_copy, Some(PathBuf::from("/mnt/elsewhere/checkpoints.jsonl")));
        let untold = Config::load(&Flags::default(), &no_env).unwrap();
        assert_eq!((untold.heartbeat_seconds, untold.checkpoint_copy), (60, None));
        let never = |name: &str| (name == "SIGHTLINE_AUDIT_HEARTBEAT_SECONDS").then(|| "0".to_owned());
        let error = Config::load(&Flags::default(), &never).unwrap_err();
        assert!(error.to_string().contains("`audit.heartbeat_seconds` must be a number of seconds"), "{error}");
    }
}

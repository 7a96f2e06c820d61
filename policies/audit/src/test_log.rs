//! A log in a folder of its own, and records to put into it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::executor::block_on;
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::json;
use sightline_model::audit::{AuditLog, Begin, Call, Complete, DecisionRecord};
use sightline_model::{Principal, QueryId, QuestionId, Role, TenantScope};
use tempfile::TempDir;

use crate::{AuditKey, AuditReader, PublicKey, Salts, Settings, SqliteAudit, Verdict};

const SECRET: [u8; 32] = [7; 32];

pub(crate) struct TestLog {
    folder: TempDir,
}

impl TestLog {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("audit.db")
    }

    pub(crate) fn settings() -> Settings {
        Settings {
            checkpoint_every: 4,
            lock_wait: Duration::from_secs(30),
            ..Settings::new(AuditKey::from_secret(SECRET), [9; 16], salts())
        }
    }

    pub(crate) fn public_key() -> PublicKey {
        AuditKey::from_secret(SECRET).public()
    }

    pub(crate) fn open(&self) -> SqliteAudit {
        SqliteAudit::open(&self.path(), Self::settings()).unwrap()
    }

    /// A log of this many whole questions of three records each, written one after the other and closed.
    pub(crate) fn with_questions(count: usize) -> Self {
        let test = Self::new();
        let log = test.open();
        for index in 0..count {
            ask(&log, &format!("q{index}"));
        }
        test
    }

    pub(crate) fn reader(&self) -> AuditReader {
        AuditReader::open(&self.path()).unwrap()
    }

    pub(crate) fn verify(&self) -> Verdict {
        self.reader().verify(&Self::public_key()).unwrap()
    }

    /// What another process does that closes or has written much.
    pub(crate) fn fold(&self) {
        let shell = Connection::open(self.path()).unwrap();
        let busy = || shell.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0)).unwrap();
        // The log may just fold by itself.
        let mut tries = 0;
        while busy() {
            tries += 1;
            assert!(tries < 500, "something holds the log back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What a person with the file, a database shell and no key can do.
    pub(crate) fn tamper(&self, sql: &str) {
        let shell = Connection::open(self.path()).unwrap();
        // No test cuts the power: thousands of changes need no disk to wait for.
        shell.pragma_update(None, "synchronous", "OFF").unwrap();
        let mut statement =
            shell.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name").unwrap();
        let triggers: Vec<(String, String)> =
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
        drop(statement);
        let drops: String = triggers.iter().map(|(name, _)| format!("DROP TRIGGER {name};")).collect();
        let bodies: Vec<&str> = triggers.iter().map(|(_, body)| body.as_str()).collect();
        shell.execute_batch(&format!("BEGIN; {drops} {sql}; {}; COMMIT;", bodies.join(";"))).unwrap();
    }
}

/// Salts that differ, and are the same in each run.
pub(crate) fn salts() -> Salts {
    let next = AtomicU64::new(1);
    Box::new(move || {
        let mut salt = [5; 32];
        salt[..8].copy_from_slice(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Ok(salt)
    })
}

pub(crate) fn principal() -> Principal {
    Principal {
        id: "operator@atlas".to_owned(),
        role: Role::Operator,
        tenants: TenantScope::Only(BTreeSet::from(["atlas".to_owned()])),
        jobs_of: None,
    }
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn begin(id: &str) -> Begin {
    Begin {
        question_id: QuestionId::new(id),
        at: at("2026-05-04T10:00:00Z"),
        principal: principal(),
        entrance: "cli".to_owned(),
        question: "why was job J123 slow yesterday?".to_owned(),
        detail: BTreeMap::from([("time_zone".to_owned(), "UTC".to_owned())]),
    }
}

pub(crate) fn call(id: &str) -> Call {
    Call {
        question_id: QuestionId::new(id),
        at: at("2026-05-04T10:00:00.25Z"),
        tool: "metric_range".to_owned(),
        arguments: json!({ "metric": "DCGM_FI_DEV_GPU_TEMP" }),
        decision: DecisionRecord {
            allowed: true,
            rules: vec!["operator-reads-own-tenants".to_owned()],
            reasons: Vec::new(),
        },
        sql: Some("SELECT 1".to_owned()),
        params: BTreeMap::from([("p0".to_owned(), "['atlas']".to_owned())]),
        query_id: Some(QueryId::new("query-1")),
        tables: vec!["metrics".to_owned()],
        rows_read: 120,
        bytes_read: 4_096,
        wall_ms: 5.0,
        result_rows: 12,
        result_digest: Some("00".to_owned()),
        error: None,
    }
}

pub(crate) fn complete(id: &str, outcome: &str) -> Complete {
    Complete {
        question_id: QuestionId::new(id),
        at: at("2026-05-04T10:00:00.5Z"),
        outcome: outcome.to_owned(),
        answer_digest: None,
        checked: 14,
        dropped: 0,
        queries: 1,
        rows_read: 120,
        bytes_read: 4_096,
        wall_ms: 61.5,
        planner: "offline".to_owned(),
        llm_tokens: 0,
        model: None,
        error: None,
    }
}

/// One whole question: begin, call, complete.
pub(crate) fn ask(log: &SqliteAudit, id: &str) {
    block_on(log.begin(begin(id))).unwrap();
    block_on(log.call(call(id))).unwrap();
    block_on(log.complete(complete(id, "answered"))).unwrap();
}

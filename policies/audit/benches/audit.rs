//! Durable pairs a second with 64 writers, commits a pair, and how fast a log is verified.
//!
//! `cargo bench -p sightline-audit [-- PAIRS]`; the log lies in the current folder's file system, since a sync on a
//! memory disk costs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write;
use std::time::Instant;

use futures::executor::block_on;
use jiff::Timestamp;
use sightline_audit::{AuditKey, AuditReader, Check, Settings, SqliteAudit};
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Complete};
use sightline_model::{Principal, QuestionId, Role, TenantScope};

const WRITERS: u64 = 64;

fn begin(id: &str) -> Begin {
    Begin {
        question_id: QuestionId::new(id),
        at: Timestamp::UNIX_EPOCH,
        principal: Principal {
            id: "operator@atlas".to_owned(),
            role: Role::Operator,
            tenants: TenantScope::Only(BTreeSet::from(["atlas".to_owned()])),
            jobs_of: None,
        },
        entrance: "http".to_owned(),
        question: "why was training job J123 slow yesterday?".to_owned(),
        detail: BTreeMap::new(),
    }
}

fn complete(id: &str) -> Complete {
    Complete {
        question_id: QuestionId::new(id),
        at: Timestamp::UNIX_EPOCH,
        outcome: "answered".to_owned(),
        answer_digest: Some("00".repeat(32)),
        checked: 14,
        dropped: 0,
        queries: 6,
        rows_read: 120_000,
        bytes_read: 4_000_000,
        wall_ms: 84.5,
        planner: "offline".to_owned(),
        llm_tokens: 0,
        model: None,
        error: None,
    }
}

fn write_pairs(log: &SqliteAudit, writer: u64, pairs: u64) -> Result<(), AuditUnavailable> {
    for index in 0..pairs {
        let id = format!("0197a3c0-{writer:04}-7000-8000-{index:012}");
        block_on(log.begin(begin(&id)))?;
        block_on(log.complete(complete(&id)))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let pairs: u64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(20_000);
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("audit.db");
    let key = AuditKey::from_secret([1; 32]);
    let public_key = key.public();
    let log = SqliteAudit::open(&path, Settings::new(key, [2; 16], Box::new(|| Ok([3; 32]))))?;
    let mut out = std::io::stdout();

    let per_writer = (pairs / WRITERS).max(1);
    let pairs = per_writer * WRITERS;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let log = &log;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write_pairs(log, writer, per_writer))).collect();
        writers.into_iter().try_for_each(|writer| match writer.join() {
            Ok(written) => written,
            Err(_panicked) => Err(AuditUnavailable { reason: "a writer panicked".to_owned() }),
        })
    })?;
    let seconds = started.elapsed().as_secs_f64();
    // Each commit syncs the write-ahead log once. Folding it into the database, at each checkpoint and about every
    // 16 MiB, syncs it once more, and the database once; an `strace -fc -e fsync,fdatasync` of this counts them all.
    let commits = log.transactions();
    drop(log);
    let checkpoints = AuditReader::open(&path)?.checkpoints(0)?.len() as u64;
    let folds = std::fs::metadata(&path)?.len() / (16 << 20) + 1 + checkpoints;
    writeln!(
        out,
        "audit: {pairs} begin/complete pairs by {WRITERS} writers in {seconds:.2} s: {:.0} pairs/s, {:.3} fsyncs a pair ({commits} commits, about {folds} folds)",
        pairs as f64 / seconds,
        (commits + 2 * folds) as f64 / pairs as f64
    )?;

    let started = Instant::now();
    let report = AuditReader::open(&path)?.examine(&Check { key: &public_key, copies: &[], now: None })?;
    let seconds = started.elapsed().as_secs_f64();
    let per_million = seconds / (2 * pairs) as f64 * 1e6;
    writeln!(
        out,
        "audit: {}, {} checkpoints; verified in {seconds:.2} s, {per_million:.1} s a million records",
        report.verdict, report.checkpoints
    )?;
    Ok(())
}

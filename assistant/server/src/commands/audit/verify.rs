//! `sightline audit verify` and what a third party needs: the public key, and proofs of single records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sightline_audit::{AuditKey, FileCopy, Proof, PublicKey};
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event, EventKind};
use sightline_model::{AuditRef, BoxFuture};
use sightline_policies::Action;

use super::{Desk, open, print, told, who};
use crate::audit_log;
use crate::clock::SystemClock;
use crate::commands::{CommandError, failed};
use crate::config::Config;
use crate::output;
use crate::review::{AuditFiles, Reviewer, Verification, verify_files};

/// What is verified against what.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The public key that is trusted, as hex digits. With it neither a principal nor the secret key is needed.
    pub public_key: Option<String>,
    /// The log, where it is not that of the data folder.
    pub log: Option<PathBuf>,
    /// Files of copied checkpoints.
    pub copies: Vec<PathBuf>,
}

pub(super) async fn verify(
    config: &Config,
    principal: Option<&str>,
    json: bool,
    options: VerifyOptions,
) -> Result<(), CommandError> {
    if let Some(key) = &options.public_key {
        return end(&elsewhere(config, key, &options)?, json);
    }
    let (policies, principal) = who(config, principal)?;
    if !policies.check(&principal, Action::VerifyAudit, "").allowed() {
        return open(config, Some(&principal.id), json)?.reviewer().may(Action::VerifyAudit).await.map_err(told);
    }
    // First it is read: what makes the log take no record is what verifying must find.
    let found = AuditFiles::of(config, None).verify().await;
    let log: Box<dyn AuditLog> = match audit_log::open_existing(config) {
        Ok(log) => Box::new(log),
        Err(error) => Box::new(Unopened(error.to_string())),
    };
    let clock = SystemClock::start();
    let reviewer = Reviewer {
        principal: &principal,
        policies: &policies,
        log: log.as_ref(),
        clock: &clock,
        entrance: "cli",
        denials: None,
    };
    end(&reviewer.record_verified(found).await.map_err(told)?, json)
}

/// Verifies as somebody does who has the files and a public key. It is not recorded: who holds a copy of the log needs
/// nobody's leave.
fn elsewhere(config: &Config, key: &str, options: &VerifyOptions) -> Result<Verification, CommandError> {
    let key = parsed(key)?;
    let log = options.log.clone().unwrap_or_else(|| audit_log::path(config));
    let (mut copies, mut unreadable) = (Vec::new(), Vec::new());
    for file in &options.copies {
        match FileCopy::read(file) {
            Ok(copied) => copies.push(copied),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    verify_files(&log, || Ok(key), &copies, unreadable).map_err(told)
}

fn end(found: &Verification, json: bool) -> Result<(), CommandError> {
    if json {
        print::json(found)?;
    } else {
        print::verification(found)?;
    }
    match found.whole {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::Failed("the audit log is broken; keep it as it is".to_owned())),
        None => Err(CommandError::Failed(
            "the audit log is whole in itself, but not proved whole; see above which copy shows nothing".to_owned(),
        )),
    }
}

/// Prints the proof of one record. It holds the record's text, so it is an export, and recorded as one.
pub(super) async fn proof(desk: &Desk, seq: u64) -> Result<(), CommandError> {
    let detail = BTreeMap::from([("format".to_owned(), "proof".to_owned()), ("seq".to_owned(), seq.to_string())]);
    desk.look(Action::ExportAudit, EventKind::AuditExported, detail).await?;
    let proof = desk.files.read(move |reader| Ok(reader.proof(seq)?)).await.map_err(told)?;
    let proof = proof.ok_or_else(|| {
        CommandError::Failed(format!(
            "record {seq} cannot be proved: there is none, or no checkpoint was made after it yet; a running service makes one at its next sign of life"
        ))
    })?;
    print::json(&proof)
}

/// Checks a proof against a public key, with nothing else.
pub(super) fn check_proof(file: &Path, public_key: &str) -> Result<(), CommandError> {
    let key = parsed(public_key)?;
    let unreadable = |what: String| CommandError::Usage(format!("`{}` is no proof: {what}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    let proof: Proof = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    proof.check(&key).map_err(|what| CommandError::Failed(format!("the proof does not hold: {what}")))?;
    let checkpoint = &proof.checkpoint;
    output::result(&format!(
        "the proof holds: record {} stands in segment {} of log {}, signed on {}",
        proof.seq, checkpoint.segment, checkpoint.log_id, checkpoint.at
    ))
    .map_err(failed)
}

/// Prints the public key of the log.
pub(super) fn public_key(config: &Config) -> Result<(), CommandError> {
    let path = audit_log::key_file(config);
    let key =
        AuditKey::load(&path).map_err(failed)?.ok_or_else(|| failed(audit_log::AuditLogError::Missing { path }))?;
    output::result(&key.public().to_string()).map_err(failed)
}

fn parsed(key: &str) -> Result<PublicKey, CommandError> {
    PublicKey::parse(key).ok_or_else(|| {
        CommandError::Usage("--public-key takes the 64 hex digits that `sightline audit public-key` prints".to_owned())
    })
}

/// A log that cannot be opened to record a look, with why.
struct Unopened(String);

impl Unopened {
    fn refuse<T>(&self) -> BoxFuture<'_, Result<T, AuditUnavailable>>
    where
        T: Send + 'static,
    {
        let reason = self.0.clone();
        Box::pin(async move { Err(AuditUnavailable { reason }) })
    }
}

impl AuditLog for Unopened {
    fn begin(&self, _record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        self.refuse()
    }

    fn call(&self, _record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.refuse()
    }

    fn event(&self, _record: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.refuse()
    }

    fn complete(&self, _record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.refuse()
    }
}

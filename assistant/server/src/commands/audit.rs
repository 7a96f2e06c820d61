//! `sightline audit`: looking into the log from the command line. Each look is recorded in it before anything is printed.
//!
//! Reading, verifying, exporting and erasing work without an engine, and beside a running service; replaying needs the engine.

mod erase;
mod export;
mod print;
mod replay;
mod verify;

use std::collections::BTreeMap;
use std::path::PathBuf;

use sightline_audit::{Amounts, SqliteAudit};
use sightline_core::Clock as _;
use sightline_model::audit::EventKind;
use sightline_model::{Principal, QuestionId};
use sightline_policies::{Action, Policies};

use super::ask::listed;
use super::{CommandError, failed};
use crate::audit_log;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::output;
use crate::policies::PolicyFiles;
use crate::review::{AuditFiles, ReviewError, Reviewer, SearchQuery, UsageQuery};

pub use erase::EraseOptions;
pub use export::{ExportFormat, ExportOptions};
pub use verify::VerifyOptions;

/// What is to be done with the log.
#[derive(Clone, Debug)]
pub enum AuditCommand {
    /// List entries.
    List(SearchQuery),
    /// Open one question.
    Show(String),
    /// Verify the whole log.
    Verify(VerifyOptions),
    /// Prove one record to somebody who may not see the others.
    Proof(u64),
    /// Check such a proof.
    CheckProof {
        /// The file that holds it.
        file: PathBuf,
        /// The public key, as hex digits.
        public_key: String,
    },
    /// Print the public key.
    PublicKey,
    /// Write it for other programs.
    Export(ExportOptions),
    /// Run a question's queries again.
    Replay {
        /// The question.
        question: String,
        /// The recorded incident that it was asked about.
        bundle: Option<PathBuf>,
    },
    /// Erase texts of questions.
    Erase(EraseOptions),
    /// Sign with a new key from here on.
    RotateKey,
    /// What was used, by day.
    Usage(UsageQuery),
}

/// The log open on the command line, and who looks.
struct Desk {
    principal: Principal,
    policies: Policies,
    log: SqliteAudit,
    clock: SystemClock,
    files: AuditFiles,
    json: bool,
}

impl Desk {
    fn reviewer(&self) -> Reviewer<'_> {
        let Self { principal, policies, log, clock, .. } = self;
        Reviewer { principal, policies, log, clock, entrance: "cli", denials: None }
    }

    /// Records a look and lets it be taken.
    async fn look(
        &self,
        action: Action,
        event: EventKind,
        detail: BTreeMap<String, String>,
    ) -> Result<(), CommandError> {
        self.reviewer().record(action, event, detail).await.map_err(told)
    }
}

/// Does it.
///
/// # Errors
/// When the principal is not known or may not, the log cannot be used, or it is found to be broken.
pub async fn audit(
    config: &Config,
    principal: Option<&str>,
    json: bool,
    command: AuditCommand,
) -> Result<(), CommandError> {
    let desk = || open(config, principal, json);
    match command {
        AuditCommand::List(query) => list(&desk()?, query).await,
        AuditCommand::Show(question) => show(&desk()?, &question).await,
        AuditCommand::Verify(options) => verify::verify(config, principal, json, options).await,
        AuditCommand::Proof(seq) => verify::proof(&desk()?, seq).await,
        AuditCommand::CheckProof { file, public_key } => verify::check_proof(&file, &public_key),
        AuditCommand::PublicKey => verify::public_key(config),
        AuditCommand::Export(options) => export::export(&desk()?, options).await,
        AuditCommand::Erase(options) => erase::erase(config, &desk()?, options).await,
        AuditCommand::Usage(query) => usage(&desk()?, query).await,
        AuditCommand::Replay { question, bundle } => replay::replay(config, principal, json, &question, bundle).await,
        AuditCommand::RotateKey => rotate_key(config, &desk()?).await,
    }
}

fn open(config: &Config, principal: Option<&str>, json: bool) -> Result<Desk, CommandError> {
    let (policies, principal) = who(config, principal)?;
    let log = audit_log::open_existing(config).map_err(failed)?;
    Ok(Desk { principal, policies, log, clock: SystemClock::start(), files: AuditFiles::of(config, None), json })
}

/// The rules, and who reviews.
fn who(config: &Config, principal: Option<&str>) -> Result<(Policies, Principal), CommandError> {
    let policies =
        PolicyFiles::read(config.policies_dir.as_deref()).and_then(|files| files.policies()).map_err(failed)?;
    let principal = named(config, &policies, principal)?;
    Ok((policies, principal))
}

/// The principal that `--as` or the configuration names.
fn named(config: &Config, policies: &Policies, principal: Option<&str>) -> Result<Principal, CommandError> {
    let named = principal
        .or(config.cli_principal.as_deref())
        .ok_or_else(|| CommandError::Usage(format!("say who reviews with --as; {}", listed(policies))))?;
    known(policies, named)
}

/// The principal of this name.
pub(super) fn known(policies: &Policies, name: &str) -> Result<Principal, CommandError> {
    policies
        .principal(name)
        .ok_or_else(|| CommandError::Usage(format!("there is no principal `{name}`; {}", listed(policies))))
}

async fn list(desk: &Desk, query: SearchQuery) -> Result<(), CommandError> {
    let search = query.search().map_err(told)?;
    desk.look(Action::ReadAudit, EventKind::AuditRead, query.detail()).await?;
    let found = desk.files.read(move |reader| Ok(reader.search(&search)?)).await.map_err(told)?;
    let next_cursor = found.next.map(|cursor| cursor.text());
    if desk.json {
        let page = serde_json::json!({ "entries": found.entries, "next_cursor": next_cursor });
        return print::json(&page);
    }
    print::entries(&found.entries)?;
    if let Some(cursor) = next_cursor {
        output::note(&format!("there is more; go on with --cursor {cursor}"));
    }
    Ok(())
}

async fn show(desk: &Desk, question: &str) -> Result<(), CommandError> {
    desk.look(Action::ReadAudit, EventKind::AuditRead, of_question(question)).await?;
    let id = QuestionId::new(question);
    let found = desk.files.read(move |reader| Ok(reader.question_record(&id)?)).await.map_err(told)?;
    let record = found.ok_or_else(|| told(ReviewError::Unknown))?;
    if desk.json { print::json(&record) } else { print::question(&record) }
}

async fn usage(desk: &Desk, query: UsageQuery) -> Result<(), CommandError> {
    let filter = query.filter().map_err(told)?;
    desk.look(Action::ReadAllUsage, EventKind::AuditRead, query.detail()).await?;
    let usage = desk.files.read(move |reader| Ok(reader.usage(&filter, Amounts::Exact)?)).await.map_err(told)?;
    if desk.json { print::json(&serde_json::json!({ "usage": usage })) } else { print::usage(&usage) }
}

/// Makes a new key, has both sign that it follows the old one, and prints its public half.
async fn rotate_key(config: &Config, desk: &Desk) -> Result<(), CommandError> {
    // The right over other secrets of the service: whoever may make tokens of others may make its key.
    desk.reviewer().may(Action::ManageTokens).await.map_err(told)?;
    let at = desk.clock.now();
    let public = audit_log::rotate_key(config, at, &desk.principal.id).await.map_err(failed)?;
    output::result(&format!(
        "the log is signed with key {} from here on\npublic key: {public}\nkeep it where the service cannot write; the old one still checks the whole log, but trust the new one alone if the old secret may have leaked",
        public.id()
    ))
    .map_err(failed)
}

fn of_question(id: &str) -> BTreeMap<String, String> {
    [("question_id".to_owned(), id.chars().take(64).collect())].into()
}

/// What a reviewer is told: what was asked for wrongly is a fault of the call.
pub(super) fn told(error: ReviewError) -> CommandError {
    match error {
        ReviewError::Query(_) => CommandError::Usage(error.to_string()),
        ReviewError::Denied { .. }
        | ReviewError::Unrecorded(_)
        | ReviewError::Log(_)
        | ReviewError::Unknown
        | ReviewError::NoKey { .. }
        | ReviewError::Busy
        | ReviewError::Crashed(_) => failed(error),
    }
}

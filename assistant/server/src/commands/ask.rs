//! `sightline ask`: one question from the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::offline::OfflinePlanner;
use sightline_core::{Assistant, Event, Events, Question, answer_question, render_text};
use sightline_model::{Answer, ConversationId, Principal, QuestionId, Role};
use sightline_policies::{Policies, bundle_principal};

use super::{CommandError, failed};
use crate::answers::{Answers, Kept};
use crate::config::Config;
use crate::output;
use crate::retention;
use crate::stations::{Data, Stations};

/// What the command line said.
#[derive(Clone, Debug, Default)]
pub struct AskOptions {
    /// The question.
    pub question: String,
    /// `--bundle`
    pub bundle: Option<PathBuf>,
    /// `--as`
    pub principal: Option<String>,
    /// `--as-of`
    pub as_of: Option<String>,
    /// `--tz`
    pub time_zone: Option<String>,
    /// `--conversation`
    pub conversation: Option<String>,
    /// `--json`
    pub json: bool,
    /// `--explain`
    pub explain: bool,
}

/// Asks, and prints the answer.
///
/// # Errors
/// When the options cannot be used or there is no answer.
pub async fn ask(config: &Config, options: AskOptions) -> Result<(), CommandError> {
    let time_zone = zone(options.time_zone.as_deref())?;
    let as_of = options.as_of.as_deref().map(instant).transpose()?;
    let data = options.bundle.clone().map_or(Data::Own, Data::Bundle);
    let stations = Stations::open(config, data).await.map_err(failed)?;
    let answered = ask_on(config, &stations, &options, time_zone, as_of).await;
    stations.close().await;
    let answer = answered?;
    let text = if options.json { serde_json::to_string_pretty(&answer).map_err(failed)? } else { render_text(&answer) };
    output::result(&text).map_err(failed)
}

async fn ask_on(
    config: &Config,
    stations: &Stations,
    options: &AskOptions,
    time_zone: TimeZone,
    as_of: Option<Timestamp>,
) -> Result<Answer, CommandError> {
    let named = options.principal.as_deref().or(config.cli_principal.as_deref());
    let principal = choose_principal(
        &stations.assistant.policies.now(),
        named,
        options.bundle.is_some(),
        &stations.assistant.tenants,
    )?;
    let as_of = match (as_of, stations.latest) {
        (Some(as_of), _) => as_of,
        (None, Some(latest)) => {
            output::note(&format!(
                "asked as of {latest}, the bundle's latest sample; name another instant with --as-of"
            ));
            latest
        }
        (None, None) => stations.assistant.clock.now(),
    };
    let id = || stations.assistant.ids.next();
    let answers = Arc::new(Answers::open(&config.data_dir, config.keep_days).map_err(failed)?);
    if let Some(conversation) = &options.conversation
        && !answers.may_continue(conversation, &principal.id, stations.assistant.clock.now()).map_err(failed)?
    {
        return Err(CommandError::Usage(format!(
            "`{}` has no conversation with the id of --conversation; leave it out to begin a new one",
            principal.id
        )));
    }
    let before = match &options.conversation {
        Some(conversation) => answers.before(conversation, &principal).map_err(failed)?,
        None => Vec::new(),
    };
    let question = Question {
        id: QuestionId::new(id()),
        conversation_id: ConversationId::new(options.conversation.clone().unwrap_or_else(id)),
        text: options.question.clone(),
        before,
        principal,
        entrance: "cli",
        as_of,
        time_zone,
    };
    if options.explain {
        let planner = OfflinePlanner::over(Arc::clone(&stations.assistant.catalogue), Arc::clone(&stations.words));
        output::note(&planner.explain(&question.brief()).map_err(failed)?.to_string());
    }
    let progress = Progress { quiet: options.json };
    let answer = answer_question(&stations.assistant, &question, &progress).await.map_err(failed)?;
    keep(&stations.assistant, &answers, &answer, &question.principal, options.conversation.is_some()).await;
    Ok(answer)
}

/// Keeps the answer, and lets go of what is past its days. An answer that cannot be kept is still an answer.
async fn keep(assistant: &Assistant, answers: &Arc<Answers>, answer: &Answer, principal: &Principal, continues: bool) {
    let (audit, clock) = (assistant.audit.as_ref(), assistant.clock.as_ref());
    let kept = match answers.keep(answer, principal, clock.now(), continues) {
        Ok(Kept::Stored) => retention::sweep(answers, audit, clock, "cli").await.map(drop),
        Ok(Kept::ConversationGone) => {
            output::note("· the answer is not kept: its conversation was deleted meanwhile");
            Ok(())
        }
        Err(error) => Err(error),
    };
    if let Err(error) = kept {
        output::note(&format!("· the answer is not kept: {error}"));
    }
}

/// Steps on stderr, so that stdout holds the answer alone.
struct Progress {
    quiet: bool,
}

impl Events for Progress {
    fn emit(&self, event: Event) {
        if self.quiet {
            return;
        }
        match event {
            Event::ToolCall(call) => output::note(&format!("· calling {}", call.tool)),
            Event::ToolResult { tool, queries, rows_read, wall_ms, error: None, .. } => {
                output::note(&format!("· {tool}: {queries} queries read {rows_read} rows in {wall_ms:.0} ms"));
            }
            Event::ToolResult { tool, error: Some(error), .. } => output::note(&format!("· {tool}: {error}")),
            Event::Accepted { .. } | Event::Plan { .. } | Event::Claim(_) | Event::Answer(_) => {}
        }
    }
}

fn zone(name: Option<&str>) -> Result<TimeZone, CommandError> {
    match name {
        Some(name) => TimeZone::get(name).map_err(|_| {
            CommandError::Usage(format!("`{name}` is no IANA time zone; use a name such as `Europe/Berlin` with --tz"))
        }),
        None => Ok(TimeZone::system()),
    }
}

fn instant(text: &str) -> Result<Timestamp, CommandError> {
    text.parse()
        .map_err(|_| CommandError::Usage(format!("`{text}` is no instant; write --as-of like 2026-05-04T10:00:00Z")))
}

/// The principal: the one that was named, or the operator of a bundle's only tenant.
pub(super) fn choose_principal(
    policies: &Policies,
    named: Option<&str>,
    is_bundle: bool,
    tenants: &BTreeSet<String>,
) -> Result<Principal, CommandError> {
    let only = if tenants.len() == 1 { tenants.first() } else { None };
    match (named, only) {
        (Some(named), _) => policies
            .principal(named)
            .or_else(|| if is_bundle { made_up(named) } else { None })
            .ok_or_else(|| CommandError::Usage(format!("there is no principal `{named}`; {}", listed(policies)))),
        (None, Some(tenant)) if is_bundle => Ok(bundle_principal(Role::Operator, tenant)),
        (None, _) => Err(CommandError::Usage(format!("say who asks with --as; {}", listed(policies)))),
    }
}

/// `role@tenant`, which only a bundle takes: it holds no more than its owner has on disk anyway.
fn made_up(named: &str) -> Option<Principal> {
    let (role, tenant) = named.split_once('@')?;
    let role = Role::parse(role)?;
    (!tenant.is_empty()).then(|| bundle_principal(role, tenant))
}

pub(super) fn listed(policies: &Policies) -> String {
    let names: Vec<String> = policies.principals().into_iter().map(|p| format!("`{}`", p.id)).collect();
    format!("there are {}", names.join(", "))
}

//! `sightline audit erase`: texts of questions leave the log on request, and conversations the answer store.

use sightline_audit::{Erase, Erased};
use sightline_core::Clock as _;
use sightline_model::QuestionId;
use sightline_model::audit::{EventKind, EventOutcome};
use sightline_policies::Action;

use super::{Desk, print, told};
use crate::answers::Answers;
use crate::commands::{CommandError, failed};
use crate::config::Config;
use crate::output;

/// Whose texts are erased.
#[derive(Clone, Debug, Default)]
pub struct EraseOptions {
    /// The questions.
    pub questions: Vec<String>,
    /// The principal, all of whose questions are meant.
    pub principal: Option<String>,
    /// `--conversations`: the principal's conversations go, too.
    pub conversations: bool,
}

pub(super) async fn erase(config: &Config, desk: &Desk, options: EraseOptions) -> Result<(), CommandError> {
    let EraseOptions { questions, principal, conversations } = options;
    let asked: Vec<QuestionId> = questions.into_iter().map(QuestionId::new).collect();
    let what = match &principal {
        Some(principal) => Erase::Principal(principal.clone()),
        None => Erase::Questions(asked.clone()),
    };
    desk.reviewer().may(Action::EraseText).await.map_err(told)?;
    if conversations {
        desk.reviewer().may(Action::ManageConversations).await.map_err(told)?;
    }
    // The log records the erasure together with it, or does neither.
    let Erased { questions, in_the_chain } =
        desk.log.erase(what, desk.clock.now(), desk.principal.id.clone()).await.map_err(failed)?;
    // Also where the log's own text went before: then the answer may have stayed behind.
    let answers = if asked.is_empty() { 0 } else { open(config)?.erase_questions(&asked).map_err(failed)? };
    if let Some(principal) = principal.as_ref().filter(|_| !conversations) {
        output::note(&format!(
            "the answer store still holds the questions and answers in conversations of `{principal}`; --conversations deletes them"
        ));
    }
    let deleted = match principal.filter(|_| conversations) {
        Some(principal) => delete_conversations(config, desk, &principal).await?,
        None => 0,
    };
    if desk.json {
        return print::json(&serde_json::json!({
            "erased": questions, "in_the_chain": in_the_chain, "answers_erased": answers, "conversations_deleted": deleted,
        }));
    }
    output::result(&format!(
        "erased the texts of {} questions, {answers} answers of them and {deleted} conversations",
        questions.len()
    ))
    .map_err(failed)?;
    if !in_the_chain.is_empty() {
        let ids: Vec<&str> = in_the_chain.iter().map(QuestionId::as_str).collect();
        output::note(&format!(
            "not erased: {}; they were recorded by an older program that put the text into the chain itself",
            ids.join(", ")
        ));
    }
    Ok(())
}

fn open(config: &Config) -> Result<Answers, CommandError> {
    Answers::open(&config.data_dir, config.keep_days).map_err(failed)
}

async fn delete_conversations(config: &Config, desk: &Desk, principal: &str) -> Result<u64, CommandError> {
    let answers = open(config)?;
    let count = answers.count_conversations(principal, None).map_err(failed)?;
    let detail = [
        ("conversations".to_owned(), count.to_string()),
        ("conversation_id".to_owned(), "all".to_owned()),
        ("of".to_owned(), principal.to_owned()),
    ];
    let reviewer = desk.reviewer();
    reviewer.write(EventKind::ConversationsDeleted, EventOutcome::Done, detail.into()).await.map_err(told)?;
    answers.delete_conversations(principal, None).map_err(failed)
}

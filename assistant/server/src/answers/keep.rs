//! Keeping an answer for the one who asked.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;
use sightline_core::Earlier;
use sightline_model::{Answer, AnswerId, Evidence, Principal, QuestionId, Series};

use super::conversations::AnswerEntry;
use super::rights::Rights;
use super::{Answers, AnswersError, days_after};

/// The longest title of a conversation, characters: one line of a list.
const MAX_TITLE: usize = 80;

/// So many questions of a conversation are gone on from: who goes further back asks anew.
const MAX_BEFORE: usize = 8;

/// Whether an answer was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was.
    Stored,
    /// Its conversation was deleted while it was being answered, or is somebody else's: nothing of it was kept.
    ConversationGone,
}

/// Which answer evidence belongs to, and who asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whose<'a> {
    /// The answer.
    pub(crate) answer_id: &'a AnswerId,
    /// The question, or the typed call.
    pub(crate) question_id: &'a QuestionId,
    /// Who asked.
    pub(crate) asker: &'a Principal,
}

/// Evidence with its points, as it is served.
#[derive(Serialize)]
struct WithPoints<'a> {
    #[serde(flatten)]
    evidence: &'a Evidence,
    series: &'a [Series],
}

impl Answers {
    /// Whether a question of this principal may continue the conversation of that id. False alike for one of somebody else, for one that
    /// is past its days and only waits to be swept, and for one that does not exist.
    ///
    /// # Errors
    /// When the database fails.
    pub fn may_continue(&self, conversation: &str, principal: &str, now: Timestamp) -> Result<bool, AnswersError> {
        let sql = "SELECT 1 FROM conversation WHERE id = ?1 AND principal = ?2 AND kept_until > ?3";
        Ok(self.database().prepare_cached(sql)?.exists((conversation, principal, now.as_second()))?)
    }

    /// The latest questions of a conversation, the oldest first, with what their answers were about; of an answer that the asker may no longer
    /// see, nothing but the question.
    ///
    /// # Errors
    /// When the database fails.
    pub fn before(&self, conversation: &str, asker: &Principal) -> Result<Vec<Earlier>, AnswersError> {
        let Some(file) = self.conversation(conversation, asker, None)? else { return Ok(Vec::new()) };
        let skipped = file.entries.len().saturating_sub(MAX_BEFORE);
        let earlier = |entry: AnswerEntry| {
            let answer = entry.answer.and_then(|json| serde_json::from_value::<Answer>(json).ok());
            answer.map_or(Earlier { text: entry.question, focus: Vec::new() }, |answer| Earlier::of(&answer))
        };
        Ok(file.entries.into_iter().skip(skipped).map(earlier).collect())
    }

    /// Keeps an answer in its conversation, with its evidence. `continues` says that the question named a conversation that was there.
    ///
    /// # Errors
    /// When the database fails.
    pub fn keep(
        &self,
        answer: &Answer,
        asker: &Principal,
        now: Timestamp,
        continues: bool,
    ) -> Result<Kept, AnswersError> {
        let conversation = answer.conversation_id.as_str();
        let principal = asker.id.as_str();
        let kept_until = days_after(now, self.keep.conversations).as_second();
        let mut database = self.database();
        let transaction = database.transaction()?;
        let owner: Option<String> = transaction
            .query_row("SELECT principal FROM conversation WHERE id = ?1", [conversation], |row| row.get(0))
            .optional()?;
        match owner {
            Some(owner) if owner == principal => {
                transaction.execute(
                    "UPDATE conversation SET updated_ms = max(updated_ms, ?2), kept_until = max(kept_until, ?3) WHERE id = ?1",
                    (conversation, now.as_millisecond(), kept_until),
                )?;
            }
            // Deleting a conversation takes with it what is still being answered in it.
            Some(_) => return Ok(Kept::ConversationGone),
            None if continues => return Ok(Kept::ConversationGone),
            None => {
                transaction.execute(
                    "INSERT INTO conversation (id, principal, title, created_ms, updated_ms, kept_until)
                     VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                    (conversation, principal, title(&answer.question), now.as_millisecond(), kept_until),
                )?;
            }
        }
        transaction.execute(
            "INSERT INTO answer (id, question_id, principal, conversation_id, at_ms, question, json, rights)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            (
                answer.answer_id.as_str(),
                answer.audit.question_id.as_str(),
                principal,
                conversation,
                now.as_millisecond(),
                &answer.question,
                serde_json::to_string(answer)?,
                serde_json::to_string(&Rights::of(asker))?,
            ),
        )?;
        let kept_until = days_after(now, self.keep.evidence);
        let whose = Whose { answer_id: &answer.answer_id, question_id: &answer.audit.question_id, asker };
        insert_evidence(&transaction, whose, &answer.evidence, kept_until)?;
        transaction.commit()?;
        Ok(Kept::Stored)
    }

    /// Keeps the evidence of a typed call for the one who called; it belongs to no conversation.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn keep_evidence(
        &self,
        whose: Whose<'_>,
        evidence: &[Evidence],
        now: Timestamp,
    ) -> Result<(), AnswersError> {
        let mut database = self.database();
        let transaction = database.transaction()?;
        insert_evidence(&transaction, whose, evidence, days_after(now, self.keep.evidence))?;
        transaction.commit()?;
        Ok(())
    }
}

fn insert_evidence(
    database: &Connection,
    whose: Whose<'_>,
    evidence: &[Evidence],
    kept_until: Timestamp,
) -> Result<(), AnswersError> {
    let Whose { answer_id, question_id, asker } = whose;
    let rights = serde_json::to_string(&Rights::of(asker))?;
    for evidence in evidence {
        let json = serde_json::to_string(&WithPoints { evidence, series: &evidence.series })?;
        let id = format!("{answer_id}.{}", evidence.id);
        database.execute(
            "INSERT OR REPLACE INTO evidence (id, answer_id, principal, kept_until, json, rights, question_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            (&id, answer_id.as_str(), &asker.id, kept_until.as_second(), &json, &rights, question_id.as_str()),
        )?;
    }
    Ok(())
}

/// A conversation is called by its first question, on one line and cut to a line's length.
pub(super) fn title(question: &str) -> String {
    let line = question.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TITLE {
        return line;
    }
    let cut: String = line.chars().take(MAX_TITLE - 1).collect();
    // At a word's end, unless that leaves next to nothing.
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    let kept = if whole.chars().count() * 2 >= MAX_TITLE { whole } else { cut.as_str() };
    format!("{kept}…")
}

//! One's own conversations: list, open, delete.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};
use serde::Serialize;
use serde_json::Value;
use sightline_model::{Principal, QuestionId};

use super::keep::title;
use super::rights::{RIGHTS_CHANGED, Rights};
use super::{Answers, AnswersError, Feedback, Verdict, fold};

/// The most conversations of a page.
const MAX_CONVERSATIONS: u32 = 200;
/// Answers of a conversation on a page: each may carry some hundred rows of evidence.
const ANSWERS_A_PAGE: u32 = 50;

/// One conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConversationLine {
    /// Its id.
    pub id: String,
    /// Its first question, cut to a line.
    pub title: String,
    /// When it began.
    pub created: Timestamp,
    /// When its last answer was kept.
    pub updated: Timestamp,
    /// When it will be let go of.
    pub kept_until: Timestamp,
    /// How many answers it holds.
    pub answers: u64,
}

/// A page of conversations, the one answered last first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conversations {
    /// The conversations.
    pub conversations: Vec<ConversationLine>,
    /// What to send as `cursor` for the next page; none on the last.
    pub next_cursor: Option<String>,
}

/// A conversation with its answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversationFile {
    /// Its line.
    #[serde(flatten)]
    pub line: ConversationLine,
    /// Its latest answers, in the order they were asked.
    pub entries: Vec<AnswerEntry>,
    /// What to send as `cursor` for those before them; none at the beginning.
    pub next_cursor: Option<String>,
}

/// One answer of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerEntry {
    /// Its id.
    pub answer_id: String,
    /// The question's id in the audit log.
    pub question_id: String,
    /// When it was answered.
    pub at: Timestamp,
    /// The question.
    pub question: String,
    /// The answer as it was sent; null where it is withheld.
    pub answer: Option<Value>,
    /// Why the answer is withheld: its asker no longer has the rights with which it was got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<&'static str>,
    /// What was thought of it.
    pub feedback: Option<Feedback>,
}

/// Where a page ended: the sort key of its last row. Opaque to those who send it back.
struct Cursor {
    at_ms: i64,
    id: String,
}

impl Cursor {
    fn text(&self) -> String {
        hex::encode(format!("{}/{}", self.at_ms, self.id))
    }

    fn parse(text: &str) -> Result<Self, AnswersError> {
        let bytes = hex::decode(text).map_err(|_| AnswersError::Cursor)?;
        let text = String::from_utf8(bytes).map_err(|_| AnswersError::Cursor)?;
        let (at_ms, id) = text.split_once('/').ok_or(AnswersError::Cursor)?;
        Ok(Self { at_ms: at_ms.parse().map_err(|_| AnswersError::Cursor)?, id: id.to_owned() })
    }
}

impl Answers {
    /// A page of this principal's conversations.
    ///
    /// # Errors
    /// When the cursor is none of ours or the database fails.
    pub fn conversations(
        &self,
        principal: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Conversations, AnswersError> {
        let limit = limit.clamp(1, MAX_CONVERSATIONS);
        let cursor = cursor.map(Cursor::parse).transpose()?;
        let database = self.database();
        let mut statement = database.prepare_cached(
            "SELECT id, title, created_ms, updated_ms, kept_until,
                    (SELECT count(*) FROM answer WHERE conversation_id = conversation.id)
             FROM conversation WHERE principal = :principal AND (:at IS NULL OR (updated_ms, id) < (:at, :id))
             ORDER BY updated_ms DESC, id DESC LIMIT :limit",
        )?;
        let rows = statement.query_map(
            named_params! {
                ":principal": principal, ":at": cursor.as_ref().map(|c| c.at_ms), ":id": cursor.as_ref().map(|c| &c.id),
                ":limit": limit.saturating_add(1),
            },
            RawLine::read,
        )?;
        let mut conversations = Vec::new();
        for row in rows {
            conversations.push(row?.line()?);
        }
        let more = conversations.len() > limit as usize;
        conversations.truncate(limit as usize);
        let next_cursor = conversations
            .last()
            .filter(|_| more)
            .map(|last| Cursor { at_ms: last.updated.as_millisecond(), id: last.id.clone() }.text());
        Ok(Conversations { conversations, next_cursor })
    }

    /// One of this principal's conversations with its latest answers, or those before a cursor. An answer that was got with rights
    /// that the principal no longer has is withheld; its question, which is the asker's own, is not.
    ///
    /// # Errors
    /// When the cursor is none of ours or the database fails.
    pub fn conversation(
        &self,
        id: &str,
        principal: &Principal,
        cursor: Option<&str>,
    ) -> Result<Option<ConversationFile>, AnswersError> {
        let cursor = cursor.map(Cursor::parse).transpose()?;
        let database = self.database();
        let line = database
            .prepare_cached(
                "SELECT id, title, created_ms, updated_ms, kept_until,
                        (SELECT count(*) FROM answer WHERE conversation_id = conversation.id)
                 FROM conversation WHERE id = ?1 AND principal = ?2",
            )?
            .query_row((id, &principal.id), RawLine::read)
            .optional()?;
        let Some(line) = line else { return Ok(None) };
        let (entries, next_cursor) = entries(&database, id, principal, cursor.as_ref())?;
        Ok(Some(ConversationFile { line: line.line()?, entries, next_cursor }))
    }

    /// How many conversations a deletion would take: the one of this id, or all of this principal.
    ///
    /// # Errors
    /// When the database fails.
    pub fn count_conversations(&self, principal: &str, id: Option<&str>) -> Result<u64, AnswersError> {
        let sql = "SELECT count(*) FROM conversation WHERE principal = ?1 AND (?2 IS NULL OR id = ?2)";
        Ok(self.database().query_row(sql, (principal, id), |row| row.get(0))?)
    }

    /// Deletes the conversation of this id, or all of this principal, with their answers, evidence and feedback. Gives back how many
    /// conversations went. With all of them goes evidence from before there were conversations, too.
    ///
    /// # Errors
    /// When the database fails.
    pub fn delete_conversations(&self, principal: &str, id: Option<&str>) -> Result<u64, AnswersError> {
        let mut database = self.database();
        let transaction = database.transaction()?;
        transaction.execute(
            "DELETE FROM evidence WHERE principal = ?1 AND (?2 IS NULL OR answer_id IN (
                 SELECT answer.id FROM answer WHERE answer.conversation_id = ?2 AND answer.principal = ?1))",
            (principal, id),
        )?;
        let deleted = transaction
            .execute("DELETE FROM conversation WHERE principal = ?1 AND (?2 IS NULL OR id = ?2)", (principal, id))?;
        transaction.commit()?;
        fold(&database)?;
        Ok(deleted as u64)
    }
}

impl Answers {
    /// Takes out what is kept of these questions: text, answer, evidence and feedback. A conversation that is empty then goes too;
    /// any other is called by the first question that is left. Gives back how many answers went.
    ///
    /// # Errors
    /// When the database fails.
    pub fn erase_questions(&self, questions: &[QuestionId]) -> Result<u64, AnswersError> {
        let mut database = self.database();
        let transaction = database.transaction()?;
        let mut erased: u64 = 0;
        for question in questions {
            transaction.execute("DELETE FROM evidence WHERE question_id = ?1", [question.as_str()])?;
            let gone: Option<String> = transaction
                .query_row(
                    "DELETE FROM answer WHERE question_id = ?1 RETURNING conversation_id",
                    [question.as_str()],
                    |row| row.get(0),
                )
                .optional()?;
            let Some(conversation) = gone else { continue };
            erased += 1;
            let first: Option<String> = transaction
                .query_row(
                    "SELECT question FROM answer WHERE conversation_id = ?1 ORDER BY at_ms, id LIMIT 1",
                    [&conversation],
                    |row| row.get(0),
                )
                .optional()?;
            match first {
                Some(first) => transaction
                    .execute("UPDATE conversation SET title = ?2 WHERE id = ?1", (&conversation, title(&first)))?,
                None => transaction.execute("DELETE FROM conversation WHERE id = ?1", [&conversation])?,
            };
        }
        transaction.commit()?;
        fold(&database)?;
        Ok(erased)
    }
}

/// The latest answers before the cursor, in the order they were asked.
fn entries(
    database: &Connection,
    conversation: &str,
    reader: &Principal,
    cursor: Option<&Cursor>,
) -> Result<(Vec<AnswerEntry>, Option<String>), AnswersError> {
    let mut statement = database.prepare_cached(
        "SELECT answer.id, question_id, answer.at_ms, question, json, verdict, reason, feedback.at_ms, rights
         FROM answer LEFT JOIN feedback ON feedback.answer_id = answer.id
         WHERE conversation_id = :conversation AND (:at IS NULL OR (answer.at_ms, answer.id) < (:at, :id))
         ORDER BY answer.at_ms DESC, answer.id DESC LIMIT :limit",
    )?;
    let rows = statement.query_map(
        named_params! {
            ":conversation": conversation, ":at": cursor.map(|c| c.at_ms), ":id": cursor.map(|c| &c.id),
            ":limit": ANSWERS_A_PAGE + 1,
        },
        RawEntry::read,
    )?;
    let mut entries = Vec::new();
    for row in rows {
        entries.push(row?.entry(reader)?);
    }
    let more = entries.len() > ANSWERS_A_PAGE as usize;
    entries.truncate(ANSWERS_A_PAGE as usize);
    let next_cursor = entries
        .last()
        .filter(|_| more)
        .map(|first| Cursor { at_ms: first.at.as_millisecond(), id: first.answer_id.clone() }.text());
    entries.reverse();
    Ok((entries, next_cursor))
}

struct RawLine {
    id: String,
    title: String,
    created_ms: i64,
    updated_ms: i64,
    kept_until: i64,
    answers: u64,
}

impl RawLine {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            title: row.get(1)?,
            created_ms: row.get(2)?,
            updated_ms: row.get(3)?,
            kept_until: row.get(4)?,
            answers: row.get(5)?,
        })
    }

    fn line(self) -> Result<ConversationLine, AnswersError> {
        let Self { id, title, created_ms, updated_ms, kept_until, answers } = self;
        Ok(ConversationLine {
            id,
            title,
            created: Timestamp::from_millisecond(created_ms)?,
            updated: Timestamp::from_millisecond(updated_ms)?,
            kept_until: Timestamp::from_second(kept_until)?,
            answers,
        })
    }
}

struct RawEntry {
    answer_id: String,
    question_id: String,
    at_ms: i64,
    question: String,
    json: String,
    verdict: Option<String>,
    reason: Option<String>,
    feedback_at_ms: Option<i64>,
    rights: Option<String>,
}

impl RawEntry {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            answer_id: row.get(0)?,
            question_id: row.get(1)?,
            at_ms: row.get(2)?,
            question: row.get(3)?,
            json: row.get(4)?,
            verdict: row.get(5)?,
            reason: row.get(6)?,
            feedback_at_ms: row.get(7)?,
            rights: row.get(8)?,
        })
    }

    fn entry(self, reader: &Principal) -> Result<AnswerEntry, AnswersError> {
        let Self { answer_id, question_id, at_ms, question, json, verdict, reason, feedback_at_ms, rights } = self;
        let may_read = Rights::still_had_by(rights.as_deref(), reader);
        let verdict = verdict.as_deref().and_then(Verdict::parse);
        let feedback = match verdict.zip(feedback_at_ms) {
            Some((verdict, at)) => Some(Feedback { verdict, reason, at: Timestamp::from_millisecond(at)? }),
            None => None,
        };
        Ok(AnswerEntry {
            answer_id,
            question_id,
            at: Timestamp::from_millisecond(at_ms)?,
            question,
            answer: if may_read { Some(serde_json::from_str(&json)?) } else { None },
            withheld: (!may_read).then_some(RIGHTS_CHANGED),
            feedback,
        })
    }
}

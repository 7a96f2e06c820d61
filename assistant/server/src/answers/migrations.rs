//! The formats of the store, one step each: an older file is brought up to date when it is opened, a newer one is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::AnswersError;

/// Each step makes the format of its place from the one before it. Never changed once released: files out there were made by them.
const STEPS: [&str; 3] = [
    // 1: the points behind citations.
    "CREATE TABLE IF NOT EXISTS evidence (
         id TEXT PRIMARY KEY, principal TEXT NOT NULL, kept_until INTEGER NOT NULL, json TEXT
     ) STRICT;
     CREATE INDEX IF NOT EXISTS evidence_kept_until ON evidence (kept_until);",
    // 2: conversations with their answers, and feedback.
    "CREATE TABLE conversation (
         id TEXT PRIMARY KEY, principal TEXT NOT NULL, title TEXT NOT NULL,
         created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, kept_until INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX conversation_by_principal ON conversation (principal, updated_ms, id);
     CREATE INDEX conversation_kept_until ON conversation (kept_until);
     CREATE TABLE answer (
         id TEXT PRIMARY KEY, question_id TEXT NOT NULL, principal TEXT NOT NULL,
         conversation_id TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
         at_ms INTEGER NOT NULL, question TEXT NOT NULL, json TEXT NOT NULL
     ) STRICT;
     CREATE INDEX answer_by_conversation ON answer (conversation_id, at_ms, id);
     CREATE TABLE feedback (
         answer_id TEXT PRIMARY KEY REFERENCES answer (id) ON DELETE CASCADE,
         principal TEXT NOT NULL, at_ms INTEGER NOT NULL,
         verdict TEXT NOT NULL CHECK (verdict IN ('up', 'down')), reason TEXT
     ) STRICT;
     ALTER TABLE evidence ADD COLUMN answer_id TEXT;
     UPDATE evidence SET answer_id = substr(id, 1, instr(id, '.') - 1);
     CREATE INDEX evidence_by_answer ON evidence (answer_id);",
    // 3: with which rights an answer was got: of older ones that is not known, and they are not shown any more. To which question
    // evidence belongs: what is erased of a question goes with its evidence.
    "ALTER TABLE answer ADD COLUMN rights TEXT;
     ALTER TABLE evidence ADD COLUMN rights TEXT;
     ALTER TABLE evidence ADD COLUMN question_id TEXT;
     UPDATE evidence SET question_id = (SELECT question_id FROM answer WHERE answer.id = evidence.answer_id);
     CREATE INDEX answer_by_question ON answer (question_id);
     CREATE INDEX evidence_by_question ON evidence (question_id);",
];

/// The newest format: what this program reads and writes.
pub(super) const VERSION: usize = STEPS.len();

/// Brings the file up to date, in one transaction: two processes that open it at once make it once.
pub(super) fn migrate(database: &mut Connection) -> Result<(), AnswersError> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > VERSION {
        return Err(AnswersError::Newer { found });
    }
    for step in STEPS.iter().skip(found) {
        transaction.execute_batch(step)?;
    }
    if found < VERSION {
        transaction.pragma_update(None, "user_version", u32::try_from(VERSION).unwrap_or(u32::MAX))?;
    }
    transaction.commit()?;
    Ok(())
}

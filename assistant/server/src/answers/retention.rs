//! Letting go of what has been kept long enough.

use jiff::Timestamp;

use super::{Answers, AnswersError, days_after, fold};

/// Days for which it is remembered that there was evidence, so that a late reader is told that it expired.
const TOMBSTONE_DAYS: i64 = 365;

/// What a sweep let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Pieces of evidence whose points went.
    pub evidence: u64,
    /// Conversations that went, with their answers and feedback.
    pub conversations: u64,
}

impl Swept {
    /// Whether there was nothing to let go of.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Answers {
    /// Lets go of what is past its days: the points of evidence, and conversations with their answers.
    ///
    /// # Errors
    /// When the database fails.
    pub fn sweep(&self, now: Timestamp) -> Result<Swept, AnswersError> {
        let second = now.as_second();
        let mut database = self.database();
        let transaction = database.transaction()?;
        // The row stays without its points, so that a late reader learns that it expired.
        let evidence = transaction.execute(
            "UPDATE evidence SET json = NULL WHERE json IS NOT NULL AND (kept_until <= ?1 OR answer_id IN (
                 SELECT answer.id FROM answer JOIN conversation ON conversation.id = answer.conversation_id
                 WHERE conversation.kept_until <= ?1))",
            [second],
        )?;
        let conversations = transaction.execute("DELETE FROM conversation WHERE kept_until <= ?1", [second])?;
        transaction.execute(
            "DELETE FROM evidence WHERE json IS NULL AND kept_until <= ?1",
            [days_after(now, -TOMBSTONE_DAYS).as_second()],
        )?;
        transaction.commit()?;
        let swept = Swept { evidence: evidence as u64, conversations: conversations as u64 };
        if !swept.is_empty() {
            fold(&database)?;
        }
        Ok(swept)
    }
}

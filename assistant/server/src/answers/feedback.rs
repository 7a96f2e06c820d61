//! What the one who asked thought of an answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Answers, AnswersError};

/// Whether an answer helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Up,
    /// It did not.
    Down,
}

impl Verdict {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Up, Self::Down].into_iter().find(|verdict| verdict.as_str() == text)
    }
}

/// Feedback on one answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// Whether it helped.
    pub verdict: Verdict,
    /// Why, in the asker's words.
    pub reason: Option<String>,
    /// When that was said.
    pub at: Timestamp,
}

impl Answers {
    /// Whether the answer of that id is one of this principal's.
    ///
    /// # Errors
    /// When the database fails.
    pub fn is_own_answer(&self, answer: &str, principal: &str) -> Result<bool, AnswersError> {
        let sql = "SELECT 1 FROM answer WHERE id = ?1 AND principal = ?2";
        Ok(self.database().prepare_cached(sql)?.exists((answer, principal))?)
    }

    /// Keeps feedback on one's own answer in place of any before it. False when there is no such answer of this principal.
    ///
    /// # Errors
    /// When the database fails.
    pub fn give_feedback(&self, answer: &str, principal: &str, feedback: &Feedback) -> Result<bool, AnswersError> {
        let Feedback { verdict, reason, at } = feedback;
        let changed = self.database().execute(
            "INSERT INTO feedback (answer_id, principal, at_ms, verdict, reason)
             SELECT id, principal, ?3, ?4, ?5 FROM answer WHERE id = ?1 AND principal = ?2
             ON CONFLICT (answer_id) DO UPDATE SET at_ms = excluded.at_ms, verdict = excluded.verdict, reason = excluded.reason",
            (answer, principal, at.as_millisecond(), verdict.as_str(), reason),
        )?;
        Ok(changed > 0)
    }
}

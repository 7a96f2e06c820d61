//! The points behind citations.

use jiff::Timestamp;
use rusqlite::OptionalExtension as _;

use super::{Answers, AnswersError};

/// What became of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Its JSON.
    Found(String),
    /// It was there, and its days are over.
    Expired,
    /// There is none of that name for this asker.
    Unknown,
}

impl Answers {
    /// The evidence of that id (`<answer id>.E1`), if this asker's question fetched it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn evidence(&self, id: &str, principal: &str, now: Timestamp) -> Result<Lookup, AnswersError> {
        let found: Option<(i64, Option<String>)> = self
            .database()
            .query_row(
                "SELECT kept_until, json FROM evidence WHERE id = ?1 AND principal = ?2",
                (id, principal),
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        Ok(match found {
            Some((kept_until, Some(json))) if kept_until > now.as_second() => Lookup::Found(json),
            Some(_) => Lookup::Expired,
            None => Lookup::Unknown,
        })
    }
}

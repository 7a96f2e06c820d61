//! The points behind citations.

use jiff::Timestamp;
use rusqlite::OptionalExtension as _;
use sightline_model::Principal;

use super::rights::Rights;
use super::{Answers, AnswersError};

/// What became of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Its JSON.
    Found(String),
    /// It was there, and its days are over.
    Expired,
    /// It is there, and this asker no longer has the rights with which it was got.
    RightsChanged,
    /// There is none of that name for this asker.
    Unknown,
}

impl Answers {
    /// The evidence of that id (`<answer id>.E1`), if this asker's question fetched it with rights that the asker still has.
    ///
    /// # Errors
    /// When the database fails.
    pub fn evidence(&self, id: &str, principal: &Principal, now: Timestamp) -> Result<Lookup, AnswersError> {
        let found: Option<(i64, Option<String>, Option<String>)> = self
            .database()
            .query_row(
                "SELECT kept_until, json, rights FROM evidence WHERE id = ?1 AND principal = ?2",
                (id, &principal.id),
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        Ok(match found {
            Some((kept_until, Some(json), rights)) if kept_until > now.as_second() => {
                if Rights::still_had_by(rights.as_deref(), principal) {
                    Lookup::Found(json)
                } else {
                    Lookup::RightsChanged
                }
            }
            Some(_) => Lookup::Expired,
            None => Lookup::Unknown,
        })
    }
}

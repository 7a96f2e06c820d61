//! Erasing texts on request. The records stay, with their commitments; an event names what was erased.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use sightline_model::QuestionId;
use sightline_model::audit::{Event, EventKind, EventOutcome};

use super::{Fault, LogFile};
use crate::error::AuditError;
use crate::tail::Entry;

/// Whose texts are to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erase {
    /// Those of these questions.
    Questions(Vec<QuestionId>),
    /// Those of every question of the principal with this id.
    Principal(String),
}

/// What was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// The questions whose texts are gone now.
    pub questions: Vec<QuestionId>,
    /// Questions that stay as they are: they were recorded by an older program, which put the text into the chain.
    pub in_the_chain: Vec<QuestionId>,
}

/// The field of a `TextErased` event that names the questions, as a JSON array.
pub(crate) const QUESTIONS: &str = "questions";

/// A record stays of a readable size.
const QUESTIONS_OF_ONE_EVENT: usize = 1_000;

impl LogFile {
    /// Erases the texts and records that it was done, or does neither.
    pub(crate) fn erase(&mut self, what: &Erase, at: Timestamp, by: &str) -> Result<Erased, AuditError> {
        let erased = self.write(|tail| {
            let mut erased = Erased::default();
            for id in questions(tail.connection, what)? {
                let texts = tail
                    .connection
                    .prepare_cached("DELETE FROM private WHERE seq IN (SELECT seq FROM record WHERE question_id = ?1)")?
                    .execute([&id])?;
                if texts > 0 {
                    erased.questions.push(QuestionId::new(&id));
                }
                if has_text_in_the_chain(tail.connection, &id)? {
                    erased.in_the_chain.push(QuestionId::new(&id));
                }
            }
            for ids in erased.questions.chunks(QUESTIONS_OF_ONE_EVENT) {
                tail.add(&Entry::of_event(&event(ids, what, at, by)?)?)?;
            }
            Ok(erased)
        })?;
        self.fold();
        Ok(erased)
    }
}

fn questions(connection: &Connection, what: &Erase) -> Result<Vec<String>, Fault> {
    Ok(match what {
        Erase::Questions(ids) => ids.iter().map(|id| id.as_str().to_owned()).collect(),
        Erase::Principal(principal) => connection
            .prepare_cached(
                "SELECT question_id FROM record WHERE kind = 'begin' AND body ->> '$.principal.id' = ?1 ORDER BY seq",
            )?
            .query_map(params![principal], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?,
    })
}

fn has_text_in_the_chain(connection: &Connection, id: &str) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM record
               WHERE question_id = ?1 AND (
                 (kind = 'begin' AND body ->> '$.question' IS NOT NULL)
                 OR (kind IN ('call', 'complete') AND body ->> '$.error' IS NOT NULL)
                 OR (kind = 'call' AND NOT body ->> '$.decision.allowed' AND body ->> '$.decision.reasons' IS NOT NULL)))",
        )?
        .query_row([id], |row| row.get(0))
}

fn event(ids: &[QuestionId], what: &Erase, at: Timestamp, by: &str) -> Result<Event, AuditError> {
    let names: Vec<&str> = ids.iter().map(QuestionId::as_str).collect();
    let names = serde_json::to_string(&names).map_err(|error| AuditError::Record { what: error.to_string() })?;
    let mut detail = BTreeMap::from([(QUESTIONS.to_owned(), names)]);
    match what {
        Erase::Questions(_) => {}
        Erase::Principal(principal) => {
            detail.insert("of".to_owned(), principal.clone());
        }
    }
    Ok(Event {
        at,
        event: EventKind::TextErased,
        principal: Some(by.to_owned()),
        entrance: "audit".to_owned(),
        outcome: EventOutcome::Done,
        detail,
    })
}

//! What `sightline eval questions` stands on: the demo fleet at one instant, and who asks about it.

use std::sync::Mutex;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::{AskError, Earlier, Event, Events, PlannedCall, Question, answer_question};
use sightline_engine::native::DatabaseName;
use sightline_engine::recorded_number;
use sightline_model::{Answer, ConversationId, QuestionId};

use super::demo::{self, Place};
use super::{CommandError, failed};
use crate::config::Config;
use crate::room::Room;
use crate::stations::{Data, Stations};

/// Where the fleet of the questions is kept.
const PLACE: Place = Place { database: "sightline_questions", state: "questions.json" };

/// The fleet, loaded, with the line over it.
pub struct FleetLine {
    stations: Stations,
    as_of: Timestamp,
}

/// An answer with the calls that were made for it.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The answer.
    pub answer: Answer,
    /// The calls, in order.
    pub calls: Vec<PlannedCall>,
}

/// What comes of asking.
#[derive(Clone, Debug)]
pub enum Reply {
    /// An answer, whatever its outcome.
    Heard(Box<Heard>),
    /// The asker may ask nothing: a refusal as well, in these words.
    MayNotAsk(String),
}

impl FleetLine {
    /// Loads the demo fleet as of `as_of`, where it is not loaded yet, and opens the line over it.
    ///
    /// # Errors
    /// When the engine, the policies or the audit log cannot be opened.
    pub async fn open(config: &Config, as_of: Timestamp) -> Result<Self, CommandError> {
        let room = Room::open(config).await.map_err(failed)?;
        demo::load_at(config, &room, PLACE, as_of).await?;
        let stations = Stations::open_in(config, room, Data::Database(PLACE.database)).await.map_err(failed)?;
        Ok(Self { stations, as_of })
    }

    /// Asks one question of a conversation. It is recorded like any other; its answer is not kept.
    ///
    /// # Errors
    /// When there is nobody of that name, or the line meets a fault.
    pub async fn ask(
        &self,
        text: &str,
        before: &[Earlier],
        principal: &str,
        zone: &str,
    ) -> Result<Reply, CommandError> {
        let assistant = &self.stations.assistant;
        let principal = assistant
            .policies
            .now()
            .principal(principal)
            .ok_or_else(|| CommandError::Usage(format!("the policy has no principal `{principal}`")))?;
        let question = Question {
            id: QuestionId::new(assistant.ids.next()),
            conversation_id: ConversationId::new(assistant.ids.next()),
            text: text.to_owned(),
            before: before.to_vec(),
            principal,
            entrance: "cli",
            as_of: self.as_of,
            time_zone: TimeZone::get(zone)
                .map_err(|_| CommandError::Usage(format!("`{zone}` is no IANA time zone")))?,
        };
        let heard = Calls::default();
        match answer_question(assistant, &question, &heard).await {
            Ok(answer) => Ok(Reply::Heard(Box::new(Heard { answer, calls: heard.0.into_inner().unwrap_or_default() }))),
            Err(AskError::MayNotAsk { reason }) => Ok(Reply::MayNotAsk(reason)),
            Err(error) => Err(failed(error)),
        }
    }

    /// One number of the recorded rows, by a statement that is independent of the product's own.
    ///
    /// # Errors
    /// When the engine refuses the statement.
    pub async fn number(&self, sql: &str) -> Result<Option<f64>, CommandError> {
        let Some(writer) = self.stations.writer.as_ref() else { return Ok(None) };
        let database = DatabaseName::new(PLACE.database).map_err(failed)?;
        recorded_number(writer, &database, sql).await.map_err(failed)
    }

    /// Ends the engine if it was started here.
    pub async fn close(self) {
        self.stations.close().await;
    }
}

/// Hears which calls are made.
#[derive(Default)]
struct Calls(Mutex<Vec<PlannedCall>>);

impl Events for Calls {
    fn emit(&self, event: Event) {
        if let (Event::ToolCall(call), Ok(mut calls)) = (event, self.0.lock()) {
            calls.push(call);
        }
    }
}

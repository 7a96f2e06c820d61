//! The demo: a generated fleet that ends now, logins, and one question already answered.

mod load;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::{Assistant, Clock as _, NoEvents, Question, answer_question, render_text};
use sightline_model::{ConversationId, QuestionId};

use super::{CommandError, failed, token};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::identity::{IdentityStore, TokenOrder};
use crate::output;
use crate::room::Room;

/// The database of the demo fleet.
pub const DATABASE: &str = "sightline_demo";
/// Who asks the first question.
const FIRST_ASKER: &str = "operator@atlas";

/// A demo login.
#[derive(Clone, Debug)]
pub struct Login {
    /// The principal.
    pub principal: String,
    /// Its token, in clear: shown once.
    pub token: String,
}

/// What was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The fleet's first question, with which the demo begins.
    pub question: String,
}

/// Where a fleet is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Its database.
    pub(crate) database: &'static str,
    /// The file in the data folder that says what of it is loaded.
    pub(crate) state: &'static str,
}

/// Makes the demo fleet end now: all of it at first, later only what is missing.
///
/// # Errors
/// When the engine cannot take it.
pub async fn load(config: &Config, room: &Room) -> Result<Loaded, CommandError> {
    load::load(config, room, Place { database: DATABASE, state: "demo.json" }, SystemClock::start().now()).await
}

/// The same fleet as of another instant, in a place of its own.
pub(crate) async fn load_at(config: &Config, room: &Room, place: Place, at: Timestamp) -> Result<(), CommandError> {
    load::load(config, room, place, at).await.map(drop)
}

/// A new token for every principal of the policy, in place of the one of the demo's last start: only digests are kept, so the old
/// ones cannot be shown again.
///
/// # Errors
/// When the store or the audit log cannot be written.
pub async fn logins(store: &IdentityStore, assistant: &Assistant) -> Result<Vec<Login>, CommandError> {
    let created = assistant.clock.now();
    let actor = token::Actor::of_system()?;
    let mut logins = Vec::new();
    for principal in assistant.policies.now().principals() {
        let order = TokenOrder {
            principal: principal.id.clone(),
            label: "demo".to_owned(),
            created,
            expires: token::default_expiry(created),
        };
        let made = store.replace_token(&order).map_err(failed)?;
        token::record_created(&*assistant.audit, &order, &made, &actor).await?;
        logins.push(Login { principal: principal.id, token: made.text });
    }
    Ok(logins)
}

/// Asks the first question and prints its answer.
///
/// # Errors
/// When there is no answer.
pub async fn first_answer(assistant: &Assistant, loaded: &Loaded) -> Result<(), CommandError> {
    let principal = assistant
        .policies
        .now()
        .principal(FIRST_ASKER)
        .ok_or_else(|| CommandError::Failed(format!("the policy has no principal `{FIRST_ASKER}`")))?;
    let question = Question {
        id: QuestionId::new(assistant.ids.next()),
        conversation_id: ConversationId::new(assistant.ids.next()),
        text: loaded.question.clone(),
        before: Vec::new(),
        principal,
        entrance: "cli",
        as_of: assistant.clock.now(),
        time_zone: TimeZone::system(),
    };
    let answer = answer_question(assistant, &question, &NoEvents).await.map_err(failed)?;
    output::note(&format!("\n{FIRST_ASKER} asks: {}\n", question.text));
    output::note(&render_text(&answer));
    Ok(())
}

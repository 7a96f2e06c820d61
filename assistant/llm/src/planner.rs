//! The planner: what it is made from once, and what is kept across questions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use serde_json::json;
use sightline_core::offline::OfflinePlanner;
use sightline_core::quota::Quota;
use sightline_core::{Ask, Clock, Planner, Planning};
use sightline_policies::LivePolicies;
use sightline_query::Catalogue;
use sightline_tools::{AnyTool, SentTool};

use crate::client::ChatClient;
use crate::config::{LlmConfig, Mode};
use crate::conversation::Form;
use crate::fault::ModelFault;
use crate::prompt;
use crate::schemas::compact_tools;
use crate::session::Session;
use crate::wire::{Message, Most, Request, StreamOptions};
use crate::words::Vocabulary;

/// What the planner stands on besides its settings.
pub struct Parts {
    /// Answers in the model's place.
    pub offline: OfflinePlanner,
    /// Which words are terms of the field.
    pub catalogue: Arc<Catalogue>,
    /// Says what a principal may use.
    pub policies: Arc<LivePolicies>,
    /// The tools of the registry, which are those that the line runs.
    pub tools: Vec<Box<dyn AnyTool>>,
    /// Keeps the day's tokens.
    pub quota: Arc<dyn Quota>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A planner that asks a model. Guaranteed: what it cannot use of the model's words, the offline planner answers in their place.
pub struct LlmPlanner {
    pub(crate) config: LlmConfig,
    pub(crate) client: ChatClient,
    pub(crate) parts: Parts,
    pub(crate) sent: Vec<SentTool>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) version: String,
    /// Whether steps are asked for as JSON.
    writes_json: AtomicBool,
    /// Whether the model was seen to call tools by the protocol.
    calls_tools: AtomicBool,
}

/// What a server and its model can do, as one small question to it showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// It calls tools by the protocol.
    pub tools: bool,
    /// Several in one reply.
    pub parallel_calls: bool,
    /// It holds to a JSON schema.
    pub json_schema: bool,
}

impl LlmPlanner {
    /// A planner after these settings; nothing is sent yet.
    ///
    /// # Errors
    /// When a setting makes no client, and which.
    pub fn new(config: LlmConfig, parts: Parts) -> Result<Self, ModelFault> {
        let client = ChatClient::new(&config)?;
        let sent = compact_tools(&parts.tools);
        let vocabulary = Vocabulary::new(&parts.catalogue);
        let version = prompt::version(config.rules.as_deref(), &sent);
        let writes_json = AtomicBool::new(config.mode == Mode::Json);
        let calls_tools = AtomicBool::new(false);
        Ok(Self { config, client, parts, sent, vocabulary, version, writes_json, calls_tools })
    }

    /// The version of the prompt and the tools as they are sent.
    #[must_use]
    pub fn prompt_version(&self) -> &str {
        &self.version
    }

    /// How the next question begins.
    pub(crate) fn form(&self) -> Form {
        if self.writes_json.load(Ordering::Relaxed) { Form::Json } else { Form::Tools }
    }

    /// Whether a question may change over to JSON where the server takes no calls or the model makes none.
    pub(crate) fn may_change(&self) -> bool {
        self.config.mode == Mode::Auto
    }

    /// Learns from a step that came. One refusal, or a model that talks once, says nothing about the next question; a model that was seen to call
    /// tools is asked for them.
    pub(crate) fn learn(&self, form: Form) {
        match form {
            Form::Tools => self.calls_tools.store(true, Ordering::Relaxed),
            Form::Json if self.may_change() && !self.calls_tools.load(Ordering::Relaxed) => {
                self.writes_json.store(true, Ordering::Relaxed);
            }
            Form::Json => {}
        }
    }

    /// Finds out with two small requests what the server can do, and asks by that from here on.
    ///
    /// # Errors
    /// When the server cannot be asked at all.
    pub async fn probe(&self) -> Result<Capabilities, ModelFault> {
        let ready = json!({ "type": "function", "function": { "name": "ready", "description": "Says that a part is ready.",
            "parameters": { "type": "object", "properties": { "part": { "type": "string" } }, "required": ["part"] } } });
        let ask = "Call the tool ready for part a and for part b, both at once.";
        let called = match self.small(ask, &[ready], None).await {
            Ok(reply) => reply.calls.iter().filter(|call| call.name == "ready").count(),
            // A server that knows no tools says so with a status of its own.
            Err(ModelFault::Rejected { .. } | ModelFault::Malformed { .. }) => 0,
            Err(fault) => return Err(fault),
        };
        let format = json!({ "type": "json_schema", "json_schema": { "name": "ready", "schema": { "type": "object",
            "properties": { "ready": { "type": "boolean" } }, "required": ["ready"] } } });
        let json_schema = match self.small("Say as JSON that you are ready.", &[], Some(&format)).await {
            Ok(reply) => crate::answer::first_object(&reply.content).is_some_and(|said| said.get("ready").is_some()),
            Err(ModelFault::Rejected { .. } | ModelFault::Malformed { .. }) => false,
            Err(fault) => return Err(fault),
        };
        if self.config.mode == Mode::Auto {
            self.writes_json.store(called == 0, Ordering::Relaxed);
            self.calls_tools.store(called > 0, Ordering::Relaxed);
        }
        Ok(Capabilities { tools: called > 0, parallel_calls: called > 1, json_schema })
    }

    async fn small(
        &self,
        ask: &str,
        tools: &[serde_json::Value],
        response_format: Option<&serde_json::Value>,
    ) -> Result<crate::reply::Reply, ModelFault> {
        let messages = [Message::User { content: ask.to_owned() }];
        let request = Request {
            model: &self.config.model,
            messages: &messages,
            tools,
            response_format,
            most: Most::new(self.config.reply_limit(), 200),
            stream: true,
            stream_options: StreamOptions { include_usage: true },
        };
        self.client.reply(&request, None, Duration::from_secs(30)).await
    }
}

/// The planner with a second handle on it, for whoever looks at the model beside the questions.
pub struct SharedPlanner(pub Arc<LlmPlanner>);

impl Planner for SharedPlanner {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn zone(&self, ask: &Ask) -> Option<TimeZone> {
        self.0.zone(ask)
    }

    fn begin<'a>(&'a self, ask: &'a Ask) -> Box<dyn Planning + 'a> {
        self.0.begin(ask)
    }
}

impl Planner for LlmPlanner {
    fn name(&self) -> &'static str {
        "llm"
    }

    /// The zone is read by code from the question, whoever words the answer.
    fn zone(&self, ask: &Ask) -> Option<TimeZone> {
        self.parts.offline.zone(ask)
    }

    fn begin<'a>(&'a self, ask: &'a Ask) -> Box<dyn Planning + 'a> {
        Box::new(Session::new(self, ask))
    }
}

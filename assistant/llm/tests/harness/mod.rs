//! The true line with a scripted server in the model's place, and tools whose results are made by hand.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod server;
pub(crate) mod world;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sightline_core::offline::OfflinePlanner;
use sightline_core::quota::{Quota, Unmetered};
use sightline_core::{AskError, Assistant, Clock, Earlier, Ids, NoEvents, Planner, Question, answer_question};
use sightline_guard::{Engine, EngineError, Estimate, ExecutableQuery, Guard, Mapping};
use sightline_llm::{Budgets, LlmConfig, LlmPlanner, Parts};
use sightline_model::audit::{AuditLog, AuditUnavailable, Begin, Call, Complete, Event};
use sightline_model::{Answer, AuditRef, BoxFuture, ConversationId, QueryId, QuestionId, ResultSet, Role};
use sightline_policies::{LivePolicies, Policies, bundle_principal};
use sightline_query::Catalogue;

use server::Server;

pub(crate) const AS_OF: &str = "2026-05-04T10:00:00Z";
pub(crate) const QUESTION: &str = "Why was training job J4711 slow yesterday?";

/// Everything of a question's line.
pub(crate) struct Line {
    pub(crate) assistant: Assistant,
    pub(crate) log: Arc<Log>,
}

/// Settings that point at the server, with all the time that a busy machine can take.
pub(crate) fn config(server: &Server) -> LlmConfig {
    LlmConfig {
        base_url: server.url(),
        key: Some("sk-test-key".to_owned().into()),
        timeout: Duration::from_secs(300),
        pause: Duration::from_secs(300),
        budgets: Budgets { time: Duration::from_secs(600), ..Budgets::default() },
        ..LlmConfig::new("scripted")
    }
}

impl Line {
    pub(crate) fn new(config: LlmConfig) -> Self {
        Self::with(config, Arc::new(Unmetered))
    }

    pub(crate) fn with(config: LlmConfig, quota: Arc<dyn Quota>) -> Self {
        let catalogue = Arc::new(Catalogue::builtin().unwrap());
        let policies = Arc::new(LivePolicies::new(Policies::builtin().unwrap()));
        let clock: Arc<dyn Clock> = Arc::new(Standing(Instant::now()));
        let planner = LlmPlanner::new(
            config,
            Parts {
                offline: OfflinePlanner::new(Arc::clone(&catalogue)).unwrap(),
                catalogue: Arc::clone(&catalogue),
                policies: Arc::clone(&policies),
                tools: sightline_tools::tools(),
                quota: Arc::clone(&quota),
                clock: Arc::clone(&clock),
            },
        )
        .unwrap();
        let log = Arc::new(Log::default());
        let assistant = Assistant {
            catalogue,
            tools: world::tools(),
            policies,
            guard: Guard::new(Mapping::native("x").unwrap()),
            engine: Arc::new(Unasked),
            quota,
            audit: Arc::clone(&log) as _,
            planner: Box::new(planner),
            tenants: BTreeSet::from(["atlas".to_owned()]),
            clock,
            ids: Arc::new(Counted::default()),
        };
        Self { assistant, log }
    }

    /// The same line with the offline planner.
    pub(crate) fn offline() -> Self {
        let server = LlmConfig { base_url: "http://127.0.0.1:1".to_owned(), ..LlmConfig::new("none") };
        let mut line = Self::new(server);
        let planner = OfflinePlanner::new(Arc::clone(&line.assistant.catalogue)).unwrap();
        line.assistant.planner = Box::new(planner) as Box<dyn Planner>;
        line
    }

    pub(crate) async fn ask(&self, text: &str) -> Result<Answer, AskError> {
        self.ask_after(text, Vec::new()).await
    }

    /// Asks within a conversation.
    pub(crate) async fn ask_after(&self, text: &str, before: Vec<Earlier>) -> Result<Answer, AskError> {
        let question = Question {
            id: QuestionId::new(self.assistant.ids.next()),
            conversation_id: ConversationId::new("c"),
            text: text.to_owned(),
            before,
            principal: bundle_principal(Role::Operator, "atlas"),
            entrance: "cli",
            as_of: AS_OF.parse().unwrap(),
            time_zone: TimeZone::UTC,
        };
        answer_question(&self.assistant, &question, &NoEvents).await
    }

    pub(crate) fn last_complete(&self) -> Complete {
        self.log.completes.lock().unwrap().last().unwrap().clone()
    }
}

/// What of the answer a person would read as said, one string.
pub(crate) fn said(answer: &Answer) -> String {
    let causes =
        answer.causes.iter().flat_map(|c| std::iter::once(&c.why).chain(c.claims.iter().map(|claim| &claim.text)));
    let claims = answer.claims.iter().map(|claim| &claim.text);
    std::iter::once(&answer.headline).chain(claims).chain(causes).cloned().collect::<Vec<_>>().join("\n")
}

pub(crate) fn fell_back(answer: &Answer) -> bool {
    answer.data_health.iter().any(|note| note.starts_with("the built-in planner answered in the model's place"))
}

struct Standing(Instant);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        AS_OF.parse().unwrap()
    }

    fn monotonic_ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1000.0
    }
}

#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// An audit log in memory.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) completes: Mutex<Vec<Complete>>,
}

impl AuditLog for Log {
    fn begin(&self, record: Begin) -> BoxFuture<'_, Result<AuditRef, AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(AuditRef { question_id: record.question_id, seq: None, hash: String::new() })))
    }

    fn call(&self, record: Call) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.calls.lock().unwrap().push(record);
        Box::pin(std::future::ready(Ok(())))
    }

    fn complete(&self, record: Complete) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        self.completes.lock().unwrap().push(record);
        Box::pin(std::future::ready(Ok(())))
    }

    fn event(&self, _: Event) -> BoxFuture<'_, Result<(), AuditUnavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The tools of these tests plan no queries.
struct Unasked;

impl Engine for Unasked {
    fn run<'a>(&'a self, _: &'a ExecutableQuery) -> BoxFuture<'a, Result<ResultSet, EngineError>> {
        Box::pin(std::future::ready(Err(EngineError::Unreachable)))
    }

    fn estimate<'a>(&'a self, _: &'a ExecutableQuery) -> BoxFuture<'a, Result<Estimate, EngineError>> {
        Box::pin(std::future::ready(Err(EngineError::Unreachable)))
    }

    fn cancel<'a>(&'a self, _: &'a QueryId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

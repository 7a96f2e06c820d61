//! The line in this process over a real engine, with limits of the test's own and an engine that is watched.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;
use sightline_audit::{AuditReader, QuestionFile};
use sightline_core::{Assistant, Caller, Clock, Ids as _, NoEvents, ToolCall, ToolFailure, ToolRun, run_tool};
use sightline_engine::{EngineAddress, EngineUser};
use sightline_guard::{Engine, EngineError, Estimate, ExecutableQuery, Refusal};
use sightline_model::audit::Begin;
use sightline_model::{BoxFuture, Principal, QueryId, QuestionId, ResultSet};
use sightline_policies::{LivePolicies, Policies, Source, Sources};
use sightline_server::clock::UuidIds;
use sightline_server::quota::Quotas;
use sightline_server::stations::{Data, Stations};
use sightline_server::{Config, Flags};

use crate::harness::{Lab, SIGHTLINE};

/// When the fleet's samples end.
pub(crate) const END: &str = "2025-06-02T10:00:00Z";
/// How many days of them there are: one a second of each GPU.
pub(crate) const DAYS: i64 = 4;
/// GPUs: two nodes `n0` and `n1` of two.
pub(crate) const GPUS: u64 = 4;
pub(crate) const METRIC: &str = "DCGM_FI_DEV_GPU_TEMP";

pub(crate) fn end() -> Timestamp {
    END.parse().unwrap()
}

/// Runs one statement as the writer.
pub(crate) async fn execute(address: &EngineAddress, sql: String) {
    let password = address.credentials.password(EngineUser::Writer);
    let request = crate::harness::http().post(address.url()).basic_auth(EngineUser::Writer.name(), Some(password));
    let response = request.body(sql.clone()).send().await.unwrap();
    assert!(response.status().is_success(), "{sql}: {}", response.text().await.unwrap());
}

/// Four days of four GPUs of atlas at a sample a second, made by the engine itself.
pub(crate) async fn fill_fleet(lab: &Lab) {
    lab.fill(&sightline_model::rows::Rows::default()).await;
    let seconds = DAYS * 86_400;
    execute(
        &lab.address,
        format!(
            "INSERT INTO sightline.metrics (tenant, cluster, metric, node, gpu, time, value) \
             SELECT 'atlas', 'c', '{METRIC}', concat('n', toString(intDiv(number, {seconds}) % 2)), \
             toString(intDiv(number, {seconds} * 2)), \
             toDateTime64('{}', 3, 'UTC') - toIntervalSecond(1 + number % {seconds}), 40 + number % 7 \
             FROM numbers({})",
            END.trim_end_matches('Z').replace('T', " "),
            seconds * i64::try_from(GPUS).unwrap()
        ),
    )
    .await;
}

/// Policies whose limits are wide but for these.
fn policies(changes: &[(&str, u64)]) -> Policies {
    let wide = [
        ("max_range_seconds", 31_622_400),
        ("max_points", 11_000),
        ("max_series", 10_000),
        ("max_result_rows", 1_000_000),
        ("max_result_bytes", 64 << 20),
        ("max_rows_read", 1_000_000_000),
        ("max_bytes_read", 100_000_000_000),
        ("max_memory_bytes", 2_000_000_000),
        ("max_seconds", 60),
        ("max_concurrent", 16),
        ("questions_per_minute", 1000),
        ("bytes_per_day", 1_000_000_000_000),
        ("tokens_per_day", 1_000_000),
    ];
    let mut limits = String::new();
    for role in ["viewer", "operator", "admin", "auditor"] {
        limits.push_str(&format!("[{role}]\n"));
        for (name, value) in wide {
            let value = changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| *value);
            limits.push_str(&format!("{name} = {value}\n"));
        }
    }
    with_limits(&limits)
}

fn with_limits(limits: &str) -> Policies {
    let limits = Source { name: "limits.toml", text: limits };
    Policies::from_sources(&Sources { limits, ..Sources::SHIPPED }).unwrap()
}

/// A clock that goes where it is put: no day ends and no minute begins in the middle of a test.
pub(crate) struct Hand {
    pub(crate) monotonic_ms: AtomicU64,
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        "2025-06-02T12:00:00Z".parse().unwrap()
    }

    fn monotonic_ms(&self) -> f64 {
        self.monotonic_ms.load(Ordering::Relaxed) as f64
    }
}

/// What an engine answers to estimates of more rows than some.
type Large = (u64, EngineError);

/// The real engine, watched; it may pretend that the fleet is larger than it is.
pub(crate) struct Watched {
    inner: Arc<dyn Engine>,
    pub(crate) runs: AtomicU64,
    pub(crate) estimates: AtomicU64,
    /// Whether a query that is run never ends.
    pub(crate) hangs: AtomicBool,
    /// Estimates of more rows than this fail so.
    pub(crate) large: Mutex<Option<Large>>,
    /// Estimates from this number on cannot be made.
    pub(crate) lost_after: AtomicU64,
    /// The GPUs to pretend, each with a sample a second at all times.
    pretended_gpus: Option<u64>,
}

impl Engine for Watched {
    fn run<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<ResultSet, EngineError>> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if self.hangs.load(Ordering::Relaxed) { Box::pin(std::future::pending()) } else { self.inner.run(query) }
    }

    fn estimate<'a>(&'a self, query: &'a ExecutableQuery) -> BoxFuture<'a, Result<Estimate, EngineError>> {
        let number = self.estimates.fetch_add(1, Ordering::Relaxed);
        if number >= self.lost_after.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(EngineError::Unreachable)));
        }
        let large = self.large.lock().unwrap().clone();
        match self.pretended_gpus {
            None => Box::pin(async move {
                let real = self.inner.estimate(query).await?;
                match large {
                    Some((rows, error)) if real.rows > rows => Err(error),
                    Some(_) | None => Ok(real),
                }
            }),
            Some(gpus) => Box::pin(async move {
                let real = self.inner.estimate(query).await?;
                let rows = gpus * seconds(query);
                Ok(Estimate { rows, bytes: rows * query.row_bytes() }.max_of(real))
            }),
        }
    }

    fn cancel<'a>(&'a self, id: &'a QueryId) -> BoxFuture<'a, Result<(), EngineError>> {
        self.inner.cancel(id)
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), EngineError>> {
        self.inner.ready()
    }
}

impl Watched {
    /// Comes back once it ran more than so many queries.
    pub(crate) async fn ran_more_than(&self, runs: u64) {
        while self.runs.load(Ordering::Relaxed) <= runs {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

trait MaxOf {
    fn max_of(self, other: Self) -> Self;
}

impl MaxOf for Estimate {
    fn max_of(self, other: Self) -> Self {
        if self.rows >= other.rows { self } else { other }
    }
}

/// The length of a query's window, as its parameters tell it.
fn seconds(query: &ExecutableQuery) -> u64 {
    let times: Vec<Timestamp> = query
        .params()
        .iter()
        .filter_map(|param| param.text().parse::<DateTime>().ok())
        .map(|time| TimeZone::UTC.to_timestamp(time).unwrap())
        .collect();
    let (from, to) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    u64::try_from(to.duration_since(*from).as_secs()).unwrap()
}

/// A line with limits of its own.
pub(crate) struct Bounded {
    pub(crate) assistant: Assistant,
    pub(crate) engine: Arc<Watched>,
    pub(crate) clock: Arc<Hand>,
    ledger: tempfile::TempDir,
    audit: std::path::PathBuf,
}

impl Bounded {
    /// The shipped stations with these limits, or with the shipped ones.
    pub(crate) async fn open(lab: &Lab, changes: Option<&[(&str, u64)]>, pretended_gpus: Option<u64>) -> Self {
        let flags = Flags { data_dir: Some(lab.data_dir().to_owned()), ..Flags::default() };
        let config = Config { program: Some(SIGHTLINE.into()), ..Config::load(&flags, &|_| None).unwrap() };
        let Stations { assistant, .. } = Stations::open(&config, Data::Own).await.unwrap();
        let assistant = Arc::try_unwrap(assistant).ok().unwrap();
        let engine = Arc::new(Watched {
            inner: Arc::clone(&assistant.engine),
            runs: AtomicU64::new(0),
            estimates: AtomicU64::new(0),
            hangs: AtomicBool::new(false),
            large: Mutex::new(None),
            lost_after: AtomicU64::new(u64::MAX),
            pretended_gpus,
        });
        let policies = match changes {
            Some(changes) => policies(changes),
            None => Policies::builtin().unwrap(),
        };
        let ledger = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hand { monotonic_ms: AtomicU64::new(0) });
        let assistant = Assistant {
            policies: Arc::new(LivePolicies::new(policies)),
            engine: Arc::clone(&engine) as _,
            quota: Arc::new(quotas(ledger.path(), &clock)),
            clock: Arc::clone(&clock) as _,
            ..assistant
        };
        Self { assistant, engine, clock, ledger, audit: lab.path("audit.db") }
    }

    /// The same with the process begun anew, as far as budgets know.
    pub(crate) fn restart(&mut self) {
        self.assistant.quota = Arc::new(quotas(self.ledger.path(), &self.clock));
    }

    pub(crate) fn principal(&self, id: &str) -> Principal {
        self.assistant.policies.now().principal(id).unwrap()
    }

    /// Makes a call as a principal; gives back its question's id too.
    pub(crate) async fn call_as(
        &self,
        principal: &str,
        tool: &str,
        arguments: Value,
    ) -> (QuestionId, Result<ToolRun, ToolFailure>) {
        let question_id = QuestionId::new(UuidIds.next());
        let principal = self.principal(principal);
        let begin = Begin {
            question_id: question_id.clone(),
            at: end(),
            principal: principal.clone(),
            entrance: "test".to_owned(),
            question: tool.to_owned(),
            detail: [].into(),
        };
        self.assistant.audit.begin(begin).await.unwrap();
        let caller = Caller { question_id: &question_id, principal: &principal, as_of: end(), events: &NoEvents };
        let call = ToolCall { tool: tool.to_owned(), arguments };
        (question_id.clone(), run_tool(&self.assistant, caller, &call).await)
    }

    /// Makes a call as the operator that has to work.
    pub(crate) async fn works(&self, tool: &str, arguments: Value) -> ToolRun {
        let (_, ran) = self.call_as("operator@atlas", tool, arguments.clone()).await;
        let run = ran.unwrap_or_else(|failure| panic!("{arguments}: {failure}"));
        assert!(!run.output.evidence.is_empty(), "{arguments}");
        run
    }

    /// Makes a call as the operator that has to be refused, with these words; gives back the refusal and the record.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value, words: &str) -> (Refusal, QuestionFile) {
        let (id, ran) = self.call_as("operator@atlas", tool, arguments.clone()).await;
        let Err(ToolFailure::Refused(refusal)) = ran else { panic!("{arguments}: {:?}", ran.map(|run| run.read)) };
        assert!(refusal.to_string().contains(words), "`{words}` is not in: {refusal}");
        let file = self.record(&id);
        let call = &file.calls.last().unwrap().record;
        assert!(!call.decision.allowed, "{call:?}");
        assert_eq!(call.error.as_deref(), Some(refusal.to_string().as_str()));
        (refusal, file)
    }

    pub(crate) fn record(&self, id: &QuestionId) -> QuestionFile {
        AuditReader::open(&self.audit).unwrap().question(id).unwrap().unwrap()
    }
}

fn quotas(folder: &Path, clock: &Arc<Hand>) -> Quotas {
    Quotas::open(folder, Arc::clone(clock) as _).unwrap().with_patience(Duration::from_millis(1200))
}

/// Arguments of `metric_range` over the last so many seconds of the fleet.
pub(crate) fn last(seconds: i64) -> Value {
    let from = end().checked_sub(seconds.seconds()).unwrap();
    serde_json::json!({ "metric": METRIC, "from": from.to_string(), "to": END })
}

/// The same with more arguments.
pub(crate) fn and(mut arguments: Value, more: Value) -> Value {
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

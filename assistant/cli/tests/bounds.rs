//! Each bound through the real engine: just under it works, just over it is refused in words, and what the refusal suggests works.

#![cfg(test)]

#[path = "harness/bounded.rs"]
mod bounded;
mod harness;
#[path = "harness/service.rs"]
mod service;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bounded::{Bounded, DAYS, END, GPUS, and, end, fill_fleet, last};
use harness::Lab;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use service::{Service, problem};
use sightline_audit::AuditReader;
use sightline_core::quota::{
    Budget, Left, NoPlace, Place, Quota, QuotaError, Reservation, Spend, TooManyQuestions, account,
};
use sightline_core::{
    AskError, Cancelled, Event, Events, Ids as _, NoEvents, Question, ReadSoFar, ReplayRequest, ReplayVerdict,
    ToolFailure, TypedCall, answer_question, call_tool, record_cancelled, replay,
};
use sightline_guard::{EngineError, Fits, Refusal, Suggestion};
use sightline_model::audit::Call;
use sightline_model::{BoxFuture, ConversationId, Outcome, Principal, QuestionId, Read};
use sightline_server::clock::UuidIds;

const DAY: i64 = 86_400;

#[tokio::test(flavor = "multi_thread")]
async fn each_bound_holds_and_what_is_suggested_works() {
    let lab = Lab::start();
    fill_fleet(&lab).await;
    a_range(&lab).await;
    points(&lab).await;
    series(&lab).await;
    rows_that_come_back(&lab).await;
    bytes_that_come_back(&lab).await;
    rows_read(&lab).await;
    bytes_read(&lab).await;
    an_estimate_that_is_refused(&lab).await;
    a_search_that_fails(&lab).await;
    memory(&lab).await;
    queries_at_once(&lab).await;
    questions_a_minute(&lab).await;
    bytes_a_day(&lab).await;
    a_rest_that_others_take(&lab).await;
    tokens_a_day(&lab).await;
    a_year_of_ten_thousand_gpus(&lab).await;
    a_question_in_words_is_answered_with_the_refusal(&lab).await;
    let folder = lab.into_folder();
    too_many_questions_over_http(folder.path()).await;
    a_command_spends_from_the_same_ledger(folder.path());
}

/// What was read, as an entrance is told it.
#[derive(Default)]
struct Counted(Mutex<ReadSoFar>);

impl Events for Counted {
    fn emit(&self, _: Event) {}

    fn read(&self, exactly: Read) {
        self.0.lock().unwrap().add(exactly);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_tried_or_stopped_stands_in_the_log_with_what_was_read() {
    let lab = Lab::start();
    lab.fill(&sightline_model::rows::Rows::default()).await;
    let line = Bounded::open(&lab, None, None).await;
    let counted = Counted::default();
    let typed = TypedCall {
        id: QuestionId::new(UuidIds.next()),
        tool: "metric_range".to_owned(),
        arguments: last(3600),
        principal: line.principal("operator@atlas"),
        entrance: "test",
        as_of: end(),
        time_zone: TimeZone::UTC,
    };
    call_tool(&line.assistant, &typed, &counted).await.unwrap();
    let file = line.record(&typed.id);
    let so_far = *counted.0.lock().unwrap();
    let complete = file.complete.unwrap().record;
    assert_eq!((so_far.queries, so_far.read.rows), (complete.queries, complete.rows_read));
    assert!(so_far.queries > 0);

    // A text that is none of ours, a tool that is gone, and what is as it was.
    let call = file.calls.into_iter().map(|call| call.record).find(|call| call.result_digest.is_some()).unwrap();
    let calls = vec![
        Call { sql: Some("SELECT 1".to_owned()), ..call.clone() },
        Call { tool: "gone".to_owned(), ..call.clone() },
        call.clone(),
    ];
    let counted = Counted::default();
    let reviewer = typed.principal.clone();
    let request = ReplayRequest { id: QuestionId::new(UuidIds.next()), of: typed.id, calls, reviewer };
    let replayed = replay(&line.assistant, &request, &counted).await.unwrap();
    let verdicts: Vec<&ReplayVerdict> = replayed.calls.iter().map(|call| &call.verdict).collect();
    let [ReplayVerdict::NotAllowed { .. }, ReplayVerdict::NotAllowed { .. }, ReplayVerdict::Same] = verdicts[..] else {
        panic!("{verdicts:?}")
    };
    let file = line.record(&request.id);
    let records: Vec<&Call> = file.calls.iter().map(|call| &call.record).collect();
    let allowed: Vec<bool> = records.iter().map(|record| record.decision.allowed).collect();
    assert_eq!(allowed, [false, false, true]);
    for record in &records {
        assert_eq!(record.arguments["query_id"], call.query_id.as_ref().unwrap().to_string(), "which one it was");
    }
    assert!(records[..2].iter().all(|record| record.sql.is_none() && record.error.is_some()));
    assert_eq!(counted.0.lock().unwrap().queries, 1);

    // A typed call that its entrance stops has no planner, and says what it had read.
    let (stopped, _) = line.call_as("operator@atlas", "metric_range", last(3600)).await;
    let cancelled = Cancelled { question_id: &stopped, is_planned: false, so_far, model: None, reason: "stopped" };
    record_cancelled(&line.assistant, cancelled).await;
    let complete = line.record(&stopped).complete.unwrap().record;
    assert_eq!((complete.outcome.as_str(), complete.planner.as_str()), ("cancelled", "none"));
    assert_eq!((complete.queries, complete.rows_read), (so_far.queries, so_far.read.rows));
}

fn suggestion(refusal: &Refusal) -> Suggestion {
    let fits = match refusal {
        Refusal::RangeTooLong { fits, .. }
        | Refusal::TooManyPoints { fits, .. }
        | Refusal::TooManyRows { fits, .. }
        | Refusal::TooManyBytes { fits, .. }
        | Refusal::OverBudget { fits, .. } => fits,
        other => panic!("it suggests nothing: {other}"),
    };
    let Fits::This(suggestion) = fits else { panic!("nothing fits: {refusal}") };
    // The words name it too.
    if let Some(window) = suggestion.window {
        assert!(refusal.to_string().contains(&format!("ask about {} to {}", window.from(), window.to())), "{refusal}");
    }
    *suggestion
}

/// The refused call with what its refusal suggests.
fn taken(arguments: Value, refusal: &Refusal) -> Value {
    let Suggestion { window, step_ms } = suggestion(refusal);
    let mut more = json!({});
    if let Some(window) = window {
        more["from"] = json!(window.from().to_string());
        more["to"] = json!(window.to().to_string());
    }
    if let Some(step_ms) = step_ms {
        more["step_seconds"] = json!(step_ms / 1000);
    }
    and(arguments, more)
}

async fn a_range(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_range_seconds", 86_400)]), None).await;
    line.works("metric_range", last(DAY)).await;
    let over = last(DAY + 1);
    let (refusal, file) =
        line.refused("metric_range", over.clone(), "1 d 1 s, which is 1 s over your limit of 1 d").await;
    assert_eq!(file.calls[0].record.rows_read, 0);
    line.works("metric_range", taken(over, &refusal)).await;
}

async fn points(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_points", 100)]), None).await;
    let steps = |seconds: i64| and(last(6000), json!({ "step_seconds": seconds }));
    line.works("metric_range", steps(60)).await;
    let words = "102 points, 2 over your limit of 100; use a step of 2 min or longer";
    let (refusal, _) = line.refused("metric_range", steps(59), words).await;
    line.works("metric_range", taken(steps(59), &refusal)).await;
}

async fn series(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_series", 2)]), None).await;
    let by = |dims: &[&str]| and(last(3600), json!({ "group_by": dims }));
    line.works("metric_range", by(&["node"])).await;
    let words = "there are 4 series, 2 over your limit of 2; group by fewer dimensions, name fewer nodes, or rank them";
    let (_, file) = line.refused("metric_range", by(&["node", "gpu"]), words).await;
    let call = &file.calls[0].record;
    assert!(call.rows_read > 0 && call.sql.is_some(), "it was read");
    assert_eq!((call.result_rows, &call.result_digest), (0, &None), "and not handed on");
    line.works("top_k", by(&["node", "gpu"])).await;
    // Named ones are counted before anything runs.
    let before = line.engine.runs.load(Ordering::Relaxed);
    let three = json!({ "filters": [{ "dim": "node", "values": ["n0", "n1", "n2"] }] });
    line.refused("metric_range", and(by(&["node"]), three), "there are 3 series").await;
    assert_eq!(line.engine.runs.load(Ordering::Relaxed), before);
}

async fn rows_that_come_back(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_result_rows", 60)]), None).await;
    let steps = |seconds: i64| and(last(3600), json!({ "step_seconds": seconds }));
    line.works("metric_range", steps(60)).await;
    let (_, ran) = line.call_as("operator@atlas", "metric_range", steps(59)).await;
    let said = ran.unwrap_err().to_string();
    assert!(said.contains("returned more than 60 rows") && said.contains("a longer step"), "{said}");
    line.works("metric_range", steps(120)).await;
}

async fn bytes_that_come_back(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_result_bytes", 20_000)]), None).await;
    let steps = |seconds: i64| and(last(3600), json!({ "step_seconds": seconds }));
    line.works("metric_range", steps(60)).await;
    let (_, ran) = line.call_as("operator@atlas", "metric_range", steps(1)).await;
    let said = ran.unwrap_err().to_string();
    assert!(said.contains("or 19.5 KiB, its limit; ask for a longer step"), "{said}");
    line.works("metric_range", steps(120)).await;
}

async fn rows_read(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_rows_read", 500_000)]), None).await;
    line.works("metric_range", last(DAY)).await;
    let runs = line.engine.runs.load(Ordering::Relaxed);
    let over = last(DAYS * DAY);
    let (refusal, file) =
        line.refused("metric_range", over.clone(), "over your limit of 500,000; ask about 2025-").await;
    assert_eq!(line.engine.runs.load(Ordering::Relaxed), runs, "refused before it ran");
    assert_eq!((file.calls[0].record.rows_read, &file.calls[0].record.sql), (0, &None));
    let Refusal::TooManyRows { estimated, .. } = refusal else { panic!("{refusal}") };
    let stored = GPUS * u64::try_from(DAYS * DAY).unwrap();
    assert!((stored..stored + stored / 10).contains(&estimated), "{estimated} of {stored}");
    line.works("metric_range", taken(over, &refusal)).await;

    // No window is short enough for a bound under a single mark of the index.
    let line = Bounded::open(lab, Some(&[("max_rows_read", 5000)]), None).await;
    let nothing = "no shorter time range that was tried fits, so name a node or a job";
    line.refused("metric_range", last(DAYS * DAY), nothing).await;

    // A named series is known to be small, and the engine is not asked; where it is larger than that, the engine's own bound holds.
    let named = json!({ "filters": [{ "dim": "node", "values": ["n0"] }, { "dim": "gpu", "values": ["0"] }] });
    let line = Bounded::open(lab, Some(&[("max_rows_read", 50_000)]), None).await;
    line.works("metric_range", and(last(4000), named.clone())).await;
    assert_eq!(line.engine.estimates.load(Ordering::Relaxed), 0);
    let over = and(last(DAY), named);
    let (refusal, _) = line.refused("metric_range", over.clone(), "over your limit of 50,000; ask about").await;
    line.works("metric_range", taken(over, &refusal)).await;
}

async fn bytes_read(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_bytes_read", 12_000_000)]), None).await;
    line.works("metric_range", last(DAY)).await;
    let over = last(DAYS * DAY);
    let (refusal, file) = line.refused("metric_range", over.clone(), "over your limit of 11.4 MiB; ask about").await;
    assert_eq!(file.calls[0].record.bytes_read, 0);
    line.works("metric_range", taken(over, &refusal)).await;
}

/// A server whose profile bounds what may be read bounds estimates too.
async fn an_estimate_that_is_refused(lab: &Lab) {
    let line = Bounded::open(lab, None, None).await;
    for (error, words) in [
        (EngineError::TooManyRows { limit: 300_000 }, "over your limit of 300,000; ask about 2025-"),
        (EngineError::TooManyBytes { limit: 7_200_000 }, "over your limit of 6.9 MiB; ask about 2025-"),
    ] {
        *line.engine.large.lock().unwrap() = Some((300_000, error));
        let over = last(DAYS * DAY);
        let (refusal, _) = line.refused("metric_range", over.clone(), words).await;
        line.works("metric_range", taken(over, &refusal)).await;
    }
}

/// The refusal stands without what would fit, and is no fault of the host.
async fn a_search_that_fails(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_rows_read", 500_000)]), None).await;
    line.engine.lost_after.store(1, Ordering::Relaxed);
    let words = "over your limit of 500,000; ask about a shorter time range, or name a node or a job";
    line.refused("metric_range", last(DAYS * DAY), words).await;
    assert!(line.engine.estimates.load(Ordering::Relaxed) > 1, "it was looked for");
}

async fn memory(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("max_memory_bytes", 15_000_000)]), None).await;
    let p95 = |seconds: i64| and(last(seconds), json!({ "aggregation": "p95", "step_seconds": seconds }));
    line.works("metric_range", p95(3600)).await;
    let (_, ran) = line.call_as("operator@atlas", "metric_range", p95(DAYS * DAY)).await;
    let said = ran.unwrap_err().to_string();
    assert!(
        said.contains("more than 14.3 MiB of memory, its limit; group by fewer dimensions or ask about a shorter"),
        "{said}"
    );
}

async fn queries_at_once(lab: &Lab) {
    let limits = [("max_concurrent", 1), ("max_seconds", 3), ("max_range_seconds", 86_400)];
    let line = Bounded::open(lab, Some(&limits), None).await;
    line.works("metric_range", last(3600)).await;
    let operator = line.principal("operator@atlas");
    let held = line.assistant.quota.place(&operator, 1, Duration::ZERO).await.ok().unwrap();
    // As long as a query may run, and the patience besides.
    let words =
        "1 queries of yours run at once, your limit, and the turn of this one did not come within 4 s; wait for one";
    line.refused("metric_range", last(3600), words).await;
    let estimates = line.engine.estimates.load(Ordering::Relaxed);
    let words = "1 s over your limit of 1 d; ask about a shorter time range, or name a node or a job";
    line.refused("metric_range", last(DAY + 1), words).await;
    assert_eq!(line.engine.estimates.load(Ordering::Relaxed), estimates, "a search waits for its turn too");
    let (_, other) = line.call_as("viewer@atlas", "metric_range", last(3600)).await;
    assert!(other.is_ok(), "another principal has places of its own");
    drop(held);
    line.works("metric_range", last(3600)).await;
}

async fn ask(line: &Bounded, principal: &str, text: &str) -> Result<sightline_model::Answer, AskError> {
    let question = Question {
        id: QuestionId::new(UuidIds.next()),
        conversation_id: ConversationId::new(UuidIds.next()),
        text: text.to_owned(),
        before: Vec::new(),
        principal: line.principal(principal),
        entrance: "test",
        as_of: end(),
        time_zone: TimeZone::UTC,
    };
    answer_question(&line.assistant, &question, &NoEvents).await
}

async fn questions_a_minute(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("questions_per_minute", 30)]), None).await;
    let text = "what is the meaning of questions a minute?";
    for _ in 0..30 {
        ask(&line, "viewer@atlas", text).await.unwrap();
    }
    let Err(AskError::TooManyQuestions(full)) = ask(&line, "viewer@atlas", text).await else { panic!("it is let in") };
    assert_eq!((full.limit, full.retry_after_s), (30, 2));
    assert!(full.to_string().starts_with("you asked more than 30 questions within a minute"), "{full}");
    let recorded = service::audited(lab.data_dir(), text).len();
    assert_eq!(recorded, 30, "what was turned away is not on record");
    line.clock.monotonic_ms.fetch_add(2000, Ordering::Relaxed);
    ask(&line, "viewer@atlas", text).await.unwrap();
    assert!(ask(&line, "viewer@atlas", text).await.is_err());
}

async fn bytes_a_day(lab: &Lab) {
    let limit = 100_000_000;
    let changes = [("bytes_per_day", limit), ("max_bytes_read", limit)];
    let mut line = Bounded::open(lab, Some(&changes), None).await;
    let payer = account(&line.principal("operator@atlas"));
    assert_eq!(payer, account(&line.principal("viewer@atlas")), "a tenant has one budget");
    let budget = |line: &Bounded| of_atlas(line, limit);
    let left = async |line: &Bounded| line.assistant.quota.left(of_atlas(line, limit)).await.unwrap().amount;
    assert_eq!(payer, "tenant:atlas");

    let run = line.works("metric_range", last(DAY)).await;
    assert_eq!(
        left(&line).await,
        limit - run.read_exactly.bytes,
        "what was read is charged, and the rest of what was set aside came back"
    );
    let (_, refused) = line.call_as("operator@atlas", "metric_range", last(400 * DAY)).await;
    assert!(refused.is_err());
    assert_eq!(left(&line).await, limit - run.read_exactly.bytes, "a refusal costs nothing");

    // A question that is cancelled while its query runs pays what was set aside: the estimate.
    line.engine.hangs.store(true, Ordering::Relaxed);
    let runs = line.engine.runs.load(Ordering::Relaxed);
    tokio::select! {
        (_, ran) = line.call_as("operator@atlas", "metric_range", last(DAY)) => panic!("it ends: {ran:?}"),
        () = line.engine.ran_more_than(runs) => {}
    }
    line.engine.hangs.store(false, Ordering::Relaxed);
    let paid = limit - run.read_exactly.bytes - left(&line).await;
    assert!(
        (run.read_exactly.bytes..2 * run.read_exactly.bytes).contains(&paid),
        "{paid} for a query that reads {}",
        run.read_exactly.bytes
    );

    let rest = 12_000_000;
    let by_others = left(&line).await - rest;
    line.assistant.quota.reserve(budget(&line), 1).await.unwrap().settle(by_others);
    assert_eq!(left(&line).await, rest);
    line.restart();
    assert_eq!(left(&line).await, rest, "a restart forgets nothing");
    let over = last(DAYS * DAY);
    let words = "over the 11.4 MiB left of today's budget, which begins anew at ";
    let (refusal, _) = line.refused("metric_range", over.clone(), words).await;
    line.works("metric_range", taken(over, &refusal)).await;

    let spent = left(&line).await;
    line.assistant.quota.reserve(budget(&line), spent).await.unwrap().settle(spent);
    let words = "today's budget of 95.4 MiB read is spent; ask again after ";
    let (refusal, file) = line.refused("metric_range", last(60), words).await;
    assert!(matches!(refusal, Refusal::BudgetSpent { resets, .. } if resets > line.assistant.clock.now()), "{refusal}");
    assert_eq!(file.calls[0].record.rows_read, 0);
    let (_, other) = line.call_as("admin", "metric_range", last(3600)).await;
    assert!(other.is_ok(), "an admin pays for itself: {:?}", other.err());
}

fn of_atlas(line: &Bounded, limit: u64) -> Budget<'static> {
    Budget { account: "tenant:atlas", now: line.assistant.clock.now(), spend: Spend::Bytes, limit }
}

/// Budgets of which others take all but a rest between the look at what is left and the reservation.
struct Taken {
    inner: Arc<dyn Quota>,
    rest: u64,
}

impl Quota for Taken {
    fn question(&self, principal: &Principal, per_minute: u64) -> Result<(), TooManyQuestions> {
        self.inner.question(principal, per_minute)
    }

    fn place<'a>(
        &'a self,
        who: &'a Principal,
        at_once: u64,
        longer: Duration,
    ) -> BoxFuture<'a, Result<Place, NoPlace>> {
        self.inner.place(who, at_once, longer)
    }

    fn left<'a>(&'a self, budget: Budget<'a>) -> BoxFuture<'a, Result<Left, QuotaError>> {
        self.inner.left(budget)
    }

    fn reserve<'a>(&'a self, budget: Budget<'a>, amount: u64) -> BoxFuture<'a, Result<Reservation, QuotaError>> {
        Box::pin(async move {
            let by_others = self.inner.left(budget).await?.amount.saturating_sub(self.rest);
            if by_others > 0 {
                self.inner.reserve(budget, by_others).await?.settle(by_others);
            }
            self.inner.reserve(budget, amount).await
        })
    }
}

async fn a_rest_that_others_take(lab: &Lab) {
    let limit = 100_000_000;
    let changes = [("bytes_per_day", limit), ("max_bytes_read", limit)];
    let mut line = Bounded::open(lab, Some(&changes), None).await;
    line.assistant.quota = Arc::new(Taken { inner: Arc::clone(&line.assistant.quota), rest: 1 });
    let words = "over the 1 B left of today's budget, which begins anew at ";
    line.refused("metric_range", last(DAY), words).await;
    assert_eq!(line.engine.runs.load(Ordering::Relaxed), 0, "it does not run on a part of what it needs");
    let left = line.assistant.quota.left(of_atlas(&line, limit)).await.unwrap().amount;
    assert_eq!(left, 1, "the part came back");

    // A series by name, whose size is known without the engine, takes ten times that with it.
    let named = json!({ "filters": [{ "dim": "node", "values": ["n0"] }, { "dim": "gpu", "values": ["0"] }] });
    let (known, rest) = (3600 * 24, 3600 * 24 * 10);
    for (rest, runs) in [(rest - 1, 0), (rest, 1)] {
        let mut line = Bounded::open(lab, Some(&changes), None).await;
        line.assistant.quota = Arc::new(Taken { inner: Arc::clone(&line.assistant.quota), rest });
        let (_, ran) = line.call_as("operator@atlas", "metric_range", and(last(3600), named.clone())).await;
        assert_eq!(
            (ran.is_ok(), line.engine.runs.load(Ordering::Relaxed)),
            (runs == 1, runs),
            "{rest} of {known}: {ran:?}"
        );
        assert_eq!(line.engine.estimates.load(Ordering::Relaxed), 0);
    }
}

async fn tokens_a_day(lab: &Lab) {
    let line = Bounded::open(lab, Some(&[("tokens_per_day", 5000)]), None).await;
    let principal = line.principal("viewer@atlas");
    let limit = line.assistant.policies.now().limits(&principal).tokens_per_day;
    let payer = account(&principal);
    let now = line.assistant.clock.now();
    let budget = Budget { account: &payer, now, spend: Spend::Tokens, limit };
    line.assistant.quota.reserve(budget, 3000).await.unwrap().settle(2000);
    assert_eq!(line.assistant.quota.left(budget).await.unwrap().amount, 3000);
    line.assistant.quota.reserve(budget, 3000).await.unwrap().settle(3000);
    let error = line.assistant.quota.reserve(budget, 1).await.err().unwrap().to_string();
    assert!(error.starts_with("today's budget of 5000 model tokens is spent; ask again after "), "{error}");
    let bytes = Budget { spend: Spend::Bytes, ..budget };
    assert!(line.assistant.quota.reserve(bytes, 1).await.is_ok(), "tokens and bytes are apart");
}

/// The shipped limits. The engine is the real one with real rows; only its estimates pretend the year and the ten thousand GPUs.
async fn a_year_of_ten_thousand_gpus(lab: &Lab) {
    let line = Bounded::open(lab, None, Some(10_000)).await;
    line.works("metric_range", last(60)).await;
    let year = and(last(366 * DAY), json!({ "step_seconds": 1 }));
    for (principal, words) in [
        ("admin", "31,622,400 points, 31,611,400 over your limit of 11,000; ask about 2025-"),
        ("operator@atlas", "the time range is 366 d, which is 276 d over your limit of 90 d; ask about 2025-"),
    ] {
        let runs = line.engine.runs.load(Ordering::Relaxed);
        let started = Instant::now();
        let (id, ran) = line.call_as(principal, "metric_range", year.clone()).await;
        println!("a year of 1 s data of 10,000 GPUs, {principal}: refused in {:?}", started.elapsed());
        let Err(ToolFailure::Refused(refusal)) = ran else { panic!("{principal}: {ran:?}") };
        println!("  {refusal}\n  {}", refusal.for_model());
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert_eq!(line.engine.runs.load(Ordering::Relaxed), runs, "the engine ran nothing");
        let file = line.record(&id);
        assert_eq!(file.calls.len(), 1);
        let call = &file.calls[0].record;
        assert_eq!((call.rows_read, call.bytes_read, call.decision.allowed, &call.sql), (0, 0, false, &None));
        let (_, ran) = line.call_as(principal, "metric_range", taken(year.clone(), &refusal)).await;
        let run = ran.unwrap_or_else(|failure| panic!("{principal}: {refusal}\nthen: {failure}"));
        assert!(run.read.rows > 0 && line.engine.runs.load(Ordering::Relaxed) > runs);
    }
}

async fn a_question_in_words_is_answered_with_the_refusal(lab: &Lab) {
    let line = Bounded::open(lab, None, None).await;
    let answer = ask(&line, "viewer@atlas", "What was the GPU temperature over the last 40 days?").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Refused, "{}", answer.headline);
    let words = "the time range is 40 d, which is 9 d over your limit of 31 d; ask about 2025-05-02T10:00:00Z to 2025-06-02T10:00:00Z";
    assert!(answer.headline.contains(words), "{}", answer.headline);
    assert_eq!(answer.cost.rows_read, 0);
    let answer = ask(&line, "viewer@atlas", "What was the GPU temperature over the last 31 days?").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered, "{}", answer.headline);
}

async fn too_many_questions_over_http(data_dir: &Path) {
    let service = Service::start(data_dir);
    let text = "what is the meaning of a flood?";
    let body = json!({ "question": text, "as_of": END });
    // A viewer's minute holds sixty; while they are asked, one more becomes free each second.
    let mut taken = 0;
    let refused = loop {
        let response = service.chat("viewer@atlas", &body).send().await.unwrap();
        if response.status() != 200 {
            break response;
        }
        taken += 1;
        assert!(taken < 1000, "the flood is let through");
    };
    assert!(taken >= 60, "{taken}");
    let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(problem(refused, 429).await.starts_with("you asked more than 60 questions within a minute, your limit; "));
    let mut streamed = service.chat("viewer@atlas", &body).header("Accept", "text/event-stream").send().await.unwrap();
    while streamed.status() == 200 {
        // The next second had begun.
        taken += 1;
        assert!(taken < 1000, "the flood is let through");
        streamed = service.chat("viewer@atlas", &body).header("Accept", "text/event-stream").send().await.unwrap();
    }
    problem(streamed, 429).await;
    assert_eq!(service.audited(text).len(), taken, "what was turned away is not on record");
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(service.chat("viewer@atlas", &body).send().await.unwrap().status(), 200);
}

fn a_command_spends_from_the_same_ledger(data_dir: &Path) {
    let spent = || {
        let ledger = rusqlite::Connection::open(data_dir.join("budget.db")).unwrap();
        let sql = "SELECT coalesce(sum(amount), 0) FROM spent WHERE account = 'tenant:atlas' AND kind = 'bytes'";
        let open: i64 = ledger.query_row("SELECT count(*) FROM reserved", [], |row| row.get(0)).unwrap();
        assert_eq!(open, 0, "nothing is left set aside");
        ledger.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = spent();
    let question = "What was the GPU temperature of node n0 over the last hour?";
    let arguments = ["ask", "--json", "--as", "viewer@atlas", "--as-of", END, question];
    let answer = harness::answer(&harness::run(data_dir, &arguments));
    // What is charged is exact; what the asker is shown of it is rounded.
    let reader = AuditReader::open(&data_dir.join("audit.db")).unwrap();
    let id = QuestionId::new(answer["audit"]["question_id"].as_str().unwrap());
    let read = reader.question(&id).unwrap().unwrap().complete.unwrap().record.bytes_read;
    assert!(read > 0 && read <= answer["cost"]["bytes_read"].as_u64().unwrap(), "{answer}");
    assert_eq!(spent() - before, i64::try_from(read).unwrap());
}

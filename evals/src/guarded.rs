//! What the guard costs: a scan of 100 million rows written by hand, as the guard's own text without guard and fence, and through
//! both; a small query's own time on top of the engine's; and how soon a question that is far too big is refused.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clickhouse::{Client, Compression};
use jiff::Timestamp;
use sightline_core::quota::Unmetered;
use sightline_core::{Assistant, Caller, Ids as _, NoEvents, ToolCall, ToolFailure, run_tool};
use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{ClickHouseEngine, Endpoint, EngineAddress, EngineUser, SecondFence, Writer, drop_database};
use sightline_guard::{Admission, Engine as _, ExecutableQuery, Guard, Mapping, ParamType};
use sightline_model::{Aggregation, Dataset, Dim, Principal, QueryId, QuestionId, ResultSet, TimeRange};
use sightline_policies::{LivePolicies, Policies, Request};
use sightline_query::{Align, Catalogue, MetricPart, Order, Query, Shape};

use crate::bench::median;
use crate::stations::{Counted, Nothing, StandingClock};

/// The database of this benchmark; it is dropped before and after.
const DATABASE: &str = "bench_guarded";
const ROWS: u64 = 100_000_000;
/// One sample every ten seconds of each of ten thousand GPUs, eight to a node.
const SAMPLES: u64 = 10_000;
const GPUS_PER_NODE: u64 = 8;
const STEP_S: u64 = 10;
const METRIC: &str = "DCGM_FI_DEV_GPU_TEMP";
/// When the samples begin, and the end of the windows that read all of them.
const FROM: &str = "2026-05-01T00:00:00Z";
const TO: &str = "2026-05-02T04:00:00Z";
/// How often each way is taken, in turns.
const SCANS: usize = 15;
const SMALL: usize = 300;
const REFUSALS: usize = 30;
/// How long merges of the fresh table may take to end: they would run beside what is measured.
const MERGES: Duration = Duration::from_secs(180);

type Failure = Box<dyn Error>;

/// The engine and the line before it.
struct Line {
    raw: Client,
    engine: ClickHouseEngine,
    catalogue: Arc<Catalogue>,
    policies: Arc<LivePolicies>,
    guard: Guard,
    principal: Principal,
    tenants: BTreeSet<String>,
    ids: Counted,
}

/// A scan as a tool asks for it, and as an engineer would write it by hand.
struct Scan {
    name: &'static str,
    query: Query,
    by_hand: String,
}

/// The median times of a scan, milliseconds.
struct Times {
    /// Written by hand, with the engine's own settings.
    by_hand: f64,
    /// The guard's text with its values as literals, on as many threads, without bounds and fence: the same scan.
    raw: f64,
    /// Catalogue, policy, guard, bounds, second fence, and the rows decoded.
    guarded: f64,
}

/// Fills the table, measures, drops it again, and says what it took.
///
/// # Errors
/// When the engine cannot be used or gives another result than it should.
pub async fn guarded(address: &EngineAddress) -> Result<String, Failure> {
    let endpoint = |user: EngineUser| Endpoint::new(address.url(), user.name(), address.credentials.password(user));
    let database = DatabaseName::new(DATABASE)?;
    let writer = Writer::new(&endpoint(EngineUser::Writer));
    let raw = Client::default()
        .with_url(address.url())
        .with_user(EngineUser::Writer.name())
        .with_password(address.credentials.password(EngineUser::Writer))
        .with_compression(Compression::None);
    if native::version(&writer, &database).await?.is_some() {
        drop_database(&writer, &database).await?;
    }
    native::create(&writer, &database).await?;
    let policies = Policies::builtin()?;
    let line = Line {
        raw,
        engine: ClickHouseEngine::new(&endpoint(EngineUser::Reader), SecondFence::InRequest),
        catalogue: Arc::new(Catalogue::builtin()?),
        principal: policies.principal("admin").ok_or("there is no principal `admin`")?,
        policies: Arc::new(LivePolicies::new(policies)),
        guard: Guard::new(Mapping::native(DATABASE)?),
        tenants: BTreeSet::from(["atlas".to_owned()]),
        ids: Counted::default(),
    };
    let measured = measure(line).await;
    // Also when something went wrong: it is a gigabyte of disk.
    drop_database(&writer, &database).await?;
    measured
}

async fn measure(line: Line) -> Result<String, Failure> {
    let mut text = String::new();
    let filled = fill(&line.raw).await?;
    let _ = writeln!(text, "\n{ROWS} rows were filled in {filled:.1} s");
    let head = ["by hand ms", "raw ms", "guarded ms", "over raw", "over by hand"];
    let [by_hand, raw, guarded, over_raw, over_hand] = head;
    let _ = writeln!(
        text,
        "\n{:<40} {by_hand:>10} {raw:>9} {guarded:>10} {over_raw:>8} {over_hand:>12}",
        "medians of alternating runs"
    );
    for scan in scans()? {
        text.push_str(&Times::say(scan.name, &line.in_turns(&scan, SCANS).await?));
    }
    let small = small()?;
    let times = line.in_turns(&small, SMALL).await?;
    text.push_str(&Times::say(small.name, &times));
    let alone = line.without_the_engine(&small.query)?;
    let own = times.guarded - times.raw;
    let _ = writeln!(text, "guard's and client's own time on top of the engine's, by difference {own:.3} ms");
    let _ = writeln!(text, "of it catalogue, policy and guard, measured alone                   {alone:.3} ms");
    text.push_str(&refused(line).await?);
    Ok(text)
}

/// Fills the table in the order of its key, and waits until the engine has put its parts together. Gives the seconds of filling.
async fn fill(raw: &Client) -> Result<f64, Failure> {
    let started = Instant::now();
    let per_node = SAMPLES * GPUS_PER_NODE;
    let insert = format!(
        "INSERT INTO {DATABASE}.metrics (tenant, cluster, metric, node, gpu, service, labels, time, value) SELECT 'atlas', 'bench', \
         '{METRIC}', concat('n', leftPad(toString(intDiv(number, {per_node})), 4, '0')), \
         toString(intDiv(number, {SAMPLES}) % {GPUS_PER_NODE}), '', map('model', 'H100'), \
         toDateTime64('2026-05-01 00:00:00', 3, 'UTC') + toIntervalSecond(number % {SAMPLES} * {STEP_S}), \
         60 + cityHash64(intDiv(number, 6)) % 160 / 8 FROM numbers({ROWS})"
    );
    raw.query_raw(&insert).execute().await?;
    let filled = started.elapsed().as_secs_f64();
    let waiting = Instant::now();
    let merges = format!("SELECT count() FROM system.merges WHERE database = '{DATABASE}'");
    while waiting.elapsed() < MERGES {
        let running = raw.query_raw(&merges).fetch_bytes("TabSeparated")?.collect().await?;
        if running.trim_ascii() == b"0" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(filled)
}

fn range(from: &str, to: &str) -> Result<TimeRange, Failure> {
    TimeRange::new(from.parse()?, to.parse()?).ok_or_else(|| "not a time range".into())
}

fn query(range: TimeRange, placement: Option<Vec<(String, String)>>, shape: Shape) -> Query {
    let metric = Some(METRIC.to_owned());
    let part = MetricPart::Samples;
    Query { dataset: Dataset::Metrics, metric, part, range, filters: Vec::new(), placement, threshold: None, shape }
}

fn series(step_ms: u64, group_by: Vec<Dim>) -> Shape {
    Shape::Series { step_ms, align: Align::Epoch, group_by, aggregation: Aggregation::Avg, limit: 10_000 }
}

/// Every row of the table, as an engineer would write it and as a tool asks for it.
fn scans() -> Result<[Scan; 2], Failure> {
    let all = range(FROM, TO)?;
    let scope = format!(
        "tenant = 'atlas' AND metric = '{METRIC}' AND time >= '2026-05-01 00:00:00' AND time < '2026-05-02 04:00:00'"
    );
    let values = "count() AS n, min(value), max(value), avg(value) AS mean";
    let rank =
        Shape::Rank { group_by: vec![Dim::Node], aggregation: Aggregation::Avg, order: Order::Descending, limit: 10 };
    Ok([
        Scan {
            name: "100 M rows, the ten hottest nodes",
            query: query(all, None, rank),
            by_hand: format!(
                "SELECT node, {values} FROM {DATABASE}.metrics WHERE {scope} GROUP BY node ORDER BY mean DESC, node LIMIT 11"
            ),
        },
        Scan {
            name: "100 M rows, an average for each hour",
            query: query(all, None, series(3_600_000, Vec::new())),
            by_hand: format!(
                "SELECT toStartOfHour(time) AS hour, {values} FROM {DATABASE}.metrics WHERE {scope} GROUP BY hour ORDER BY hour LIMIT 10001"
            ),
        },
    ])
}

/// An hour of one GPU, minute by minute: what a chart asks.
fn small() -> Result<Scan, Failure> {
    let hour = range("2026-05-01T12:00:00Z", "2026-05-01T13:00:00Z")?;
    let placement = Some(vec![("n0500".to_owned(), "3".to_owned())]);
    Ok(Scan {
        name: "an hour of one GPU, minute by minute",
        query: query(hour, placement, series(60_000, vec![Dim::Node, Dim::Gpu])),
        by_hand: format!(
            "SELECT toStartOfMinute(time) AS minute, node, gpu, count(), min(value), max(value), avg(value) FROM {DATABASE}.metrics \
             WHERE tenant = 'atlas' AND metric = '{METRIC}' AND node = 'n0500' AND gpu = '3' AND time >= '2026-05-01 12:00:00' \
             AND time < '2026-05-01 13:00:00' GROUP BY minute, node, gpu ORDER BY minute, node, gpu LIMIT 10001"
        ),
    })
}

impl Line {
    /// The times of a scan, each way taken in turns.
    async fn in_turns(&self, scan: &Scan, times: usize) -> Result<Times, Failure> {
        let (mut by_hand, mut raw, mut guarded) = (Vec::new(), Vec::new(), Vec::new());
        let admitted = self.admit(&scan.query)?;
        let same = with_literals(&admitted);
        let settings = admitted.bounds().settings();
        let threads = settings.into_iter().find(|(name, _)| *name == "max_threads");
        // The first round warms the caches of all.
        for turn in 0..=times {
            let started = Instant::now();
            let lines = self.raw(&scan.by_hand, None).await?;
            let by_hand_ms = millis(started);
            let started = Instant::now();
            let same_lines = self.raw(&same, threads.clone()).await?;
            let raw_ms = millis(started);
            let started = Instant::now();
            let result = self.guarded(&scan.query).await?;
            let guarded_ms = millis(started);
            // The text asks for one row more than is wanted.
            let rows = result.rows.len() + usize::from(result.truncated);
            if [lines, same_lines] != [rows; 2] {
                let name = scan.name;
                return Err(
                    format!("`{name}`: {lines} rows by hand, {same_lines} raw, {rows} through the guard").into()
                );
            }
            if turn > 0 {
                by_hand.push(by_hand_ms);
                raw.push(raw_ms);
                guarded.push(guarded_ms);
            }
        }
        let nothing = || "nothing was measured";
        Ok(Times {
            by_hand: median(by_hand).ok_or_else(nothing)?,
            raw: median(raw).ok_or_else(nothing)?,
            guarded: median(guarded).ok_or_else(nothing)?,
        })
    }

    /// Runs plain SQL as the writer, and counts its rows.
    async fn raw(&self, sql: &str, setting: Option<(&'static str, String)>) -> Result<usize, Failure> {
        let mut query = self.raw.query_raw(sql).with_setting("wait_end_of_query", "1");
        if let Some((name, value)) = setting {
            query = query.with_setting(name, value);
        }
        let text = query.fetch_bytes("JSONCompactEachRow")?.collect().await?;
        Ok(text.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Catalogue, policy, guard, second fence.
    async fn guarded(&self, query: &Query) -> Result<ResultSet, Failure> {
        let executable = self.admit(query)?;
        Ok(self.engine.run(&executable).await?)
    }

    fn admit(&self, query: &Query) -> Result<ExecutableQuery, Failure> {
        let valid = self.catalogue.check(query)?;
        let request = Request {
            principal: &self.principal,
            tool: "metric_range",
            dataset: valid.dataset(),
            known_tenants: &self.tenants,
            job: None,
        };
        let decision = self.policies.now().decide(&request);
        let limits = self.policies.now().limits(&self.principal);
        let query_id = QueryId::new(self.ids.next());
        let now = as_of()?;
        let admission =
            Admission { decision: &decision, limits: &limits, now, query_id, bytes_left: None, estimate: None };
        Ok(self.guard.admit(&valid, admission)?)
    }

    /// The median time until a query may run, milliseconds.
    fn without_the_engine(&self, query: &Query) -> Result<f64, Failure> {
        let mut times = Vec::new();
        for _ in 0..SMALL {
            let started = Instant::now();
            self.admit(query)?;
            times.push(millis(started));
        }
        median(times).ok_or_else(|| "nothing was measured".into())
    }
}

impl Times {
    fn say(name: &str, times: &Self) -> String {
        let Self { by_hand, raw, guarded } = times;
        let (over_raw, over_hand) = (guarded / raw, guarded / by_hand);
        format!("{name:<40} {by_hand:>10.2} {raw:>9.2} {guarded:>10.2} {over_raw:>8.3} {over_hand:>12.3}\n")
    }
}

/// The text with its values in place of its parameters. They are this benchmark's own.
fn with_literals(query: &ExecutableQuery) -> String {
    query.params().iter().fold(query.sql().to_owned(), |sql, param| {
        let literal = match param.ty() {
            ParamType::Text => format!("'{}'", param.text()),
            ParamType::Time => format!("toDateTime64('{}', 3, 'UTC')", param.text()),
            ParamType::TextList | ParamType::PairList | ParamType::Number => param.text().to_owned(),
        };
        sql.replace(&format!("{{{}:{}}}", param.name(), param.ty().as_sql()), &literal)
    })
}

fn as_of() -> Result<Timestamp, Failure> {
    Ok("2026-05-03T00:00:00Z".parse()?)
}

fn millis(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

/// How soon a year of second by second data of ten thousand GPUs is refused, by the whole line.
async fn refused(line: Line) -> Result<String, Failure> {
    let Line { raw: _, engine, catalogue, policies, guard, principal, tenants, ids } = line;
    let assistant = Assistant {
        catalogue,
        tools: sightline_tools::tools(),
        policies,
        guard,
        engine: Arc::new(engine),
        quota: Arc::new(Unmetered),
        audit: Arc::new(Nothing),
        planner: Box::new(Nothing),
        tenants,
        clock: Arc::new(StandingClock { at: as_of()?, started: Instant::now() }),
        ids: Arc::new(ids),
    };
    let arguments = serde_json::json!({
        "metric": METRIC, "from": "2025-05-03T00:00:00Z", "to": "2026-05-03T00:00:00Z", "group_by": ["node", "gpu"],
        "step_seconds": 1,
    });
    let call = ToolCall { tool: "metric_range".to_owned(), arguments };
    let question_id = QuestionId::new("bench");
    let caller = Caller { question_id: &question_id, principal: &principal, as_of: as_of()?, events: &NoEvents };
    let (mut times, mut said) = (Vec::new(), String::new());
    for _ in 0..REFUSALS {
        let started = Instant::now();
        match run_tool(&assistant, caller, &call).await {
            Err(ToolFailure::Refused(refusal)) => said = refusal.to_string(),
            Err(other) => return Err(other.into()),
            Ok(_) => return Err("a year of 1 s data of 10,000 GPUs was not refused".into()),
        }
        times.push(millis(started));
    }
    let ms = median(times).ok_or("nothing was measured")?;
    Ok(format!(
        "\na year of 1 s data of 10,000 GPUs is refused in {ms:.1} ms (audit log and quota in memory): {said}\n"
    ))
}

//! What a diagnosis costs: one job on 512 GPUs over a day at 15 s, with a thousand and with ten thousand GPUs of other jobs around it. What
//! is read should follow the job and not the fleet.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use clickhouse::{Client, Compression};
use jiff::Timestamp;
use sightline_core::quota::Unmetered;
use sightline_core::{Assistant, Caller, NoEvents, ToolCall, run_tool};
use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{ClickHouseEngine, Endpoint, EngineAddress, EngineUser, SecondFence, Writer, drop_database};
use sightline_guard::{Guard, Mapping};
use sightline_model::{Outcome, Principal, QuestionId};
use sightline_policies::{LivePolicies, Policies};
use sightline_query::Catalogue;

use crate::bench::median;
use crate::stations::{Counted, Nothing, StandingClock};

/// The database of this benchmark; it is dropped before and after.
const DATABASE: &str = "bench_diagnosed";
const GPUS_PER_NODE: u64 = 8;
/// The job: its GPUs, in the middle of the fleet, and one sample every 15 s for a day.
const JOB_GPUS: u64 = 512;
const JOB_STEP_S: u64 = 15;
/// The other GPUs are sampled less often, so that the larger fleet is there in minutes.
const FLEET_STEP_S: u64 = 300;
const DAY_S: u64 = 86_400;
/// GPUs around the job.
const AROUND: [u64; 2] = [1_000, 10_000];
const TIMES: usize = 5;
const JOB: &str = "J512";

/// What every GPU reports, with an expression for the value; `h` is a hash of the sample, `slow` whether it is the hot GPU in the second half.
const METRICS: [(&str, &str); 16] = [
    ("DCGM_FI_DEV_SM_CLOCK", "if(slow, 1200, 1960) + h % 16 - 8"),
    ("DCGM_FI_DEV_GPU_TEMP", "if(slow, 88, 64) + h % 4"),
    ("DCGM_FI_DEV_POWER_USAGE", "if(slow, 420, 640) + h % 32 - 16"),
    ("DCGM_FI_DEV_GPU_UTIL", "98 + h % 3"),
    ("DCGM_FI_DEV_MEMORY_TEMP", "70 + h % 4"),
    ("DCGM_FI_DEV_FB_USED", "70000 + h % 64"),
    ("DCGM_FI_PROF_SM_ACTIVE", "0.85 + h % 16 / 400"),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.5 + h % 16 / 400"),
    ("DCGM_FI_PROF_DRAM_ACTIVE", "0.4 + h % 16 / 400"),
    ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "if(slow, 64, 4)"),
    ("DCGM_FI_DEV_XID_ERRORS", "0"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "0"),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "gpu_number % 3"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "0"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "gpu_number % 5"),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "0"),
];

type Failure = Box<dyn Error>;

/// What one diagnosis took.
struct Took {
    millis: f64,
    queries: u64,
    rows: u64,
}

/// Fills the tables twice, asks, drops them again, and says what it took.
///
/// # Errors
/// When the engine cannot be used, or the job is not diagnosed as it was made.
pub async fn diagnosed(address: &EngineAddress) -> Result<String, Failure> {
    let mut text = format!(
        "\n{:<52} {:>9} {:>8} {:>13} {:>9}\n",
        "diagnosis of 512 GPUs over a day at 15 s", "ms", "queries", "rows read", "filled s"
    );
    let mut took = Vec::new();
    for around in AROUND {
        let started = Instant::now();
        fill(address, around).await?;
        let filled = started.elapsed().as_secs_f64();
        // Minutes of filling look like a hang.
        writeln!(std::io::stderr(), "filled with {around} GPUs around the job in {filled:.0} s; asking {TIMES} times")?;
        let asked = ask(address).await;
        drop_tables(address).await?;
        let one = asked?;
        let name = format!("with {around} GPUs around it");
        let _ = writeln!(text, "{name:<52} {:>9.0} {:>8} {:>13} {filled:>9.0}", one.millis, one.queries, one.rows);
        took.push(one);
    }
    if let [few, many] = took.as_slice() {
        let (rows, millis) = (many.rows as f64 / few.rows as f64, many.millis / few.millis);
        let _ = writeln!(text, "ten times the fleet: rows read times {rows:.3}, time times {millis:.2}");
    }
    Ok(text)
}

fn endpoint(address: &EngineAddress, user: EngineUser) -> Endpoint {
    Endpoint::new(address.url(), user.name(), address.credentials.password(user))
}

async fn drop_tables(address: &EngineAddress) -> Result<(), Failure> {
    let (database, writer) = (DatabaseName::new(DATABASE)?, Writer::new(&endpoint(address, EngineUser::Writer)));
    if native::version(&writer, &database).await?.is_some() {
        drop_database(&writer, &database).await?;
    }
    Ok(())
}

/// Fills the tables: the job's nodes lie in the middle of the fleet's, so that the key does not put them together by chance.
async fn fill(address: &EngineAddress, around: u64) -> Result<(), Failure> {
    drop_tables(address).await?;
    // As a database of a fleet that goes on is made: with kept steps.
    native::create_or_update(&Writer::new(&endpoint(address, EngineUser::Writer)), &DatabaseName::new(DATABASE)?)
        .await?;
    let raw = Client::default()
        .with_url(address.url())
        .with_user(EngineUser::Writer.name())
        .with_password(address.credentials.password(EngineUser::Writer))
        .with_compression(Compression::None);
    let first = around / 2 / GPUS_PER_NODE * GPUS_PER_NODE;
    for (metric, value) in METRICS {
        let parts =
            [(0, first, FLEET_STEP_S), (first, JOB_GPUS, JOB_STEP_S), (first + JOB_GPUS, around - first, FLEET_STEP_S)];
        for (from, gpus, step) in parts {
            raw.query_raw(&samples(metric, value, first, from, gpus, step)).execute().await?;
        }
    }
    for statement in books(first) {
        raw.query_raw(&statement).execute().await?;
    }
    Ok(())
}

const START: &str = "toDateTime64('2026-05-02 00:00:00', 3, 'UTC')";

fn node(gpu: &str) -> String {
    format!("concat('n', leftPad(toString(intDiv({gpu}, {GPUS_PER_NODE})), 5, '0'))")
}

/// GPUs from a number on, each with its samples of a day. The hot one is GPU 5 of the job's second node.
fn samples(metric: &str, value: &str, job: u64, from: u64, gpus: u64, step: u64) -> String {
    let each = DAY_S / step;
    let hot = job + GPUS_PER_NODE + 5;
    let half = each / 2;
    format!(
        "INSERT INTO {DATABASE}.metrics (tenant, cluster, metric, node, gpu, service, labels, time, value) \
         WITH intDiv(number, {each}) + {from} AS gpu_number, number % {each} AS sample, cityHash64(number, '{metric}') AS h, \
         gpu_number = {hot} AND sample >= {half} AS slow \
         SELECT 'atlas', 'bench', '{metric}', {}, toString(gpu_number % {GPUS_PER_NODE}), '', map('model', 'H100'), \
         {START} + toIntervalSecond(sample * {step}), toFloat64({value}) FROM numbers({})",
        node("gpu_number"),
        gpus * each
    )
}

/// The job, its places and its step time.
fn books(first: u64) -> [String; 3] {
    let open = "toDateTime64('2100-01-01 00:00:00', 3, 'UTC')";
    [
        format!(
            "INSERT INTO {DATABASE}.jobs (tenant, cluster, job_id, name, user, kind, state, labels, submit, time, end_time) \
             SELECT 'atlas', 'bench', '{JOB}', 'pretrain', 'someone', 'training', 'running', map('framework', 'megatron'), \
             {START}, {START}, {open}"
        ),
        format!(
            "INSERT INTO {DATABASE}.job_gpus (tenant, cluster, job_id, attempt, node, gpu, gpu_uuid, rank, time, end_time) \
             SELECT 'atlas', 'bench', '{JOB}', 0, {}, toString(number % {GPUS_PER_NODE}), concat('GPU-', toString(number)), number, \
             {START}, {open} FROM numbers({JOB_GPUS})",
            node(&format!("(number + {first})"))
        ),
        format!(
            "INSERT INTO {DATABASE}.metrics (tenant, cluster, metric, node, gpu, service, labels, time, value) \
             SELECT 'atlas', 'bench', 'train_step_time_seconds', '', '', '', map('job', '{JOB}'), \
             {START} + toIntervalSecond(number * {JOB_STEP_S}), \
             if(number < {}, 1.2, 1.9) + cityHash64(number) % 16 / 400 FROM numbers({})",
            DAY_S / JOB_STEP_S / 2,
            DAY_S / JOB_STEP_S
        ),
    ]
}

async fn ask(address: &EngineAddress) -> Result<Took, Failure> {
    let policies = Policies::builtin()?;
    let principal: Principal = policies.principal("admin").ok_or("there is no principal `admin`")?;
    let as_of: Timestamp = "2026-05-03T00:00:00Z".parse()?;
    let assistant = Assistant {
        catalogue: Arc::new(Catalogue::builtin()?),
        tools: sightline_tools::tools(),
        policies: Arc::new(LivePolicies::new(policies)),
        guard: Guard::new(Mapping::native(DATABASE)?),
        engine: Arc::new(ClickHouseEngine::new(&endpoint(address, EngineUser::Reader), SecondFence::InRequest)),
        quota: Arc::new(Unmetered),
        audit: Arc::new(Nothing),
        planner: Box::new(Nothing),
        tenants: BTreeSet::from(["atlas".to_owned()]),
        clock: Arc::new(StandingClock { at: as_of, started: Instant::now() }),
        ids: Arc::new(Counted::default()),
    };
    let call = ToolCall { tool: "job_correlation".to_owned(), arguments: serde_json::json!({ "job": JOB }) };
    let question_id = QuestionId::new("bench");
    let caller = Caller { question_id: &question_id, principal: &principal, as_of, events: &NoEvents };
    let (mut times, mut queries, mut rows) = (Vec::new(), 0, 0);
    for _ in 0..TIMES {
        let started = Instant::now();
        let run = run_tool(&assistant, caller, &call).await?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        let cause = run.output.causes.first().map(|c| c.id.as_str());
        if run.output.outcome != Some(Outcome::Answered) || cause != Some("thermal_throttling") {
            return Err(format!("the hot GPU was diagnosed as {:?}, {cause:?}", run.output.outcome).into());
        }
        (queries, rows) = (run.queries, run.read_exactly.rows);
    }
    Ok(Took { millis: median(times).ok_or("nothing was measured")?, queries, rows })
}

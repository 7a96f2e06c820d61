//! What analysts ask in SQL, asked through the tools: over the same rows the same numbers come back.
//!
//! `fixtures/redteam/analyst_queries.jsonl` holds the originals, `analyst_calls.jsonl` beside it the call or calls for each, with
//! where the columns of the original stand in the evidence (see `mapping.rs`), or why it cannot be said. One generated hour is
//! written twice, as rows of the product and as rows of the corpus' own tables; neither side sees the other's results.

#![cfg(test)]

mod compare;
#[path = "../harness/mod.rs"]
mod harness;
mod mapping;
mod obs;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use harness::Lab;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use mapping::{Cell, sql_cell};
use obs::Obs;
use serde_json::{Value, json};
use sightline_core::ground::Grounder;
use sightline_core::{Assistant, Caller, NoEvents, ToolCall, run_tool};
use sightline_model::audit::Begin;
use sightline_model::{Coverage, Principal, QuestionId, Role, TenantScope};
use sightline_query::Catalogue;
use sightline_server::stations::{Data, Stations};
use sightline_server::{Config, Flags};
use sightline_tools::ToolOutput;
use world::{CANARY, FROM, TENANTS};

/// So many of the corpus must be said with the same numbers.
const AT_LEAST: usize = 90;

fn lines(name: &str) -> BTreeMap<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/redteam").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.map(|line| (line["id"].as_str().unwrap().to_owned(), line)).collect()
}

/// The stations of a service on this data folder, knowing the corpus' names of metrics.
async fn assistant(lab: &Lab) -> Assistant {
    let flags = Flags { data_dir: Some(lab.data_dir().to_owned()), ..Flags::default() };
    let config = Config::load(&flags, &|_| None).unwrap();
    let opened = Stations::open(&config, Data::Own).await.unwrap();
    let names = [
        ("gpu_utilization", "gpu_util"),
        ("gpu_temperature", "gpu_temp"),
        ("gpu_power", "gpu_power_w"),
        ("gpu_memory_used", "gpu_mem_used"),
        ("step_time", "step_time"),
    ];
    let names = names.map(|(metric, stored)| (metric.to_owned(), vec![stored.to_owned()])).into();
    let catalogue = Arc::new(Catalogue::builtin().unwrap().with_aliases("the corpus", &names).unwrap());
    Assistant { catalogue, ..Arc::into_inner(opened.assistant).unwrap() }
}

struct Asker<'a> {
    assistant: &'a Assistant,
    question: QuestionId,
    principal: Principal,
    as_of: Timestamp,
}

impl<'a> Asker<'a> {
    async fn new(assistant: &'a Assistant) -> Self {
        let question = QuestionId::new("analyst");
        let as_of = Timestamp::from_millisecond(FROM + 86_400_000).unwrap();
        let principal = Principal {
            id: "operator@tenant-a".to_owned(),
            role: Role::Operator,
            tenants: TenantScope::Only([TENANTS[0].to_owned()].into()),
            jobs_of: None,
        };
        let begin = Begin {
            question_id: question.clone(),
            at: as_of,
            principal: principal.clone(),
            entrance: "test".to_owned(),
            question: "the corpus".to_owned(),
            detail: BTreeMap::new(),
        };
        assistant.audit.begin(begin).await.unwrap();
        Self { assistant, question, principal, as_of }
    }

    /// The calls of an entry in order; a filter may take its values from what an earlier call listed.
    async fn run(&self, entry: &Value) -> Result<Vec<ToolOutput>, String> {
        let mut outputs: Vec<ToolOutput> = Vec::new();
        for call in entry["calls"].as_array().unwrap() {
            let mut arguments = call["arguments"].clone();
            insert_listed(&mut arguments, &outputs);
            let caller = Caller {
                question_id: &self.question,
                principal: &self.principal,
                as_of: self.as_of,
                events: &NoEvents,
            };
            let call = ToolCall { tool: call["tool"].as_str().unwrap().to_owned(), arguments };
            let ran = run_tool(self.assistant, caller, &call).await.map_err(|error| error.to_string())?;
            assert!(!format!("{:?}", ran.output).contains(CANARY), "{call:?} shows another tenant's rows");
            hold_claims(&call, &ran.output);
            outputs.push(ran.output);
        }
        Ok(outputs)
    }
}

/// Every sentence of a tool must be borne out by its own evidence, as for an answer.
fn hold_claims(call: &ToolCall, output: &ToolOutput) {
    let grounder = Grounder::new(&output.evidence, "", TimeZone::UTC);
    assert!(!output.claims.is_empty(), "{call:?} says nothing");
    for claim in output.claims.iter().chain(&output.headline) {
        if let Err(fault) = grounder.try_claim(claim) {
            panic!("{call:?} says what its evidence does not bear: {fault}: {claim:?}");
        }
    }
}

/// `{"listed": [call, "node"]}` in the place of values: every node among the rows of that call.
fn insert_listed(arguments: &mut Value, outputs: &[ToolOutput]) {
    for filter in arguments.get_mut("filters").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(listed) = filter["values"].get("listed").cloned() {
            let output = &outputs[usize::try_from(listed[0].as_u64().unwrap()).unwrap()];
            let key = listed[1].as_str().unwrap();
            let rows = output.evidence.iter().flat_map(|piece| &piece.rows);
            let named: std::collections::BTreeSet<&String> = rows.filter_map(|row| row.entity.get(key)).collect();
            filter["values"] = named.into_iter().cloned().collect();
        }
    }
}

async fn outcome(asker: &Asker<'_>, obs: &Obs<'_>, sql: &str, entry: &Value) -> Result<(), String> {
    let outputs = asker.run(entry).await?;
    let originals: Vec<Vec<Cell>> = obs.rows(sql).await.iter().map(|row| row.iter().map(sql_cell).collect()).collect();
    let coverage = outputs[0].evidence[0].coverage.clone();
    compare::difference(entry, originals, mapping::rows(entry, &outputs), &coverage).map_or(Ok(()), Err)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_say_what_analysts_ask_with_the_same_numbers() {
    let queries = lines("analyst_queries.jsonl");
    let calls = lines("analyst_calls.jsonl");
    assert_eq!(queries.keys().collect::<Vec<_>>(), calls.keys().collect::<Vec<_>>());
    let world = world::build();
    let lab = Lab::start();
    lab.fill(&world.rows()).await;
    let obs = Obs::new(&lab.address);
    obs.create().await;
    obs.fill(&world).await;
    let assistant = assistant(&lab).await;
    let asker = Asker::new(&assistant).await;
    let mut said = String::new();
    let mut same = 0;
    let mut faults = Vec::new();
    for (id, entry) in &calls {
        let sql = queries[id]["sql"].as_str().unwrap();
        said.push_str(&format!("{id}\n  {sql}\n"));
        if let Some(reason) = entry.get("not_expressed").and_then(Value::as_str) {
            said.push_str(&format!("  cannot be said: {reason}\n\n"));
            continue;
        }
        for call in entry["calls"].as_array().unwrap() {
            said.push_str(&format!("  {} {}\n", call["tool"].as_str().unwrap(), call["arguments"]));
        }
        for key in ["reason", "tolerance", "compare"] {
            said.push_str(&entry.get(key).map_or(String::new(), |value| format!("  {key}: {value}\n")));
        }
        match outcome(&asker, &obs, sql, entry).await {
            Ok(()) => {
                same += 1;
                said.push_str("  same\n\n");
            }
            Err(fault) => faults.push(format!("{id}: {fault}")),
        }
    }
    let beyond = beyond_the_corpus();
    for (sql, entry) in &beyond {
        if let Err(fault) = outcome(&asker, &obs, sql, entry).await {
            faults.push(format!("{sql}: {fault}"));
        }
    }
    let more = world::without_node();
    lab.fill(&more.rows()).await;
    obs.fill(&more).await;
    for (id, entry) in calls.iter().filter(|(_, entry)| entry.get("also_without_node").is_some()) {
        if let Err(fault) = outcome(&asker, &obs, queries[id]["sql"].as_str().unwrap(), entry).await {
            faults.push(format!("{id}, with samples of no node: {fault}"));
        }
    }
    assert!(faults.is_empty(), "{same} are the same, but not\n{}", faults.join("\n"));
    assert!(same >= AT_LEAST, "{same} of {} are the same", queries.len());
    said.push_str(&format!("{same} of {} are said with the same numbers\n", queries.len()));
    insta::assert_snapshot!("analyst_calls", said);
}

/// What the corpus does not ask: the ratio of two metrics, and shares of time.
fn beyond_the_corpus() -> Vec<(String, Value)> {
    let of = "FROM obs.metrics WHERE tenant = 'tenant-a' AND ts >= toDateTime64('2026-01-01 00:00:00', 3, 'UTC') \
              AND ts < toDateTime64('2026-01-01 01:00:00', 3, 'UTC')";
    let window = |mut arguments: Value| {
        arguments["from"] = json!("2026-01-01T00:00:00Z");
        arguments["to"] = json!("2026-01-01T01:00:00Z");
        json!([{ "tool": "metric_range", "arguments": arguments }])
    };
    let ratio = format!(
        "SELECT toStartOfInterval(ts, INTERVAL 5 MINUTE) AS t, node, avgIf(value, metric = 'gpu_mem_used') / \
         avgIf(value, metric = 'gpu_power_w') AS r {of} GROUP BY t, node HAVING countIf(metric = 'gpu_mem_used') > 0 \
         AND countIf(metric = 'gpu_power_w') > 0"
    );
    let share = format!(
        "SELECT node, gpu, arrayDotProduct(arrayMap(v -> toFloat64(v > 90), arrayPopBack(held)), \
         arrayPopFront(arrayDifference(times))) / (times[-1] - times[1]) FROM (SELECT node, gpu, groupArray(value) AS held, \
         groupArray(toUnixTimestamp64Milli(ts)) AS times FROM (SELECT node, gpu, value, ts {of} AND metric = 'gpu_util' \
         ORDER BY ts) GROUP BY node, gpu)"
    );
    vec![
        (
            ratio,
            json!({ "from": "points", "columns": ["time", "node", "value"], "calls": window(json!({
                "metric": "gpu_mem_used", "divide_by": "gpu_power_w", "aggregation": "avg", "step_seconds": 300,
                "group_by": ["node"] })) }),
        ),
        (
            share,
            json!({ "from": "points", "columns": ["node", "gpu", "value"], "calls": window(json!({
                "metric": "gpu_util", "aggregation": "fraction_above", "threshold": 90, "step_seconds": 0,
                "group_by": ["node", "gpu"] })) }),
        ),
    ]
}

#[test]
fn a_number_that_differs_and_a_row_too_many_or_too_few_are_found() {
    let row = |node: &str, value: f64| vec![Cell::Text(node.to_owned()), Cell::Number(value)];
    let differ = |entry: Value, sql: &[Vec<Cell>], tool: &[Vec<Cell>]| {
        compare::difference(&entry, sql.to_vec(), tool.to_vec(), &Coverage::default()).is_some()
    };
    let both = [row("a", 1.0), row("b", 2.0)];
    assert!(!differ(json!({}), &both, &both));
    assert!(differ(json!({}), &both, &[row("a", 1.0), row("b", 2.000_001)]));
    assert!(differ(json!({}), &both, &both[..1]) && differ(json!({}), &both[..1], &both));
    assert!(differ(json!({}), &[], &[]), "nothing compared is nothing shown");
    assert!(!differ(json!({ "compare": "subset" }), &both[..1], &both));
    assert!(differ(json!({ "compare": "subset" }), &both, &both[..1]));
    assert!(!differ(json!({ "tolerance": 0.1 }), &both, &[row("a", 1.05), row("b", 2.0)]));
}

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
use mapping::{Cell, sql_cell};
use obs::Obs;
use serde_json::Value;
use sightline_core::{Assistant, Caller, ToolCall, run_tool};
use sightline_model::audit::Begin;
use sightline_model::{Principal, QuestionId, Role, TenantScope};
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
            let caller = Caller { question_id: &self.question, principal: &self.principal, as_of: self.as_of };
            let call = ToolCall { tool: call["tool"].as_str().unwrap().to_owned(), arguments };
            let ran = run_tool(self.assistant, caller, &call).await.map_err(|error| error.to_string())?;
            assert!(!format!("{:?}", ran.output).contains(CANARY), "{call:?} shows another tenant's rows");
            outputs.push(ran.output);
        }
        Ok(outputs)
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
    assert!(faults.is_empty(), "{same} are the same, but not\n{}", faults.join("\n"));
    assert!(same >= AT_LEAST, "{same} of {} are the same", queries.len());
    said.push_str(&format!("{same} of {} are said with the same numbers\n", queries.len()));
    insta::assert_snapshot!("analyst_calls", said);
}

//! A tool on any arguments and any rows: as the line runs it, but with made-up rows in the engine's place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::Value;
use sightline_guard::{Admission, ExecutableQuery, Guard, Refusal, check_sql};
use sightline_model::{Column, Dataset, Principal, QueryId, Read, ResultSet};
use sightline_policies::{Policies, Request};
use sightline_query::{Catalogue, Query, ValidQuery};
use sightline_tools::{AnyTool, Fetched, MAX_ROUNDS, Step, ToolContext};

use super::bytes::{Bytes, DAY, stream};
use super::sql::{self, END};

/// How many arguments are made up for each tool to begin from.
const SEEDS: u64 = 64;

struct Line {
    catalogue: Catalogue,
    policies: Policies,
    principal: Principal,
    guard: Guard,
    tenants: BTreeSet<String>,
}

static LINE: LazyLock<Line> = LazyLock::new(|| {
    let policies = Policies::builtin().expect("the rules that ship");
    Line {
        catalogue: Catalogue::builtin().expect("the catalogue that ships"),
        principal: policies.principal("operator@atlas").expect("a principal that ships"),
        policies,
        guard: Guard::new(sql::mapping()),
        tenants: BTreeSet::from(["atlas".to_owned(), "borealis".to_owned()]),
    }
});

/// The tenants that the asker may read.
pub(crate) fn tenants() -> BTreeSet<String> {
    BTreeSet::from(["atlas".to_owned()])
}

/// Noon of the day that is taken as today.
fn now() -> Timestamp {
    Timestamp::from_second(DAY * 86_400 + 43_200).unwrap_or_default()
}

/// The bytes are JSON up to an end mark, and rows behind it; or, where the first is odd, both by the tool's schema.
pub(crate) fn run(name: &str, data: &[u8]) {
    let tool = sightline_tools::find(name).unwrap_or_else(|| panic!("there is no tool `{name}`"));
    match data.split_first() {
        Some((first, rest)) if first % 2 == 1 => {
            let mut bytes = Bytes::new(rest, &LINE.catalogue);
            let arguments = bytes.json(&tool.schema());
            call(tool.as_ref(), &arguments, &mut bytes, |_| {});
        }
        Some((_, rest)) => {
            let end = rest.iter().position(|byte| *byte == END).unwrap_or(rest.len());
            let (json, rows) = rest.split_at(end);
            let Ok(arguments) = serde_json::from_slice(json) else { return };
            call(tool.as_ref(), &arguments, &mut Bytes::new(rows, &LINE.catalogue), |_| {});
        }
        None => {}
    }
}

/// Plans, checks, decides, admits and reads as `run_tool` does, round by round.
fn call(tool: &dyn AnyTool, arguments: &Value, bytes: &mut Bytes<'_>, mut ran: impl FnMut(&ExecutableQuery)) {
    let may_read: BTreeSet<Dataset> = Dataset::ALL.into_iter().filter(|_| bytes.below(16) != 15).collect();
    let max_rows = if bytes.below(4) == 3 { 5 } else { 100_000 };
    let context = ToolContext {
        catalogue: &LINE.catalogue,
        as_of: now(),
        may_read: &may_read,
        runbooks_of: &BTreeSet::new(),
        max_rows,
    };
    let mut fetched: Vec<Fetched> = Vec::new();
    for round in 0..=MAX_ROUNDS {
        let queries = match tool.plan(arguments, &context, &fetched) {
            Ok(Step::Fetch(queries)) => queries,
            Ok(Step::Done) => break,
            Err(error) => return has_words(&error.to_string()),
        };
        assert!(!queries.is_empty(), "a round without queries");
        assert!(round < MAX_ROUNDS, "more than {MAX_ROUNDS} rounds for {arguments}");
        for query in &queries {
            let Some((valid, executable)) = admit(tool.name(), query) else { return };
            ran(&executable);
            fetched.push(answer(round, valid, &executable, bytes));
        }
    }
    if let Err(error) = tool.interpret(arguments, &context, &fetched) {
        has_words(&error.to_string());
    }
}

/// The query as it may run; none where it was refused in words.
fn admit(tool: &str, query: &Query) -> Option<(ValidQuery, ExecutableQuery)> {
    let Line { catalogue, policies, principal, guard, tenants: known_tenants } = &*LINE;
    let valid = match catalogue.check(query) {
        Ok(valid) => valid,
        Err(error) => {
            has_words(&error.to_string());
            return None;
        }
    };
    let decision = policies.decide(&Request { principal, tool, dataset: valid.dataset(), known_tenants, job: None });
    let limits = policies.limits(principal);
    let query_id = QueryId::new("0197a0c2-0000-7000-8000-000000000000");
    let admission =
        Admission { decision: &decision, limits: &limits, now: now(), query_id, bytes_left: None, estimate: None };
    match guard.admit(&valid, admission) {
        Ok(executable) => {
            let params = sent(&executable);
            assert_eq!(executable.tenants(), &tenants(), "{query:?}");
            assert_eq!(check_sql(executable.sql(), &params, guard.mapping(), &tenants()), Ok(()), "{query:?}");
            sql::holds(executable.sql(), &params, &tenants());
            Some((valid, executable))
        }
        Err(Refusal::Unverified { faults }) => panic!("our own text does not pass: {faults:?} for {query:?}"),
        Err(refusal) => {
            has_words(&refusal.to_string());
            has_words(&refusal.for_model());
            None
        }
    }
}

fn sent(executable: &ExecutableQuery) -> BTreeMap<String, String> {
    executable.params().iter().map(|param| (param.name().to_owned(), param.text().to_owned())).collect()
}

/// Rows of the right kinds with anything in them.
fn answer(round: usize, query: ValidQuery, executable: &ExecutableQuery, bytes: &mut Bytes<'_>) -> Fetched {
    let columns = query.columns();
    let count = bytes.below(12);
    let reaches_out = match query.dataset() {
        Dataset::Jobs | Dataset::JobGpus => true,
        Dataset::Metrics | Dataset::Logs | Dataset::Spans | Dataset::Events => false,
    };
    let mut cell = |column: &Column| bytes.cell(column, query.range(), reaches_out);
    let rows = (0..count).map(|_| columns.iter().map(&mut cell).collect());
    let result = ResultSet {
        rows: rows.collect(),
        columns: columns.clone(),
        read: Read { rows: 100, bytes: 1000, wall_ms: 1.5 },
        query_id: executable.query_id().clone(),
        truncated: bytes.below(16) == 15,
    };
    Fetched { round, query, result, sql: executable.sql().to_owned(), params: sent(executable) }
}

/// A person can do something with it.
fn has_words(error: &str) {
    assert!(error.split_whitespace().count() >= 3, "`{error}` says too little");
}

/// Arguments that fit the schema, as text.
pub(crate) fn seeds(name: &str) -> Vec<Vec<u8>> {
    let tool = sightline_tools::find(name).unwrap_or_else(|| panic!("there is no tool `{name}`"));
    let seed = |number| {
        let made_up = stream(number);
        let arguments = Bytes::new(&made_up, &LINE.catalogue).json(&tool.schema());
        [&[0], arguments.to_string().as_bytes(), &[END], made_up.as_slice()].concat()
    };
    (0..SEEDS).map(seed).collect()
}

/// The texts, with their parameters, of what the tools plan for made-up arguments.
pub(crate) fn texts() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    for tool in sightline_tools::tools() {
        for number in 0..SEEDS {
            let made_up = stream(number);
            let mut bytes = Bytes::new(&made_up, &LINE.catalogue);
            let arguments = bytes.json(&tool.schema());
            call(tool.as_ref(), &arguments, &mut bytes, |executable| {
                texts.insert(executable.sql().to_owned(), sent(executable));
            });
        }
    }
    texts
}

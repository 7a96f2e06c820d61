//! What the tests of this crate share: hand-made results, and claims filled in so that a person can read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::Timestamp;
use sightline_model::{
    Cell, Dataset, DraftClaim, Evidence, FactPath, NumberSlot, Quantity, QueryId, Read, Relation, ResultSet, Series,
    Stat,
};
use sightline_query::{Catalogue, Query};

use crate::reading::{stat, stats};
use crate::tool::{AnyTool, Fetched, Step, ToolContext, ToolError, ToolOutput};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::builtin().unwrap());
static NOBODYS: BTreeSet<String> = BTreeSet::new();
static ALL: LazyLock<BTreeSet<Dataset>> = LazyLock::new(|| Dataset::ALL.into_iter().collect());

/// Noon of a day, and some seconds.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_777_809_600 + seconds).unwrap()
}

pub(crate) fn text(seconds: i64) -> String {
    at(seconds).to_string()
}

pub(crate) fn context() -> ToolContext<'static> {
    ToolContext { catalogue: &CATALOGUE, as_of: at(86_400), may_read: &ALL, runbooks_of: &NOBODYS, max_rows: 1000 }
}

/// A query with these rows as its result; the cells in the order of its columns.
pub(crate) fn fetched(round: usize, query: &Query, rows: Vec<Vec<Cell>>) -> Fetched {
    let query = CATALOGUE.check(query).unwrap();
    let columns = query.columns();
    assert!(rows.iter().all(|row| row.len() == columns.len()), "columns are {columns:?}");
    Fetched {
        round,
        result: ResultSet {
            columns,
            rows,
            read: Read { rows: 100, bytes: 1000, wall_ms: 1.5 },
            query_id: QueryId::new(format!("q{round}")),
            truncated: false,
        },
        query,
        sql: "the text that was sent".to_owned(),
        params: BTreeMap::from([("p0".to_owned(), "['atlas']".to_owned())]),
    }
}

/// Runs a tool, with a function in the engine's place that gives the rows of a query.
pub(crate) fn run(
    tool: &dyn AnyTool,
    args: &serde_json::Value,
    rows: impl Fn(&Query) -> Vec<Vec<Cell>>,
) -> Result<(Vec<Fetched>, ToolOutput), ToolError> {
    let mut all = Vec::new();
    for round in 0..=crate::MAX_ROUNDS {
        let Step::Fetch(queries) = tool.plan(args, &context(), &all)? else { break };
        assert!(round < crate::MAX_ROUNDS && !queries.is_empty());
        let batch: Vec<Fetched> = queries.iter().map(|q| fetched(round, q, rows(q))).collect();
        all.extend(batch);
    }
    let output = tool.interpret(args, &context(), &all)?;
    Ok((all, output))
}

/// The first round of queries.
pub(crate) fn planned(tool: &dyn AnyTool, args: &serde_json::Value) -> Vec<Query> {
    match tool.plan(args, &context(), &[]).unwrap() {
        Step::Fetch(queries) => queries,
        Step::Done => Vec::new(),
    }
}

pub(crate) fn t(seconds: i64) -> Cell {
    Cell::Time(at(seconds))
}

pub(crate) fn s(value: &str) -> Cell {
    Cell::Text(value.into())
}

pub(crate) fn f(value: f64) -> Cell {
    Cell::Float(value)
}

pub(crate) fn n(value: i64) -> Cell {
    Cell::Int(value)
}

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Cell {
    Cell::Labels(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
}

/// The claims of an output, filled in. Panics when a slot or comparison does not hold, or the words hold a digit of their own.
pub(crate) fn read_out(output: &ToolOutput) -> Vec<String> {
    output.claims.iter().map(|claim| fill(claim, &output.evidence)).collect()
}

fn fill(claim: &DraftClaim, evidence: &[Evidence]) -> String {
    let mut filled = String::new();
    let mut rest = claim.text.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}').unwrap();
        let own = before.replace("p50", "").replace("p90", "").replace("p95", "").replace("p99", "");
        assert!(!own.chars().any(|c| c.is_ascii_digit()), "digits in {before:?}");
        filled.push_str(before);
        filled.push_str(&match &claim.slots[name] {
            NumberSlot::Number { quantity, format } => {
                let value = compute(quantity, evidence);
                let value = if format.magnitude { value.abs() } else { value };
                format!("{value:.*} {}", usize::from(format.decimals), format.unit.symbol()).trim_end().to_owned()
            }
            NumberSlot::Time(fact) => time_of(&fact.path, by_id(evidence, &fact.evidence)).to_string(),
            NumberSlot::Quote(fact) => match &fact.path {
                FactPath::RowField { row, field } => {
                    format!("“{}”", by_id(evidence, &fact.evidence).rows[*row].fields[field])
                }
                other => panic!("{other:?} is no text"),
            },
            NumberSlot::Entity { evidence: id, key, value } => {
                let e = by_id(evidence, id);
                let stands = e.labels.get(key) == Some(value)
                    || e.series.iter().any(|s| s.entity.get(key) == Some(value))
                    || e.rows.iter().any(|r| r.entity.get(key) == Some(value) || r.fields.get(key) == Some(value));
                assert!(stands, "{key}={value} does not stand in {id}");
                format!("⟨{value}⟩")
            }
        });
        rest = tail;
    }
    filled.push_str(rest);
    for comparison in &claim.comparisons {
        let (left, right) = (compute(&comparison.left, evidence), compute(&comparison.right, evidence));
        let holds = match comparison.relation {
            Relation::Above => left > right,
            Relation::Below => left < right,
            Relation::AtLeast => left >= right,
            Relation::AtMost => left <= right,
            Relation::About => (left - right).abs() <= 0.02 * left.abs().max(right.abs()),
        };
        assert!(holds, "{left} {:?} {right} in {filled}", comparison.relation);
    }
    assert!(!claim.citations.is_empty() || !claim.slots.is_empty(), "{filled} cites nothing");
    filled
}

fn by_id<'a>(evidence: &'a [Evidence], id: &sightline_model::EvidenceId) -> &'a Evidence {
    evidence.iter().find(|e| e.id == *id).unwrap()
}

fn compute(quantity: &Quantity, evidence: &[Evidence]) -> f64 {
    match quantity {
        Quantity::Fact(fact) => number_of(&fact.path, by_id(evidence, &fact.evidence)),
        Quantity::Difference(left, right) => compute(left, evidence) - compute(right, evidence),
        Quantity::Ratio(left, right) => compute(left, evidence) / compute(right, evidence),
        Quantity::PercentChange { from, to } => {
            let base = compute(from, evidence);
            (compute(to, evidence) - base) / base.abs() * 100.0
        }
        Quantity::Constant(value) => *value,
    }
}

fn number_of(path: &FactPath, evidence: &Evidence) -> f64 {
    match path {
        FactPath::Stat { entity, stat: which, within: None } => {
            let fits = |s: &&Series| entity.iter().all(|(k, v)| s.entity.get(k) == Some(v));
            let series: Vec<&Series> = evidence.series.iter().filter(fits).collect();
            match series.as_slice() {
                [one] => stat(one, *which).unwrap(),
                several => {
                    let all: Vec<Series> = several.iter().map(|s| (*s).clone()).collect();
                    let stats = stats(&all).unwrap();
                    match which {
                        Stat::Mean => stats.mean,
                        Stat::Min => stats.min,
                        Stat::Max => stats.max,
                        Stat::Median => stats.median,
                        other => panic!("{other:?} of several series"),
                    }
                }
            }
        }
        FactPath::Peers { exclude, stat: which, within: None } => {
            let others: Vec<f64> =
                evidence.series.iter().filter(|s| s.entity != *exclude).map(|s| stat(s, *which).unwrap()).collect();
            sightline_analysis::median(&others).unwrap()
        }
        FactPath::RowValue { row } => evidence.rows[*row].value.unwrap(),
        FactPath::Total => {
            assert!(!evidence.truncated, "a total of cut data");
            evidence.total as f64
        }
        FactPath::Returned => evidence.returned as f64,
        other => panic!("{other:?} is no number here"),
    }
}

fn time_of(path: &FactPath, evidence: &Evidence) -> Timestamp {
    match path {
        FactPath::RowTime { row } => evidence.rows[*row].time.unwrap(),
        FactPath::RowField { row, field } => evidence.rows[*row].fields[field].parse().unwrap(),
        FactPath::LastSeen { entity } => {
            evidence.series.iter().find(|s| s.entity == *entity).unwrap().points.last().unwrap().time
        }
        FactPath::Instant { entity, at } => {
            let fits = |s: &&Series| entity.iter().all(|(k, v)| s.entity.get(k) == Some(v));
            let there = evidence.series.iter().filter(fits).any(|s| s.points.iter().any(|p| p.time == *at));
            assert!(there, "no point of {entity:?} at {at}");
            *at
        }
        other => panic!("{other:?} is no time here"),
    }
}

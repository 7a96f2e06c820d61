//! The attack corpus: all of it is refused, and for the right reason when grafted onto a text of ours.

use std::collections::BTreeMap;

use serde_json::Value;
use sightline_guard::{Fault, FaultKind};

use crate::sample::{admit, check, every_shape, params};

const ATTACKS: &str = include_str!("../../../../fixtures/redteam/sql_attacks.jsonl");
const ANALYSTS: &str = include_str!("../../../../fixtures/redteam/analyst_queries.jsonl");

/// One text of a corpus.
pub(crate) struct Attack {
    pub(crate) id: String,
    pub(crate) category: String,
    pub(crate) sql: String,
}

/// The attacks.
pub(crate) fn corpus() -> Vec<Attack> {
    lines(ATTACKS)
}

fn lines(text: &str) -> Vec<Attack> {
    let field = |line: &Value, name: &str| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| Attack { id: field(&line, "id"), category: field(&line, "category"), sql: field(&line, "sql") })
        .collect()
}

#[test]
fn every_attack_is_refused() {
    let attacks = corpus();
    assert_eq!(attacks.len(), 395);
    let accepted: Vec<String> = attacks
        .into_iter()
        .filter(|attack| check(&attack.sql, &BTreeMap::new()).is_ok())
        .map(|attack| attack.id)
        .collect();
    assert_eq!(accepted, Vec::<String>::new());
}

#[test]
fn every_attack_is_refused_with_parameters_in_hand() {
    let ours = admit(&every_shape()[0].1).unwrap();
    for Attack { id, category: _, sql } in corpus() {
        assert!(check(&sql, &params(&ours)).is_err(), "{id}");
    }
}

#[test]
fn sql_of_analysts_is_refused_too_for_only_one_shape_passes() {
    for Attack { id, category: _, sql } in lines(ANALYSTS) {
        assert!(check(&sql, &BTreeMap::new()).is_err(), "{id}");
    }
}

/// The kinds of fault that a text is refused for, without the values of its parameters.
fn kinds(sql: &str, params: &BTreeMap<String, String>) -> Vec<FaultKind> {
    check(sql, params).unwrap_err().iter().map(Fault::kind).collect()
}

#[test]
fn each_category_grafted_onto_our_text_is_refused_for_its_own_reason() {
    let ours = admit(&every_shape()[0].1).unwrap();
    let params = params(&ours);
    let graft = |from: &str, to: &str| {
        let text = ours.sql().replacen(from, to, 1);
        assert_ne!(text, ours.sql(), "`{from}` is not in the text");
        kinds(&text, &params)
    };
    let tenant = "t.tenant IN {p0:Array(String)}";
    assert_eq!(graft("sightline.metrics AS t", "url('http://127.0.0.1:9/x', 'CSV') AS t"), [FaultKind::Relation]);
    assert_eq!(graft("sightline.metrics AS t", "system.users AS t"), [FaultKind::Relation]);
    assert_eq!(graft("sightline.metrics AS t", "other.metrics AS t"), [FaultKind::Relation]);
    assert_eq!(
        graft("sightline.metrics AS t", "sightline.metrics AS t JOIN sightline.logs AS u ON 1 = 1"),
        [FaultKind::Clause]
    );
    assert_eq!(graft("SELECT ", "INSERT INTO sightline.metrics SELECT "), [FaultKind::Statement]);
    assert_eq!(graft("SELECT ", "WITH x AS (SELECT 1) SELECT "), [FaultKind::Clause]);
    assert_eq!(graft("SELECT ", "SELECT DISTINCT "), [FaultKind::Clause]);
    assert_eq!(graft(" LIMIT", " SETTINGS max_rows_to_read = 0 LIMIT"), [FaultKind::Clause]);
    assert_eq!(graft(" LIMIT 5001", " LIMIT 5001 SETTINGS max_rows_to_read = 0"), [FaultKind::Clause]);
    assert_eq!(graft(" LIMIT 5001", " LIMIT 5001 UNION ALL SELECT 1"), [FaultKind::Syntax]);
    assert_eq!(graft(" GROUP BY", " UNION ALL SELECT 1 GROUP BY"), [FaultKind::Clause]);
    assert_eq!(graft(" LIMIT 5001", " LIMIT 5001; DROP TABLE sightline.metrics"), [FaultKind::Statement]);
    assert_eq!(graft(tenant, "t.tenant IN (SELECT tenant FROM sightline.metrics)"), [FaultKind::Subquery]);
    assert_eq!(graft(tenant, &format!("({tenant} OR 1 = 1)")), [FaultKind::Expression]);
    assert_eq!(graft("t.node AS a1", "'atlas' AS tenant"), [FaultKind::Alias, FaultKind::Literal]);
    assert_eq!(graft("t.node AS a1", "*"), [FaultKind::Wildcard]);
    assert_eq!(graft("t.node AS a1", "t.secret AS a1"), [FaultKind::Column]);
    assert_eq!(graft("t.node AS a1", "sleep(3) AS a1"), [FaultKind::Function]);
    assert_eq!(graft("t.node AS a1", "(SELECT 1) AS a1"), [FaultKind::Subquery]);
    assert_eq!(graft(tenant, "t.tenant IN {p0:Identifier}"), [FaultKind::Parameter]);
    assert_eq!(graft(tenant, "t.tenant IN {p0:(SELECT 1)}"), [FaultKind::Parameter]);
    assert_eq!(graft("PREWHERE", "/* */ PREWHERE"), [FaultKind::Form]);
    assert_eq!(graft("t.tenant", "`t`.tenant"), [FaultKind::Column]);
}

#[test]
fn no_text_overflows_the_stack_of_an_async_worker() {
    let ours = admit(&every_shape()[0].1).unwrap();
    let (before, after) = ours.sql().split_once(" WHERE ").unwrap();
    let chains = [
        " OR 1",
        " + 1",
        " AND 1",
        " IS NULL",
        "::String",
        " IN (1)",
        " = 1",
        " COLLATE c",
        " BETWEEN 1 AND 1",
        "[1]",
        ".a",
        "()",
        " UNION SELECT 1",
        " AT TIME ZONE 'x'",
        ", 1",
        " LIKE 'a'",
        " NOT IN (1)",
        " ESCAPE",
    ];
    let heads =
        ["(", "NOT ", "-", "[", "{a:", "CASE WHEN ", "f(", "SELECT ", "(SELECT ", "EXISTS (", "- -", "INTERVAL "];
    let mut texts: Vec<String> = Vec::new();
    for count in [10, 40, 90, 130, 300, 1000, 3000] {
        texts.extend(chains.iter().map(|link| format!("{before} WHERE 1{} AND {after}", link.repeat(count))));
        texts.extend(heads.iter().map(|head| format!("{before} WHERE {}1 AND {after}", head.repeat(count))));
        texts.extend(chains.iter().map(|link| format!("SELECT 1{}", link.repeat(count))));
    }
    let params = params(&ours);
    let worker = std::thread::Builder::new().stack_size(2 << 20);
    let checked = worker.spawn(move || texts.iter().all(|text| check(text, &params).is_err())).unwrap();
    assert!(checked.join().unwrap());
}

#[test]
fn a_text_over_the_caps_is_not_parsed() {
    let long = format!("SELECT {}", "a, ".repeat(4000));
    assert_eq!(kinds(&long, &BTreeMap::new()), [FaultKind::TooBig]);
    assert_eq!(kinds(&format!("SELECT 1{}", " OR x".repeat(80)), &BTreeMap::new()), [FaultKind::TooBig]);
    assert_eq!(kinds(&"(".repeat(20), &BTreeMap::new()), [FaultKind::TooBig]);
    assert_eq!(kinds("", &BTreeMap::new()), [FaultKind::Statement]);
    assert_eq!(kinds(";", &BTreeMap::new()), [FaultKind::Statement]);
}

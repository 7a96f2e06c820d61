//! Runs the SQL of an answer's evidence again, and holds the cited numbers against what comes back.

use serde_json::Value;
use sightline_engine::{EngineAddress, EngineUser};

/// Runs a statement as the writer, with parameters; gives back the rows.
pub(crate) async fn rows(address: &EngineAddress, sql: &str, params: &Value) -> Vec<Vec<Value>> {
    let mut form = reqwest::multipart::Form::new();
    for (name, value) in params.as_object().unwrap() {
        form = form.text(format!("param_{name}"), value.as_str().unwrap().to_owned());
    }
    let response = crate::harness::http()
        .post(address.url())
        .query(&[("query", sql), ("default_format", "JSONCompact")])
        .basic_auth(EngineUser::Writer.name(), Some(address.credentials.password(EngineUser::Writer)))
        .multipart(form)
        .send()
        .await
        .unwrap();
    assert!(response.status().is_success(), "{sql}: {}", response.text().await.unwrap());
    let document: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    document["data"].as_array().unwrap().iter().map(|row| row.as_array().unwrap().clone()).collect()
}

/// Holds every piece of evidence that carries SQL. Returns how many there were, and how many numbers were compared.
pub(crate) async fn hold(address: &EngineAddress, answer: &Value) -> (usize, usize) {
    let (mut held, mut compared) = (0, 0);
    for evidence in answer["evidence"].as_array().unwrap() {
        let Some(sql) = evidence["sql"].as_str() else { continue };
        assert!(evidence["query_id"].is_string() && evidence["params"].is_object(), "{evidence}");
        let rows = rows(address, sql, &evidence["params"]).await;
        compared += hold_one(evidence, sql, &rows);
        held += 1;
    }
    (held, compared)
}

fn hold_one(evidence: &Value, sql: &str, rows: &[Vec<Value>]) -> usize {
    let id = evidence["id"].as_str().unwrap();
    let Some(stats) = evidence["stats"].as_object() else { return 0 };
    // The same columns by what they compute, read off the statement itself.
    let column = |expression: &str| {
        let place = sql.find(&format!("{expression} AS a"))? + expression.len() + " AS a".len();
        let digits: String = sql.get(place..)?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    };
    // One query may read several metrics; the evidence is of one of them, under the name that it was stored by.
    let (name, stored) = (column("t.metric"), evidence["metric"].as_str());
    if name.is_some() && stored.is_none() {
        return 0;
    }
    let of_it = move |row: &&Vec<Value>| name.is_none_or(|index| row[index].as_str() == stored);
    let numbers = |index: usize| rows.iter().filter(of_it).filter_map(move |row| number(&row[index]));
    let mut compared = 0;
    let mut compare = |name: &str, found: Option<f64>| {
        let (Some(cited), Some(found)) = (stats[name].as_f64(), found) else { return };
        let close = (cited - found).abs() <= 1e-6 * cited.abs().max(found.abs()).max(1.0);
        assert!(close, "{id}: {name} is cited as {cited}, the same SQL gives {found}: {sql}");
        compared += 1;
    };
    // Growth is added up from parts and a sample has no aggregates: those have no min and max of their own to compare.
    if let (Some(min), Some(max), Some(_)) = (column("min(t.value)"), column("max(t.value)"), column("count()")) {
        if column("argMin(t.value, (t.time, t.value))").is_none() {
            compare("min", numbers(min).reduce(f64::min));
            compare("max", numbers(max).reduce(f64::max));
        }
    } else if let Some(value) = column("t.value") {
        compare("min", numbers(value).reduce(f64::min));
        compare("max", numbers(value).reduce(f64::max));
    }
    compared
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

//! Accepted text, changed in one place: refused.

use std::collections::BTreeMap;

use sightline_guard::ExecutableQuery;

use crate::sample::{admit, check, every_shape, params};

fn queries() -> Vec<(&'static str, ExecutableQuery)> {
    every_shape().into_iter().map(|(name, query)| (name, admit(&query).unwrap())).collect()
}

fn refused(name: &str, sql: &str, params: &BTreeMap<String, String>) {
    assert!(check(sql, params).is_err(), "{name} accepted: {sql}");
}

/// The text with each condition left out in turn. Filters that a tool may or may not set are skipped.
#[test]
fn no_scope_metric_window_or_finite_condition_can_be_dropped() {
    for (name, query) in queries() {
        let sql = query.sql();
        let scope = "t.tenant IN {p0:Array(String)} AND ";
        refused(name, &sql.replacen(scope, "", 1), &params(&query));
        for column in ["t.metric IN ", "t.time >= ", "t.end_time >= ", "t.time < "] {
            let Some((before, rest)) = sql.split_once(column) else { continue };
            let Some((_, after)) = rest.split_once('}') else { continue };
            let after = after.strip_prefix(" AND ").unwrap_or(after);
            // What exists may be asked of every metric.
            if name != "metrics_distinct" || column != "t.metric IN " {
                refused(name, &format!("{before}{after}"), &params(&query));
            }
        }
        for condition in [" WHERE isFinite(t.value)", " AND isFinite(t.value)"] {
            if sql.contains(condition) {
                refused(name, &sql.replacen(condition, "", 1), &params(&query));
            }
        }
    }
}

#[test]
fn no_condition_can_be_widened() {
    let changes = [
        ("t.tenant IN", "t.tenant NOT IN"),
        ("t.tenant IN", "t.cluster IN"),
        ("t.tenant IN {p0:Array(String)}", "t.tenant != {p0:String}"),
        ("t.tenant IN {p0:Array(String)}", "t.tenant IN {p1:Array(String)}"),
        ("t.tenant IN {p0:Array(String)}", "indexHint(t.tenant IN {p0:Array(String)})"),
        ("t.tenant IN {p0:Array(String)} AND", "t.tenant IN {p0:Array(String)} OR"),
        ("t.time <", "t.time <="),
        ("t.time <", "t.time >="),
        ("PREWHERE", "WHERE"),
        (" AS t PREWHERE", " AS t FINAL PREWHERE"),
        (" AS t PREWHERE", " AS t SAMPLE 0.1 PREWHERE"),
        (" AS t PREWHERE", " t PREWHERE"),
        (" AS t PREWHERE", " AS t ARRAY JOIN mapKeys(t.labels) AS k PREWHERE"),
        ("SELECT ", "SELECT DISTINCT "),
        ("SELECT ", "select "),
        (" AS a0", " AS tenant"),
        (" AS a0", ""),
        ("SELECT ", "WITH 1 AS x SELECT "),
        ("SELECT ", "SELECT *, "),
        (" LIMIT ", " LIMIT 1, "),
        (" LIMIT ", " LIMIT -"),
        (" LIMIT ", " LIMIT 1 BY a0 LIMIT "),
        (" LIMIT ", " OFFSET 5 LIMIT "),
        ("sightline.", "`sightline`."),
        ("sightline.", "system."),
        ("sightline.", ""),
        ("sightline.", "x.sightline."),
        ("toIntervalMillisecond(60000)", "toIntervalMillisecond(999)"),
        ("toIntervalMillisecond(60000)", "toIntervalMillisecond(99999999999999)"),
        ("{p2:DateTime64(3, 'UTC')}) AS a0", "{p3:DateTime64(3, 'UTC')}) AS a0"),
        (", {p2:DateTime64(3, 'UTC')}) AS a0", ") AS a0"),
        ("toDateTime64(t.time, 3)", "toDateTime64(t.time, 9)"),
        ("negate(t.value)", "negate(t.time)"),
        ("greater(", "throwIf("),
        ("arrayPopBack(", "arrayPopFront("),
        ("mapKeys(t.labels)", "mapValues(t.labels)"),
        ("mapKeys(t.labels)", "mapKeys(t.tenant)"),
        ("arrayJoin(mapKeys(t.labels))", "arrayJoin([1,2])"),
    ];
    for (name, query) in queries() {
        for (from, to) in changes {
            let sql = query.sql().replacen(from, to, 1);
            if sql != query.sql() {
                refused(name, &sql, &params(&query));
            }
        }
        let tails = [
            " SETTINGS max_threads = 1",
            " FORMAT JSON",
            " INTO OUTFILE 'x'",
            " UNION ALL SELECT 1",
            " WITH TIES",
            " OFFSET 1",
            ";SELECT 1",
            " -- x",
            " /* x */",
            " ",
            ";",
            "\u{a0}",
            "0e1",
            ".5",
            "#",
        ];
        for tail in tails {
            refused(name, &format!("{}{tail}", query.sql()), &params(&query));
        }
        assert_eq!(check(&format!("{}\n", query.sql()), &params(&query)), Ok(()), "{name}: a line break at the end");
    }
}

#[test]
fn no_single_character_can_be_dropped_or_doubled() {
    for name in ["metrics_series_placement", "metrics_series_whole_nodes"] {
        no_character_of(&queries().into_iter().find(|(found, _)| *found == name).unwrap().1);
    }
}

fn no_character_of(query: &ExecutableQuery) {
    let values = params(query);
    for (at, character) in query.sql().char_indices() {
        let (before, rest) = query.sql().split_at(at);
        let (_, after) = rest.split_at(character.len_utf8());
        let harmless = |sql: &str| {
            // Another step or limit is another honest query.
            let digits = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
            character.is_ascii_digit() && digits(sql) == digits(query.sql())
        };
        for sql in [format!("{before}{after}"), format!("{before}{character}{character}{after}")] {
            if !harmless(&sql) {
                refused("one character", &sql, &values);
            }
        }
    }
}

#[test]
fn parameters_must_be_whole_of_their_type_and_in_scope() {
    for (name, query) in queries() {
        let good = params(&query);
        let with = |key: &str, text: &str| {
            let mut changed = good.clone();
            changed.insert(key.to_owned(), text.to_owned());
            changed
        };
        for key in good.keys() {
            let mut fewer = good.clone();
            fewer.remove(key);
            refused(name, query.sql(), &fewer);
        }
        refused(name, query.sql(), &BTreeMap::new());
        refused(name, query.sql(), &with("p99", "x"));
        refused(name, query.sql(), &with("q0", "x"));
        for scope in [
            "['borealis']",
            "['atlas','borealis']",
            "[]",
            "",
            "atlas",
            "'atlas'",
            "['atlas'",
            "['atlas']]",
            "['atlas',]",
            "[\"atlas\"]",
            "['atlas'\t]",
            "['at\\x6cas']",
            "['Atlas']",
            "['atlas ']",
            "[['atlas']]",
            "NULL",
            "\\N",
        ] {
            refused(name, query.sql(), &with("p0", scope));
        }
        assert_eq!(check(query.sql(), &with("p0", "['it\\'s']")), Ok(()), "{name}: fewer tenants than may be read");
        assert_eq!(check(query.sql(), &with("p0", "['atlas', 'it\\'s']")), Ok(()), "{name}: a space behind the comma");
    }
}

#[test]
fn the_window_must_be_one() {
    let (name, query) = queries().into_iter().next().unwrap();
    let good = params(&query);
    assert_eq!(good["p2"], "2026-05-03 00:00:00.000");
    let mut swapped = good.clone();
    swapped.insert("p2".to_owned(), good["p3"].clone());
    swapped.insert("p3".to_owned(), good["p2"].clone());
    refused(name, query.sql(), &swapped);
    for time in [
        "2026-05-03",
        "2026-05-03 00:00:00",
        "2026-05-03T00:00:00.000",
        "0",
        "2026-13-03 00:00:00.000",
        " 2026-05-03 00:00:00.00",
    ] {
        let mut changed = good.clone();
        changed.insert("p2".to_owned(), time.to_owned());
        refused(name, query.sql(), &changed);
    }
}

#[test]
fn a_pattern_from_outside_must_be_one_the_engine_can_run() {
    let (name, query) = queries().into_iter().find(|(name, _)| *name == "logs_rows").unwrap();
    let mut changed = params(&query);
    let key = changed.iter().find(|(_, text)| text.as_str() == "Xid.*79").map(|(key, _)| key.clone()).unwrap();
    changed.insert(key, "(".to_owned());
    refused(name, query.sql(), &changed);
}

//! Accepted texts spelled or written otherwise, and with more clauses than they have: every one of them is refused, for every shape.

use std::collections::{BTreeMap, BTreeSet};

use crate::clauses::{Clauses, part};
use crate::sample::{admit, check, every_shape, params};

fn each(test: impl Fn(&'static str, &str, &dyn Fn(String))) {
    for (name, query) in every_shape() {
        let query = admit(&query).unwrap();
        let values: BTreeMap<String, String> = params(&query);
        let sql = query.sql();
        test(name, sql, &|changed| {
            assert_ne!(changed, sql, "{name}: nothing was changed");
            assert!(check(&changed, &values).is_err(), "{name} accepted: {changed}");
        });
    }
}

/// Each word of a text once, with where it first begins.
fn words(sql: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut start = None;
    for (at, sign) in sql.char_indices().chain([(sql.len(), ' ')]) {
        match (start, is_word(sign)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                let word = part(sql, from..at);
                if word.starts_with(|c: char| c.is_ascii_alphabetic()) && seen.insert(word) {
                    found.push((from, word));
                }
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    found
}

fn replaced(sql: &str, at: usize, length: usize, with: &str) -> String {
    format!("{}{with}{}", part(sql, ..at), part(sql, at + length..))
}

#[test]
fn in_another_case() {
    each(|_, sql, refused| {
        for (at, word) in words(sql) {
            let (lower, upper) = (word.to_ascii_lowercase(), word.to_ascii_uppercase());
            for other in [lower, upper].into_iter().filter(|other| other != word) {
                refused(replaced(sql, at, word.len(), &other));
            }
        }
    });
}

#[test]
fn with_quotes_around_a_word() {
    each(|_, sql, refused| {
        for (at, word) in words(sql).into_iter().filter(|(_, word)| *word != "UTC") {
            for (before, after) in [("`", "`"), ("\"", "\""), ("[", "]")] {
                refused(replaced(sql, at, word.len(), &format!("{before}{word}{after}")));
            }
        }
    });
}

#[test]
fn with_letters_that_look_alike() {
    let alike = [
        ('a', 'а'),
        ('c', 'с'),
        ('e', 'е'),
        ('o', 'о'),
        ('p', 'р'),
        ('x', 'х'),
        ('i', 'і'),
        ('s', 'ѕ'),
        ('j', 'ј'),
        ('A', 'Α'),
        ('E', 'Ε'),
        ('T', 'Τ'),
        ('O', 'Ο'),
        ('R', 'Ꭱ'),
        ('L', 'Ⅼ'),
        ('m', 'ｍ'),
        ('t', 'ｔ'),
        ('l', 'ⅼ'),
        ('S', 'Ѕ'),
    ];
    each(|_, sql, refused| {
        for (at, word) in words(sql) {
            let Some((offset, other)) = word.char_indices().find_map(|(offset, sign)| {
                alike.iter().find(|(plain, _)| *plain == sign).map(|(_, other)| (offset, other))
            }) else {
                continue;
            };
            refused(replaced(sql, at + offset, 1, &other.to_string()));
        }
        for (from, to) in [
            ("'UTC'", "‘UTC’"),
            ("'UTC'", "’UTC’"),
            (" = ", " ＝ "),
            (" >= ", " ≥ "),
            (", ", "，"),
            ("(", "（"),
            (".", "．"),
        ] {
            if sql.contains(from) {
                refused(sql.replacen(from, to, 1));
            }
        }
    });
}

#[test]
fn with_other_spaces_and_comments() {
    let spaces = [
        "",
        "  ",
        "\t",
        "\n",
        "\r\n",
        "\u{a0}",
        "\u{2003}",
        "\u{200b}",
        "\u{feff}",
        "\0",
        "/**/",
        " /* x */ ",
        " -- x\n",
        " # x\n",
        "/*/**/*/",
    ];
    each(|_, sql, refused| {
        let places: Vec<usize> = sql.match_indices(' ').map(|(at, _)| at).collect();
        // Every kind of space somewhere in each text, and each place of a text with some.
        for (turn, at) in places.iter().enumerate() {
            refused(replaced(sql, *at, 1, spaces[turn % spaces.len()]));
        }
        for (turn, space) in spaces.iter().enumerate() {
            refused(replaced(sql, places[turn % places.len()], 1, space));
        }
        for before in [" ", "\n", "/**/", "(", ";", "\u{feff}", "-- x\n"] {
            refused(format!("{before}{sql}"));
        }
        refused(format!("({sql})"));
    });
}

#[test]
fn with_brackets_casts_or_calls_around_what_is_read() {
    each(|_, sql, refused| {
        let clauses = Clauses::of(sql);
        let columns = clauses.columns();
        for at in 0..columns.len() {
            for dress in [
                "({})",
                "{}::String",
                "CAST({} AS String)",
                "toString(toString({}))",
                "identity({})",
                "-{}",
                "NOT {}",
                "{} + 0",
                "[{}]",
                "tuple({})",
                "{}.1",
                "{}[1]",
                "any({})",
                "{} OVER ()",
                "(SELECT {})",
                "x -> {}",
                "arrayMap(t -> t, [{}])",
                "*",
                "t.*",
                "COLUMNS('.*')",
                "'x'",
                "1",
                "NULL",
                "{p0:Array(String)}",
                "t.tenant AS t",
                "{} AS tenant, {}",
            ] {
                let mut changed = columns.clone();
                changed[at] = dress.replace("{}", &columns[at]);
                refused(clauses.with_columns(&changed).text());
            }
        }
        for (from, to) in [
            ("{p0:", "({p0:"),
            ("{p0:", "[{p0:"),
            ("t.tenant", "(t.tenant)"),
            ("t.tenant", "t.tenant::String"),
            ("t.tenant", "lower(t.tenant)"),
        ] {
            let close = if to.ends_with("({p0:") { sql.replacen(")}", ")})", 1) } else { sql.to_owned() };
            refused(close.replacen(from, to, 1));
        }
    });
}

#[test]
fn with_what_a_query_may_not_have() {
    each(|_, sql, refused| {
        let clauses = Clauses::of(sql);
        let database = clauses.get("FROM").unwrap().to_owned();
        let limit = clauses.get("LIMIT").unwrap().to_owned();
        for head in [
            "WITH x AS (SELECT 1)",
            "WITH 1 AS x",
            "WITH 'atlas' AS tenant",
            "WITH (SELECT 1) AS x",
            "WITH RECURSIVE x AS (SELECT 1)",
            "WITH x AS MATERIALIZED (SELECT 1)",
            "WITH (x, y) -> 1 AS and",
            "WITH t AS (SELECT 1)",
            "WITH metrics AS (SELECT 1)",
            "EXPLAIN",
            "EXPLAIN AST",
            "DESCRIBE",
            "INSERT INTO x",
            "CREATE VIEW x AS",
            "CREATE TABLE x ENGINE = Memory AS",
            "SET x = 1;",
        ] {
            refused(format!("{head} {sql}"));
        }
        for columns in ["DISTINCT ", "DISTINCT ON (a0) ", "TOP 5 ", "ALL ", "* EXCEPT (value), ", "*, ", "t.*, "] {
            refused(sql.replacen("SELECT ", &format!("SELECT {columns}"), 1));
        }
        for from in [
            "{} FINAL",
            "{} SAMPLE 1/10",
            "{} SAMPLE 0.1 OFFSET 0.5",
            "{}, system.one",
            "{} CROSS JOIN system.one",
            "{} JOIN system.one AS o ON 1 = 1",
            "{} ARRAY JOIN mapKeys(t.labels) AS k",
            "{} LEFT ARRAY JOIN [1] AS k",
            "{} ANY LEFT JOIN sightline.logs AS l USING (time)",
            "{} PARTITION (x)",
            "({})",
            "(SELECT * FROM {}) AS t",
            "{}(a, b)",
            "merge('sightline', '.*') AS t",
            "sightline.metrics_in AS t",
            "remote('h', sightline.metrics) AS t",
            "{db:Identifier}.metrics AS t",
            "metrics AS t",
            "other.metrics AS t",
            "sightline.metrics t",
            "sightline.metrics",
            "sightline.metrics AS u",
            "sightline.metrics AS T",
            "sightline.sightline.metrics AS t",
            "sightline.metrics@1 AS t",
        ] {
            refused(clauses.with("FROM", &from.replace("{}", &database)).text());
        }
        for (keyword, text) in [
            ("HAVING", "1"),
            ("HAVING", "a0 = a0"),
            ("QUALIFY", "1"),
            ("UNION", "ALL SELECT 1"),
            ("UNION", "DISTINCT SELECT 1"),
            ("UNION", "SELECT 1"),
            ("EXCEPT", "SELECT 1"),
            ("INTERSECT", "SELECT 1"),
            ("SETTINGS", "max_threads = 1"),
            ("SETTINGS", "readonly = 0, max_rows_to_read = 0"),
            ("FORMAT", "JSON"),
            ("FORMAT", "Null"),
            ("INTO OUTFILE", "'x'"),
            ("INTO OUTFILE", "'x' TRUNCATE FORMAT CSV"),
            ("WHERE", "1"),
        ] {
            refused(clauses.with(keyword, text).text());
        }
        for by in [
            "a0 ASC",
            "a0 NULLS FIRST",
            "a0 WITH FILL",
            "a0 COLLATE 'en'",
            "ALL",
            "1",
            "a99",
            "t.tenant",
            "a0, a0",
            "rand()",
            "a00",
        ] {
            refused(clauses.with("ORDER BY", by).text());
            refused(clauses.with("GROUP BY", by).text());
        }
        for by in ["a0 WITH TOTALS", "ROLLUP(a0)", "CUBE(a0)", "GROUPING SETS ((a0))", "()"] {
            refused(clauses.with("GROUP BY", by).text());
        }
        for other in [
            "0",
            "-1",
            "ALL",
            "1e3",
            "1.0",
            "0x10",
            "1_000",
            "+1",
            "1000002",
            "4294967296",
            "18446744073709551616",
            "{p0:UInt64}",
            "(1)",
            "(SELECT 1)",
            "1, 2",
            "1 OFFSET 1",
            "1 BY a0",
            "1 BY a0 LIMIT 1",
            "1 WITH TIES",
            "1 FORMAT JSON",
            "1 SETTINGS max_threads = 1",
            "1; SELECT 1",
            "'1'",
            "NULL",
            "1 1",
        ] {
            refused(clauses.with("LIMIT", other).text());
        }
        refused(clauses.without("LIMIT").text());
        refused(clauses.without("PREWHERE").text());
        refused(format!("{} FETCH FIRST {limit} ROWS ONLY", clauses.without("LIMIT").text()));
    });
}

#[test]
fn with_something_else_behind_in() {
    each(|_, sql, refused| {
        let list = "IN {p0:Array(String)}";
        for other in [
            "IN ('atlas')",
            "IN 'atlas'",
            "IN ['atlas']",
            "IN (SELECT tenant FROM sightline.metrics)",
            "IN sightline.metrics",
            "IN metrics",
            "IN system.users",
            "IN numbers(10)",
            "IN tuple('atlas')",
            "IN ({p0:Array(String)})",
            "IN ({p0:Array(String)}, 'x')",
            "IN ()",
            "IN (t.tenant)",
            "IN t.tenant",
            "IN {p0:String}",
            "IN {p0:Identifier}",
            "IN {p0:Array(LowCardinality(String))}",
            "IN {p0:Array(Nullable(String))}",
            "IN {p00:Array(String)}",
            "IN {P0:Array(String)}",
            "IN {'p0':Array(String)}",
            "IN {p0:Array(String), p1:String}",
            "IN {p0 :Array(String)}",
            "IN {p0: Array(String)}",
            "IN {q0:Array(String)}",
            "IN arrayConcat({p0:Array(String)}, ['x'])",
            "GLOBAL IN {p0:Array(String)}",
            "NOT IN {p0:Array(String)}",
            "= {p0:String}",
            "= ANY (SELECT 1)",
            "IN UNNEST({p0:Array(String)})",
        ] {
            refused(sql.replacen(list, other, 1));
        }
    });
}

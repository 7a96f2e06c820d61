use std::collections::BTreeSet;

use super::{Catalogue, check_reader};
use crate::front::settings::TableFilters;

fn catalogue() -> Catalogue {
    let pair = |database: &str, table: &str| (database.to_owned(), table.to_owned());
    Catalogue {
        tables: BTreeSet::from([pair("obs", "metrics"), pair("obs", "jobs"), pair("default", "notes")]),
        table_functions: ["file", "url", "merge", "numbers", "view", "remote"].map(str::to_owned).into(),
        impure_functions: ["file", "dictgetstring", "dicthas", "joinget", "hostname", "user"].map(str::to_owned).into(),
    }
}

fn check(text: &str) -> Result<(), String> {
    let filters = TableFilters::from([("obs.metrics".to_owned(), "tenant IN ('a')".to_owned())]);
    check_reader(text.as_bytes(), "default", Some(&filters), &catalogue()).map_err(|error| error.to_string())
}

#[test]
fn a_select_over_filtered_tables_passes() {
    for text in [
        "SELECT t.node AS a0, max(t.value) AS a1 FROM obs.metrics AS t PREWHERE t.tenant IN {p0:Array(String)} GROUP BY t.node",
        "SELECT sum(x) FROM (SELECT value AS x FROM `obs`.`metrics`)",
        "EXPLAIN ESTIMATE SELECT count() FROM obs.metrics",
        "SELECT number FROM numbers(10)",
        "SELECT 'obs.jobs; -- url(' FROM obs.metrics",
        "SELECT t.user AS a0 FROM obs.metrics AS t WHERE t.ts >= {p1:DateTime64(3, 'UTC')} AND t.x = {p2:Float64}",
    ] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
}

#[test]
fn tables_without_a_filter_are_refused_in_any_spelling() {
    for text in [
        "SELECT 1 FROM obs.jobs",
        "SELECT 1 FROM obs . jobs",
        "SELECT 1 FROM `obs`.\"jobs\"",
        "SELECT 1 FROM notes",
        "SELECT 1 WHERE 1 IN (SELECT x FROM default.notes)",
        "SELECT 1 WHERE 1 IN notes",
    ] {
        assert!(check(text).unwrap_err().contains("has no filter"), "{text}");
    }
}

#[test]
fn what_reads_past_the_filters_is_refused() {
    for text in [
        "SELECT * FROM merge('obs', '.*')",
        "SELECT * FROM MERGE('obs', '.*')",
        "SELECT * FROM `merge`('obs', '.*')",
        "SELECT length(file('/etc/passwd'))",
        "SELECT dictGetString('d', 'a', 1)",
        "SELECT joinGet('obs.jobs', 'x', 1)",
        "SELECT DICTHAS('obs.d', 'x')",
        "SELECT `dictHas` ('obs.d', 'x')",
        "SELECT arrayMap(file, ['/etc/passwd'])",
        "SELECT arrayMap(\"file\", ['/etc/passwd'])",
        "SELECT hostName()",
        "SELECT obs.user()",
    ] {
        assert!(check(text).unwrap_err().contains("may not call"), "{text}");
    }
    for text in
        ["DESCRIBE TABLE url('http://x/')", "INSERT INTO obs.metrics SELECT 1", "SHOW TABLES", "EXPLAIN SELECT 1"]
    {
        assert!(check(text).unwrap_err().contains("SELECT and EXPLAIN ESTIMATE"), "{text}");
    }
    for text in ["SELECT * FROM system.processes", "SELECT 1 IN system.one", "SELECT * FROM information_schema.tables"]
    {
        assert!(check(text).unwrap_err().contains("may not read"), "{text}");
    }
}

#[test]
fn a_parameter_is_a_value_and_no_name() {
    for text in [
        "SELECT * FROM {d:Identifier}.{t:Identifier}",
        "SELECT * FROM obs.{ t : Identifier }",
        "SELECT * FROM {t:identifier}",
        "SELECT {c:`Identifier`} FROM obs.metrics",
        "SELECT {c:AggregateFunction(sum, UInt8)} FROM obs.metrics",
        "SELECT * FROM {`t`:Identifier}",
        "SELECT * FROM {",
    ] {
        assert!(check(text).unwrap_err().contains("parameters are values"), "{text}");
    }
    // To the engine a name may begin with a digit, that of a parameter too.
    for text in ["SELECT * FROM {1t:Identifier}", "SELECT * FROM obs.{1:Identifier}", "SELECT {0x1:Identifier}"] {
        assert!(check(text).is_err(), "{text}");
    }
    assert_eq!(check("SELECT 1 FROM obs.metrics SETTINGS additional_table_filters = {'a': 'b'}"), Ok(()));
}

#[test]
fn text_that_two_lexers_may_cut_differently_is_refused() {
    for text in
        ["SELECT 1 FROM obs./**/jobs", "SELECT 1 FROM `\\x6fbs`.jobs", "SELECT ‘x’", "SELECT $a$ x $a$", "SELECT 1 # x"]
    {
        assert!(check(text).unwrap_err().contains("may hold no comment"), "{text}");
    }
}

#[test]
fn where_a_table_is_read_nothing_is_called_that_could_fail_for_a_row() {
    for text in [
        "SELECT throwIf(node = 'b') FROM obs.metrics",
        "SELECT count() FROM obs.metrics WHERE toFixedString(node, 3) = 'abc'",
        "SELECT base64Decode(node) FROM (SELECT node FROM obs.metrics)",
        "SELECT node::FixedString(3) FROM obs.metrics",
        "SELECT CAST(node AS Int32) FROM obs.metrics",
        "SELECT `in`(node, 'a') FROM obs.metrics",
    ] {
        assert!(check(text).unwrap_err().contains("where it reads a table"), "{text}");
    }
    assert_eq!(check("SELECT throwIf(number = 5) FROM numbers(10)"), Ok(()));
    assert_eq!(
        check(
            "SELECT quantileExactInclusive(0.5)(t.value) AS a0 FROM obs.metrics AS t WHERE NOT (t.x IN {p0:Array(Tuple(String, String))})"
        ),
        Ok(())
    );
}

#[test]
fn a_number_is_no_name() {
    for text in ["SELECT 1 AS 1x", "SELECT 1 AS 1e", "SELECT 0x1F", "SELECT 1_000", "SELECT 1e5e"] {
        assert!(check(text).unwrap_err().contains("begins with a digit"), "{text}");
    }
    for text in ["SELECT 1", "SELECT 1.5", "SELECT 1e5", "SELECT 1.5E3"] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
}

#[test]
fn brackets_that_could_overflow_the_engines_stack_are_refused() {
    let nested = |depth: usize| format!("SELECT {}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(check(&nested(64)), Ok(()));
    assert!(check(&nested(65)).unwrap_err().contains("64 deep"));
}

#[test]
fn without_filters_only_the_proof_of_a_kill_passes() {
    let check =
        |text: &str| check_reader(text.as_bytes(), "default", None, &catalogue()).map_err(|error| error.to_string());
    assert_eq!(check("SELECT count() FROM system.processes WHERE query_id = 'a'"), Ok(()));
    assert_eq!(check("select count() from system.processes where query_id = {id:String}"), Ok(()));
    for text in [
        "SELECT 1",
        "SELECT count() FROM system.processes WHERE query_id = 'a' OR 1",
        "SELECT count() FROM system.processes WHERE query_id = {id:Identifier}",
        "SELECT count() FROM system.processes",
    ] {
        assert!(check(text).unwrap_err().contains("additional_table_filters"), "{text}");
    }
}

//! The SQL of every shape, for people to read.

use std::fmt::Write;

use sightline_guard::ExecutableQuery;

use crate::sample::{admit, check, every_shape, params, query};

fn shown(name: &str, query: &ExecutableQuery) -> String {
    let mut out = format!("-- {name}\n{}\n", query.sql());
    for param in query.params() {
        writeln!(out, "   {} {} = {}", param.name(), param.ty().as_sql(), param.text()).unwrap();
    }
    let columns: Vec<&str> = query.columns().iter().map(|column| column.name.as_str()).collect();
    writeln!(out, "   columns {}", columns.join(", ")).unwrap();
    out
}

#[test]
fn sql_of_every_shape_and_dataset() {
    let all: Vec<String> = every_shape().iter().map(|(name, query)| shown(name, &admit(query).unwrap())).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_goes_beside_the_text() {
    let (_, first) = every_shape().into_iter().next().unwrap();
    let query = admit(&first).unwrap();
    let mut out = String::new();
    for (name, value) in query.bounds().settings() {
        writeln!(out, "{name} = {value}").unwrap();
    }
    writeln!(out, "{} = {}", query.fence().setting(), query.fence().value()).unwrap();
    insta::assert_snapshot!(out);
}

#[test]
fn text_of_ours_passes_the_checker_as_text_from_outside() {
    for (name, query) in every_shape() {
        let query = admit(&query).unwrap();
        assert_eq!(check(query.sql(), &params(&query)), Ok(()), "{name}");
    }
}

#[test]
fn one_row_more_than_wanted_is_read_so_that_a_cut_shows() {
    let wanted = query(
        sightline_model::Dataset::Logs,
        sightline_query::Shape::Rows { order: sightline_query::Order::Ascending, limit: 7 },
    );
    let query = admit(&wanted).unwrap();
    assert!(query.sql().ends_with(" LIMIT 8"));
    assert_eq!((query.row_limit(), query.bounds().max_result_rows), (7, 8));
}

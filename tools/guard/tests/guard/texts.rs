//! Any text in any place: it travels in a parameter, the query's own text does not change, and what is sent reads back as it was.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;
use sightline_guard::{ExecutableQuery, ParamType};
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_query::{Align, Filter, Match, Order, Query, Shape, ValidQuery, check_pattern};

use crate::clauses::part;
use crate::round_trip::{any_query, text};
use crate::sample::{admit, catalogue, check, filter, params, query};

/// A parameter's text as the engine reads it: one field of a tab-separated row, or a list of quoted texts. Written from the
/// engine's documentation and apart from the guard's own reader.
fn read(ty: ParamType, sent: &str) -> Vec<String> {
    let unescaped = |text: &str| {
        let mut out = String::new();
        let mut signs = text.chars();
        while let Some(sign) = signs.next() {
            assert!(!['\t', '\n', '\r', '\0'].contains(&sign), "a field ends at {sign:?} in {sent:?}");
            if sign != '\\' {
                out.push(sign);
                continue;
            }
            out.push(match signs.next().unwrap() {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '0' => '\0',
                plain @ ('\\' | '\'') => plain,
                other => panic!("`\\{other}` in {sent:?}"),
            });
        }
        out
    };
    match ty {
        ParamType::Text => vec![unescaped(sent)],
        ParamType::TextList | ParamType::PairList => {
            let (mut texts, mut from, mut escaped) = (Vec::new(), None, false);
            for (at, sign) in sent.char_indices() {
                match (from, sign) {
                    (None, '\'') => from = Some(at + 1),
                    (None, '[' | ']' | '(' | ')' | ',') => {}
                    (None, other) => panic!("{other:?} between quotes in {sent:?}"),
                    (Some(_), _) if escaped => escaped = false,
                    (Some(_), '\\') => escaped = true,
                    (Some(start), '\'') => {
                        texts.push(unescaped(part(sent, start..at)));
                        from = None;
                    }
                    (Some(_), _) => {}
                }
            }
            assert!(from.is_none() && sent.starts_with('[') && sent.ends_with(']'), "{sent:?}");
            texts
        }
        ParamType::Time | ParamType::Number => Vec::new(),
    }
}

/// Every text that is sent, as the engine reads it.
fn sent(query: &ExecutableQuery) -> Vec<String> {
    query.params().iter().flat_map(|param| read(param.ty(), param.text())).collect()
}

fn rows(dataset: Dataset, filters: Vec<Filter>) -> Query {
    Query { filters, ..query(dataset, Shape::Rows { order: Order::Ascending, limit: 5 }) }
}

/// The query with a text in each place that takes one; the same places for every text.
fn with(value: &str) -> Vec<Query> {
    let value = || value.to_owned();
    let matches = [
        Match::Eq(value()),
        Match::NotEq(value()),
        Match::In(vec![value(), "other".to_owned()]),
        Match::NotIn(vec![value()]),
        Match::Contains(value()),
        Match::ContainsFold(value()),
        Match::Prefix(value()),
    ];
    let mut queries: Vec<Query> =
        matches.map(|matches| rows(Dataset::Logs, vec![filter(Dim::Body, matches)])).into_iter().collect();
    let label = Dim::Label(format!("k{}", value()));
    queries.push(rows(
        Dataset::Events,
        vec![filter(label.clone(), Match::Present), filter(label.clone(), Match::Eq(value()))],
    ));
    queries.push(query(Dataset::Spans, Shape::Distinct { of: vec![label.clone(), Dim::Service], limit: 5 }));
    let series = Shape::Series {
        step_ms: 60_000,
        align: Align::Window,
        group_by: vec![label],
        aggregation: Aggregation::Avg,
        limit: 5,
    };
    let placement = Some(vec![(value(), "0".to_owned()), ("n1".to_owned(), value())]);
    queries.push(Query { placement, ..query(Dataset::Metrics, series) });
    queries
}

/// What a query means, for two to be held against each other: everything of it but the words of the asker that come to the same.
fn meaning(valid: &ValidQuery) -> String {
    let range = (valid.range().from().as_millisecond(), valid.range().to().as_millisecond());
    let stored = valid.metric().map(|metric| metric.stored.clone());
    let placement = valid.placement();
    let outputs: Vec<String> = valid.outputs().iter().map(|column| format!("{:?}", column.output)).collect();
    let (filters, order, limit) = (valid.filters(), valid.order(), valid.limit());
    format!("{:?}", (valid.dataset(), stored, range, filters, placement, outputs, order, limit))
}

fn changed(query: &Query, other: Query, which: usize) -> Query {
    let mut changed = query.clone();
    match which {
        0 => changed.filters = other.filters,
        1 => changed.placement = other.placement,
        2 => changed.range = other.range,
        3 => (changed.shape, changed.threshold, changed.metric) = (other.shape, other.threshold, other.metric),
        4 => drop(changed.filters.pop()),
        5 => changed.filters.extend(other.filters.into_iter().next()),
        6 => changed.filters.reverse(),
        7 => {
            let to = query.range.to() + SignedDuration::from_millis(1);
            changed.range = TimeRange::new(query.range.from(), to).unwrap();
        }
        8 => match &mut changed.shape {
            Shape::Series { limit, .. }
            | Shape::Samples { limit, .. }
            | Shape::Rank { limit, .. }
            | Shape::Rows { limit, .. }
            | Shape::Distinct { limit, .. }
            | Shape::LabelKeys { limit } => *limit = (*limit % 9_999) + 1,
        },
        _ => changed = other,
    }
    changed
}

fn metric_name() -> impl Strategy<Value = String> {
    let known: Vec<String> = catalogue().metrics().flat_map(|metric| metric.stored().map(str::to_owned)).collect();
    prop_oneof![text(), prop::sample::select(known), "(DCGM_FI_DEV_)?[A-Z_]{1,12}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_in_any_place_leaves_the_query_as_it_is_and_reads_back(value in text()) {
        prop_assume!(value.len() <= 100);
        for (with_it, without) in with(&value).iter().zip(with("")) {
            let (with_it, without) = (admit(with_it).unwrap(), admit(&without).unwrap());
            prop_assert_eq!(with_it.sql(), without.sql());
            prop_assert_eq!(check(with_it.sql(), &params(&with_it)), Ok(()));
            // The other texts stay, and this one comes in their places.
            let expected: Vec<String> = sent(&without)
                .into_iter()
                .map(|text| if text.is_empty() { value.clone() } else if text == "k" { format!("k{value}") } else { text })
                .collect();
            prop_assert_eq!(sent(&with_it), expected);
        }
    }

    #[test]
    fn any_pattern_is_refused_or_travels_as_it_is(pattern in text()) {
        let query = rows(Dataset::Logs, vec![filter(Dim::Body, Match::Regex(pattern.clone()))]);
        match (catalogue().check(&query), check_pattern(&pattern)) {
            (Ok(_), Ok(())) => {
                let query = admit(&query).unwrap();
                prop_assert!(sent(&query).contains(&pattern));
                prop_assert_eq!(check(query.sql(), &params(&query)), Ok(()));
            }
            (Err(error), _) => prop_assert!(error.to_string().len() > 10),
            (Ok(_), Err(reason)) => prop_assert!(false, "{}", reason),
        }
    }

    /// A metric's name picks an entry of the catalogue; what is sent are that entry's names, never the asker's text.
    #[test]
    fn any_metric_name_is_refused_or_stands_for_names_of_the_catalogue(name in metric_name()) {
        let count = Aggregation::Count;
        let shape = Shape::Rank { group_by: vec![], aggregation: count, order: Order::Ascending, limit: 5 };
        let query = Query { metric: Some(name), ..query(Dataset::Metrics, shape) };
        match catalogue().check(&query) {
            Ok(valid) => {
                let stored: BTreeSet<String> = valid.metric().unwrap().stored.iter().cloned().collect();
                let executable = admit(&query).unwrap();
                prop_assert!(stored.is_subset(&sent(&executable).into_iter().collect()));
                let is_known = |name: &String| catalogue().metrics().any(|m| m.stored().any(|known| name == known));
                prop_assert!(stored.iter().all(is_known));
            }
            Err(error) => prop_assert!(error.to_string().len() > 10),
        }
    }

    /// Two queries that differ in anything but their ids are sent as different text or values, or mean the same.
    #[test]
    fn different_queries_are_sent_differently(one in any_query(), other in any_query(), which in 0..10usize) {
        let other = changed(&one, other, which);
        let (Ok(first), Ok(second)) = (catalogue().check(&one), catalogue().check(&other)) else { return Ok(()) };
        let (a, b) = (admit(&one).unwrap(), admit(&other).unwrap());
        let as_sent = |query: &ExecutableQuery| (query.sql().to_owned(), params(query));
        prop_assert_eq!(as_sent(&a) == as_sent(&b), meaning(&first) == meaning(&second), "{:?} and {:?}", one, other);
    }
}

#[test]
fn the_reader_of_these_tests_reads_what_the_documentation_says() {
    assert_eq!(read(ParamType::Text, r"a\\b\tc\'"), ["a\\b\tc'"]);
    assert_eq!(read(ParamType::TextList, r"['it\'s','\\','']"), ["it's", "\\", ""]);
    assert_eq!(read(ParamType::PairList, "[('n1','0')]"), ["n1", "0"]);
}

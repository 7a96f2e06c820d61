//! Five hundred queries, the same in every run: each is admitted, and its text passes the checker as text from outside.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sightline_guard::ParamType;
use sightline_model::{Aggregation, Dataset};
use sightline_query::{Filter, Match, Query, Shape, ValueOp};

use crate::round_trip::{aggregation_of, any_query};
use crate::sample::{admit, check, params};

const QUERIES: usize = 500;

fn queries() -> Vec<Query> {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    (0..QUERIES).map(|_| any_query().new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn five_hundred_generated_queries_are_accepted() {
    let mut texts = BTreeSet::new();
    for query in queries() {
        let executable = admit(&query).unwrap_or_else(|refusal| panic!("{refusal}: {query:?}"));
        assert_eq!(check(executable.sql(), &params(&executable)), Ok(()), "{query:?}");
        texts.insert(executable.sql().to_owned());
    }
    assert!(texts.len() > 450, "{} different texts", texts.len());
}

#[test]
fn every_dataset_shape_filter_and_aggregation_is_among_them() {
    let all = queries();
    assert_eq!(all, queries(), "the set is the same each time");
    let shape = |shape: &Shape| match shape {
        Shape::Series { .. } => "series",
        Shape::Samples { .. } => "samples",
        Shape::Rank { .. } => "rank",
        Shape::Rows { .. } => "rows",
        Shape::Distinct { .. } => "distinct",
        Shape::LabelKeys { .. } => "label keys",
    };
    let filter = |filter: &Filter| match filter {
        Filter::Dim { dim: _, matches } => match matches {
            Match::Eq(_) => "=",
            Match::NotEq(_) => "!=",
            Match::In(_) => "in",
            Match::NotIn(_) => "not in",
            Match::Contains(_) => "contains",
            Match::ContainsFold(_) => "contains, any case",
            Match::Prefix(_) => "prefix",
            Match::Regex(_) => "regex",
            Match::Present => "present",
            Match::Absent => "absent",
        },
        Filter::Value { op, bound: _ } => match op {
            ValueOp::Above => "value >",
            ValueOp::Below => "value <",
            ValueOp::AtLeast => "value >=",
            ValueOp::AtMost => "value <=",
            ValueOp::Equal => "value =",
            ValueOp::NotEqual => "value !=",
        },
    };
    let datasets: BTreeSet<&str> = all.iter().map(|query| query.dataset.as_str()).collect();
    assert_eq!(datasets.len(), Dataset::ALL.len());
    let shapes: BTreeSet<&str> = all.iter().map(|query| shape(&query.shape)).collect();
    assert_eq!(shapes.len(), 6, "{shapes:?}");
    let filters: BTreeSet<&str> = all.iter().flat_map(|query| &query.filters).map(filter).collect();
    assert_eq!(filters.len(), 16, "{filters:?}");
    let aggregations: BTreeSet<&str> =
        all.iter().filter_map(|query| aggregation_of(&query.shape)).map(Aggregation::as_str).collect();
    assert_eq!(aggregations.len(), Aggregation::ALL.len(), "{aggregations:?}");
    let params = all.iter().map(|query| admit(query).unwrap());
    let types: BTreeSet<&str> =
        params.flat_map(|query| query.params().iter().map(|p| p.ty().as_sql()).collect::<Vec<_>>()).collect();
    assert_eq!(types.len(), ParamType::ALL.len());
}

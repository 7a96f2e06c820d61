//! Texts that the checker alone must let pass, because somebody may ask for them, are refused where something else was meant.

use jiff::Timestamp;
use sightline_model::{Aggregation, Dataset, Dim, TimeRange};
use sightline_policies::RowScope;
use sightline_query::{Align, Catalogue, Filter, Match, MetricPart, Order, QuantileLevel, Query, Shape, ValueOp};

use super::rules::binds;
use super::{FaultKind, Meant, Passed, check_text, verify};
use crate::emit::emit;
use crate::lower::lower;
use crate::mapping::Mapping;
use crate::param::Param;
use crate::tree::{Aggregate, Bind, Column, Comparison, Condition, Held, Scalar, Select};

fn mapping() -> Mapping {
    Mapping::native("sightline").unwrap()
}

fn scope() -> RowScope {
    RowScope::for_tests(&["atlas"]).unwrap()
}

fn query(dataset: Dataset, filters: Vec<Filter>, shape: Shape) -> Query {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    Query {
        dataset,
        metric: (dataset == Dataset::Metrics).then(|| "DCGM_FI_DEV_GPU_TEMP".to_owned()),
        part: MetricPart::Samples,
        range: TimeRange::new(at("2026-05-03T00:00:00Z"), at("2026-05-04T00:00:00Z")).unwrap(),
        filters,
        placement: None,
        threshold: None,
        shape,
    }
}

/// Queries with every kind of condition and column between them.
fn queries() -> Vec<Query> {
    let on = |dim: Dim, matches| Filter::Dim { dim, matches };
    let text = |text: &str| text.to_owned();
    let label = |key: &str| Dim::Label(key.to_owned());
    let series = |aggregation, align| Shape::Series {
        step_ms: 3_600_000,
        align,
        group_by: vec![Dim::Node, label("rack")],
        aggregation,
        limit: 1000,
    };
    let rank =
        |aggregation| Shape::Rank { group_by: vec![Dim::Node], aggregation, order: Order::Descending, limit: 10 };
    let on_metrics = vec![
        on(Dim::Node, Match::In(vec![text("n1")])),
        on(Dim::Gpu, Match::NotIn(vec![text("7")])),
        on(label("rack"), Match::Eq(text("r1"))),
        on(label("pod"), Match::Present),
        Filter::Value { op: ValueOp::AtLeast, bound: 1.0 },
        Filter::Value { op: ValueOp::Below, bound: 9.0 },
    ];
    let on_lines = vec![
        on(Dim::Body, Match::Contains(text("a"))),
        on(Dim::Body, Match::ContainsFold(text("b"))),
        on(Dim::Body, Match::Prefix(text("c"))),
        on(Dim::Body, Match::Regex(text("d"))),
        on(Dim::Severity, Match::NotEq(text("e"))),
        on(label("pod"), Match::Absent),
    ];
    let placement = Some(vec![(text("n1"), text("0"))]);
    let metrics = |shape| query(Dataset::Metrics, on_metrics.clone(), shape);
    // What lies between samples is asked of all of them.
    let whole: Vec<Filter> =
        on_metrics.iter().filter(|filter| !matches!(filter, Filter::Value { .. })).cloned().collect();
    let of_series = |shape| query(Dataset::Metrics, whole.clone(), shape);
    vec![
        Query { placement, ..metrics(series(Aggregation::P95, Align::Epoch)) },
        Query {
            metric: Some(text("node_network_receive_bytes_total")),
            ..of_series(series(Aggregation::Rate, Align::Window))
        },
        Query { threshold: Some(5.0), ..of_series(rank(Aggregation::FractionAbove)) },
        metrics(rank(Aggregation::Max)),
        metrics(rank(Aggregation::Last)),
        query(Dataset::Logs, on_lines, Shape::Rows { order: Order::Descending, limit: 5 }),
        query(
            Dataset::Jobs,
            vec![on(Dim::User, Match::Eq(text("u")))],
            Shape::Rows { order: Order::Ascending, limit: 5 },
        ),
        query(Dataset::Spans, vec![], rank(Aggregation::Avg)),
        query(Dataset::Events, vec![], Shape::Distinct { of: vec![Dim::Kind, label("pod")], limit: 9 }),
    ]
}

fn meant() -> Vec<(Select, Vec<Param>)> {
    let (catalogue, mapping) = (Catalogue::builtin().unwrap(), mapping());
    let lowered = |query: Query| {
        let valid = catalogue.check(&query).unwrap();
        lower(&valid, mapping.table(query.dataset).unwrap(), &scope(), query.range).unwrap()
    };
    queries().into_iter().map(lowered).collect()
}

/// Everything that one change of a tree can make of it.
fn changed(meant: &Select) -> Vec<Select> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Select)| {
        let mut select = meant.clone();
        change(&mut select);
        all.push(select);
    };
    for at in 0..meant.prewhere.len() {
        with(&|select| drop(select.prewhere.remove(at)));
        for other in otherwise(&meant.prewhere[at]) {
            with(&|select| select.prewhere[at] = other.clone());
        }
    }
    for at in 0..meant.filters.len() {
        with(&|select| drop(select.filters.remove(at)));
        with(&|select| select.filters.insert(at, meant.filters[at].clone()));
        with(&|select| select.filters.swap(0, at));
        for other in otherwise(&meant.filters[at]) {
            with(&|select| select.filters[at] = other.clone());
        }
    }
    for at in 0..meant.columns.len() {
        with(&|select| select.columns.swap(0, at));
        for other in columns(&meant.columns[at]) {
            with(&|select| select.columns[at] = other.clone());
        }
    }
    let last = meant.columns.len() - 1;
    with(&|select| drop(select.columns.pop()));
    with(&|select| select.columns.push(select.columns[last].clone()));
    for at in 0..meant.order_by.len() {
        with(&|select| {
            select.order_by.remove(at);
        });
        with(&|select| select.order_by.swap(0, at));
        with(&|select| {
            select.order_by[at].1 = match select.order_by[at].1 {
                Order::Ascending => Order::Descending,
                Order::Descending => Order::Ascending,
            };
        });
    }
    with(&|select| select.limit += 1);
    with(&|select| select.limit -= 1);
    for table in ["metrics", "logs", "spans", "events", "jobs", "job_gpus"] {
        with(&|select| select.table = table.to_owned());
    }
    let all_binds = binds(meant);
    for one in &all_binds {
        for other in all_binds.iter().filter(|other| other.ty == one.ty && other.index > one.index) {
            let swap = |text: String| {
                let name = |bind: &Bind| format!("{{p{}:", bind.index);
                text.replace(&name(one), "\0").replace(&name(other), &name(one)).replace('\0', &name(other))
            };
            all.push(super::read::select(&swap(emit(meant))).unwrap());
        }
    }
    all.into_iter().filter(|select| select != meant).collect()
}

fn otherwise(condition: &Condition) -> Vec<Condition> {
    use Condition::{Absent, Compare, Contains, ContainsFold, Finite, In, NotIn, PairIn, Prefix, Present, Regex};
    let comparisons = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::AtMost,
        Comparison::Greater,
        Comparison::AtLeast,
    ];
    match condition {
        Compare(left, _, bind) => comparisons.into_iter().map(|other| Compare(left.clone(), other, *bind)).collect(),
        In(left, bind) | NotIn(left, bind) => {
            let gpu = Scalar::Column("gpu".to_owned());
            vec![In(left.clone(), *bind), NotIn(left.clone(), *bind), In(gpu, *bind)]
        }
        PairIn(first, second, bind) => vec![PairIn(second.clone(), first.clone(), *bind)],
        Contains(left, bind) | ContainsFold(left, bind) | Prefix(left, bind) | Regex(left, bind) => vec![
            Contains(left.clone(), *bind),
            ContainsFold(left.clone(), *bind),
            Prefix(left.clone(), *bind),
            Regex(left.clone(), *bind),
            Compare(left.clone(), Comparison::Equal, *bind),
            Contains(Scalar::Column("service".to_owned()), *bind),
        ],
        Present(left) | Absent(left) => vec![Present(left.clone()), Absent(left.clone())],
        Finite(_) => Vec::new(),
    }
}

fn columns(column: &Column) -> Vec<Column> {
    match column {
        Column::Bucket { step_ms, origin } => vec![
            Column::Bucket { step_ms: step_ms + 1, origin: *origin },
            Column::Bucket { step_ms: *step_ms, origin: None },
        ],
        Column::Plain(_) => vec![Column::Plain(Scalar::Column("cluster".to_owned())), Column::LabelKey],
        Column::OfKeptSteps(step_ms) => {
            vec![Column::OfKeptSteps(step_ms * 2), Column::Bucket { step_ms: *step_ms, origin: None }]
        }
        Column::LabelKey | Column::OpenEnd(_) => Vec::new(),
        Column::Aggregate(aggregate) => aggregates(aggregate).into_iter().map(Column::Aggregate).collect(),
    }
}

fn aggregates(aggregate: &Aggregate) -> Vec<Aggregate> {
    use Aggregate::{Avg, Count, First, Held as Stood, Last, Max, MaxTime, Min, MinTime, Quantile, Rise, Stddev, Sum};
    match aggregate {
        Count => Vec::new(),
        Min(of) | Max(of) | Avg(of) | Sum(of) | Stddev(of) | Quantile(_, of) => vec![
            Count,
            Min(of.clone()),
            Max(of.clone()),
            Avg(of.clone()),
            Sum(of.clone()),
            Stddev(of.clone()),
            Quantile(QuantileLevel::P50, of.clone()),
            Quantile(QuantileLevel::P99, of.clone()),
        ],
        First(of, by) | Last(of, by) | MinTime(of, by) | MaxTime(of, by) | Rise(of, by) => vec![
            First(of.clone(), by.clone()),
            Last(of.clone(), by.clone()),
            MinTime(of.clone(), by.clone()),
            MaxTime(of.clone(), by.clone()),
            Rise(of.clone(), by.clone()),
        ],
        Stood(what, of, by) => match what {
            Held::Value => Vec::new(),
            Held::Above(bind) | Held::Below(bind) => vec![
                Stood(Held::Value, of.clone(), by.clone()),
                Stood(Held::Above(*bind), of.clone(), by.clone()),
                Stood(Held::Below(*bind), of.clone(), by.clone()),
            ],
        },
    }
}

fn kinds(text: &str, select: &Select, params: &[Param], passed: &Passed) -> Vec<FaultKind> {
    let (mapping, scope) = (mapping(), scope());
    let found = verify(text, Meant { select, params, scope: &scope, mapping: &mapping }, passed);
    found.err().into_iter().flatten().map(|fault| fault.kind()).collect()
}

#[test]
fn a_text_that_says_anything_else_is_refused_though_it_could_have_been_asked() {
    let mapping = mapping();
    let mut could_be_asked = 0;
    for (select, params) in meant() {
        let passed = Passed::default();
        assert_eq!(kinds(&emit(&select), &select, &params, &passed), [], "{}", emit(&select));
        for other in changed(&select) {
            let text = emit(&other);
            let honest = check_text(&text, &mapping) == Ok(other.clone());
            let found = kinds(&text, &select, &params, &passed);
            if honest {
                could_be_asked += 1;
                assert_eq!(found, [FaultKind::Form], "{text}");
                // It passed: that it is remembered changes nothing.
                assert_eq!(kinds(&text, &select, &params, &passed), [FaultKind::Form], "{text}");
            } else {
                assert!(!found.is_empty(), "{text}");
            }
        }
    }
    // These are what the checker alone lets pass, so that the comparison is what refuses them.
    assert!(could_be_asked > 200, "{could_be_asked}");
}

#[test]
fn a_text_of_ours_is_refused_for_every_other_query_of_ours() {
    let all = meant();
    let passed = Passed::default();
    for (at, (select, _)) in all.iter().enumerate() {
        let text = emit(select);
        for (_, (other, params)) in all.iter().enumerate().filter(|(other, _)| *other != at) {
            assert_eq!(kinds(&text, other, params, &passed), [FaultKind::Form], "{text}");
        }
    }
}

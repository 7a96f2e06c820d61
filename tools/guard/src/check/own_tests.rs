//! A query that would let through another's row is refused, however it came about.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use sightline_model::{Dataset, Dim, TimeRange};
use sightline_policies::{JobRows, OwnRows, RowScope};
use sightline_query::{Catalogue, Filter, Match, MetricPart, Order, Query, SampleOrder, Shape};

use crate::check::{FaultKind, Meant, Passed, verify};
use crate::emit::emit;
use crate::lower::lower;
use crate::mapping::Mapping;
use crate::param::{Param, ParamValue};
use crate::tree::{Comparison, Condition, Select};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn pair(node: &str, gpu: &str) -> (String, String) {
    (node.to_owned(), gpu.to_owned())
}

fn job() -> OwnRows {
    OwnRows::Job(Arc::new(JobRows {
        job_id: "J1".to_owned(),
        user: "ann".to_owned(),
        tenant: "atlas".to_owned(),
        cluster: "east".to_owned(),
        slots: BTreeSet::from([pair("n1", "0"), pair("n1", "1")]),
        from: at("2026-05-03T08:00:00Z"),
        to: at("2026-05-03T10:00:00Z"),
    }))
}

fn jobs() -> OwnRows {
    OwnRows::JobsOf { user: "ann".to_owned() }
}

fn scope(own: Option<OwnRows>) -> RowScope {
    let whole = RowScope::for_tests(&["atlas"]).unwrap();
    match own {
        Some(own) => whole.narrowed_for_tests(own),
        None => whole,
    }
}

/// The day's rows of a dataset, or an hour's of the job.
fn query(dataset: Dataset, filters: Vec<Filter>, range: (&str, &str)) -> Query {
    let shape = match dataset {
        Dataset::Metrics => Shape::Samples { group_by: vec![Dim::Node, Dim::Gpu], order: SampleOrder::Time, limit: 9 },
        _ => Shape::Rows { order: Order::Ascending, limit: 9 },
    };
    Query {
        dataset,
        metric: (dataset == Dataset::Metrics).then(|| "DCGM_FI_DEV_GPU_TEMP".to_owned()),
        part: MetricPart::Samples,
        range: TimeRange::new(at(range.0), at(range.1)).unwrap(),
        filters,
        placement: None,
        threshold: None,
        shape,
    }
}

const DAY: (&str, &str) = ("2026-05-03T00:00:00Z", "2026-05-04T00:00:00Z");
const BEFORE: (&str, &str) = ("2026-05-02T00:00:00Z", "2026-05-03T00:00:00Z");

fn lowered(query: &Query, own: Option<OwnRows>) -> (Select, Vec<Param>) {
    let mapping = Mapping::native("sightline").unwrap();
    let valid = Catalogue::builtin().unwrap().check(query).unwrap();
    lower(&valid, mapping.table(query.dataset).unwrap(), &scope(own), query.range).unwrap()
}

fn kinds(select: &Select, params: &[Param], own: OwnRows) -> Vec<FaultKind> {
    let (mapping, scope) = (Mapping::native("sightline").unwrap(), scope(Some(own)));
    let meant = Meant { select, params, scope: &scope, mapping: &mapping };
    let found = verify(&emit(select), meant, &Passed::default());
    found.err().into_iter().flatten().map(|fault| fault.kind()).collect()
}

/// By the label of the job, as its asker would.
fn by_label(id: &str) -> Vec<Filter> {
    vec![Filter::Dim { dim: Dim::Label("job".to_owned()), matches: Match::Eq(id.to_owned()) }]
}

#[test]
fn a_query_that_was_not_narrowed_is_refused_for_every_dataset() {
    for dataset in Dataset::ALL {
        for own in [job(), jobs()] {
            let (wide, params) = lowered(&query(dataset, Vec::new(), DAY), None);
            assert_eq!(kinds(&wide, &params, own.clone()), [FaultKind::OwnRows], "{dataset} {own:?}");
            for range in [DAY, BEFORE] {
                let (narrow, params) = lowered(&query(dataset, Vec::new(), range), Some(own.clone()));
                assert_eq!(kinds(&narrow, &params, own.clone()), [], "{dataset} {own:?}: {}", emit(&narrow));
            }
        }
    }
}

#[test]
fn a_query_narrowed_to_another_job_or_user_is_refused() {
    let OwnRows::Job(own) = job() else { return };
    let other = |change: &dyn Fn(&mut JobRows)| {
        let mut rows = (*own).clone();
        change(&mut rows);
        OwnRows::Job(Arc::new(rows))
    };
    let others = [
        ("id", other(&|rows| rows.job_id = "J2".to_owned())),
        ("cluster", other(&|rows| rows.cluster = "west".to_owned())),
        ("user", other(&|rows| rows.user = "bob".to_owned())),
        ("place", other(&|rows| rows.slots.extend([pair("n1", "2")]))),
        ("start", other(&|rows| rows.from = at("2026-05-03T07:59:59.999Z"))),
        ("end", other(&|rows| rows.to = at("2026-05-03T10:00:00.001Z"))),
    ];
    for dataset in Dataset::ALL {
        for (what, foreign) in &others {
            let tells = match dataset {
                Dataset::Metrics | Dataset::Logs | Dataset::Events => !matches!(*what, "id" | "user"),
                Dataset::Spans | Dataset::JobGpus => !matches!(*what, "user" | "place"),
                Dataset::Jobs => *what != "place",
            };
            let (select, params) = lowered(&query(dataset, Vec::new(), DAY), Some(foreign.clone()));
            let expected: &[FaultKind] = if tells { &[FaultKind::OwnRows] } else { &[] };
            assert_eq!(kinds(&select, &params, job()), expected, "{dataset} {what}");
        }
    }
    let (of_bob, params) =
        lowered(&query(Dataset::Jobs, Vec::new(), DAY), Some(OwnRows::JobsOf { user: "bob".into() }));
    assert_eq!(kinds(&of_bob, &params, jobs()), [FaultKind::OwnRows]);
}

#[test]
fn no_condition_that_narrows_can_be_dropped_or_loosened() {
    let mut changed = 0;
    for dataset in Dataset::ALL {
        for filters in [Vec::new(), if dataset == Dataset::Logs { by_label("J1") } else { Vec::new() }] {
            let (select, params) = lowered(&query(dataset, filters, DAY), Some(job()));
            for at in 0..select.filters.len() {
                let Condition::In(left, bind) = select.filters[at].clone() else { continue };
                let mut dropped = select.clone();
                dropped.filters.remove(at);
                assert!(kinds(&dropped, &params, job()).contains(&FaultKind::OwnRows), "{}", emit(&dropped));
                let mut turned = select.clone();
                turned.filters[at] = Condition::NotIn(left, bind);
                assert!(kinds(&turned, &params, job()).contains(&FaultKind::OwnRows), "{}", emit(&turned));
                changed += 2;
            }
            let places = select.prewhere.iter().position(|condition| matches!(condition, Condition::PairIn(..)));
            if let Some(at) = places {
                let mut dropped = select.clone();
                dropped.prewhere.remove(at);
                assert!(kinds(&dropped, &params, job()).contains(&FaultKind::OwnRows), "{}", emit(&dropped));
                changed += 1;
            }
        }
    }
    assert!(changed >= 25, "{changed}");
}

#[test]
fn no_value_that_narrows_can_be_widened() {
    let mut changed = 0;
    for dataset in Dataset::ALL {
        let (select, params) = lowered(&query(dataset, Vec::new(), DAY), Some(job()));
        let ends = [Comparison::AtLeast, Comparison::Less]
            .map(|end| crate::check::rules::window_bind(&select, end).unwrap().index);
        for index in 1..params.len() {
            let wider = match params[index].value() {
                ParamValue::PairList(pairs) => {
                    ParamValue::PairList(pairs.iter().cloned().chain([pair("n1", "2")]).collect())
                }
                ParamValue::TextList(texts) if !texts.iter().any(|text| text.starts_with("DCGM")) => {
                    ParamValue::TextList(texts.iter().cloned().chain(["J2".to_owned()]).collect())
                }
                ParamValue::Time(_) if index == ends[0] => ParamValue::Time(at(DAY.0)),
                ParamValue::Time(_) if index == ends[1] => ParamValue::Time(at(DAY.1)),
                ParamValue::Text(_) => ParamValue::Text("host".to_owned()),
                ParamValue::TextList(_) | ParamValue::Time(_) | ParamValue::Number(_) => continue,
            };
            let mut params = params.clone();
            params[index] = Param::new(index, wider);
            assert_eq!(kinds(&select, &params, job()), [FaultKind::OwnRows], "{dataset} p{index}");
            changed += 1;
        }
    }
    assert!(changed >= 24, "{changed}");
}

#[test]
fn a_line_by_the_label_of_another_job_comes_from_the_own_places_only() {
    for id in ["J1", "J2"] {
        let (select, params) = lowered(&query(Dataset::Logs, by_label(id), DAY), Some(job()));
        let by_place = select.prewhere.iter().any(|condition| matches!(condition, Condition::PairIn(..)));
        assert_eq!(by_place, id == "J2", "{}", emit(&select));
        assert_eq!(kinds(&select, &params, job()), []);
    }
}

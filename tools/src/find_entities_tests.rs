use serde_json::{Value, json};
use sightline_model::{Cell, Dataset, Outcome};
use sightline_query::{Filter, Query};

use super::*;
use crate::testing::{context, labels, n, planned, read_out, run, s, t, text};

fn args(kind: &str, search: Option<&str>) -> Value {
    json!({ "kind": kind, "search": search, "from": text(0), "to": text(600) })
}

#[test]
fn the_plan_of_each_kind_was_looked_at() {
    let kinds = ["cluster", "node", "gpu", "job", "user", "service", "model", "pod", "rack", "metric", "event_kind"];
    let plans: Vec<(&str, Vec<Query>)> =
        kinds.into_iter().map(|kind| (kind, planned(&FindEntities, &args(kind, Some("n1"))))).collect();
    insta::assert_debug_snapshot!("plan_find_entities", plans);
}

fn node(name: &str, last: i64) -> Vec<Cell> {
    vec![s("c1"), s(name), n(100), t(0), t(last)]
}

#[test]
fn what_exists_is_listed_latest_seen_first() {
    let rows = |_: &Query| vec![node("n1", 500), node("n2", 590), node("n3", 30)];
    let (_, output) = run(&FindEntities, &args("node", None), rows).unwrap();
    assert_eq!(
        read_out(&output),
        vec![
            "3 nodes were seen in this window: node ⟨n2⟩, cluster ⟨c1⟩; node ⟨n1⟩, cluster ⟨c1⟩; node ⟨n3⟩, cluster ⟨c1⟩"
        ]
    );
    insta::assert_json_snapshot!("found_nodes", output.evidence[0].rows);
}

#[test]
fn a_limit_shortens_the_list_and_not_the_total() {
    let rows = |_: &Query| (0..9).map(|i| node(&format!("n{i}"), i)).collect();
    let mut asked = args("node", None);
    asked["limit"] = json!(2);
    let (_, output) = run(&FindEntities, &asked, rows).unwrap();
    let found = &output.evidence[0];
    assert_eq!((found.total, found.rows.len(), found.truncated), (9, 2, false));
}

#[test]
fn a_near_name_is_offered_from_what_the_asker_sees() {
    let searched = |q: &Query| {
        q.filters.iter().any(|f| matches!(f, Filter::Dim { matches, .. } if format!("{matches:?}").contains("Fold")))
    };
    let rows =
        |q: &Query| if searched(q) { Vec::new() } else { vec![node("atlas-n07", 500), node("borealis-x1", 590)] };
    let (all, output) = run(&FindEntities, &args("node", Some("atlas-n7")), rows).unwrap();
    assert_eq!((all.len(), output.outcome), (2, Some(Outcome::Clarify)));
    assert_eq!(output.choices.iter().map(|c| c.label.as_str()).collect::<Vec<_>>(), vec!["atlas-n07"]);
    assert_eq!(read_out(&output), vec!["no data: no such nodes were seen in this window; close to it are ⟨atlas-n07⟩"]);
    let (_, unlike) = run(&FindEntities, &args("node", Some("zz")), rows).unwrap();
    assert_eq!((unlike.outcome, unlike.choices.len()), (Some(Outcome::InsufficientData), 0));
}

#[test]
fn everyday_words_find_the_metrics_that_are_collected() {
    let rows = |_: &Query| {
        ["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK", "site_metric"]
            .map(|name| vec![s(name), n(100), t(0), t(500)])
            .to_vec()
    };
    let (all, output) = run(&FindEntities, &args("metric", Some("how hot")), rows).unwrap();
    assert_eq!(all.len(), 1);
    insta::assert_json_snapshot!("found_metrics", output.evidence[0].rows);
    let (_, by_part) = run(&FindEntities, &args("metric", Some("site_")), rows).unwrap();
    assert_eq!(by_part.evidence[0].total, 1);
}

#[test]
fn a_job_found_by_id_and_by_name_is_one() {
    let rows = |q: &Query| {
        assert_eq!(q.dataset, Dataset::Jobs);
        vec![vec![
            t(10),
            s("atlas"),
            s("c1"),
            s("J123"),
            s("llama"),
            s("ann"),
            s("training"),
            s("running"),
            t(0),
            Cell::Null,
            labels(&[]),
        ]]
    };
    let (all, output) = run(&FindEntities, &args("job", Some("j12")), rows).unwrap();
    assert_eq!((all.len(), output.evidence[0].total, output.evidence.len()), (2, 1, 2));
    insta::assert_json_snapshot!("found_job", output.evidence[0].rows);
    assert_eq!(
        read_out(&output),
        vec![
            "1 jobs were seen in this window: job ⟨J123⟩, cluster ⟨c1⟩",
            "job ⟨J123⟩, cluster ⟨c1⟩ began at 2026-05-03T12:00:10Z"
        ]
    );
}

#[test]
fn a_dataset_that_may_not_be_read_is_not_asked_for() {
    let none = std::collections::BTreeSet::new();
    let narrow = ToolContext { may_read: &none, ..context() };
    let step = crate::AnyTool::plan(&FindEntities, &args("node", None), &narrow, &[]).unwrap();
    let output = crate::AnyTool::interpret(&FindEntities, &args("node", None), &narrow, &[]).unwrap();
    assert_eq!((step, output.outcome), (Step::Done, Some(Outcome::InsufficientData)));
}

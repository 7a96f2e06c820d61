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
            "job ⟨J123⟩, named ⟨llama⟩, of user ⟨ann⟩, state ⟨running⟩, began at 2026-05-03T12:00:10Z"
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

fn asked(kind: &str, more: Value) -> Value {
    let mut asked = args(kind, None);
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asked
}

#[test]
fn labels_and_their_values_are_listed() {
    let keys = |q: &Query| {
        assert_eq!(q.dataset, Dataset::Logs);
        ["pod", "rack", "gpu_model"].map(|key| vec![s(key), n(7), t(0), t(50)]).into()
    };
    let (_, output) = run(&FindEntities, &asked("label", json!({ "dataset": "logs", "search": "GPU" })), keys).unwrap();
    assert_eq!(read_out(&output)[0], "1 labels were seen in this window: label value ⟨gpu_model⟩");
    assert_eq!(output.evidence[0].rows[0].fields["samples"], "7");
    let values =
        |_: &Query| vec![vec![s("n1"), s("pod-a"), n(7), t(0), t(50)], vec![s("n2"), s("pod-a"), n(1), t(0), t(40)]];
    let wanted = asked(
        "label_value",
        json!({ "label": "pod", "per": ["node"], "filters": [{ "dim": "rack", "op": "present" }] }),
    );
    let (all, output) = run(&FindEntities, &wanted, values).unwrap();
    insta::assert_debug_snapshot!("plan_label_value", all[0].query.query());
    assert_eq!((output.evidence[0].total, output.evidence[0].rows[1].entity["node"].as_str()), (2, "n2"));
    // A name that is near is looked for among the label's values.
    let near = |q: &Query| if q.filters.len() > 1 { Vec::new() } else { vec![vec![s("serving-7"), n(7), t(0), t(50)]] };
    let (_, output) =
        run(&FindEntities, &asked("label_value", json!({ "label": "pod", "search": "serving7" })), near).unwrap();
    assert_eq!(output.choices[0].label, "serving-7");
}

fn job(id: &str, state: &str, began: i64, ended: Option<i64>, gpus: Option<&str>) -> Vec<Cell> {
    let own: Vec<(&str, &str)> = gpus.map(|gpus| ("gpus", gpus)).into_iter().collect();
    let end = ended.map_or(Cell::Null, t);
    vec![
        t(began),
        s("atlas"),
        s("c1"),
        s(id),
        s("llama"),
        s("ann"),
        s("training"),
        s(state),
        t(began),
        end,
        labels(&own),
    ]
}

fn jobs(q: &Query) -> Vec<Vec<Cell>> {
    match q.dataset {
        Dataset::JobGpus => ["0", "1", "2"].map(|gpu| vec![s("c1"), s("J3"), s("n1"), s(gpu), n(1), t(0), t(0)]).into(),
        _ => vec![
            job("J1", "completed", 10, Some(110), Some("8")),
            job("J2", "completed", 20, Some(320), Some("16")),
            job("J3", "failed", 30, Some(90), None),
            job("J4", "running", -50, None, None),
        ],
    }
}

#[test]
fn jobs_are_counted_with_their_gpus_and_durations() {
    let (all, output) = run(&FindEntities, &asked("job", json!({ "count_by": ["state"] })), jobs).unwrap();
    assert_eq!(all.iter().map(|f| f.query.dataset()).collect::<Vec<_>>(), [Dataset::Jobs, Dataset::JobGpus]);
    insta::assert_snapshot!("jobs_counted", read_out(&output).join("\n"));
    let column = |piece: usize| -> Vec<_> {
        output.evidence[piece].rows.iter().map(|r| (r.entity["state"].as_str(), r.value.unwrap())).collect()
    };
    assert_eq!(column(0), [("completed", 2.0), ("failed", 1.0), ("running", 1.0)]);
    assert_eq!(column(1), [("completed", 24.0), ("failed", 3.0)], "a job whose GPUs nobody tells is left out");
    assert_eq!(column(2), [("completed", 200.0), ("failed", 60.0)], "a job that runs has no duration yet");
    assert!(output.data_health[0].contains("how many GPUs"));
    let (_, started) =
        run(&FindEntities, &asked("job", json!({ "count_by": ["cluster"], "started": true })), jobs).unwrap();
    assert_eq!(started.evidence[0].rows[0].value, Some(3.0));
    let (_, listed) = run(&FindEntities, &asked("job", json!({})), jobs).unwrap();
    let ran: Vec<_> = listed.evidence[0].rows.iter().map(|r| r.value).collect();
    assert_eq!(ran, [Some(60.0), Some(300.0), Some(100.0), None]);
}

fn gpus_of(filter: &Filter) -> Option<&[String]> {
    match filter {
        Filter::Dim { dim: sightline_model::Dim::JobId, matches: sightline_query::Match::In(ids) } => Some(ids),
        _ => None,
    }
}

#[test]
fn only_the_gpus_of_the_jobs_found_are_read() {
    let held = |more: Value, jobs: &dyn Fn(&Query) -> Vec<Vec<Cell>>| {
        let (all, output) = run(&FindEntities, &asked("job", more), jobs).unwrap();
        (all.into_iter().find(|f| f.query.dataset() == Dataset::JobGpus).map(|f| f.query.query().clone()), output)
    };
    let (query, _) = held(json!({ "count_by": ["state"] }), &jobs);
    assert_eq!(query.unwrap().filters.iter().find_map(gpus_of).unwrap(), ["J3", "J4"], "J1 and J2 say it themselves");
    // A job that is not counted is not asked for either.
    let (query, _) = held(json!({ "count_by": ["state"], "started": true }), &jobs);
    assert_eq!(query.unwrap().filters.iter().find_map(gpus_of).unwrap(), ["J3"]);
    let many = |number: i64| {
        move |q: &Query| match q.dataset {
            Dataset::JobGpus => Vec::new(),
            _ => (0..number).map(|i| job(&format!("J{i}"), "running", i, None, None)).collect(),
        }
    };
    let (query, _) = held(json!({ "count_by": ["state"] }), &many(1000));
    assert_eq!(query.unwrap().filters.iter().find_map(gpus_of).map(<[String]>::len), Some(1000));
    let (query, _) = held(json!({ "count_by": ["state"] }), &many(1001));
    assert_eq!(query.unwrap().filters, [], "a list that long is no filter");
}

#[test]
fn jobs_of_one_number_in_two_clusters_hold_gpus_of_their_own() {
    let rows = |q: &Query| match q.dataset {
        Dataset::JobGpus => [("c1", "0"), ("c2", "0"), ("c2", "1")]
            .map(|(cluster, gpu)| vec![s(cluster), s("J1"), s("n1"), s(gpu), n(1), t(0), t(0)])
            .into(),
        _ => ["c1", "c2"]
            .map(|cluster| {
                let mut row = job("J1", "running", 10, None, None);
                row[2] = s(cluster);
                row
            })
            .into(),
    };
    let (_, output) = run(&FindEntities, &asked("job", json!({ "count_by": ["cluster"] })), rows).unwrap();
    let gpus: Vec<_> =
        output.evidence[1].rows.iter().map(|r| (r.entity["cluster"].as_str(), r.value.unwrap())).collect();
    assert_eq!(gpus, [("c1", 1.0), ("c2", 2.0)]);
}

#[test]
fn jobs_are_never_counted_from_a_cut_list() {
    let wanted = asked("job", json!({ "count_by": ["state"] }));
    let query = planned(&FindEntities, &wanted).remove(0);
    let mut read = crate::testing::fetched(0, &query, jobs(&query));
    read.result.truncated = true;
    let told = crate::AnyTool::interpret(&FindEntities, &wanted, &context(), &[read]);
    assert!(matches!(told, Err(ToolError::Cut { .. })));
}

#[test]
fn arguments_of_another_kind_are_refused() {
    let bad = [
        ("node", json!({ "label": "pod" })),
        ("node", json!({ "dataset": "logs" })),
        ("node", json!({ "per": ["cluster"] })),
        ("node", json!({ "count_by": ["cluster"] })),
        ("node", json!({ "started": true })),
        ("label_value", json!({})),
        ("label", json!({ "dataset": "job_gpus" })),
        ("node", json!({ "filters": [{ "dim": "rack", "op": "gt", "values": ["3"] }] })),
    ];
    let told = bad.map(|(kind, more)| {
        crate::AnyTool::plan(&FindEntities, &asked(kind, more.clone()), &context(), &[])
            .map_or_else(|error| error.to_string(), |_| format!("{kind} {more} was taken"))
    });
    insta::assert_snapshot!("find_entities_bad_arguments", told.join("\n"));
}

use serde_json::json;
use sightline_model::{Outcome, Role};
use sightline_query::Catalogue;
use sightline_query::catalogue::Metric;

use super::super::lexicon::Lexicon;
use super::super::plan;
use super::super::reading::read;
use super::*;
use crate::ports::{NoOutput, ToolCall};

const AS_OF: &str = "2026-05-04T10:00:00Z";

fn ask(text: &str) -> Ask {
    Ask {
        text: text.to_owned(),
        before: Vec::new(),
        as_of: AS_OF.parse().unwrap(),
        time_zone: "UTC".to_owned(),
        principal: sightline_policies::bundle_principal(Role::Operator, "atlas"),
    }
}

fn turn(text: &str, gathered: &[Gathered]) -> Turn {
    let (ask, zone) = (ask(text), TimeZone::UTC);
    let catalogue = Catalogue::builtin().unwrap();
    let lexicon = Lexicon::builtin(catalogue.metrics().flat_map(Metric::words)).unwrap();
    let reading = read(text, &lexicon, &catalogue, ask.as_of, &zone).unwrap();
    let stage = Stage { ask: &ask, zone: &zone, reading: &reading, catalogue: &catalogue, lexicon: &lexicon, gathered };
    plan::next(&stage)
}

fn calls(turn: Turn) -> Vec<ToolCall> {
    match turn {
        Turn::Calls(calls) => calls,
        Turn::Draft(draft) => panic!("a draft: {draft:?}"),
    }
}

fn draft(turn: Turn) -> crate::ports::Draft {
    match turn {
        Turn::Draft(draft) => *draft,
        Turn::Calls(calls) => panic!("calls: {calls:?}"),
    }
}

/// What a look-up of a kind brought: these names.
fn found(call: &ToolCall, key: &str, names: &[&str]) -> Gathered {
    let rows: Vec<_> = names.iter().map(|name| json!({ "entity": { key: name } })).collect();
    let evidence = json!({
        "id": "E1", "tool": "find_entities", "dataset": "metrics", "metric": null, "canonical_metric": null, "labels": {},
        "aggregation": null, "unit": "none", "from": AS_OF, "to": AS_OF, "step_seconds": null, "points": 0, "stats": null, "rows": rows,
        "coverage": { "expected": null, "seen": 0, "first": null, "last": null, "gaps": [] }, "total": names.len(),
        "returned": names.len(), "truncated": false, "read": { "rows": 1, "bytes": 1, "wall_ms": 1.0 }, "query_id": null, "sql": null,
        "params": {}
    });
    let output = ToolOutput { evidence: vec![serde_json::from_value(evidence).unwrap()], ..ToolOutput::default() };
    Gathered { call: call.clone(), outcome: Ok(output) }
}

fn told(call: &ToolCall, outcome: Outcome) -> Gathered {
    Gathered { call: call.clone(), outcome: Ok(ToolOutput { outcome: Some(outcome), ..ToolOutput::default() }) }
}

/// Answers the first turn of a question about a service with these services and models.
fn listed(text: &str, services: &[&str], models: &[&str]) -> Vec<Gathered> {
    let first = calls(turn(text, &[]));
    let names = |call: &ToolCall| match call.arguments["kind"].as_str().unwrap() {
        "service" => found(call, "service", services),
        "model" => found(call, "model", models),
        _ => found(call, "job", &[]),
    };
    first.iter().map(names).collect()
}

#[test]
fn a_service_is_found_by_what_is_recorded_and_asked_about_from_shortly_before_the_instant() {
    let text = "PetSite's availability dropped at about 02:58 UTC. Which component is the root cause?";
    let gathered = listed(text, &["PetSearch_AWS::ECS::Fargate", "PetSite", "pet"], &[]);
    let next = calls(turn(text, &gathered));
    assert_eq!(next[0].tool, "service_correlation");
    assert_eq!(next[0].arguments["service"], "PetSite");
    assert_eq!(next[0].arguments["from"], "2026-05-04T02:48:00Z");
    assert_eq!(next[0].arguments["to"], "2026-05-04T10:00:00Z");
    let gathered = [gathered, vec![told(&next[0], Outcome::Answered)]].concat();
    let draft = draft(turn(text, &gathered));
    assert_eq!(draft.outcome, Some(Outcome::Answered));
    assert_eq!(
        draft.time_range.unwrap().how,
        "from shortly before “at about 02:58 UTC” until now (2026-05-04 02:48-10:00 UTC)"
    );
}

#[test]
fn a_model_is_asked_about_as_the_service_it_is() {
    let text = "why does model qwen-72b answer slowly?";
    let gathered = listed(text, &["gateway"], &["qwen-72b"]);
    let next = calls(turn(text, &gathered));
    assert_eq!((next[0].tool.as_str(), &next[0].arguments["service"]), ("service_correlation", &json!("qwen-72b")));
    assert_eq!(next[0].arguments["from"], "2026-05-04T09:00:00Z", "the last hour where no time was named");
}

#[test]
fn a_name_that_nothing_has_is_looked_for_in_the_days_before_and_near_ones_are_offered() {
    let text = "Why is service chatt slow?";
    let gathered = listed(text, &["chat", "code"], &[]);
    let searches = calls(turn(text, &gathered));
    assert!(searches.iter().all(|call| call.arguments["search"] == "chatt"), "{searches:?}");
    assert_eq!(searches[0].arguments["from"], "2026-05-02T09:00:00Z");
    let near =
        [gathered.clone(), vec![found(&searches[0], "service", &["chat"]), found(&searches[1], "model", &[])]].concat();
    let offered = draft(turn(text, &near));
    assert_eq!(offered.outcome, Some(Outcome::Clarify));
    assert_eq!(offered.choices[0].question, "Why is service chat slow?");
    let nothing = [gathered, vec![found(&searches[0], "service", &[]), found(&searches[1], "model", &[])]].concat();
    let unknown = draft(turn(text, &nothing));
    assert_eq!(unknown.outcome, Some(Outcome::InsufficientData));
    assert!(unknown.plain_headline.contains("`chatt`") && unknown.suggestions.len() == 2, "{unknown:?}");
}

#[test]
fn the_only_service_is_meant_where_none_is_named_and_of_several_all_unless_one_is_an_engine() {
    let text = "Why are requests slow?";
    let next = calls(turn(text, &listed(text, &["chat"], &[])));
    assert_eq!(next[0].arguments["service"], "chat");
    let all = calls(turn(text, &listed(text, &["front", "cart"], &[])));
    assert_eq!((all[0].tool.as_str(), all[0].arguments.get("service")), ("service_correlation", None));
    let which = draft(turn(text, &listed(text, &["chat", "code"], &["llama-70b", "qwen-72b"])));
    assert_eq!((which.outcome, which.choices.len()), (Some(Outcome::Clarify), 4));
    let none = draft(turn(text, &listed(text, &[], &[])));
    assert_eq!(none.outcome, Some(Outcome::InsufficientData));
}

#[test]
fn an_ordinary_word_that_names_nothing_is_the_whole_and_a_name_is_not() {
    let ask = |text: &str, services: &[&str]| {
        let gathered = listed(text, services, &[]);
        let searches = calls(turn(text, &gathered));
        let nothing = searches.iter().map(|call| {
            let kind = call.arguments["kind"].as_str().unwrap();
            found(call, if kind == "model" { "model" } else { "service" }, &[])
        });
        let gathered = [gathered, nothing.collect()].concat();
        (turn(text, &gathered), gathered)
    };
    let text = "Online Boutique is slow since 05:15. Which service is the root cause?";
    let (next, gathered) = ask(text, &["front", "cart"]);
    let next = calls(next);
    assert_eq!((next[0].tool.as_str(), next[0].arguments.get("service")), ("service_correlation", None));
    let gathered = [gathered, vec![told(&next[0], Outcome::Answered)]].concat();
    assert!(draft(turn(text, &gathered)).data_health[0].contains("all of them"));
    let (named, _) = ask("What is the root cause of the latency of cart-v9?", &["front", "cart"]);
    assert_eq!(draft(named).outcome, Some(Outcome::InsufficientData));
}

#[test]
fn a_bare_name_is_a_service_or_else_a_job() {
    let text = "what is wrong with 80609?";
    let first = calls(turn(text, &[]));
    let kinds: Vec<&str> = first.iter().map(|call| call.arguments["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["service", "model", "job", "node"]);
    let job = [
        found(&first[0], "service", &["chat"]),
        found(&first[1], "model", &[]),
        found(&first[2], "job", &["80609", "180609"]),
    ];
    let next = calls(turn(text, &job));
    assert_eq!((next[0].tool.as_str(), &next[0].arguments["job"]), ("job_correlation", &json!("80609")));
    // A name that looks like a job's is looked for among jobs first.
    let text = "why is llama-70b slow";
    let first = calls(turn(text, &[]));
    assert_eq!(first[0].arguments["kind"], "job");
    let none = vec![found(&first[0], "job", &[])];
    let second = calls(turn(text, &none));
    assert_eq!(second.len(), 3, "{second:?}");
    let there = [none, vec![found(&second[0], "service", &[]), found(&second[1], "model", &["llama-70b"])]].concat();
    // A model that no service goes by may be one that a job trains.
    let third = calls(turn(text, &there));
    assert_eq!(third[0].arguments["filters"][0], json!({ "dim": "model", "values": ["llama-70b"] }));
    let served = [there.clone(), vec![found(&third[0], "job", &[])]].concat();
    assert_eq!(calls(turn(text, &served))[0].tool, "service_correlation");
    let trained = [there, vec![found(&third[0], "job", &["J9"])]].concat();
    assert_eq!(calls(turn(text, &trained))[0].arguments["job"], json!("J9"));
}

#[test]
fn a_list_that_cannot_be_read_does_not_stop_a_question_that_names_the_service() {
    let text = "Why is service chat slow?";
    let refused = |call: &ToolCall| Gathered {
        call: call.clone(),
        outcome: Err(NoOutput { for_people: "too many rows".to_owned(), for_model: String::new() }),
    };
    let first = calls(turn(text, &[]));
    let gathered: Vec<Gathered> = first.iter().map(refused).collect();
    assert_eq!(calls(turn(text, &gathered))[0].tool, "service_correlation");
    let text = "Why is Checkout slow?";
    let gathered: Vec<Gathered> = calls(turn(text, &[])).iter().map(refused).collect();
    assert_eq!(draft(turn(text, &gathered)).outcome, Some(Outcome::Refused));
}

#[test]
fn a_node_is_seen_through_the_jobs_on_it_and_without_any_through_its_kernel_log() {
    let text = "what is wrong with node n07 in cluster c1?";
    let first = calls(turn(text, &[]));
    assert_eq!(first[0].arguments["filters"], json!([{ "dim": "cluster", "values": ["c1"] }]));
    let without = vec![found(&first[0], "job", &[])];
    let logs = calls(turn(text, &without));
    assert_eq!((logs[0].tool.as_str(), &logs[0].arguments["contains"]), ("search_logs", &json!("Xid")));
    let with = vec![found(&first[0], "job", &["J1", "J2"])];
    let jobs = calls(turn(text, &with));
    assert_eq!(jobs.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["job_correlation"; 2]);
    let there = |call: &ToolCall, node: &str, outcome: Outcome| {
        let mut gathered = found(call, "node", &[node]);
        if let Ok(output) = &mut gathered.outcome {
            output.outcome = Some(outcome);
        }
        gathered
    };
    let elsewhere =
        [with.clone(), vec![there(&jobs[0], "n01", Outcome::Answered), there(&jobs[1], "n07", Outcome::NoFault)]];
    assert_eq!(draft(turn(text, &elsewhere.concat())).outcome, Some(Outcome::NoFault));
    let nowhere = [with, vec![there(&jobs[0], "n01", Outcome::Answered), there(&jobs[1], "n02", Outcome::NoFault)]];
    assert_eq!(draft(turn(text, &nowhere.concat())).outcome, Some(Outcome::InsufficientData));
}

#[test]
fn a_job_asked_about_since_an_instant_is_looked_at_from_shortly_before_it() {
    let text = "Why did job J123 hang since 08:00?";
    let first = calls(turn(text, &[]));
    let next = calls(turn(text, &[found(&first[0], "job", &["J123"])]));
    assert_eq!(
        (next[0].tool.as_str(), &next[0].arguments["from"]),
        ("job_correlation", &json!("2026-05-04T07:50:00Z"))
    );
    let text = "Why was job J123 slow?";
    let first = calls(turn(text, &[]));
    let next = calls(turn(text, &[found(&first[0], "job", &["J123"])]));
    assert_eq!(next[0].arguments, json!({ "job": "J123" }), "the job's own time");
}

#[test]
fn a_name_that_is_a_nodes_is_asked_about_as_the_node() {
    let text = "gpus on a100-62 look frozen, whats up";
    let first = calls(turn(text, &[]));
    let answered = |call: &ToolCall| match call.arguments["kind"].as_str().unwrap() {
        "node" => found(call, "node", &["a100-62"]),
        kind => found(call, if kind == "model" { "model" } else { "service" }, &[]),
    };
    let mut gathered: Vec<Gathered> = first.iter().map(answered).collect();
    let jobs = calls(turn(text, &gathered));
    assert_eq!((jobs[0].tool.as_str(), &jobs[0].arguments["kind"]), ("find_entities", &json!("job")));
    gathered.push(found(&jobs[0], "job", &["J1"]));
    let next = calls(turn(text, &gathered));
    assert_eq!((next[0].tool.as_str(), &next[0].arguments["job"]), ("job_correlation", &json!("J1")));
    let mut there = found(&next[0], "node", &["a100-62"]);
    if let Ok(output) = &mut there.outcome {
        output.outcome = Some(Outcome::NoFault);
    }
    gathered.push(there);
    assert_eq!(draft(turn(text, &gathered)).outcome, Some(Outcome::NoFault));
}

#[test]
fn a_word_that_names_nothing_means_the_only_engine_and_asks_which_of_several() {
    let text = "why is the llm api slow";
    let searched = |services: &[&str]| {
        let gathered = listed(text, services, &["llama-70b"]);
        let searches = calls(turn(text, &gathered));
        [gathered, searches.iter().map(|call| found(call, "service", &[])).collect()].concat()
    };
    let next = calls(turn(text, &searched(&["chat-api"])));
    assert_eq!((next[0].tool.as_str(), &next[0].arguments["service"]), ("service_correlation", &json!("chat-api")));
    assert_eq!(draft(turn(text, &searched(&["chat-api", "code-api"]))).outcome, Some(Outcome::Clarify));
}

#[test]
fn a_bare_word_that_names_nothing_is_the_name_of_something_that_is_not_there() {
    let text = "why is recommender slow?";
    let gathered = listed(text, &["checkout", "cart"], &[]);
    let searches = calls(turn(text, &gathered));
    let found = searches.iter().map(|call| found(call, "service", &[])).collect();
    assert_eq!(draft(turn(text, &[gathered, found].concat())).outcome, Some(Outcome::InsufficientData));
}

//! Every fault of a metric file is found, and worded for whoever has to mend it.

use std::collections::BTreeMap;

use super::{Catalogue, Resolution};

/// A faultless metric with these lines added or changed.
fn metric(id: &str, lines: &[(&str, &str)]) -> String {
    let quoted = format!("\"{id}\"");
    let stored = format!("[\"{}\"]", id.to_uppercase());
    let mut keys: BTreeMap<&str, String> = BTreeMap::from([
        ("id", quoted),
        ("kind", "\"gauge\"".to_owned()),
        ("unit", "\"celsius\"".to_owned()),
        ("entity", "\"gpu\"".to_owned()),
        ("stored", stored),
        ("meaning", "\"Heat.\"".to_owned()),
        ("good_for", "\"Cooling.\"".to_owned()),
        ("misleads", "\"Idle is cool.\"".to_owned()),
    ]);
    for (key, value) in lines {
        keys.insert(key, (*value).to_owned());
    }
    let body: Vec<String> = keys
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("[[metric]]\n{}\n", body.join("\n"))
}

fn faults(files: &[(&str, &str)]) -> String {
    Catalogue::from_toml(files).map(|_| "no fault".to_owned()).unwrap_or_else(|error| error.to_string())
}

#[test]
fn a_faultless_file_loads() {
    assert_eq!(faults(&[("a.toml", &metric("heat", &[]))]), "no fault");
}

#[test]
fn all_faults_of_all_files_are_reported_at_once() {
    let first = [
        metric("heat", &[("dcgm_field", "150"), ("words", "[\"how hot\"]")]),
        metric("cold", &[("kind", "\"gague\""), ("unit", "\"kelvin\""), ("entity", "\"rackk\"")]),
        metric("BadName", &[]),
        metric(
            "empty",
            &[("meaning", "\"  \""), ("good_for", ""), ("misleads", ""), ("stored", "[]"), ("collection", "\"\"")],
        ),
        metric("worded", &[("words", "[\"How Hot\", \"two  spaces\", \"\"]")]),
        metric("nameless", &[("id", "")]),
    ]
    .join("\n");
    let second = [
        metric("heat", &[("stored", "[\"OTHER_NAME\"]")]),
        metric("warmth", &[("stored", "[\"heat\"]")]),
        metric("heat_two", &[("stored", "[\"Heat_Three\", \"SECOND\"]"), ("dcgm_field", "150")]),
        metric("heat_three", &[("stored", "[\"second\"]")]),
        metric("twin", &[("same_as", "\"heat\"")]),
        metric("orphan", &[("same_as", "\"nobody\""), ("unit", "\"watts\"")]),
    ]
    .join("\n");
    let third = "[[metric]]\nid = \"broken\"\ncolour = \"red\"\n";
    let fourth = "[[metric]\n";
    insta::assert_snapshot!(
        "faults",
        faults(&[("first.toml", &first), ("second.toml", &second), ("third.toml", third), ("fourth.toml", fourth)])
    );
}

#[test]
fn a_name_is_taken_whatever_the_case_of_its_letters() {
    let files = [metric("one", &[("stored", "[\"Name\"]")]), metric("two", &[("stored", "[\"nAME\"]")])].join("\n");
    assert_eq!(
        faults(&[("a.toml", &files)]),
        "a.toml: `two`: the stored name `nAME` belongs to `one` (a.toml) already; list it once"
    );
}

#[test]
fn colons_are_known_as_underscores_too_and_the_id_comes_last() {
    let text = metric("waiting", &[("stored", "[\"vllm:waiting\", \"queue\"]")]);
    let catalogue = Catalogue::from_toml(&[("a.toml", &text)]).unwrap();
    let stored: Vec<&str> = catalogue.get("waiting").unwrap().stored().collect();
    assert_eq!(stored, ["vllm:waiting", "queue", "vllm_waiting", "waiting"]);
}

#[test]
fn words_that_two_metrics_share_are_ambiguous() {
    let text = [metric("one", &[("words", "[\"speed\"]")]), metric("two", &[("words", "[\"speed\"]")])].join("\n");
    let catalogue = Catalogue::from_toml(&[("a.toml", &text)]).unwrap();
    let Resolution::Ambiguous(meant) = catalogue.resolve("Speed") else { panic!("not ambiguous") };
    assert_eq!(meant.iter().map(|m| m.id()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(catalogue.ambiguous_words(), BTreeMap::from([("speed", vec!["one", "two"])]));
}

#[test]
fn a_bundle_adds_names_and_takes_them_over() {
    let text = [metric("one", &[("stored", "[\"SHARED\", \"OWN\"]")]), metric("two", &[])].join("\n");
    let catalogue = Catalogue::from_toml(&[("a.toml", &text)]).unwrap();
    let aliases = BTreeMap::from([("two".to_owned(), vec!["shared".to_owned(), "fresh".to_owned()])]);
    let catalogue = catalogue.with_aliases("bundle.toml", &aliases).unwrap();
    let stored = |id: &str| catalogue.get(id).unwrap().stored().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(stored("one"), ["OWN", "one"]);
    assert_eq!(stored("two"), ["fresh", "shared", "TWO"]);
    assert_eq!(catalogue.by_stored("Shared").map(|m| m.id()), Some("two"));
}

#[test]
fn aliases_of_unknown_metrics_and_of_ids_are_refused_with_a_hint() {
    let text = [metric("gpu_heat", &[]), metric("two", &[])].join("\n");
    let catalogue = Catalogue::from_toml(&[("a.toml", &text)]).unwrap();
    let aliases = BTreeMap::from([
        ("gpu_haet".to_owned(), vec!["x".to_owned()]),
        ("qqqq".to_owned(), vec!["x".to_owned()]),
        ("two".to_owned(), vec!["gpu_heat".to_owned(), " ".to_owned()]),
    ]);
    insta::assert_snapshot!("alias_faults", catalogue.with_aliases("bundle.toml", &aliases).unwrap_err().to_string());
}

#[test]
fn a_catalogue_without_a_metric_knows_it_by_no_name_and_keeps_the_rest() {
    let whole = Catalogue::builtin().unwrap();
    let less = whole.without(&["sm_clock".to_owned()].into());
    assert_eq!(less.metrics().count(), whole.metrics().count() - 1);
    assert!(less.get("sm_clock").is_none() && less.by_stored("DCGM_FI_DEV_SM_CLOCK").is_none());
    assert_eq!(less.get("gpu_temperature"), whole.get("gpu_temperature"));
}

//! Which labels name what.

use std::collections::BTreeMap;

use super::LabelAliases;

type Labels = BTreeMap<String, String>;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn builtin() -> LabelAliases {
    LabelAliases::builtin().unwrap_or_else(|error| panic!("{error}"))
}

/// What canonicalising adds or changes.
fn added(before: &[(&str, &str)]) -> Labels {
    let before = labels(before);
    builtin().canonicalise(&before).into_iter().filter(|(key, value)| before.get(key) != Some(value)).collect()
}

#[test]
fn a_dcgm_series_is_recognised_under_old_and_new_labels() {
    let old = [("gpu", "3"), ("UUID", "GPU-1"), ("device", "nvidia3"), ("modelName", "H100"), ("Hostname", "n07")];
    let expected = labels(&[("gpu_uuid", "GPU-1"), ("gpu_model", "H100"), ("node", "n07")]);
    assert_eq!(added(&old), expected);
    let new = [("gpu", "3"), ("uuid", "GPU-1"), ("device", "nvidia3"), ("modelName", "H100"), ("hostname", "n07")];
    assert_eq!(added(&new), expected);
}

#[test]
fn originals_stay() {
    let before = labels(&[("Hostname", "n07"), ("gpu", "3")]);
    let after = builtin().canonicalise(&before);
    assert!(before.iter().all(|(key, value)| after.get(key) == Some(value)));
}

#[test]
fn an_address_is_a_node_without_its_port() {
    let cases = [
        ("n07:9100", Some("n07")),
        ("n07", Some("n07")),
        ("10.0.0.7:9100", Some("10.0.0.7")),
        ("[fd00::7]:9100", Some("fd00::7")),
        ("fd00::7", Some("fd00::7")),
        ("http://n07:9100/metrics", None),
        (":9100", None),
    ];
    for (instance, node) in cases {
        assert_eq!(added(&[("instance", instance)]).get("node").map(String::as_str), node, "{instance}");
    }
}

#[test]
fn a_device_is_a_gpu_only_when_it_is_an_nvidia_device() {
    assert_eq!(added(&[("device", "nvidia7")]), labels(&[("gpu", "7")]));
    for device in ["sda", "mlx5_0", "eth0", "nvidia", "nvidia-uvm", "nvidia3a"] {
        assert_eq!(added(&[("device", device)]), Labels::new(), "{device}");
    }
}

#[test]
fn the_scrape_job_is_no_job() {
    assert_eq!(added(&[("job", "dcgm-exporter")]), labels(&[("scraped_job", "dcgm-exporter")]));
    let after = builtin().canonicalise(&labels(&[("job", "dcgm-exporter")]));
    assert_eq!(after.get("job"), None);
    assert_eq!(
        added(&[("job", "dcgm-exporter"), ("hpc_job", "J123")]),
        labels(&[("job", "J123"), ("scraped_job", "dcgm-exporter")])
    );
}

#[test]
fn the_job_of_an_event_is_a_job() {
    let event = labels(&[("job", "J123"), ("node", "n07")]);
    assert_eq!(builtin().canonicalise_written(&event), event);
}

#[test]
fn the_workload_s_pod_goes_before_the_exporter_s() {
    assert_eq!(
        added(&[("pod", "dcgm-exporter-x"), ("exported_pod", "train-0")]),
        labels(&[("pod", "train-0"), ("scraped_pod", "dcgm-exporter-x")])
    );
}

#[test]
fn a_served_model_and_a_gpu_model_are_told_apart() {
    assert_eq!(added(&[("model_name", "llama")]), labels(&[("model", "llama")]));
    assert_eq!(added(&[("model_name", "H100"), ("nvlink", "4")]), labels(&[("gpu_model", "H100")]));
    assert_eq!(added(&[("modelName", "H100")]), labels(&[("gpu_model", "H100")]));
}

#[test]
fn an_empty_label_is_an_absent_one() {
    assert_eq!(added(&[("Hostname", ""), ("hostname", "n07")]), labels(&[("node", "n07")]));
    assert_eq!(added(&[("pod", "")]), Labels::new());
}

#[test]
fn no_workload_chooses_its_tenant_or_cluster() {
    let set_by_workload =
        [("exported_tenant", "borealis"), ("exported_cluster", "b"), ("cluster_name", "b"), ("tenant_id", "b")];
    assert_eq!(added(&set_by_workload), Labels::new());
}

#[test]
fn canonicalising_twice_changes_nothing_more() {
    let before = labels(&[
        ("job", "node"),
        ("exported_pod", "a"),
        ("pod", "b"),
        ("instance", "n07:9100"),
        ("device", "nvidia1"),
    ]);
    let once = builtin().canonicalise(&before);
    assert_eq!(builtin().canonicalise(&once), once);
}

#[test]
fn a_bundle_s_spellings_go_first_and_may_add_a_label() {
    let extra =
        BTreeMap::from([("node".to_owned(), vec!["machine".to_owned()]), ("zone".to_owned(), vec!["az".to_owned()])]);
    let after =
        builtin().with_extra(&extra).canonicalise(&labels(&[("machine", "m1"), ("Hostname", "n07"), ("az", "z1")]));
    assert_eq!(after, labels(&[("machine", "m1"), ("Hostname", "n07"), ("az", "z1"), ("node", "m1"), ("zone", "z1")]));
}

#[test]
fn all_faults_of_a_label_file_are_reported_at_once() {
    let text = r#"
[[label]]
canonical = "node"
stored = ["host", { name = "device", form = "after_prefix" }, { name = "x", form = "upside_down" }]

[[label]]
canonical = "machine"
stored = ["host", { name = "y", prefix = "z" }]

[[label]]
canonical = "node"
stored = []

[[label]]
stored = ["lonely"]
"#;
    let faults = LabelAliases::from_toml("labels.toml", text).unwrap_err().to_string();
    let broken =
        LabelAliases::from_toml("labels.toml", "[[label]]\ncanonical = \"a\"\nstored = [7]\n").unwrap_err().to_string();
    insta::assert_snapshot!("label_faults", format!("{faults}\n--\n{broken}"));
}

#[test]
fn the_canonical_labels() {
    let aliases = builtin();
    let names: Vec<&str> = aliases.canonical().collect();
    assert_eq!(
        names,
        [
            "tenant",
            "cluster",
            "node",
            "gpu",
            "gpu_uuid",
            "gpu_model",
            "mig_instance",
            "driver_version",
            "job",
            "rank",
            "model",
            "service",
            "pod",
            "container",
            "namespace",
            "user",
            "rack"
        ]
    );
}

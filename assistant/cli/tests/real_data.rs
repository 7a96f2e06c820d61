//! Files recorded by others: bundles of a web shop, kernel logs of GPU nodes. Skipped where they are not at hand.

#![cfg(test)]

mod harness;

use std::path::{Path, PathBuf};

use harness::{Lab, answer};
use serde_json::Value;
use sightline_engine::{KernelLogSource, read_kernel_log};
use sightline_model::rows::{Labels, Rows};

/// The folder of recorded files, beside the work tree.
fn recorded(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

fn hold_verified(answer: &Value) {
    let verification = &answer["verification"];
    assert_eq!(verification["checked"], verification["passed"], "{answer}");
    assert!(verification["checked"].as_u64().unwrap() > 0, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_shop_bundle_loads_and_its_metrics_can_be_ranged_and_ranked() {
    let Some(folder) = recorded("petshop") else { return };
    let lab = Lab::start();
    let mut bundles: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    bundles.sort();
    assert!(!bundles.is_empty());
    for bundle in &bundles {
        let range = lab.ask(
            bundle,
            &["--as", "operator@atlas"],
            "what was service_latency_p95_seconds in the last 30 minutes?",
        );
        assert_eq!(range["outcome"], "answered", "{range}");
        assert_eq!(range["evidence"][0]["metric"], "service_latency_p95_seconds");
        assert!(range["evidence"][0]["points"].as_u64().unwrap() > 0);
        // Recorded every five minutes, all services together: that is no gap.
        let coverage = &range["evidence"][0]["coverage"];
        let seen = coverage["seen"].as_u64().unwrap() as f64;
        assert!(seen > 0.5 * coverage["expected"].as_u64().unwrap() as f64, "{coverage}");
        hold_verified(&range);

        let ranked = lab.ask(
            bundle,
            &["--as", "operator@atlas"],
            "top 3 services by service_latency_p95_seconds in the last 30 minutes",
        );
        assert_eq!(ranked["outcome"], "answered", "{ranked}");
        let rows = ranked["evidence"][0]["rows"].as_array().unwrap();
        assert!(rows.len() >= 3 && rows.iter().take(3).all(|row| row["entity"]["service"].is_string()), "{ranked}");
        let values: Vec<f64> = rows.iter().take(3).map(|row| row["value"].as_f64().unwrap()).collect();
        assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
        hold_verified(&ranked);
    }
    // Loaded once each, whatever was asked.
    let listed = lab.run(&["incident", "list"]);
    assert_eq!(
        String::from_utf8(listed.stdout).unwrap().lines().filter(|line| !line.starts_with(' ')).count(),
        bundles.len()
    );
}

fn kernel_rows(folder: &Path, file: &str, node: &str) -> Rows {
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let labels: Labels = [("tenant", "atlas"), ("cluster", "dc1"), ("node", node)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let source = KernelLogSource {
        labels,
        boot: "2025-01-20T00:00:00Z".parse().unwrap(),
        read_at: "2025-01-21T05:00:00Z".parse().unwrap(),
    };
    Rows { logs: read_kernel_log(&text, &source), ..Rows::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn xids_of_recorded_kernel_logs_are_found_and_decoded() {
    let Some(folder) = recorded("kernel-logs") else { return };
    let lab = Lab::start();
    for (file, node, as_of, expected, origins) in [
        // ISO times in the log itself.
        (
            "xid13-xid43-and-oom.log",
            "n13",
            "2025-01-21T05:00:00Z",
            &["13", "43"][..],
            &["the others follow from Xid 13 of the GPU at 0000:38:00"][..],
        ),
        // Seconds since boot: 6781741 of them are 78 days.
        ("xid79-sxid20034.log", "n79", "2025-04-08T12:30:00Z", &["79"][..], &["bus address 0000:91:00"][..]),
        // Seconds since boot, two days.
        (
            "nvlink5-xid149-xid154.log",
            "n149",
            "2025-01-22T00:00:00Z",
            &["149", "154"][..],
            &["the others follow from Xid 149 of the GPU at 0009:01:00"][..],
        ),
        // No times at all: when it was read.
        (
            "nvlink5-xid145-xid149.log",
            "n145",
            "2025-01-21T06:00:00Z",
            &["145", "149"][..],
            &["the others follow from Xid 149 of the GPU at "][..],
        ),
    ] {
        let rows = kernel_rows(&folder, file, node);
        assert!(!rows.logs.is_empty(), "{file}");
        lab.fill(&rows).await;
        let question = format!("show Xid errors of node {node} in the last 2 hours");
        let arguments = ["ask", "--json", "--tz", "UTC", "--as", "operator@atlas", "--as-of", as_of, &question];
        let answer = answer(&lab.run(&arguments));
        assert_eq!(answer["outcome"], "answered", "{file}: {answer}");
        hold_verified(&answer);
        let found = |field: &str| -> Vec<&str> {
            let evidence = answer["evidence"].as_array().unwrap().iter();
            let rows = evidence.flat_map(|evidence| evidence["rows"].as_array().unwrap());
            rows.filter_map(|row| row["fields"][field].as_str()).collect()
        };
        for code in expected {
            assert!(found("xid").contains(code), "{file}: {:?}", found("xid"));
            assert!(answer["claims"].to_string().contains(&format!("Xid {code} ")), "{file}: {}", answer["claims"]);
        }
        assert!(!found("xid_meaning").is_empty() && !found("pci").is_empty(), "{file}: {answer}");
        for origin in origins {
            assert!(answer["claims"].to_string().contains(origin), "{file}: {}", answer["claims"]);
        }
    }
    // A viewer reads numbers and jobs, not log lines.
    let question = "show Xid errors of node n13 in the last 2 hours";
    let arguments = ["ask", "--json", "--as", "viewer@atlas", "--as-of", "2025-01-21T05:00:00Z", question];
    let refused = answer(&lab.run(&arguments));
    assert_eq!(refused["outcome"], "refused", "{refused}");
    assert!(!refused.to_string().contains("NVRM"), "{refused}");
}

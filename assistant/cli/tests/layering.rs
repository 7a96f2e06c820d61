//! Holds the arrows of ARCHITECTURE.md: which crate may import which, and what the pure crates may not know.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Which of our crates each of our crates may import. Everything may import `sightline-model`.
const ARROWS: [(&str, &[&str]); 15] = [
    ("sightline-model", &[]),
    ("sightline-query", &[]),
    ("sightline-policies", &[]),
    ("sightline-audit", &[]),
    ("sightline-analysis", &[]),
    ("sightline-diagnosis", &["sightline-analysis"]),
    ("sightline-guard", &["sightline-query", "sightline-policies"]),
    ("sightline-tools", &["sightline-query", "sightline-diagnosis", "sightline-analysis"]),
    ("sightline-engine", &["sightline-guard", "sightline-query"]),
    ("sightline-fixtures", &["sightline-query"]),
    ("sightline-core", &["sightline-tools", "sightline-guard", "sightline-query", "sightline-policies"]),
    (
        "sightline-llm",
        &["sightline-core", "sightline-tools", "sightline-query", "sightline-policies", "sightline-analysis"],
    ),
    (
        "sightline-server",
        &[
            "sightline-core",
            "sightline-llm",
            "sightline-engine",
            "sightline-audit",
            "sightline-policies",
            "sightline-guard",
            "sightline-query",
            "sightline-tools",
            "sightline-fixtures",
        ],
    ),
    (
        "sightline-evals",
        &[
            "sightline-core",
            "sightline-engine",
            "sightline-audit",
            "sightline-policies",
            "sightline-guard",
            "sightline-query",
            "sightline-tools",
            "sightline-fixtures",
        ],
    ),
    ("sightline", &["sightline-server", "sightline-evals"]),
];

/// Crates that do no I/O and read no clock.
const PURE: [&str; 8] = [
    "sightline-model",
    "sightline-query",
    "sightline-policies",
    "sightline-guard",
    "sightline-analysis",
    "sightline-diagnosis",
    "sightline-tools",
    "sightline-fixtures",
];

/// What a pure crate may not name as a dependency.
const IMPURE: [&str; 8] = ["tokio", "axum", "hyper", "reqwest", "clickhouse", "rusqlite", "libloading", "getrandom"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// Every crate's normal dependencies by name; tests may import more.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let of = |package: &cargo_metadata::Package| {
        let normal = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
        normal.map(|d| d.name.clone()).collect()
    };
    metadata().packages.iter().map(|p| (p.name.to_string(), of(p))).collect()
}

#[test]
fn every_crate_imports_only_what_its_arrows_allow() {
    let dependencies = dependencies();
    let arrows: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut broken = Vec::new();
    for (package, imports) in &dependencies {
        let allowed = arrows.get(package.as_str());
        for import in imports.iter().filter(|i| i.starts_with("sightline")) {
            let fits = import == "sightline-model" || allowed.is_some_and(|list| list.contains(&import.as_str()));
            if !fits {
                broken.push(format!("{package} -> {import}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new(), "see the arrows in ARCHITECTURE.md");
    let known: BTreeSet<&str> = arrows.keys().copied().collect();
    let present: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(present, known, "a new crate needs its arrows here and in ARCHITECTURE.md");
}

#[test]
fn pure_crates_know_no_runtime_socket_or_database() {
    let dependencies = dependencies();
    let mut broken = Vec::new();
    for package in PURE {
        for import in dependencies.get(package).into_iter().flatten() {
            if IMPURE.contains(&import.as_str()) {
                broken.push(format!("{package} -> {import}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn only_the_engine_process_may_be_unsafe_and_every_crate_takes_the_workspace_lints() {
    let mut broken = Vec::new();
    for package in &metadata().packages {
        let text = std::fs::read_to_string(&package.manifest_path).unwrap();
        if !text.contains("[lints]\nworkspace = true") {
            broken.push(package.name.to_string());
        }
    }
    assert_eq!(broken, Vec::<String>::new(), "these lack `[lints] workspace = true`");
}

//! Bundles through a real engine: written, loaded, read back, and every kind of bad file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::TestEngine;
use jiff::Timestamp;
use sightline_engine::native::{self, DatabaseName};
use sightline_engine::{
    KernelLogSource, LoadedBundle, Scope, export_database, export_rows, insert_rows, latest, list_bundles, load_bundle,
    read_kernel_log, tenants,
};
use sightline_model::Dataset;
use sightline_model::rows::{EventRow, JobGpuRow, JobRow, Labels, LogRow, MetricRow, Rows, SpanRow};
use sightline_query::catalogue::LabelAliases;

fn aliases() -> LabelAliases {
    LabelAliases::builtin().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn sample(time: &str, metric: &str, series: &[(&str, &str)], value: f64) -> MetricRow {
    MetricRow { time: at(time), metric: metric.to_owned(), labels: labels(series), value }
}

/// A small incident with a row of every kind, two tenants, and values that are none.
fn incident() -> Rows {
    let gpu = [("tenant", "atlas"), ("cluster", "west"), ("Hostname", "n07"), ("gpu", "3"), ("UUID", "GPU-9")];
    let job = |id: &str, tenant: &str, end: Option<&str>| JobRow {
        job_id: id.to_owned(),
        name: "llama".to_owned(),
        tenant: tenant.to_owned(),
        cluster: "west".to_owned(),
        user: "mia".to_owned(),
        kind: "training".to_owned(),
        state: "running".to_owned(),
        submit: at("2026-05-03T13:00:00Z"),
        start: at("2026-05-03T13:05:00Z"),
        end: end.map(at),
        labels: labels(&[("framework", "torchtitan")]),
    };
    let held = |job_id: &str, gpu: &str| JobGpuRow {
        job_id: job_id.to_owned(),
        tenant: String::new(),
        cluster: String::new(),
        attempt: 1,
        node: "n07".to_owned(),
        gpu: gpu.to_owned(),
        gpu_uuid: "GPU-9".to_owned(),
        rank: 7,
        start: at("2026-05-03T13:05:00Z"),
        end: None,
    };
    Rows {
        metrics: vec![
            sample("2026-05-03T14:10:00.250Z", "DCGM_FI_DEV_GPU_TEMP", &gpu, 88.0),
            sample("2026-05-03T14:10:10.250Z", "DCGM_FI_DEV_GPU_TEMP", &gpu, 0.1 + 0.2),
            sample("2026-05-03T14:10:20.250Z", "DCGM_FI_DEV_GPU_TEMP", &gpu, 2_147_483_632.0),
            sample("2026-05-03T14:10:30.250Z", "DCGM_FI_DEV_GPU_TEMP", &gpu, f64::NAN),
            sample(
                "2026-05-03T14:11:00Z",
                "node_load1",
                &[("tenant", "borealis"), ("instance", "b1:9100"), ("job", "node")],
                4.0,
            ),
            sample("2026-05-03T14:12:00Z", "node_load1", &[("instance", "x1:9100")], 2_147_483_632.0),
        ],
        logs: vec![LogRow {
            time: at("2026-05-03T14:09:58.123456789Z"),
            severity: "error".to_owned(),
            service: "kernel".to_owned(),
            labels: labels(&[("tenant", "atlas"), ("cluster", "west"), ("node", "n07")]),
            body: "NVRM: Xid (PCI:0000:0f:00): 79, GPU has fallen off the bus.".to_owned(),
        }],
        spans: vec![SpanRow {
            time: at("2026-05-03T14:00:00.000000001Z"),
            duration_us: 1_500_000,
            trace_id: "t1".to_owned(),
            span_id: "s1".to_owned(),
            parent_id: String::new(),
            service: "router".to_owned(),
            pod: "router-0".to_owned(),
            operation: "generate".to_owned(),
            labels: labels(&[("tenant", "atlas")]),
        }],
        events: vec![EventRow {
            time: at("2026-05-03T13:30:00Z"),
            kind: "driver_upgrade".to_owned(),
            labels: labels(&[("tenant", "atlas"), ("cluster", "west"), ("node", "n07"), ("job", "J123")]),
            body: "580.95 -> 580.105".to_owned(),
        }],
        jobs: vec![job("J123", "atlas", None), job("J9", "borealis", Some("2026-05-03T13:50:00Z"))],
        job_gpus: vec![held("J123", "3"), held("J9", "0"), held("J404", "1")],
    }
}

const MANIFEST: &str = "[defaults]\ntenant = \"fallback\"\ncluster = \"nowhere\"\n";

async fn dump(engine: &TestEngine, database: &str) -> String {
    let mut text = String::new();
    for dataset in Dataset::ALL {
        let rows = engine.ask(&format!("SELECT * FROM {database}.{dataset} ORDER BY ALL")).await;
        text.push_str(&format!("# {dataset}\n{rows}"));
    }
    text
}

#[tokio::test]
async fn rows_come_back_from_a_bundle_as_they_would_be_inserted_directly() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    export_rows(&writer, &incident(), dir.path(), MANIFEST).await.unwrap();
    fs::write(dir.path().join("incident.toml"), "this is no TOML [").unwrap();

    let loaded = load_bundle(&writer, dir.path(), &aliases()).await.unwrap();
    let dumped = dump(&engine, &loaded.database).await;
    insta::assert_snapshot!("loaded_incident", dumped);
    let expected = LoadedBundle {
        database: loaded.database.clone(),
        name: dir.path().file_name().unwrap().to_str().unwrap().to_owned(),
        tenants: ["atlas", "borealis", "fallback"].map(str::to_owned).to_vec(),
        clusters: ["nowhere", "west"].map(str::to_owned).to_vec(),
        latest: at("2026-05-03T14:12:00Z"),
        rows: BTreeMap::from([
            (Dataset::Metrics, 4),
            (Dataset::Logs, 1),
            (Dataset::Spans, 1),
            (Dataset::Events, 1),
            (Dataset::Jobs, 2),
            (Dataset::JobGpus, 3),
        ]),
        warnings: vec![
            "`metrics.parquet`: dropped 1 samples that are no number (NaN or infinite)".to_owned(),
            "`metrics.parquet`: dropped 1 samples by which DCGM says that it has no value".to_owned(),
        ],
        metric_aliases: BTreeMap::new(),
    };
    assert_eq!(loaded, expected);

    let direct = DatabaseName::new("direct").unwrap();
    native::create(&writer, &direct).await.unwrap();
    let scope = Scope { tenant: "fallback".to_owned(), cluster: "nowhere".to_owned() };
    let counts = insert_rows(&writer, &direct, &incident(), &aliases(), &scope).await.unwrap();
    assert_eq!(counts, loaded.rows);
    assert_eq!(dump(&engine, "direct").await, dumped);
    assert_eq!(native::version(&writer, &direct).await.unwrap(), Some(native::NATIVE_VERSION));
    assert_eq!(tenants(&writer, &direct).await.unwrap(), loaded.tenants);
    assert_eq!(latest(&writer, &direct).await.unwrap(), Some(loaded.latest));

    // Out of the tables and in again: nothing changes.
    let again = tempfile::tempdir().unwrap();
    export_database(&writer, &direct, again.path(), MANIFEST).await.unwrap();
    let reloaded = load_bundle(&writer, again.path(), &aliases()).await.unwrap();
    assert_ne!(reloaded.database, loaded.database);
    assert_eq!(dump(&engine, &reloaded.database).await, dumped);
}

#[tokio::test]
async fn a_bundle_is_loaded_once_whole_and_by_its_content() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    export_rows(&writer, &incident(), dir.path(), MANIFEST).await.unwrap();
    let aliases = aliases();
    let at_once = [0, 1, 2].map(|_| load_bundle(&writer, dir.path(), &aliases));
    let loaded: Vec<LoadedBundle> =
        futures::future::join_all(at_once).await.into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!(loaded[0], loaded[1]);
    assert_eq!(loaded[0], loaded[2]);
    assert_eq!(list_bundles(&writer).await.unwrap(), [loaded[0].clone()]);
    assert_eq!(databases(&engine).await, [loaded[0].database.clone()]);

    // Another manifest is another content.
    fs::write(dir.path().join("bundle.toml"), "[aliases.metrics]\ngpu_temperature = [\"temp_c\"]\n").unwrap();
    let other = load_bundle(&writer, dir.path(), &aliases).await.unwrap();
    assert_ne!(other.database, loaded[0].database);
    assert_eq!(other.tenants, ["atlas", "borealis", "default"]);
    assert_eq!(other.metric_aliases, BTreeMap::from([("gpu_temperature".to_owned(), vec!["temp_c".to_owned()])]));
}

async fn databases(engine: &TestEngine) -> Vec<String> {
    let names = engine
        .ask("SELECT name FROM system.databases WHERE match(name, '^(incident|loading|exporting)_') ORDER BY name")
        .await;
    names.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn columns_of_other_widths_and_wrappers_are_read() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    let file = |name: &str| dir.path().join("data").join(name);
    engine
        .parquet(
            "SELECT toNullable(toDateTime('2026-05-03 14:00:00', 'UTC')) AS time, toLowCardinality('m') AS metric, \
             map('Hostname', toNullable('n1'), 'gone', NULL) AS labels, toUInt8(number) AS value, [1] AS more FROM numbers(2)",
            &file("metrics.parquet"),
        )
        .await;
    engine
        .parquet(
            "SELECT 'J1' AS job_id, toLowCardinality(toNullable('n1')) AS node, toInt16(3) AS gpu, toFloat64(5) AS rank, \
             toDateTime64('2026-05-03 14:00:00', 6, 'UTC') AS start",
            &file("job_gpus.parquet"),
        )
        .await;
    engine
        .parquet(
            "SELECT toDateTime64('2026-05-03 14:00:00.5', 3, 'UTC') AS time, NULL::Nullable(String) AS severity, 'x' AS body",
            &file("logs.parquet"),
        )
        .await;
    let loaded = load_bundle(&writer, dir.path(), &aliases()).await.unwrap();
    assert_eq!(loaded.warnings, Vec::<String>::new());
    insta::assert_snapshot!("other_widths", dump(&engine, &loaded.database).await);
}

#[tokio::test]
async fn a_job_id_of_two_tenants_lends_its_tenant_to_nobody() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    let mut rows = incident();
    rows.jobs[1].job_id = "J123".to_owned();
    export_rows(&writer, &rows, dir.path(), MANIFEST).await.unwrap();
    let loaded = load_bundle(&writer, dir.path(), &aliases()).await.unwrap();
    let held = engine.ask(&format!("SELECT tenant, job_id FROM {}.job_gpus ORDER BY ALL", loaded.database)).await;
    assert_eq!(held, "fallback\tJ404\nfallback\tJ9\n");
    assert!(loaded.warnings.iter().any(|warning| warning
        == "`job_gpus.parquet`: dropped 1 rows whose job id belongs to several jobs; add columns `tenant` and `cluster`"));
}

/// What loading says after `spoil` was done to a good bundle; and that nothing is left of the attempt.
async fn fault(engine: &TestEngine, good: &Path, spoil: impl AsyncFnOnce(&Path)) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    for entry in fs::read_dir(good.join("data")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.path().join("data").join(entry.file_name())).unwrap();
    }
    spoil(dir.path()).await;
    let error = load_bundle(&engine.writer(), dir.path(), &aliases()).await.unwrap_err();
    assert_eq!(databases(engine).await, Vec::<String>::new());
    error.to_string().replace(&dir.path().display().to_string(), "DIR")
}

#[tokio::test]
async fn every_bad_file_is_told_and_leaves_nothing() {
    let engine = TestEngine::start().await;
    let good = tempfile::tempdir().unwrap();
    export_rows(&engine.writer(), &incident(), good.path(), "").await.unwrap();
    let select = "SELECT now64(3, 'UTC') AS time, 'm' AS metric";
    let mut faults = Vec::new();
    for (what, select) in [
        ("a text for a number", format!("{select}, 'SECRET' AS value")),
        ("a number for a time", "SELECT 1 AS time, 'm' AS metric, 1.5 AS value".to_owned()),
        ("a map of numbers", format!("{select}, 1 AS value, map('a', 1) AS labels")),
        ("labels as a text", format!("{select}, 1 AS value, '{{}}' AS labels")),
        ("no value", select.to_owned()),
    ] {
        let text = fault(&engine, good.path(), async |dir: &Path| {
            engine.parquet(&select, &dir.join("data/metrics.parquet")).await;
        });
        faults.push(format!("{what}: {}", text.await));
    }
    type Damage = fn(&mut Vec<u8>);
    let damage: [(&str, Damage); 5] = [
        ("empty", |bytes| bytes.clear()),
        ("no parquet", |bytes| *bytes = b"time,metric,value\n1,m,2\n".to_vec()),
        ("cut off", |bytes| bytes.truncate(bytes.len() / 2)),
        ("bad footer", |bytes| {
            let from = bytes.len() - 60;
            bytes[from..from + 40].fill(0xff);
        }),
        ("bad rows", |bytes| bytes[4..200].fill(0xff)),
    ];
    for (what, damage) in damage {
        let text = fault(&engine, good.path(), async |dir: &Path| {
            let path = dir.join("data/metrics.parquet");
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(path, bytes).unwrap();
        });
        faults.push(format!("{what}: {}", text.await));
    }
    let text = fault(&engine, good.path(), async |dir: &Path| fs::remove_dir_all(dir.join("data")).unwrap());
    faults.push(format!("no data: {}", text.await));
    let text = fault(&engine, good.path(), async |dir: &Path| {
        fs::remove_dir_all(dir.join("data")).unwrap();
        engine.parquet(&format!("{select}, nan AS value"), &dir.join("data/metrics.parquet")).await;
    });
    faults.push(format!("only NaN: {}", text.await));
    let text = fault(&engine, good.path(), async |dir: &Path| {
        fs::write(dir.join("bundle.toml"), "[defaults]\ntenant = 7\n").unwrap()
    });
    faults.push(format!("bad manifest: {}", text.await));
    insta::assert_snapshot!("faults", faults.join("\n"));
}

#[tokio::test]
async fn an_engine_that_is_gone_is_told() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    export_rows(&writer, &incident(), dir.path(), "").await.unwrap();
    drop(engine);
    let error = load_bundle(&writer, dir.path(), &aliases()).await.unwrap_err().to_string();
    assert_eq!(error, "the engine cannot be reached; try again in a moment, and run `sightline doctor` if it stays so");
}

/// Real data beside the repository; a clone alone has none.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {}", path.display());
    None
}

#[tokio::test]
async fn recorded_bundles_of_a_web_shop_load() {
    let Some(folder) = shared("petshop") else { return };
    let engine = TestEngine::start().await;
    let mut folders: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let loaded = load_bundle(&engine.writer(), &folder, &aliases()).await.unwrap();
        assert_eq!(loaded.tenants, ["atlas"], "{}", folder.display());
        assert!(loaded.rows[&Dataset::Metrics] > 100, "{}", folder.display());
        let sql = format!(
            "SELECT count() FROM {}.metrics WHERE service = '' AND metric != 'service_graph_edge'",
            loaded.database
        );
        assert_eq!(engine.ask(&sql).await, "0\n", "{}", folder.display());
    }
}

#[tokio::test]
async fn recorded_kernel_logs_load_as_they_were_written() {
    let Some(folder) = shared("kernel-logs") else { return };
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut rows = Rows::default();
    for file in files {
        let source = KernelLogSource {
            labels: labels(&[("tenant", "atlas"), ("node", file.file_stem().unwrap().to_str().unwrap())]),
            boot: at("2026-02-01T00:00:00Z"),
            read_at: at("2026-05-04T00:00:00Z"),
        };
        rows.logs.extend(read_kernel_log(&fs::read_to_string(file).unwrap(), &source));
    }
    export_rows(&writer, &rows, dir.path(), "").await.unwrap();
    let loaded = load_bundle(&writer, dir.path(), &aliases()).await.unwrap();
    let sql = format!(
        "SELECT node, severity, count(), min(time), max(time), countIf(body LIKE '%Xid%'), countIf(body LIKE '[%' OR body LIKE 'kern%') \
         FROM {}.logs GROUP BY ALL ORDER BY ALL",
        loaded.database
    );
    insta::assert_snapshot!("kernel_logs", engine.ask(&sql).await);
}

#[tokio::test]
async fn hostile_labels_and_texts_come_through_byte_for_byte() {
    let engine = TestEngine::start().await;
    let (writer, dir) = (engine.writer(), tempfile::tempdir().unwrap());
    let mut values: Vec<String> =
        ["", "'", "\\", "\\'", "a\tb\nc\r", "\0", "` OR 1=1 --", "{p0:String}", "\u{202e}evil", "😀"]
            .map(str::to_owned)
            .to_vec();
    if let Some(path) = shared("redteam/hostile_values.jsonl") {
        for line in fs::read_to_string(path).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            values.extend(value.get("value").and_then(|value| value.as_str()).map(str::to_owned));
        }
    }
    let rows = Rows {
        logs: values
            .iter()
            .map(|value| LogRow {
                time: at("2026-05-03T14:00:00Z"),
                severity: value.clone(),
                service: String::new(),
                labels: labels(&[("tenant", "atlas"), ("node", value), (&format!("k{value}"), value)]),
                body: value.clone(),
            })
            .collect(),
        ..Rows::default()
    };
    export_rows(&writer, &rows, dir.path(), "").await.unwrap();
    let loaded = load_bundle(&writer, dir.path(), &aliases()).await.unwrap();
    let sql = format!(
        "SELECT hex(body), hex(severity), hex(node), hex(labels['node']), hex(labels[concat('k', body)]) FROM {}.logs",
        loaded.database
    );
    let mut found: Vec<String> = engine.ask(&sql).await.lines().map(str::to_owned).collect();
    let mut expected: Vec<String> = values
        .iter()
        .map(|value| {
            let hex = hex::encode_upper(value);
            [hex.as_str(); 5].join("\t")
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

//! The attack corpus, sent raw past the guard to the reader's endpoint with one tenant's fence around it.
//!
//! The measure is that the other tenant's rows make no difference: every text is answered twice without them and once with them. What
//! was the same twice must be the same the third time, whatever it computes; of the rest no answer may hold the other tenant's words.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;

use crate::engine::TestEngine;

const ATTACKS: &str = include_str!("../../../../fixtures/redteam/sql_attacks.jsonl");
/// Stands in every text of the other tenant's rows.
const CANARY: &str = "zyzzyva";
/// Every number of the other tenant's rows.
const NUMBER: &str = "987654321";

/// Every table with a row of tenant-a; what no dataset is mapped to has rows of nobody but tenant-b.
const TABLES: &[&str] = &[
    "CREATE DATABASE obs",
    "CREATE DATABASE other_db",
    "CREATE TABLE obs.metrics (tenant LowCardinality(String), cluster String, node LowCardinality(String), gpu String, job_id String, metric String, \
     ts DateTime64(3, 'UTC'), value Float64, labels Map(String, String)) ENGINE = MergeTree ORDER BY (tenant, metric, ts)",
    "CREATE TABLE obs.logs (tenant String, cluster String, node String, job_id String, ts DateTime64(3, 'UTC'), severity String, \
     body String, attrs Map(String, String)) ENGINE = MergeTree ORDER BY (tenant, ts)",
    "CREATE TABLE obs.events (tenant String, cluster String, node String, gpu String, ts DateTime64(3, 'UTC'), kind String, xid UInt32, \
     message String) ENGINE = MergeTree ORDER BY (tenant, ts)",
    "CREATE TABLE obs.jobs (tenant String, cluster String, job_id String, user String, queue String, state String, gpus UInt32, \
     ts DateTime64(3, 'UTC'), end_ts DateTime64(3, 'UTC')) ENGINE = MergeTree ORDER BY (tenant, ts)",
    "CREATE TABLE obs.tenants_admin (tenant String, token String) ENGINE = MergeTree ORDER BY tenant",
    "CREATE TABLE obs.metrics_local AS obs.metrics",
    "CREATE TABLE other_db.metrics AS obs.metrics",
    "CREATE TABLE obs.secrets (id String, token String) ENGINE = MergeTree ORDER BY id",
    "CREATE TABLE obs.join_secret (id String, token String) ENGINE = Join(ANY, LEFT, id)",
    "CREATE DICTIONARY obs.secret_dict (id String, token String) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 'secrets' DB 'obs')) \
     LAYOUT(COMPLEX_KEY_DIRECT())",
    "CREATE VIEW obs.v AS SELECT * FROM obs.metrics",
];

/// Rows of a tenant: so many, with this word in every text and this number in every number.
fn rows(tenant: &str, count: u32, word: &str, number: &str) -> Vec<String> {
    let ts = "toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number";
    let labels = format!("map('pod', '{word}', '{word}', '{word}')");
    let from = format!("FROM numbers({count})");
    ["obs.metrics", "obs.metrics_local", "other_db.metrics"]
        .iter()
        .map(|table| format!("INSERT INTO {table} SELECT '{tenant}', '{word}', '{word}', '3', '{word}', ['gpu_util', 'gpu_temp', '{word}'][number % 3 + 1], {ts}, {number}, {labels} {from}"))
        .chain([
            format!("INSERT INTO obs.logs SELECT '{tenant}', '{word}', '{word}', '{word}', {ts}, 'ERROR', '{word} {number}', {labels} {from}"),
            format!("INSERT INTO obs.events SELECT '{tenant}', '{word}', '{word}', '3', {ts}, 'xid', {number}, '{word}' {from}"),
            format!("INSERT INTO obs.jobs SELECT '{tenant}', '{word}', concat('J12', '{word}'), '{word}', '{word}', 'COMPLETED', {number}, {ts}, {ts} + {number} {from}"),
        ])
        .collect()
}

/// The other tenant's rows, and what no request for tenant-a may read.
fn foreign_rows() -> Vec<String> {
    let secret =
        |table: &str| format!("INSERT INTO {table} VALUES ('{CANARY}', '{CANARY}-token'), ('x', '{CANARY}-token')");
    let mut all = rows("tenant-b", 7919, CANARY, NUMBER);
    all.extend(["obs.tenants_admin", "obs.secrets", "obs.join_secret"].map(secret));
    all
}

fn fence() -> String {
    let tables = ["metrics", "logs", "events", "jobs"].map(|t| format!(r"'obs.{t}':'tenant IN (\'tenant-a\')'"));
    format!("{{{}}}", tables.join(","))
}

/// A text, and the parameters that go with it.
#[derive(Clone, Debug)]
struct Attack {
    id: String,
    sql: String,
    params: Vec<(&'static str, &'static str)>,
}

/// The corpus; every text of it with the other tenant's name in the place of one's own; and what a parameter may be misused for.
fn attacks(port: u16) -> Vec<Attack> {
    let host = regex_free_hosts(ATTACKS, port);
    let mut attacks = Vec::new();
    for line in host.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (id, sql) = (line["id"].as_str().unwrap(), line["sql"].as_str().unwrap());
        attacks.push(Attack { id: id.to_owned(), sql: sql.to_owned(), params: Vec::new() });
        if sql.contains("tenant-a") {
            let sql = sql.replace("tenant-a", "tenant-b");
            attacks.push(Attack { id: format!("{id}b"), sql, params: Vec::new() });
        }
    }
    assert!(attacks.len() > 600, "{}", attacks.len());
    let params = vec![
        ("d", "obs"),
        ("t", "secrets"),
        ("c", "token"),
        ("q", "obs.secrets"),
        ("m", "metrics"),
        ("p", "tenant-b"),
        ("1d", "obs"),
        ("1t", "secrets"),
        ("1q", "obs.secrets"),
    ];
    for (index, sql) in [
        "SELECT * FROM {d:Identifier}.{t:Identifier}",
        "SELECT * FROM obs.{t:Identifier}",
        "SELECT * FROM {q:Identifier}",
        "SELECT * FROM { q : Identifier }",
        "SELECT * FROM {1q:Identifier}",
        "SELECT * FROM {1d:Identifier}.{1t:Identifier}",
        "SELECT * FROM obs.{1t:Identifier}",
        "SELECT {c:Identifier} FROM {d:Identifier}.secrets",
        "SELECT * FROM obs.metrics WHERE tenant IN (SELECT id FROM {d:Identifier}.{t:Identifier})",
        "SELECT * FROM obs.metrics WHERE tenant IN {q:Identifier}",
        "SELECT sum(value) FROM {d:Identifier}.{m:Identifier}",
        "SELECT sum(value) FROM obs.metrics WHERE tenant = {p:String}",
        "SELECT dictGet({q:String}, 'token', 'x')",
        "SELECT * FROM merge({d:String}, {t:String})",
    ]
    .into_iter()
    .enumerate()
    {
        attacks.push(Attack { id: format!("P{index}"), sql: sql.to_owned(), params: params.clone() });
    }
    for (index, sql) in [
        format!("SELECT hasColumnInTable('127.0.0.1:{port}', 'default', '', 'obs', 'secrets', 'token')"),
        "SELECT hasColumnInTable('obs', 'secrets', 'token')".to_owned(),
        "SELECT value FROM obs.metrics UNION ALL SELECT 1 FROM obs.secrets".to_owned(),
        "SELECT (SELECT count() FROM obs.v)".to_owned(),
        "SELECT 1 FROM obs.metrics WHERE exists(SELECT 1 FROM obs.tenants_admin)".to_owned(),
        "SELECT joinGet('obs.join_secret', 'token', 'x')".to_owned(),
        "SELECT joinGetOrNull('obs.join_secret', 'token', 'x')".to_owned(),
        "SELECT dictGet('obs.secret_dict', 'token', 'x')".to_owned(),
        "SELECT dictHas('obs.secret_dict', 'x')".to_owned(),
        "SELECT dictIsIn('obs.secret_dict', 'x', 'y')".to_owned(),
        "SELECT dictGetKeys('obs.secret_dict', 'token', 'zyzzyva-token')".to_owned(),
        "SELECT dictGetHierarchy('obs.secret_dict', 'x')".to_owned(),
        "SELECT * FROM obs.secret_dict".to_owned(),
        "SELECT arrayMap(file, ['/etc/passwd'])".to_owned(),
        "SELECT arrayMap(x -> file(x), ['/etc/passwd'])".to_owned(),
        "SELECT arrayMap(dictHas, ['obs.secret_dict'], ['x'])".to_owned(),
        "SELECT throwIf(1, toString((SELECT count() FROM obs.metrics)))".to_owned(),
        "SELECT groupArray(_table), groupUniqArray(_database) FROM obs.metrics".to_owned(),
        "SELECT sum(value) FROM obs.metrics GROUP BY tenant WITH ROLLUP".to_owned(),
        "SELECT count() FROM obs.metrics WHERE indexHint(tenant = 'tenant-b')".to_owned(),
        "SELECT * FROM obs.metrics QUALIFY row_number() OVER (ORDER BY tenant DESC) = 1".to_owned(),
        "SELECT a.value FROM obs.metrics AS a ANTI JOIN obs.metrics AS b ON a.tenant = b.tenant".to_owned(),
        "SELECT b.body FROM obs.metrics AS a RIGHT JOIN obs.logs AS b ON a.tenant = b.tenant".to_owned(),
        "SELECT b.body FROM obs.metrics AS a FULL JOIN obs.logs AS b ON a.value = b.tenant::String::Float64".to_owned(),
        "SELECT quantileExact(1)(value), argMax(metric, value), anyHeavy(node) FROM obs.metrics".to_owned(),
        "SELECT count() FROM cluster('default', obs.metrics)".to_owned(),
        "SELECT * FROM obs.metrics LIMIT 10 BY tenant".to_owned(),
        "SELECT count() FROM obs.metrics SETTINGS additional_table_filters = {}".to_owned(),
        "SELECT count() FROM obs.metrics SETTINGS apply_deleted_mask = 0".to_owned(),
        "SELECT count() FROM obs.metrics SETTINGS readonly = 1, max_threads = 8".to_owned(),
        "SELECT 1 FROM obs.metrics ARRAY JOIN (SELECT groupArray(token) FROM obs.secrets) AS x".to_owned(),
        "SELECT sum(_part_offset), any(_partition_id), uniqExact(_part) FROM obs.metrics".to_owned(),
        "SELECT max(value) FROM obs.metrics FINAL".to_owned(),
        "SELECT min(tenant), max(tenant) FROM obs.metrics".to_owned(),
        "SELECT uniq(tenant), any(labels) FROM obs.metrics".to_owned(),
        "SELECT toInt32(body) FROM obs.logs".to_owned(),
        "SELECT throwIf(value > 1000) FROM obs.metrics".to_owned(),
        "SELECT count() FROM obs.metrics WHERE throwIf(value > 1000) = 0".to_owned(),
        "SELECT count() FROM obs.metrics PREWHERE throwIf(value > 1000) = 0".to_owned(),
        "SELECT count() FROM obs.logs PREWHERE intDiv(1, body NOT LIKE 'zyzzyva%') = 1".to_owned(),
        "SELECT sum(sleepEachRow(0.001)) FROM obs.metrics".to_owned(),
        "SELECT count() FROM (SELECT * FROM obs.logs) WHERE throwIf(body LIKE 'zyz%') = 0".to_owned(),
        "SELECT count() FROM obs.logs AS a JOIN obs.logs AS b ON a.tenant = b.tenant AND throwIf(b.body LIKE 'zyz%') = 0".to_owned(),
        "SELECT count() FROM obs.logs WHERE tenant IN (SELECT tenant FROM obs.logs WHERE throwIf(body LIKE 'zyz%') = 0)".to_owned(),
        "SELECT throwIf(body LIKE 'zyz%') AS x FROM obs.logs PREWHERE x = 0".to_owned(),
        "SELECT body FROM obs.logs ORDER BY throwIf(body LIKE 'zyz%') LIMIT 1".to_owned(),
        "SELECT body FROM obs.logs LIMIT 1 BY throwIf(body LIKE 'zyz%')".to_owned(),
        "SELECT sum(value) OVER (ORDER BY throwIf(value > 1000)) FROM obs.metrics".to_owned(),
        "SELECT value % (node NOT LIKE 'zyz%') FROM obs.metrics".to_owned(),
        "SELECT count() FROM obs.metrics WHERE intDiv(1, node NOT LIKE 'zyz%') = 1 AND tenant = 'tenant-b'".to_owned(),
        "SELECT max(x) FROM obs.metrics ARRAY JOIN [throwIf(value > 1000)] AS x".to_owned(),
        "SELECT throwIf(value > 1000) AS 1x FROM obs.metrics AS t PREWHERE 1x = 0".to_owned(),
        "SELECT throwIf(value > 1000) AS offset FROM obs.metrics AS t PREWHERE offset = 0".to_owned(),
        "SELECT throwIf(value > 1000) AS window FROM obs.metrics AS t PREWHERE t.value = 1 OR window = 0".to_owned(),
        "SELECT 1 AS group FROM obs.metrics AS t PREWHERE group + throwIf(t.value > 1000) = 1".to_owned(),
        "WITH (x, y) -> throwIf(x LIKE 'zyz%') AS equals SELECT count() FROM obs.logs AS t PREWHERE t.body = 'a'".to_owned(),
        "WITH (x, y) -> throwIf(x > 1000) AS less SELECT count() FROM obs.metrics AS t PREWHERE t.value < 1".to_owned(),
        "WITH lambda(tuple(x, y), throwIf(x LIKE 'zyz%')) AS in SELECT count() FROM obs.logs AS t PREWHERE t.body IN ('a')".to_owned(),
        "SELECT count() FROM obs.metrics AS a JOIN (SELECT 1 AS k) AS b ON throwIf(a.value > 1000) = b.k".to_owned(),
        "SELECT count() FROM obs.metrics AS a, (SELECT 1 AS k) AS b WHERE intDiv(1, a.value < 1000) = b.k".to_owned(),
        "SELECT count() FROM (SELECT body FROM obs.logs) AS a JOIN (SELECT 1 AS k) AS b ON toInt32(a.body) = b.k".to_owned(),
        "SELECT count() FROM obs.metrics WHERE throwIf(node LIKE 'zyz%') = 0".to_owned(),
        "SELECT count() FROM obs.metrics WHERE toFixedString(node, 8) != ''".to_owned(),
        "SELECT node::FixedString(8) FROM obs.metrics".to_owned(),
        "SELECT base64Decode(concat(node, 'AAA')) FROM obs.metrics".to_owned(),
        "SELECT toInt32(node) FROM obs.metrics".to_owned(),
        format!("SELECT {}1{}", "[".repeat(900), "]".repeat(900)),
        format!("SELECT {}1{}", "abs(".repeat(900), ")".repeat(900)),
    ]
    .into_iter()
    .enumerate()
    {
        attacks.push(Attack { id: format!("X{index}"), sql, params: Vec::new() });
    }
    attacks
}

/// The texts with every address on this machine replaced by the one where the test listens.
fn regex_free_hosts(text: &str, port: u16) -> String {
    let mut out = String::new();
    let mut parts = text.split("127.0.0.1");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.strip_prefix(':').map_or(part, |after| after.trim_start_matches(|c: char| c.is_ascii_digit()));
        out.push_str(&format!("127.0.0.1:{port}{rest}"));
    }
    out
}

/// What came back: status and body.
type Answers = BTreeMap<String, (u16, String)>;

/// How long a text may run, seconds.
const SHORT: u32 = 1;
/// How long one may that ran out of time only once: a busy machine is no leak.
const LONG: u32 = 30;

async fn send_all(engine: &TestEngine, attacks: &[Attack]) -> Answers {
    let client = crate::plain_http::client();
    let sent = attacks.iter().map(|attack| {
        let client = &client;
        async move { (attack.id.clone(), send(engine, client, attack, SHORT).await) }
    });
    futures::stream::iter(sent).buffer_unordered(4).collect().await
}

async fn send(engine: &TestEngine, client: &reqwest::Client, attack: &Attack, seconds: u32) -> (u16, String) {
    let mut query = vec![
        ("additional_table_filters".to_owned(), fence()),
        ("max_execution_time".to_owned(), seconds.to_string()),
        ("max_memory_usage".to_owned(), "200000000".to_owned()),
        ("max_result_rows".to_owned(), "100000".to_owned()),
        ("max_threads".to_owned(), "1".to_owned()),
        ("wait_end_of_query".to_owned(), "1".to_owned()),
    ];
    query.extend(attack.params.iter().map(|(name, value)| (format!("param_{name}"), (*value).to_owned())));
    let (name, password) = engine.login_reader();
    let request = client.post(engine.url()).query(&query).body(attack.sql.clone()).basic_auth(name, Some(password));
    let response = request.send().await.unwrap_or_else(|error| panic!("{}: no answer: {error}", attack.id));
    let status = response.status().as_u16();
    let body = response.bytes().await.unwrap_or_else(|error| panic!("{}: {error}", attack.id));
    (status, String::from_utf8_lossy(&body).into_owned())
}

/// Sends those again, with time enough, that ran out of it in this round and not in the first.
async fn settle(engine: &TestEngine, attacks: &[Attack], first: &Answers, round: &mut Answers) {
    let timed_out = |answer: &(u16, String)| answer.1.starts_with("Code: 159.");
    for attack in attacks {
        if !timed_out(&round[&attack.id]) || timed_out(&first[&attack.id]) {
            continue;
        }
        let again = send(engine, &crate::plain_http::client(), attack, LONG).await;
        round.insert(attack.id.clone(), again);
    }
}

/// The forms in which the other tenant's word or number may come.
fn holds_canary(body: &str) -> bool {
    let lower = body.to_lowercase();
    let hex = hex::encode(CANARY);
    let upper = hex::encode(CANARY.to_uppercase());
    // Base64 of the word at each of the three offsets, without the ends that depend on what stands around it.
    let base64 = ["enl6enl2", "p5enp5dm", "6eXp6eXZ"];
    [CANARY, NUMBER, hex.as_str(), upper.as_str()].iter().any(|form| lower.contains(form))
        || base64.iter().any(|form| body.contains(form))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_gets_past_the_second_fence() {
    let cwd = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connected = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&connected);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            flag.store(true, Ordering::SeqCst);
        }
    });
    let engine = TestEngine::start_in(Some(cwd.path())).await;
    let sockets = Sockets::watch(engine.pid(), engine.url());
    for statement in TABLES.iter().map(|text| (*text).to_owned()).chain(rows("tenant-a", 3, "ours", "5")) {
        engine.ask(&statement).await;
    }
    engine.ask("SYSTEM STOP MERGES").await;
    let attacks = attacks(port);
    let (pid, files, tables) = (engine.pid(), files(&engine), tables(&engine).await);
    let first = send_all(&engine, &attacks).await;
    let second = send_all(&engine, &attacks).await;
    assert_eq!(tables, self::tables(&engine).await, "something was written");
    for statement in foreign_rows() {
        engine.ask(&statement).await;
    }
    // Without this the test could hold because nothing is there to be found.
    assert!(holds_canary(&engine.ask("SELECT any(body) FROM obs.logs WHERE tenant = 'tenant-b'").await));
    let with_rows = self::tables(&engine).await;
    let mut third = send_all(&engine, &attacks).await;
    settle(&engine, &attacks, &first, &mut third).await;

    // In the same part and the same granule as one's own, where what is computed before the filter would show.
    engine.ask("SYSTEM START MERGES").await;
    for table in ["metrics", "logs", "events", "jobs"] {
        engine.ask(&format!("OPTIMIZE TABLE obs.{table} FINAL")).await;
    }
    let mut fourth = send_all(&engine, &attacks).await;
    settle(&engine, &attacks, &first, &mut fourth).await;

    let mut leaks = Vec::new();
    let (mut same, mut answered) = (0, 0);
    for attack in &attacks {
        let [a, b, c, d] = [&first, &second, &third, &fourth].map(|answers| &answers[&attack.id]);
        for with in [c, d] {
            if holds_canary(&with.1) && !holds_canary(&attack.sql) {
                leaks.push(format!("{} holds the other tenant's text: {}\n    {}", attack.id, attack.sql, cut(with)));
            }
        }
        if a == b && (a != c || (a != d && !names_parts(&attack.sql))) {
            leaks.push(format!(
                "{} differs: {:.300}\n    {}\n    {}\n    {}",
                attack.id,
                attack.sql,
                cut(a),
                cut(c),
                cut(d)
            ));
        }
        same += usize::from(a == b);
        answered += usize::from(c.0 == 200);
    }
    println!("{} texts, {answered} answered, {same} the same each time", attacks.len());
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
    assert!(same * 10 > attacks.len() * 9, "too many answers differ by themselves to compare: {same}");
    assert_eq!(with_rows, self::tables(&engine).await, "something was written");
    assert_eq!(files, self::files(&engine), "a file was written into the data folder");
    assert_eq!(names(cwd.path()), BTreeSet::new(), "a file was written where the engine runs");
    for path in ["/var/data/x", "/var/data/x.db"] {
        assert!(!Path::new(path).exists(), "{path}");
    }
    assert!(!connected.load(Ordering::SeqCst), "the engine connected to where the test listens");
    assert_eq!(sockets.seen(), BTreeSet::new(), "the engine opened connections");
    assert_eq!(engine.pid(), pid);
    assert_eq!(engine.ask("SELECT 1").await, "1\n");
}

/// Whether a text asks how rows lie on disk, which merging changes: an estimate counts whole granules, whoever's rows are in them.
fn names_parts(sql: &str) -> bool {
    sql.contains("_part") || sql.starts_with("EXPLAIN ESTIMATE")
}

fn cut((status, body): &(u16, String)) -> String {
    format!("{status} {:.200}", body)
}

/// Every table outside the system databases with its rows, and everything else that a statement could have made.
async fn tables(engine: &TestEngine) -> String {
    let tables = "SELECT database, name, engine, total_rows FROM system.tables WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema') ORDER BY ALL";
    let functions = "SELECT count() FROM system.functions WHERE origin != 'System'";
    let settings = "SELECT name, value FROM system.settings WHERE changed AND name != 'log_comment' ORDER BY name";
    let mut all = String::new();
    for sql in [tables, "SHOW DATABASES", functions, settings] {
        all.push_str(&engine.ask(sql).await);
    }
    all
}

/// The files of the data folder, but for those in which the engine keeps rows.
fn files(engine: &TestEngine) -> BTreeSet<String> {
    let mut all = names(engine.folder());
    all.extend(names(&engine.folder().join("engine")));
    all.extend(names(&engine.folder().join("engine/user_files")));
    all
}

fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
}

/// Watches which addresses a process is connected to, or tries to be.
struct Sockets {
    seen: Arc<Mutex<BTreeSet<String>>>,
}

impl Sockets {
    fn watch(pid: u32, url: &str) -> Self {
        let own: u16 = url.rsplit(':').next().unwrap().parse().unwrap();
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let watched = Arc::downgrade(&seen);
        std::thread::spawn(move || {
            while let Some(seen) = watched.upgrade() {
                seen.lock().unwrap().extend(remotes(pid, own));
                drop(seen);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self { seen }
    }

    fn seen(&self) -> BTreeSet<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// The far ends of a process's sockets that are not clients of its own port.
fn remotes(pid: u32, own: u16) -> Vec<String> {
    let inodes: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut remotes = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, _, _, _, _, _, _, inode, ..] = fields.as_slice() else { continue };
            let port = local.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
            if inodes.contains(*inode) && port != Some(own) {
                remotes.push(format!("{table} {remote}"));
            }
        }
    }
    remotes
}

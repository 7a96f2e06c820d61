//! A tenant that nobody asks as, in every lab: its rows lie beside the others', and none of them may ever come out.
//!
//! What a test sees is looked through when its lab or its service ends, so that no test can forget it; and every SQL text in the audit
//! log is held against the checker, for the tenants of the one who asked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use sightline_audit::{AuditReader, Filter};
use sightline_guard::{Mapping, check_sql};
use sightline_model::TenantScope;
use sightline_model::rows::{EventRow, JobGpuRow, JobRow, Labels, LogRow, Rows};

/// Stands in every text of the tenant's rows, and is its name.
pub(crate) const TENANT: &str = "wqxcanary";
/// The value of each of its samples.
const NUMBER: f64 = 8_675_309_123.0;
/// How that number begins wherever it is printed in full.
const DIGITS: &str = "8675309";

/// The rows with the tenant's beside them: of every metric a sample at a time that the others have too, and one of everything else.
pub(crate) fn planted(rows: &Rows) -> Rows {
    let mut planted = rows.clone();
    let labels = || -> Labels {
        ["tenant", "cluster", "node", "pod", "job_id"].map(|name| (name.to_owned(), TENANT.to_owned())).into()
    };
    let mut metrics = BTreeSet::new();
    for row in rows.metrics.iter().filter(|row| metrics.insert(row.metric.clone())) {
        let mut copy = row.clone();
        copy.labels.iter_mut().for_each(|(name, value)| {
            if name != "gpu" {
                *value = TENANT.to_owned();
            }
        });
        copy.labels.extend(labels());
        copy.value = NUMBER;
        planted.metrics.push(copy);
    }
    let at: Timestamp = rows.metrics.first().map_or_else(|| "2025-06-02T09:30:00Z".parse().unwrap(), |row| row.time);
    let text = || TENANT.to_owned();
    planted.logs.push(LogRow {
        time: at,
        severity: "error".to_owned(),
        service: text(),
        labels: labels(),
        body: text(),
    });
    planted.events.push(EventRow { time: at, kind: "alert".to_owned(), labels: labels(), body: text() });
    let (job_id, state, kind) = (text(), "running".to_owned(), "training".to_owned());
    let (name, tenant, cluster, user, labels) = (text(), text(), text(), text(), labels());
    planted.jobs.push(JobRow {
        job_id,
        name,
        tenant,
        cluster,
        user,
        kind,
        state,
        submit: at,
        start: at,
        end: None,
        labels,
    });
    planted.job_gpus.push(JobGpuRow {
        job_id: text(),
        tenant: text(),
        cluster: text(),
        attempt: 0,
        node: text(),
        gpu: "0".to_owned(),
        gpu_uuid: text(),
        rank: 0,
        start: at,
        end: None,
    });
    planted
}

/// Looks through everything that was seen when it is dropped.
pub(crate) struct Watch {
    data_dir: PathBuf,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Watch {
    pub(crate) fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned(), seen: Arc::default() }
    }

    /// Keeps what someone who is no admin has seen.
    pub(crate) fn saw(&self, bytes: &[u8]) {
        let mut seen = self.seen.lock().unwrap();
        seen.extend_from_slice(bytes);
        seen.push(b'\n');
    }

    /// Where to put what is seen elsewhere.
    pub(crate) fn seen(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.seen)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let seen = self.seen.lock().unwrap();
        hold("what was seen", &seen);
        hold_kept_answers(&self.data_dir);
        hold_audited_sql(&self.data_dir);
    }
}

/// Fails when the tenant's word or number stands in there.
pub(crate) fn hold(place: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for canary in [TENANT, DIGITS] {
        if let Some(at) = text.find(canary) {
            let around: Vec<char> = text.chars().collect();
            let at = text.get(..at).unwrap_or_default().chars().count();
            let around: String = around.iter().skip(at.saturating_sub(200)).take(400).collect();
            panic!("{place} holds a row of the tenant that nobody asks as: …{around}…");
        }
    }
}

/// Nothing of it is kept for anyone but an admin, who may see every tenant.
fn hold_kept_answers(data_dir: &Path) {
    let path = data_dir.join("answers.db");
    if !path.exists() {
        return;
    }
    // A store that a test has broken on purpose has nothing to say here.
    let Ok(store) = rusqlite::Connection::open(&path) else { return };
    for (table, columns) in [
        ("evidence", "id || coalesce(json, '')"),
        ("conversation", "id || title"),
        ("answer", "id || question || json"),
        ("feedback", "coalesce(reason, '')"),
    ] {
        let Ok(mut statement) = store.prepare(&format!("SELECT {columns} FROM {table} WHERE principal <> 'admin'"))
        else {
            continue;
        };
        for text in statement.query_map([], |row| row.get::<_, String>(0)).unwrap() {
            hold(table, text.unwrap().as_bytes());
        }
    }
}

/// Every text that was sent is one that the checker takes from outside, for the tenants of its asker.
fn hold_audited_sql(data_dir: &Path) {
    let path = data_dir.join("audit.db");
    if !path.exists() {
        return;
    }
    // A log that a test has broken on purpose has nothing to say here.
    let Ok(reader) = AuditReader::open(&path) else { return };
    let Ok(page) = reader.list(&Filter { limit: Some(1000), ..Filter::default() }) else { return };
    for question in page.questions {
        let id = &question.begin.record.question_id;
        let Ok(Some(file)) = reader.question(id) else { continue };
        // What was erased on request has no parameters to hold against anything.
        for call in file.calls.iter().filter(|call| !call.erased).map(|call| &call.record) {
            let Some(sql) = &call.sql else { continue };
            let tenants = match &file.begin.record.principal.tenants {
                TenantScope::Only(tenants) => tenants.clone(),
                // Every tenant: those that it names.
                TenantScope::All => {
                    let named = call.params.get("p0").map(String::as_str).unwrap_or_default();
                    named.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
                }
            };
            let from = sql.split_once(" FROM ").and_then(|(_, from)| from.split_once('.'));
            let database = from.map(|(database, _)| database).unwrap_or_default();
            let checked = check_sql(sql, &call.params, &Mapping::native(database).unwrap(), &tenants);
            assert_eq!(checked, Ok(()), "the checker refuses what was sent for {}: {sql}", file.begin.record.principal);
        }
    }
}

//! Events of the Open Cybersecurity Schema Framework, version 1.6.0.
//!
//! A question is API Activity (6003), each call that ran Datastore Activity (6005), a login Authentication (3002), the start and stop
//! of the service Application Lifecycle (6002), everything else API Activity. What has no attribute there is under `unmapped`.

use std::io::Write;

use serde_json::{Map, Value, json};
use sightline_model::audit::{Call, Event, EventKind, EventOutcome};

use super::{Sink, unwritable};
use crate::error::AuditError;
use crate::reader::Sealed;
use crate::search::Entry;

/// The version of the schema that the events are of.
const VERSION: &str = "1.6.0";

/// Writes a document for each entry, and one for each call.
pub(super) struct Ocsf<'a> {
    out: &'a mut dyn Write,
}

/// Which class an event is of, and what it did.
#[derive(Clone, Copy)]
struct Class {
    uid: u64,
    activity: u64,
    /// The activity's name, where the schema has none for it.
    other: Option<&'static str>,
}

const fn class(uid: u64, activity: u64) -> Class {
    Class { uid, activity, other: None }
}

const API: u64 = 6003;
const DATASTORE: u64 = 6005;
const AUTHENTICATION: u64 = 3002;
const LIFECYCLE: u64 = 6002;
const OTHER: u64 = 99;

impl<'a> Ocsf<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    fn line(&mut self, document: Map<String, Value>) -> Result<(), AuditError> {
        let text = serde_json::to_string(&document).map_err(unwritable)?;
        writeln!(self.out, "{text}").map_err(unwritable)
    }
}

impl Sink for Ocsf<'_> {
    fn entry(&mut self, entry: &Entry, calls: &[Sealed<Call>], event: Option<&Event>) -> Result<(), AuditError> {
        if let Some(event) = event {
            return self.line(of_event(entry, event));
        }
        self.line(of_question(entry))?;
        for call in calls {
            self.line(of_call(entry, call))?;
        }
        Ok(())
    }

    fn end(self: Box<Self>) -> Result<(), AuditError> {
        self.out.flush().map_err(unwritable)
    }
}

/// What every event carries.
fn base(entry: &Entry, class: Class, seq: u64, hash: &str, at_ms: i64, failed: bool) -> Map<String, Value> {
    let Class { uid, activity, other } = class;
    let mut document = Map::new();
    let mut set = |name: &str, value: Value| document.insert(name.to_owned(), value);
    set("class_uid", json!(uid));
    set("category_uid", json!(uid / 1000));
    set("activity_id", json!(activity));
    if let Some(other) = other {
        set("activity_name", json!(other));
    }
    set("type_uid", json!(uid * 100 + activity));
    set("time", json!(at_ms));
    set("severity_id", json!(1));
    set("status_id", json!(if failed { 2 } else { 1 }));
    let product = json!({ "name": "Sightline", "vendor_name": "Sightline", "version": env!("CARGO_PKG_VERSION") });
    set(
        "metadata",
        json!({ "version": VERSION, "product": product, "uid": hash, "sequence": seq, "log_name": "audit", "event_code": entry.kind }),
    );
    set("actor", json!({ "user": user(entry) }));
    // Which machine it came from is not recorded; the way in is.
    set("src_endpoint", json!({ "name": entry.entrance }));
    document
}

fn user(entry: &Entry) -> Value {
    let mut user = Map::new();
    user.insert("name".to_owned(), json!(entry.who.as_deref().unwrap_or("unknown")));
    if let Some(who) = &entry.who {
        user.insert("uid".to_owned(), json!(who));
    }
    // 0 is unknown, 2 an admin, 1 another user.
    let type_id = match (entry.role, &entry.who) {
        (Some(sightline_model::Role::Admin), _) => 2,
        (_, Some(_)) => 1,
        (_, None) => 0,
    };
    user.insert("type_id".to_owned(), json!(type_id));
    if !entry.tenants.is_empty() {
        let groups: Vec<Value> =
            entry.tenants.iter().map(|tenant| json!({ "name": tenant, "type": "tenant" })).collect();
        user.insert("groups".to_owned(), json!(groups));
    }
    Value::Object(user)
}

fn of_question(entry: &Entry) -> Map<String, Value> {
    let failed = ["error", "cancelled", "abandoned", "refused"].contains(&entry.outcome.as_str());
    let asked = Class { other: Some("Ask"), ..class(API, OTHER) };
    let mut document = base(entry, asked, entry.seq, &entry.hash.to_string(), entry.at.as_millisecond(), failed);
    document.insert("status_detail".to_owned(), json!(entry.error.as_deref().unwrap_or(&entry.outcome)));
    document.insert("message".to_owned(), json!(entry.question));
    let request = json!({ "uid": entry.question_id });
    document.insert(
        "api".to_owned(),
        json!({ "operation": "ask", "request": request, "service": { "name": "sightline" } }),
    );
    document.insert(
        "unmapped".to_owned(),
        json!({ "outcome": entry.outcome, "work": entry.work, "detail": entry.detail, "erased": entry.erased }),
    );
    document
}

fn of_call(entry: &Entry, call: &Sealed<Call>) -> Map<String, Value> {
    let Sealed { seq, hash, record, erased } = call;
    let failed = !record.decision.allowed || record.error.is_some();
    // What was refused before a table was chosen has none, and is no activity of the store.
    let of = match record.tables.first() {
        Some(_) => class(DATASTORE, 4),
        None => class(API, 2),
    };
    let mut document = base(entry, of, *seq, &hash.to_string(), record.at.as_millisecond(), failed);
    let mut set = |name: &str, value: Value| document.insert(name.to_owned(), value);
    match record.tables.first() {
        Some(table) => {
            set("table", json!({ "name": table }));
            set("type_id", json!(3));
            set(
                "query_info",
                json!({ "query_string": record.sql, "uid": record.query_id, "bytes": record.bytes_read }),
            );
        }
        None => {
            let request = json!({ "uid": entry.question_id });
            set("api", json!({ "operation": record.tool, "request": request, "service": { "name": "sightline" } }));
        }
    }
    if failed {
        let reason = record.error.clone().unwrap_or_else(|| record.decision.reasons.join("; "));
        set("status_detail", json!(reason));
    }
    set(
        "unmapped",
        json!({
            "question_id": record.question_id, "tool": record.tool, "arguments": record.arguments, "params": record.params,
            "rules": record.decision.rules, "rows_read": record.rows_read, "rows": record.result_rows,
            "digest": record.result_digest, "erased": erased,
        }),
    );
    document
}

fn of_event(entry: &Entry, event: &Event) -> Map<String, Value> {
    let failed = match event.outcome {
        EventOutcome::Done => matches!(event.event, EventKind::LoginFailed | EventKind::LockedOut),
        EventOutcome::Denied | EventOutcome::Failed => true,
    };
    let of = of_kind(event.event);
    let mut document = base(entry, of, entry.seq, &entry.hash.to_string(), entry.at.as_millisecond(), failed);
    let mut set = |name: &str, value: Value| document.insert(name.to_owned(), value);
    match of.uid {
        AUTHENTICATION => {
            set("user", user(entry));
            set("service", json!({ "name": "sightline" }));
        }
        LIFECYCLE => {
            set(
                "app",
                json!({ "name": "Sightline", "vendor_name": "Sightline", "version": env!("CARGO_PKG_VERSION") }),
            );
        }
        _ => {
            set("api", json!({ "operation": entry.kind, "service": { "name": "sightline" } }));
        }
    }
    set("status_detail", json!(entry.outcome));
    set("unmapped", json!({ "detail": event.detail }));
    document
}

/// Activities: of an API 1 creates, 2 reads, 3 updates, 4 deletes; of authentication 1 is a logon, 2 a logoff; of a life cycle 3 is a
/// start, 4 a stop.
fn of_kind(kind: EventKind) -> Class {
    match kind {
        EventKind::ServiceStarted => class(LIFECYCLE, 3),
        EventKind::ServiceStopped => class(LIFECYCLE, 4),
        EventKind::Heartbeat => Class { other: Some("Heartbeat"), ..class(LIFECYCLE, OTHER) },
        EventKind::Login | EventKind::LoginFailed => class(AUTHENTICATION, 1),
        EventKind::LockedOut => Class { other: Some("Lock out"), ..class(AUTHENTICATION, OTHER) },
        EventKind::Logout => class(AUTHENTICATION, 2),
        EventKind::TokenCreated | EventKind::Feedback => class(API, 1),
        EventKind::Denied | EventKind::AuditRead | EventKind::AuditVerified | EventKind::AuditExported => class(API, 2),
        EventKind::AuditReplayed => class(API, 2),
        EventKind::PolicyReload | EventKind::KeyRotated => class(API, 3),
        EventKind::TokenRevoked | EventKind::TextErased | EventKind::Retention | EventKind::ConversationsDeleted => {
            class(API, 4)
        }
        EventKind::ClockWentBack => Class { other: Some("Clock went back"), ..class(API, OTHER) },
        EventKind::CopyFailed => Class { other: Some("Copy failed"), ..class(API, OTHER) },
    }
}

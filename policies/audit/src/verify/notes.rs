//! Remarks beside the verdict: silences, and clocks that went back.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sightline_model::audit::Event;

use super::Note;
use super::walk::Fields;
use crate::log::PROCESS;

/// A service that misses so many heartbeats was silent.
const MISSED: i32 = 3;
/// A clock may jitter between threads.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);
/// A report stays of a readable size.
const MOST: usize = 200;
/// The detail of `ServiceStarted` and `Heartbeat` events that says how many seconds lie between two heartbeats.
pub const HEARTBEAT_SECONDS: &str = "heartbeat_seconds";

#[derive(Default)]
pub(super) struct Notes {
    notes: Vec<Note>,
    more: u64,
    last: Option<Timestamp>,
    /// The services that run, by their process: several may write one log, and one of them must not speak for another.
    services: BTreeMap<String, Service>,
}

/// A service that has started and not ended.
struct Service {
    /// Its last sign of life.
    last: Timestamp,
    /// How often one is due.
    every: SignedDuration,
}

impl Notes {
    pub(super) fn add(&mut self, seq: impl Into<Option<u64>>, what: String) {
        if self.notes.len() < MOST {
            self.notes.push(Note { seq: seq.into(), what });
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Passes a record.
    pub(super) fn pass(&mut self, seq: u64, fields: &Fields<'_>, body: &[u8]) {
        let Some(at) = fields.at.as_deref().and_then(|at| at.parse::<Timestamp>().ok()) else { return };
        self.silences(seq, at);
        // A call or an ending may come late, after a retry: its time says nothing of the clock.
        let just_now = matches!(fields.kind.as_ref(), "begin" | "event");
        match self.last {
            Some(last) if just_now && at.duration_since(last) < -TOLERANCE => {
                self.add(seq, format!("the clock went back from {last} to {at}"));
                self.last = Some(at);
            }
            Some(last) => self.last = Some(last.max(at)),
            None => self.last = Some(at),
        }
        if fields.kind == "event"
            && let Ok(event) = serde_json::from_slice::<Event>(body)
        {
            self.service(&event, at);
        }
    }

    fn service(&mut self, event: &Event, at: Timestamp) {
        use sightline_model::audit::EventKind;
        let process = event.detail.get(PROCESS).cloned().unwrap_or_default();
        match event.event {
            EventKind::ServiceStarted | EventKind::Heartbeat => {
                let seconds = event.detail.get(HEARTBEAT_SECONDS).and_then(|seconds| seconds.parse().ok());
                match seconds.map(SignedDuration::from_secs).filter(|every| every.is_positive()) {
                    Some(every) => self.services.insert(process, Service { last: at, every }),
                    None => self.services.remove(&process),
                };
            }
            EventKind::ServiceStopped => {
                self.services.remove(&process);
            }
            EventKind::Login
            | EventKind::Logout
            | EventKind::LoginFailed
            | EventKind::LockedOut
            | EventKind::Denied
            | EventKind::PolicyReload
            | EventKind::TokenCreated
            | EventKind::TokenRevoked
            | EventKind::AuditRead
            | EventKind::AuditVerified
            | EventKind::AuditExported
            | EventKind::AuditReplayed
            | EventKind::TextErased
            | EventKind::Retention
            | EventKind::KeyRotated
            | EventKind::ClockWentBack
            | EventKind::CopyFailed
            | EventKind::Feedback
            | EventKind::ConversationsDeleted => {}
        }
    }

    /// Tells of each service once that gave no sign of life for too long; it is heard of again at its next.
    fn silences(&mut self, seq: impl Into<Option<u64>>, until: Timestamp) {
        let seq = seq.into();
        let silent = |service: &Service| until.duration_since(service.last) > service.every.saturating_mul(MISSED);
        let gone: Vec<(String, Service)> = self.services.extract_if(.., |_, service| silent(service)).collect();
        for (process, Service { last, every: _ }) in gone {
            let which = if process.is_empty() { String::new() } else { format!(" (process {process})") };
            let what = format!(
                "no sign of life of the service{which} from {last} to {until}, although it had not ended in order: it was killed or hung, or its records were kept from the log"
            );
            self.add(seq, what);
        }
    }

    /// All of them, with the silence up to now.
    pub(super) fn end(mut self, now: Option<Timestamp>) -> Vec<Note> {
        if let Some(now) = now {
            self.silences(None, now);
        }
        if self.more > 0 {
            self.notes.push(Note { seq: None, what: format!("and {} notes more", self.more) });
        }
        self.notes
    }
}

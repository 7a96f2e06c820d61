//! What verifying the log found, as it is told.

use serde::Serialize;
use sightline_audit::{Broken, Report, Verdict};

/// What verifying the log found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether every record is there, unchanged, in order and signed for. Null when it is whole in itself, and a copy
    /// that would show an end that was cut off, or another log in its place, could not be compared.
    pub whole: Option<bool>,
    /// How many records, when it is whole.
    pub records: Option<u64>,
    /// The first bad record; none when the fault lies in no record.
    pub first_bad: Option<u64>,
    /// The verdict in words.
    pub verdict: String,
    /// Why this look is not in the log, when it could not be recorded there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<String>,
    /// What a reviewer should know beside it.
    pub notes: Vec<Remark>,
    /// How many checkpoints the log has.
    pub checkpoints: u64,
    /// How many checkpoints of copies were compared with it. With none, an end that was cut off together with its checkpoints does
    /// not show.
    pub compared: u64,
}

/// A remark that makes no log broken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The record that it is about, if it is about one.
    pub seq: Option<u64>,
    /// What there is to know.
    pub what: String,
}

impl Verification {
    /// What was found, with the copies that could not be read at all.
    pub fn of(report: Report, unreadable: Vec<String>) -> Self {
        let Report { verdict, notes, checkpoints, compared, unproved } = report;
        let words = verdict.to_string();
        let unproved: Vec<String> = unproved.into_iter().chain(unreadable).collect();
        let mut notes: Vec<Remark> = notes.into_iter().map(|note| Remark { seq: note.seq, what: note.what }).collect();
        let (whole, records, first_bad, verdict) = match verdict {
            Verdict::Broken(Broken { seq, what: _ }) => {
                notes.extend(unproved.into_iter().map(|what| Remark { seq: None, what }));
                (Some(false), None, seq, words)
            }
            Verdict::Whole { records } if unproved.is_empty() => (Some(true), Some(records), None, words),
            Verdict::Whole { records } => {
                let words = format!("not proved: {words}, but {}", unproved.join("; "));
                (None, Some(records), None, words)
            }
        };
        Self { whole, records, first_bad, verdict, unrecorded: None, notes, checkpoints, compared }
    }

    /// A log that cannot even be opened as one.
    pub(super) fn broken(what: &str) -> Self {
        Self {
            whole: Some(false),
            records: None,
            first_bad: None,
            verdict: format!("the log is broken: {what}"),
            unrecorded: None,
            notes: Vec::new(),
            checkpoints: 0,
            compared: 0,
        }
    }
}

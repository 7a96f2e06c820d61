//! What verifying the log found, as it is told.

use serde::Serialize;
use sightline_audit::{Broken, Report, Verdict};

/// What verifying the log found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether every record is there, unchanged, in order and signed for.
    pub whole: bool,
    /// How many records, when it is whole.
    pub records: Option<u64>,
    /// The first bad record; none when the fault lies in no record.
    pub first_bad: Option<u64>,
    /// The verdict in words.
    pub verdict: String,
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

impl From<Report> for Verification {
    fn from(report: Report) -> Self {
        let Report { verdict, notes, checkpoints, compared } = report;
        let words = verdict.to_string();
        let (whole, records, first_bad) = match verdict {
            Verdict::Whole { records } => (true, Some(records), None),
            Verdict::Broken(Broken { seq, what: _ }) => (false, None, seq),
        };
        let notes = notes.into_iter().map(|note| Remark { seq: note.seq, what: note.what }).collect();
        Self { whole, records, first_bad, verdict: words, notes, checkpoints, compared }
    }
}

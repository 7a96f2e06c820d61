//! The log for other programs: events of the Open Cybersecurity Schema Framework, and a table for a spreadsheet.
//!
//! Neither can be verified: what proves something is [`AuditReader::export`], the chain itself.

mod ocsf;
mod table;

use std::io::Write;

use sightline_model::audit::{Call, Event};

use crate::error::AuditError;
use crate::reader::{AuditReader, Sealed};
use crate::record::Kind;
use crate::search::{Entry, Search};

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OCSF events, one JSON document a line.
    Ocsf,
    /// Comma-separated values (RFC 4180) with a head line.
    Csv,
}

/// Entries read at once.
const A_PAGE: u32 = 1_000;

/// A writer of one format.
trait Sink {
    fn entry(&mut self, entry: &Entry, calls: &[Sealed<Call>], event: Option<&Event>) -> Result<(), AuditError>;
    fn end(self: Box<Self>) -> Result<(), AuditError>;
}

impl AuditReader {
    /// Writes what this search lets through, the oldest first. Returns how many entries were written; questions have a document of
    /// their own for each call in OCSF.
    ///
    /// # Errors
    /// When the log cannot be read or the output cannot be written.
    pub fn export_as(&self, format: Format, search: &Search, out: &mut dyn Write) -> Result<u64, AuditError> {
        let mut sink: Box<dyn Sink + '_> = match format {
            Format::Ocsf => Box::new(ocsf::Ocsf::new(out)),
            Format::Csv => Box::new(table::Table::new(out)?),
        };
        // One transaction: what is added meanwhile is not in it.
        let transaction = self.connection.unchecked_transaction().map_err(|error| self.failed(&error))?;
        let mut search = Search { limit: Some(A_PAGE), oldest_first: true, ..search.clone() };
        let mut written: u64 = 0;
        loop {
            let found = self.search(&search)?;
            for entry in &found.entries {
                let calls = match (&entry.question_id, format) {
                    (Some(id), Format::Ocsf) => {
                        self.records(id, Kind::Call)?.into_iter().map(|call| call.sealed()).collect::<Result<_, _>>()?
                    }
                    (Some(_) | None, Format::Ocsf | Format::Csv) => Vec::new(),
                };
                let event = if entry.question_id.is_none() { self.event_at(entry.seq)? } else { None };
                sink.entry(entry, &calls, event.as_ref())?;
                written = written.saturating_add(1);
            }
            search.cursor = found.next;
            if search.cursor.is_none() {
                break;
            }
        }
        drop(transaction);
        sink.end()?;
        Ok(written)
    }
}

fn unwritable(error: impl std::fmt::Display) -> AuditError {
    AuditError::Export { what: error.to_string() }
}

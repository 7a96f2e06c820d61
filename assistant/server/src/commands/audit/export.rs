//! `sightline audit export`: the log for other programs.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use sightline_audit::Format;
use sightline_model::audit::EventKind;
use sightline_policies::Action;

use super::{Desk, told};
use crate::commands::CommandError;
use crate::output;
use crate::review::SearchQuery;

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The chain itself, which can be verified elsewhere: always the whole log.
    Jsonl,
    /// Events of the Open Cybersecurity Schema Framework.
    Ocsf,
    /// A table.
    Csv,
}

impl ExportFormat {
    fn as_str(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Ocsf => "ocsf",
            Self::Csv => "csv",
        }
    }
}

/// What is exported, and where to.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// How it is written.
    pub format: ExportFormat,
    /// Which entries.
    pub query: SearchQuery,
    /// The file; standard output when none is named.
    pub out: Option<PathBuf>,
}

pub(super) async fn export(desk: &Desk, options: ExportOptions) -> Result<(), CommandError> {
    let ExportOptions { format, query, out } = options;
    let mut detail = query.detail();
    if format == ExportFormat::Jsonl && !detail.is_empty() {
        return Err(CommandError::Usage(
            "jsonl is the chain itself, which a part of proves nothing; leave the filters out, or export ocsf or csv"
                .to_owned(),
        ));
    }
    let search = query.search().map_err(told)?;
    detail.insert("format".to_owned(), format.as_str().to_owned());
    desk.look(Action::ExportAudit, EventKind::AuditExported, detail).await?;
    let write = move |reader: &sightline_audit::AuditReader| {
        let mut to: Box<dyn Write> = match &out {
            None => Box::new(BufWriter::new(std::io::stdout().lock())),
            Some(path) => {
                let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
                Box::new(BufWriter::new(file.map_err(|error| unwritable(&error))?))
            }
        };
        let written = match format {
            ExportFormat::Jsonl => reader.export(&mut to)?,
            ExportFormat::Ocsf => reader.export_as(Format::Ocsf, &search, &mut to)?,
            ExportFormat::Csv => reader.export_as(Format::Csv, &search, &mut to)?,
        };
        to.flush().map_err(|error| unwritable(&error))?;
        Ok(written)
    };
    let written = desk.files.read(write).await.map_err(told)?;
    output::note(&format!("exported {written} {}", if format == ExportFormat::Jsonl { "records" } else { "entries" }));
    Ok(())
}

fn unwritable(error: &std::io::Error) -> sightline_audit::AuditError {
    sightline_audit::AuditError::Export { what: error.to_string() }
}

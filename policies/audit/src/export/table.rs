//! A table for a spreadsheet. What people typed must stay text there: a cell that a spreadsheet would take for a formula is quoted
//! with an apostrophe, as spreadsheets do it themselves.

use std::io::Write;

use sightline_model::audit::{Call, Event};
use sightline_model::is_invisible;

use super::{Sink, unwritable};
use crate::error::AuditError;
use crate::reader::Sealed;
use crate::search::{Entry, Work};

const HEAD: [&str; 22] = [
    "seq",
    "time",
    "kind",
    "question_id",
    "who",
    "role",
    "tenants",
    "entrance",
    "question",
    "outcome",
    "error",
    "calls",
    "denied",
    "tools",
    "tables",
    "queries",
    "rows_read",
    "bytes_read",
    "llm_tokens",
    "wall_ms",
    "detail",
    "hash",
];

/// Writes a line for each entry.
pub(super) struct Table<'a> {
    lines: csv::Writer<&'a mut dyn Write>,
}

impl<'a> Table<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Result<Self, AuditError> {
        let mut lines = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
        lines.write_record(HEAD).map_err(unwritable)?;
        Ok(Self { lines })
    }
}

impl Sink for Table<'_> {
    fn entry(&mut self, entry: &Entry, _: &[Sealed<Call>], _: Option<&Event>) -> Result<(), AuditError> {
        let Entry {
            seq,
            hash,
            at,
            kind,
            question_id,
            who,
            role,
            tenants,
            entrance,
            question,
            erased: _,
            outcome,
            error,
            work,
            detail,
        } = entry;
        let work = work.clone().unwrap_or_default();
        let Work { calls, denied, tools, tables, queries, rows_read, bytes_read, llm_tokens, wall_ms } = work;
        let list = |names: Vec<&str>| harmless(&names.join(" "));
        let some = |text: Option<&str>| harmless(text.unwrap_or_default());
        let detail = serde_json::to_string(detail).map_err(unwritable)?;
        let cells: [String; HEAD.len()] = [
            seq.to_string(),
            at.to_string(),
            harmless(kind),
            some(question_id.as_ref().map(|id| id.as_str())),
            some(who.as_deref()),
            some(role.map(|role| role.as_str())),
            list(tenants.iter().map(String::as_str).collect()),
            harmless(entrance),
            some(question.as_deref()),
            harmless(outcome),
            some(error.as_deref()),
            calls.to_string(),
            denied.to_string(),
            list(tools.iter().map(String::as_str).collect()),
            list(tables.iter().map(String::as_str).collect()),
            queries.to_string(),
            rows_read.to_string(),
            bytes_read.to_string(),
            llm_tokens.to_string(),
            wall_ms.to_string(),
            harmless(&detail),
            hash.to_string(),
        ];
        self.lines.write_record(cells).map_err(unwritable)
    }

    fn end(mut self: Box<Self>) -> Result<(), AuditError> {
        self.lines.flush().map_err(unwritable)
    }
}

/// The text, with an apostrophe before it where a spreadsheet would begin to calculate: also behind spaces, which some pass over, and
/// for the wide forms of the signs, which some take for the plain ones. Where a list is written with semicolons, a spreadsheet may cut
/// the cell at one, or at a tab or a line's end, and quotes do not hold it back: what stands behind such a cut counts as a beginning
/// too. Characters that no spreadsheet shows are taken out.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Whether a spreadsheet may take what comes next for the beginning of a cell.
    let mut begins = true;
    let mut blank = String::new();
    for character in text.chars().filter(|c| !is_hidden(*c)) {
        match character {
            ' ' | '"' if begins => blank.push(character),
            '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠' if begins => {
                out.push('\'');
                out.push_str(&std::mem::take(&mut blank));
                out.push(character);
                begins = false;
            }
            // One that begins the whole cell hides what comes behind it.
            ';' | '\t' | '\r' | '\n' => {
                if out.is_empty() && character != ';' {
                    out.push('\'');
                }
                out.push_str(&std::mem::take(&mut blank));
                out.push(character);
                begins = true;
            }
            other => {
                out.push_str(&std::mem::take(&mut blank));
                out.push(other);
                begins = false;
            }
        }
    }
    out.push_str(&blank);
    out
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_a_spreadsheet_would_calculate_stays_text() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "  =1",
            "＝1",
            "＋1",
            "－1",
            "＠x",
            "=HYPERLINK(\"http://x\",\"y\")",
            "=cmd|' /C calc'!A0",
        ] {
            assert_eq!(harmless(formula), format!("'{formula}"));
        }
        for (formula, text) in [
            ("\t=1", "'\t'=1"),
            ("\n1", "'\n1"),
            ("x;=1+1", "x;'=1+1"),
            ("x; \"=1+1", "x;' \"=1+1"),
            ("x\t@SUM(A1);-1", "x\t'@SUM(A1);'-1"),
            ("x\r\n+1", "x\r\n'+1"),
        ] {
            assert_eq!(harmless(formula), text);
        }
        for text in ["", "why is J1 slow?", "a=b", "1-2", "'=1", "é", "a; b", "x;'=1", "  "] {
            assert_eq!(harmless(text), text);
        }
        assert_eq!(harmless("\u{0}=1"), "'=1");
        assert_eq!(harmless("\u{202e}=1 \u{2066}a\u{e0041}"), "'=1 a");
    }
}

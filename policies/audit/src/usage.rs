//! What was used: questions, rows, bytes and tokens of each principal on each day. Erased texts do not matter to it.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rusqlite::types::ValueRef;
use rusqlite::{Row, named_params};
use serde::Serialize;
use sightline_model::Read;

use crate::error::AuditError;
use crate::reader::AuditReader;
use crate::record::Kind;

/// Whose usage, on which days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFilter {
    /// From this day on, UTC.
    pub from: Option<Date>,
    /// Before this day.
    pub to: Option<Date>,
    /// Of the principal with exactly this id.
    pub principal: Option<String>,
    /// Of principals of this tenant; an admin belongs to none in particular.
    pub tenant: Option<String>,
}

/// What a principal used on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsageLine {
    /// The day, UTC.
    pub day: String,
    /// Who.
    pub principal: String,
    /// Of which tenants; none for who belongs to none in particular.
    pub tenants: Vec<String>,
    /// Questions and typed calls that began.
    pub questions: u64,
    /// Queries sent.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Model tokens.
    pub llm_tokens: u64,
}

/// How exactly the sums are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amounts {
    /// To the row and the byte: for who may see everybody's usage.
    Exact,
    /// Each query rounded as answers show it: the exact number counts rows of others that lie beside one's own, and what one
    /// question read is the difference of two looks.
    Rounded,
}

impl AuditReader {
    /// Usage by day, the earliest first, then by principal. Questions count where they began, reads where they ended: what was
    /// cancelled or cut off has read all the same.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn usage(&self, filter: &UsageFilter, amounts: Amounts) -> Result<Vec<UsageLine>, AuditError> {
        let UsageFilter { from, to, principal, tenant } = filter;
        // The index of times gives the days; who asked stands in the begin record's own index.
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT substr(e.second, 1, 10), b.who, b.tenants, e.kind, e.body ->> '$.sql' IS NOT NULL,
                   e.body ->> '$.rows_read', e.body ->> '$.bytes_read', e.body ->> '$.llm_tokens'
                 FROM record e INDEXED BY record_by_second
                 JOIN record b INDEXED BY record_of_question ON b.question_id = e.question_id AND b.kind = 'begin'
                 WHERE e.kind IN ('begin', 'call', 'complete') AND e.second >= :from AND e.second < :to
                   AND (:principal IS NULL OR b.who = :principal)
                   AND (:tenant IS NULL OR EXISTS (SELECT 1 FROM json_each(b.tenants) t WHERE t.value = :tenant))",
            )
            .map_err(|error| self.failed(&error))?;
        let mut rows = statement
            .query(named_params! {
                ":from": from.map_or_else(String::new, |day| day.to_string()),
                ":to": to.map_or_else(|| "~".to_owned(), |day| day.to_string()),
                ":principal": principal, ":tenant": tenant,
            })
            .map_err(|error| self.failed(&error))?;
        let mut lines: BTreeMap<Group, UsageLine> = BTreeMap::new();
        while let Some(row) = rows.next().map_err(|error| self.failed(&error))? {
            add(&mut lines, row, amounts).map_err(|error| self.failed(&error))?;
        }
        Ok(lines.into_values().collect())
    }
}

/// Day, principal and tenants, the latter as the log has them.
type Group = (String, String, Option<String>);

/// Adds one record to its line.
fn add(lines: &mut BTreeMap<Group, UsageLine>, row: &Row<'_>, amounts: Amounts) -> rusqlite::Result<()> {
    let group: Group = (row.get(0)?, row.get(1)?, row.get(2)?);
    let line = lines.entry(group).or_insert_with_key(|(day, principal, tenants)| UsageLine {
        day: day.clone(),
        principal: principal.clone(),
        tenants: tenants.as_deref().and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default(),
        questions: 0,
        queries: 0,
        rows_read: 0,
        bytes_read: 0,
        llm_tokens: 0,
    });
    let kind: String = row.get(3)?;
    if kind == Kind::Begin.as_str() {
        line.questions += 1;
    } else if kind == Kind::Complete.as_str() {
        line.llm_tokens = line.llm_tokens.saturating_add(number(row, 7)?);
    } else if row.get(4)? {
        let exactly = Read { rows: number(row, 5)?, bytes: number(row, 6)?, wall_ms: 0.0 };
        let read = match amounts {
            Amounts::Exact => exactly,
            Amounts::Rounded => exactly.rounded(),
        };
        line.queries += 1;
        line.rows_read = line.rows_read.saturating_add(read.rows);
        line.bytes_read = line.bytes_read.saturating_add(read.bytes);
    }
    Ok(())
}

/// A number that was read out of JSON; the log writes one that a double cannot hold as its decimal text.
fn number(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(match row.get_ref(index)? {
        ValueRef::Integer(number) => u64::try_from(number).unwrap_or(0),
        ValueRef::Real(number) => number as u64,
        ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        ValueRef::Null | ValueRef::Blob(_) => 0,
    })
}

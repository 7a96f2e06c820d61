//! What was used: questions, rows, bytes and tokens of each principal on each day. Erased texts do not matter to it.

use jiff::civil::Date;
use rusqlite::{Row, named_params};
use serde::Serialize;

use crate::error::AuditError;
use crate::reader::AuditReader;

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
    /// The day, UTC: that on which a question ended.
    pub day: String,
    /// Who.
    pub principal: String,
    /// Of which tenants; none for who belongs to none in particular.
    pub tenants: Vec<String>,
    /// Questions and typed calls that ended.
    pub questions: u64,
    /// Queries run.
    pub queries: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Model tokens.
    pub llm_tokens: u64,
}

impl AuditReader {
    /// Usage by day, the earliest first, then by principal.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn usage(&self, filter: &UsageFilter) -> Result<Vec<UsageLine>, AuditError> {
        let UsageFilter { from, to, principal, tenant } = filter;
        // The index of times gives the days; who asked stands in the begin record's own index.
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT substr(e.second, 1, 10) AS day, b.who, b.tenants, count(*),
                   sum(e.body ->> '$.queries'), sum(e.body ->> '$.rows_read'), sum(e.body ->> '$.bytes_read'),
                   sum(e.body ->> '$.llm_tokens')
                 FROM record e INDEXED BY record_by_second
                 JOIN record b INDEXED BY record_of_question ON b.question_id = e.question_id AND b.kind = 'begin'
                 WHERE e.kind = 'complete' AND e.second >= :from AND e.second < :to
                   AND (:principal IS NULL OR b.who = :principal)
                   AND (:tenant IS NULL OR EXISTS (SELECT 1 FROM json_each(b.tenants) t WHERE t.value = :tenant))
                 GROUP BY day, b.who, b.tenants ORDER BY day, b.who, b.tenants",
            )
            .map_err(|error| self.failed(&error))?;
        let rows = statement
            .query_map(
                named_params! {
                    ":from": from.map_or_else(String::new, |day| day.to_string()),
                    ":to": to.map_or_else(|| "~".to_owned(), |day| day.to_string()),
                    ":principal": principal, ":tenant": tenant,
                },
                read,
            )
            .map_err(|error| self.failed(&error))?;
        rows.collect::<Result<Vec<_>, _>>().map_err(|error| self.failed(&error))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<UsageLine> {
    let tenants: Option<String> = row.get(2)?;
    // Sums of numbers that were read out of JSON; one too large for SQLite's integers comes as a float.
    let sum = |index: usize| -> rusqlite::Result<u64> {
        let sum: f64 = match row.get_ref(index)? {
            rusqlite::types::ValueRef::Integer(sum) => return Ok(u64::try_from(sum).unwrap_or(0)),
            rusqlite::types::ValueRef::Real(sum) => sum,
            _ => 0.0,
        };
        Ok(sum as u64)
    };
    Ok(UsageLine {
        day: row.get(0)?,
        principal: row.get(1)?,
        tenants: tenants.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
        questions: row.get(3)?,
        queries: sum(4)?,
        rows_read: sum(5)?,
        bytes_read: sum(6)?,
        llm_tokens: sum(7)?,
    })
}

//! The tables, indexes and triggers of the file: a changed one could hide records or let them change.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rusqlite::Connection;

use super::Stop;
use crate::file::schema;

/// Everything in the file that has a name: what it is, and its definition.
type Shape = BTreeMap<String, (String, Option<String>)>;

/// What is not as this format has it.
pub(super) struct Misshapen {
    /// Each object with what was done to it.
    pub(super) what: String,
    /// Whether the tables are all there as they were, so that the records can be read.
    pub(super) tables_stand: bool,
}

/// A report stays of a readable size.
const MOST: usize = 10;

/// None when everything is as this format has it.
pub(super) fn check(connection: &Connection) -> Result<Option<Misshapen>, Stop> {
    static NEWEST: OnceLock<Shape> = OnceLock::new();
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let found = shape(connection)?;
    if format == schema::FORMAT
        && let Some(newest) = NEWEST.get()
    {
        return Ok(compare(&found, newest));
    }
    let expected = Connection::open_in_memory()?;
    schema::migrate(&expected, format)?;
    let expected = shape(&expected)?;
    let misshapen = compare(&found, &expected);
    if format == schema::FORMAT {
        let _set_by_another = NEWEST.set(expected);
    }
    Ok(misshapen)
}

fn compare(found: &Shape, expected: &Shape) -> Option<Misshapen> {
    let mut what = Vec::new();
    let mut tables_stand = true;
    for (name, object @ (kind, _)) in expected {
        let done = match found.get(name) {
            Some(stored) if stored == object => continue,
            Some(_) => "changed",
            None => "removed",
        };
        tables_stand &= kind != "table";
        what.push(format!("the {kind} `{name}` was {done}"));
    }
    for (name, (kind, _)) in found.iter().filter(|(name, _)| !expected.contains_key(*name)) {
        what.push(format!("the {kind} `{}` was added", name.escape_debug()));
    }
    let more = what.len().saturating_sub(MOST);
    what.truncate(MOST);
    if more > 0 {
        what.push(format!("and {more} more"));
    }
    (!what.is_empty()).then(|| Misshapen { what: what.join(", "), tables_stand })
}

fn shape(connection: &Connection) -> rusqlite::Result<Shape> {
    let mut statement = connection.prepare("SELECT name, type, sql FROM main.sqlite_schema ORDER BY name")?;
    statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?.collect()
}

//! The tables of the log, format by format.

use std::path::Path;

use rusqlite::Connection;

use crate::error::AuditError;

/// `SLAU`, so that no other program's database is taken for a log.
const APPLICATION_ID: i64 = 0x534c_4155;

/// Nothing is stored twice: what is looked up by is derived from the canonical text by the database itself, so
/// there is no column beside it that could be changed alone. A text that was damaged into no JSON drops out of the
/// lists and leaves the rest of them readable; verification names it.
const FORMAT_1: &str = "
CREATE TABLE log (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL) STRICT;
CREATE TABLE record (
  seq INTEGER PRIMARY KEY,
  body TEXT NOT NULL,
  prev BLOB NOT NULL,
  hash BLOB NOT NULL,
  kind TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.kind' END) VIRTUAL,
  question_id TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.question_id' END) VIRTUAL
) STRICT;
CREATE INDEX record_by_kind ON record (kind);
CREATE INDEX record_by_question ON record (question_id);
CREATE TABLE head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  seq INTEGER NOT NULL, hash BLOB NOT NULL, previous INTEGER NOT NULL, key_id TEXT NOT NULL, signature BLOB NOT NULL
) STRICT;
CREATE TABLE checkpoint (
  seq INTEGER PRIMARY KEY,
  hash BLOB NOT NULL, previous INTEGER NOT NULL, key_id TEXT NOT NULL, signature BLOB NOT NULL
) STRICT;
CREATE TRIGGER record_is_not_changed BEFORE UPDATE ON record BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER record_is_not_removed BEFORE DELETE ON record BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER checkpoint_is_not_changed BEFORE UPDATE ON checkpoint BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER checkpoint_is_not_removed BEFORE DELETE ON checkpoint BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
";

/// Adds texts that can be erased, segments with their Merkle roots, and changes of the key. Records and checkpoints
/// of format 1 stay as they are: `checkpoint` gets no new rows, `segment` carries the checkpoints from here on.
const FORMAT_2: &str = "
CREATE TABLE private (seq INTEGER PRIMARY KEY, salt BLOB NOT NULL, text TEXT NOT NULL) STRICT;
CREATE TABLE segment (
  segment INTEGER PRIMARY KEY,
  first INTEGER NOT NULL, last INTEGER NOT NULL, hash BLOB NOT NULL, root BLOB NOT NULL, previous BLOB NOT NULL,
  at INTEGER NOT NULL, key BLOB NOT NULL, signature BLOB NOT NULL
) STRICT;
CREATE TABLE rotation (
  number INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL, hash BLOB NOT NULL, old_key BLOB NOT NULL, new_key BLOB NOT NULL,
  old_signature BLOB NOT NULL, new_signature BLOB NOT NULL
) STRICT;
CREATE TRIGGER private_is_not_changed BEFORE UPDATE ON private BEGIN SELECT RAISE(ABORT, 'a text is erased or stays as it is'); END;
CREATE TRIGGER segment_is_not_changed BEFORE UPDATE ON segment BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER segment_is_not_removed BEFORE DELETE ON segment BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER rotation_is_not_changed BEFORE UPDATE ON rotation BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER rotation_is_not_removed BEFORE DELETE ON rotation BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
";

/// Adds what a reviewer searches by. As before nothing is stored twice: each column is derived from the canonical text, and lives in
/// an index alone. `second` is the beginning of the record's time as text, which sorts like the time itself.
const FORMAT_3: &str = "
ALTER TABLE record ADD COLUMN who TEXT GENERATED ALWAYS AS
  (CASE WHEN json_valid(body) THEN coalesce(body ->> '$.principal.id', body ->> '$.principal') END) VIRTUAL;
ALTER TABLE record ADD COLUMN second TEXT GENERATED ALWAYS AS
  (CASE WHEN json_valid(body) THEN substr(body ->> '$.at', 1, 19) END) VIRTUAL;
ALTER TABLE record ADD COLUMN tenants TEXT GENERATED ALWAYS AS
  (CASE WHEN json_valid(body) THEN body ->> '$.principal.tenants.only' END) VIRTUAL;
ALTER TABLE record ADD COLUMN tool TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.tool' END) VIRTUAL;
ALTER TABLE record ADD COLUMN tables TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.tables' END) VIRTUAL;
ALTER TABLE record ADD COLUMN allowed INTEGER GENERATED ALWAYS AS
  (CASE WHEN json_valid(body) THEN body ->> '$.decision.allowed' END) VIRTUAL;
ALTER TABLE record ADD COLUMN outcome TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.outcome' END) VIRTUAL;
ALTER TABLE record ADD COLUMN event TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(body) THEN body ->> '$.event' END) VIRTUAL;
CREATE INDEX record_by_who ON record (who) WHERE who IS NOT NULL;
CREATE INDEX record_by_second ON record (kind, second);
CREATE INDEX record_of_question ON record (question_id, kind, tool, allowed, tables, outcome) WHERE question_id IS NOT NULL;
CREATE INDEX record_by_event ON record (event) WHERE kind = 'event';
";

/// What is added from one format to the next; the first line makes format 1. A new file goes through all of them,
/// so that it is built like one that grew with the program. Formats that were shipped are never edited.
const STEPS: &[(i64, &str)] = &[(1, FORMAT_1), (2, FORMAT_2), (3, FORMAT_3)];

/// The newest format this program reads and writes; `PRAGMA user_version` of the file.
pub(crate) const FORMAT: i64 = 3;

/// Whether nothing was ever put into this file.
pub(crate) fn is_new(connection: &Connection) -> rusqlite::Result<bool> {
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(objects == 0 && user_version(connection)? == 0)
}

/// Brings the tables up to this format.
pub(crate) fn migrate(connection: &Connection, to: i64) -> rusqlite::Result<()> {
    let from = user_version(connection)?;
    for (format, sql) in STEPS.iter().filter(|(format, _)| (from + 1..=to).contains(format)) {
        connection.execute_batch(sql)?;
        connection.pragma_update(None, "user_version", format)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)
}

/// Lets a log of an older format be read without changing it: the tables that it lacks stand empty beside it.
pub(crate) fn make_up_missing_tables(connection: &Connection) -> rusqlite::Result<()> {
    let missing: Vec<&str> = LATER_TABLES
        .iter()
        .map(|(name, columns)| {
            let sql = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = ?1";
            let found: i64 = connection.query_row(sql, [name], |row| row.get(0))?;
            Ok((found == 0).then_some(*columns))
        })
        .filter_map(Result::transpose)
        .collect::<rusqlite::Result<_>>()?;
    if user_version(connection)? >= FORMAT || missing.is_empty() {
        return Ok(());
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    missing.into_iter().try_for_each(|columns| connection.execute_batch(&format!("CREATE TEMP TABLE {columns}")))
}

/// The tables that format 1 lacks. One that is there must not be hidden behind an empty one of the same name.
const LATER_TABLES: &[(&str, &str)] = &[
    ("private", "private (seq, salt, text)"),
    ("segment", "segment (segment, first, last, hash, root, previous, at, key, signature)"),
    ("rotation", "rotation (number, seq, hash, old_key, new_key, old_signature, new_signature)"),
];

/// The format of the file. Refuses a file of a newer program, and one that is no log at all.
pub(crate) fn check_format(connection: &Connection, path: &Path) -> Result<i64, AuditError> {
    let failed = |error: rusqlite::Error| AuditError::sqlite(path, &error);
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(failed)?;
    let found = user_version(connection).map_err(failed)?;
    if application != APPLICATION_ID || found < 1 {
        return Err(AuditError::Damaged { path: path.display().to_string() });
    }
    if found > FORMAT {
        return Err(AuditError::Newer { path: path.display().to_string(), found, known: FORMAT });
    }
    Ok(found)
}

fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

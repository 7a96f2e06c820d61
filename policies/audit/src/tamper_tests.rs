//! Whoever has the file and no key: every cell of every table, every byte of records.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::chain::Hash;
use crate::test_log::{TestLog, at};
use crate::verify::walk::{Misfit, follows, is_committed};
use crate::{AuditKey, AuditReader, Checkpoint, Proof, Settings, SqliteAudit, Verdict};

/// A log with rows in every table: grown from nothing, with two keys, something erased and something taken out.
fn full_log() -> TestLog {
    use futures::executor::block_on;
    let test = TestLog::new();
    let log = test.open();
    for index in 0..4 {
        crate::test_log::ask(&log, &format!("q{index}"));
    }
    let now = || at("2026-05-04T10:00:00.6Z");
    block_on(log.retain(at("2026-05-04T10:00:00.55Z"), now(), "admin".to_owned())).unwrap().unwrap();
    for index in 4..6 {
        crate::test_log::ask(&log, &format!("q{index}"));
    }
    let erased = crate::Erase::Questions(vec![sightline_model::QuestionId::new("q4")]);
    block_on(log.erase(erased, now(), "admin".to_owned())).unwrap();
    block_on(log.rotate(AuditKey::from_secret([8; 32]), now(), "admin".to_owned())).unwrap();
    crate::test_log::ask(&log, "q6");
    test
}

/// The tables and their columns, as the file itself tells them; the generated ones are derived and hold nothing.
fn tables(shell: &Connection) -> Vec<(String, Vec<String>)> {
    let mut statement = shell
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
        .unwrap();
    let names: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    names
        .into_iter()
        .map(|name| {
            let mut columns = shell.prepare(&format!("PRAGMA table_info({name})")).unwrap();
            let columns = columns.query_map([], |row| row.get(1)).unwrap().map(Result::unwrap).collect();
            (name, columns)
        })
        .collect()
}

/// Other values for a cell: none of them is what stands there.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(number) => vec![Value::Integer(number + 1), Value::Integer(-number - 7)],
        Value::Text(text) => {
            let mut changed = text.clone();
            let last = changed.pop().unwrap_or('x');
            changed.push(if last == '0' { '1' } else { '0' });
            vec![Value::Text(changed), Value::Text(String::new()), Value::Text(format!("{text} "))]
        }
        Value::Blob(bytes) => {
            let mut changed = bytes.clone();
            changed[0] ^= 1;
            let mut longer = bytes.clone();
            longer.push(0);
            vec![Value::Blob(changed), Value::Blob(Vec::new()), Value::Blob(longer)]
        }
        Value::Null | Value::Real(_) => panic!("no column holds {value:?}"),
    }
}

struct Row {
    id: i64,
    cells: Vec<Value>,
}

fn rows(shell: &Connection, table: &str, columns: &[String]) -> Vec<Row> {
    let sql = format!("SELECT rowid, {} FROM {table} ORDER BY rowid", columns.join(", "));
    let mut statement = shell.prepare(&sql).unwrap();
    let rows = statement
        .query_map([], |row| {
            let cells = (0..columns.len()).map(|column| row.get(column + 1)).collect::<rusqlite::Result<_>>()?;
            Ok(Row { id: row.get(0)?, cells })
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn any_changed_added_or_removed_cell_of_any_table_is_found() {
    let tried = tamper_with_each_cell(&full_log(), &["checkpoint"]);
    assert!(tried > 100, "{tried}");
}

#[test]
fn so_it_is_in_a_log_that_ends_with_a_checkpoint() {
    let test = TestLog::with_questions(4);
    assert_eq!(test.reader().checkpoints(0).unwrap().last().unwrap().last, 12);
    let tried = tamper_with_each_cell(&test, &["checkpoint", "rotation"]);
    assert!(tried > 50, "{tried}");
}

#[test]
fn so_it_is_in_a_log_that_grew_from_the_first_format() {
    let test = crate::file::format_tests::old_log();
    crate::test_log::ask(&test.open(), "q3");
    let tried = tamper_with_each_cell(&test, &["rotation"]);
    assert!(tried > 50, "{tried}");
}

/// How many changes were tried. These tables have no rows in this log.
fn tamper_with_each_cell(test: &TestLog, empty: &[&str]) -> usize {
    assert!(matches!(test.verify(), Verdict::Whole { .. }), "{}", test.verify());
    let shell = Connection::open(test.path()).unwrap();
    let tables = tables(&shell);
    let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["checkpoint", "head", "log", "private", "record", "rotation", "segment"]);
    // As a forger would, the triggers are out of the way while a cell is changed; they are back for the check.
    let mut statement = shell.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    drop(statement);
    shell.pragma_update(None, "synchronous", "OFF").unwrap();
    let change = |sql: &str, values: &[Value]| {
        let drops: String = triggers.iter().map(|(name, _)| format!("DROP TRIGGER {name};")).collect();
        shell.execute_batch(&format!("BEGIN; {drops}")).unwrap();
        let changed = shell.execute(sql, params_from_iter(values));
        let back: String = triggers.iter().map(|(_, sql)| format!("{sql};")).collect();
        shell.execute_batch(&format!("{back} COMMIT")).unwrap();
        // A value that the table's own rules refuse is none that could stand there.
        changed.is_ok_and(|rows| rows == 1)
    };
    let mut tried = 0;
    for (table, columns) in &tables {
        let placed = rows(&shell, table, columns);
        assert_eq!(empty.contains(&table.as_str()), placed.is_empty(), "{table}");
        if table == "checkpoint" {
            // Nothing that was signed, at every place a record stands, stood or could stand.
            for seq in [-1, 0, 1, 2, 3, 5, 1_000_000] {
                let insert = "INSERT INTO checkpoint VALUES (?1, zeroblob(32), 0, 'none', zeroblob(64))";
                assert!(change(insert, &[Value::Integer(seq)]));
                assert!(matches!(test.verify(), Verdict::Broken(_)), "a checkpoint at {seq}");
                assert!(change("DELETE FROM checkpoint WHERE seq = ?1", &[Value::Integer(seq)]));
            }
        }
        // The first, the last and one between: each table's rows are all of one kind.
        let sample = [0, placed.len() / 2, placed.len().saturating_sub(1)];
        for row in sample.iter().filter_map(|index| placed.get(*index)) {
            for (column, value) in columns.iter().zip(&row.cells) {
                for other in others(value) {
                    let set = format!("UPDATE {table} SET {column} = ?1 WHERE rowid = ?2");
                    if !change(&set, &[other.clone(), Value::Integer(row.id)]) {
                        continue;
                    }
                    tried += 1;
                    let found = AuditReader::open(&test.path()).unwrap().verify(&TestLog::public_key()).unwrap();
                    assert!(matches!(found, Verdict::Broken(_)), "{table}.{column} of row {} to {other:?}", row.id);
                    // Where the row's own number was changed, it is found by the new one.
                    let key = if columns.first() == Some(column) { other } else { Value::Integer(row.id) };
                    assert!(change(&set, &[value.clone(), key]), "{table}.{column} cannot be put back");
                }
            }
            let all = columns.join(", ");
            let marks: Vec<String> = (1..=columns.len()).map(|index| format!("?{index}")).collect();
            let insert = format!("INSERT INTO {table} ({all}) VALUES ({})", marks.join(", "));
            assert!(change(&format!("DELETE FROM {table} WHERE rowid = ?1"), &[Value::Integer(row.id)]));
            // The first segment after format 1 vouches for all that the last checkpoint of format 1 did, and does not
            // name it: without it the log proves as much.
            let is_superseded = table == "checkpoint";
            assert!(is_superseded || matches!(test.verify(), Verdict::Broken(_)), "{table} without row {}", row.id);
            assert!(change(&insert, &row.cells));
            let newest = placed.last().map_or(0, |row| row.id);
            for id in [0, newest + 1, 1_000_000] {
                let mut added = row.cells.clone();
                added[0] = Value::Integer(id);
                if change(&insert, &added) {
                    tried += 1;
                    assert!(
                        matches!(test.verify(), Verdict::Broken(_)),
                        "{table} with a copy of row {} at {id}",
                        row.id
                    );
                    assert!(change(&format!("DELETE FROM {table} WHERE rowid = {id}"), &[]));
                }
            }
        }
        assert!(matches!(test.verify(), Verdict::Whole { .. }), "{table} was not put back");
    }
    tried
}

/// One stored record of a long log.
struct Stored {
    seq: u64,
    body: Vec<u8>,
    prev: [u8; 32],
    hash: [u8; 32],
}

fn stored(test: &TestLog) -> Vec<Stored> {
    let shell = Connection::open(test.path()).unwrap();
    let mut statement = shell.prepare("SELECT seq, body, prev, hash FROM record ORDER BY seq").unwrap();
    let rows = statement
        .query_map([], |row| {
            let body = row.get_ref(1)?.as_bytes()?.to_vec();
            Ok(Stored { seq: row.get(0)?, body, prev: row.get(2)?, hash: row.get(3)? })
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// A thousand records in segments of a hundred.
fn long_log() -> TestLog {
    use futures::executor::block_on;
    use futures::future::join_all;
    use sightline_model::audit::AuditLog;
    let test = TestLog::new();
    let settings = Settings { checkpoint_every: 100, ..TestLog::settings() };
    let log = SqliteAudit::open(&test.path(), settings).unwrap();
    for round in 0..10 {
        let records = (0..100).map(|index| log.begin(crate::test_log::begin(&format!("q{round}-{index}"))));
        assert!(block_on(join_all(records)).iter().all(Result::is_ok));
    }
    test
}

/// Flips a bit in each byte, one after the other.
fn each_flipped(bytes: &[u8], mut check: impl FnMut(&[u8])) -> u64 {
    let mut changed = bytes.to_vec();
    for index in 0..bytes.len() {
        changed[index] ^= 1 << (index % 8);
        check(&changed);
        changed[index] = bytes[index];
    }
    bytes.len() as u64
}

#[test]
fn any_flipped_byte_of_a_thousand_records_is_refused_by_the_check_that_verification_makes() {
    let test = long_log();
    assert_eq!(test.verify(), Verdict::Whole { records: 1000 });
    let array = |bytes: &[u8]| Hash::from_bytes(bytes.try_into().unwrap());
    let mut flipped = 0;
    let mut before = array(&stored(&test)[0].prev);
    for Stored { seq, body, prev, hash } in stored(&test) {
        let follows = |body: &[u8], prev: &[u8], hash: &[u8]| follows(seq, body, array(prev), array(hash), before);
        assert_eq!(follows(&body, &prev, &hash), Ok(()), "{seq}");
        flipped += each_flipped(&body, |body| assert_eq!(follows(body, &prev, &hash), Err(Misfit::Record), "{seq}"));
        flipped += each_flipped(&prev, |prev| assert_eq!(follows(&body, prev, &hash), Err(Misfit::Record), "{seq}"));
        flipped += each_flipped(&hash, |hash| assert_eq!(follows(&body, &prev, hash), Err(Misfit::Record), "{seq}"));
        before = array(&hash);
    }
    assert!(flipped > 264_000, "{flipped}");
}

#[test]
fn any_flipped_byte_of_a_thousand_texts_and_of_all_checkpoints_is_refused_by_the_same_checks() {
    let test = long_log();
    let shell = Connection::open(test.path()).unwrap();
    let sql = "SELECT r.body ->> '$.commitment', p.salt, p.text FROM record r JOIN private p ON p.seq = r.seq";
    let mut statement = shell.prepare(sql).unwrap();
    let committed_texts = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let mut texts = 0;
    for row in committed_texts {
        let (committed, salt, text): (String, [u8; 32], String) = row.unwrap();
        assert!(is_committed(&committed, &salt, text.as_bytes()));
        each_flipped(&salt, |salt| assert!(!is_committed(&committed, salt.try_into().unwrap(), text.as_bytes())));
        each_flipped(text.as_bytes(), |text| assert!(!is_committed(&committed, &salt, text)));
        texts += 1;
    }
    assert_eq!(texts, 1000);

    let columns: Vec<String> = Checkpoint::COLUMNS.split(", ").map(str::to_owned).collect();
    let log_id = [9; 16];
    let mut flipped = 0;
    for Row { id, cells } in rows(&shell, "segment", &columns) {
        for (column, cell) in cells.iter().enumerate() {
            let bytes = match cell {
                Value::Integer(number) => number.to_be_bytes().to_vec(),
                Value::Blob(bytes) => bytes.clone(),
                other => panic!("{other:?}"),
            };
            flipped += each_flipped(&bytes, |bytes| {
                let mut changed = cells.clone();
                changed[column] = match cell {
                    Value::Integer(_) => Value::Integer(i64::from_be_bytes(bytes.try_into().unwrap())),
                    _ => Value::Blob(bytes.to_vec()),
                };
                let found =
                    shell.query_row("SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9", params_from_iter(changed), |row| {
                        Checkpoint::read(&log_id, row)
                    });
                assert!(!found.is_ok_and(|checkpoint| checkpoint.is_signed()), "{} of {id}", columns[column]);
            });
        }
    }
    assert_eq!(flipped, 10 * (4 * 8 + 4 * 32 + 64));
}

#[test]
fn a_flipped_byte_in_a_long_log_is_found_and_its_record_named() {
    let seed: u64 = seed_of_the_day();
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let test = long_log();
    let records = stored(&test);
    let write = |seq: u64, body: &[u8]| {
        test.tamper(&format!("UPDATE record SET body = CAST(X'{}' AS TEXT) WHERE seq = {seq}", hex::encode(body)));
    };
    for _ in 0..24 {
        let record = &records[random.random_range(0..records.len())];
        let index = random.random_range(0..record.body.len());
        let mut body = record.body.clone();
        body[index] ^= 1 << random.random_range(0..8);
        write(record.seq, &body);
        match test.verify() {
            Verdict::Broken(broken) => assert_eq!(broken.seq, Some(record.seq), "seed {seed}, byte {index}"),
            Verdict::Whole { .. } => panic!("seed {seed}: record {} byte {index}", record.seq),
        }
        write(record.seq, &record.body);
    }
    assert_eq!(test.verify(), Verdict::Whole { records: 1000 });
}

/// Another sample at each run; the seed is printed.
#[expect(clippy::disallowed_methods, reason = "a sample that moves from run to run")]
fn seed_of_the_day() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap()
}

#[test]
fn one_record_can_be_shown_without_the_others_and_no_byte_of_the_proof_can_change() {
    let test = long_log();
    let key = TestLog::public_key();
    for seq in [1, 100, 101, 537, 1000] {
        let proof = test.reader().proof(seq).unwrap().unwrap();
        assert_eq!(proof.check(&key), Ok(()), "{seq}");
        let json = serde_json::to_string(&proof).unwrap();
        let read: Proof = serde_json::from_str(&json).unwrap();
        assert_eq!(read.check(&key), Ok(()));
        // Without its text it proves as much about the rest.
        assert_eq!(Proof { text: None, ..read }.check(&key), Ok(()));
        assert!(proof.check(&AuditKey::from_secret([8; 32]).public()).is_err());
        // Each byte of one proof: they are all of one kind.
        for index in (0..json.len()).filter(|_| seq == 537) {
            let mut bytes = json.clone().into_bytes();
            bytes[index] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let Ok(changed) = serde_json::from_str::<Proof>(&changed) else { continue };
            let same = serde_json::to_string(&changed).unwrap() == json;
            assert!(same || changed.check(&key).is_err() || changed.text.is_none(), "{seq} {index}");
        }
    }
    assert!(test.reader().proof(1001).unwrap().is_none());
}

#[test]
fn a_record_of_an_open_segment_has_no_proof_yet() {
    let test = TestLog::with_questions(1);
    assert!(test.reader().proof(1).unwrap().is_none());
    crate::test_log::ask(&test.open(), "q1");
    assert_eq!(test.reader().proof(1).unwrap().unwrap().check(&TestLog::public_key()), Ok(()));
}

use std::fs;

use rusqlite::Connection;

use crate::chain::Hash;
use crate::test_log::{TestLog, at};
use crate::{AuditKey, AuditReader, Broken, Filter, Verdict};

/// One stored record.
struct Row {
    seq: u64,
    body: Vec<u8>,
    prev: [u8; 32],
    hash: [u8; 32],
}

fn rows(test: &TestLog) -> Vec<Row> {
    let shell = Connection::open(test.path()).unwrap();
    let mut statement = shell.prepare("SELECT seq, body, prev, hash FROM record ORDER BY seq").unwrap();
    let rows = statement
        .query_map([], |row| {
            let body = row.get_ref(1)?.as_bytes()?.to_vec();
            Ok(Row { seq: row.get(0)?, body, prev: row.get(2)?, hash: row.get(3)? })
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// SQL that puts these bytes into a cell as text.
fn text(bytes: &[u8]) -> String {
    format!("CAST(X'{}' AS TEXT)", hex::encode(bytes))
}

fn blob(bytes: &[u8]) -> String {
    format!("X'{}'", hex::encode(bytes))
}

/// SQL that changes record 5 and hashes everything from there to `last` anew, as a careful forger without the key does.
fn forge(test: &TestLog, last: u64) -> String {
    let mut sql = String::new();
    let rows = rows(test);
    let mut hash = Hash::from_bytes(rows[4].prev);
    for row in rows.iter().filter(|row| (5..=last).contains(&row.seq)) {
        let body = String::from_utf8(row.body.clone()).unwrap().replace("120", "121");
        let next = hash.next(row.seq, body.as_bytes());
        sql += &format!(
            "UPDATE record SET body = {}, prev = {}, hash = {} WHERE seq = {};",
            text(body.as_bytes()),
            blob(hash.as_bytes()),
            blob(next.as_bytes()),
            row.seq
        );
        hash = next;
    }
    sql
}

#[test]
fn a_whole_log_is_found_whole() {
    let test = TestLog::with_questions(4);
    assert_eq!(test.verify().to_string(), "the log is whole: 12 records, signed up to the last");
}

#[test]
fn whatever_is_changed_removed_moved_or_added_is_found_and_named() {
    const SWAP: &str = "UPDATE record SET seq = -5 WHERE seq = 5; UPDATE record SET seq = 5 WHERE seq = 7; UPDATE record SET seq = 7 WHERE seq = -5";
    let cases = [
        ("the text of record 5", "UPDATE record SET body = replace(body, '120', '121') WHERE seq = 5"),
        ("the text of record 5 is no JSON", "UPDATE record SET body = 'gone' WHERE seq = 5"),
        ("the hash of record 5", "UPDATE record SET hash = zeroblob(32) WHERE seq = 5"),
        ("the hash of record 5 is short", "UPDATE record SET hash = x'00' WHERE seq = 5"),
        ("the predecessor's hash in record 5", "UPDATE record SET prev = zeroblob(32) WHERE seq = 5"),
        ("record 1 removed", "DELETE FROM record WHERE seq = 1"),
        ("record 5 removed", "DELETE FROM record WHERE seq = 5"),
        ("records 5 to 7 removed", "DELETE FROM record WHERE seq BETWEEN 5 AND 7"),
        (
            "record 5 removed, the rest moved up",
            "DELETE FROM record WHERE seq = 5; UPDATE record SET seq = -seq WHERE seq > 5; UPDATE record SET seq = -seq - 1 WHERE seq < 0",
        ),
        ("records 5 and 7 swapped", SWAP),
        (
            "record 5 copied to the end",
            "INSERT INTO record (seq, body, prev, hash) SELECT 13, body, prev, hash FROM record WHERE seq = 5",
        ),
        (
            "record 5 copied over record 6",
            "UPDATE record SET (body, prev, hash) = (SELECT body, prev, hash FROM record WHERE seq = 5) WHERE seq = 6",
        ),
        (
            "a record before the first",
            "INSERT INTO record (seq, body, prev, hash) SELECT -1, body, prev, hash FROM record WHERE seq = 5",
        ),
        ("the last record removed", "DELETE FROM record WHERE seq = 12"),
        ("all records removed", "DELETE FROM record"),
        (
            "cut at a checkpoint, which is made the head",
            "DELETE FROM record WHERE seq > 8; DELETE FROM private WHERE seq > 8; DELETE FROM segment WHERE last > 8; UPDATE head SET seq = 8, hash = (SELECT hash FROM segment WHERE last = 8), previous = 8",
        ),
        (
            "cut before a checkpoint that is left",
            "DELETE FROM record WHERE seq > 6; DELETE FROM private WHERE seq > 6; UPDATE head SET seq = 6, hash = (SELECT hash FROM record WHERE seq = 6)",
        ),
        ("the head removed", "DELETE FROM head"),
        ("the head's signature", "UPDATE head SET signature = zeroblob(64)"),
        ("the head's signature is short", "UPDATE head SET signature = x'00'"),
        ("the head's hash is short", "UPDATE head SET hash = x'00'"),
        ("the head's number is negative", "UPDATE head SET seq = -5"),
        ("the head's last checkpoint is negative", "UPDATE head SET previous = -5"),
        ("the head's key", "UPDATE head SET key_id = 'another'"),
        ("a checkpoint removed", "DELETE FROM segment WHERE segment = 2"),
        ("the last checkpoint removed", "DELETE FROM segment WHERE segment = 3"),
        ("all checkpoints removed", "DELETE FROM segment"),
        ("a checkpoint's hash", "UPDATE segment SET hash = zeroblob(32) WHERE segment = 2"),
        ("a checkpoint's root", "UPDATE segment SET root = zeroblob(32) WHERE segment = 2"),
        ("a checkpoint's signature", "UPDATE segment SET signature = zeroblob(64) WHERE segment = 2"),
        ("a checkpoint's signature is short", "UPDATE segment SET signature = x'00' WHERE segment = 2"),
        ("a checkpoint of format 1 added", "INSERT INTO checkpoint SELECT 5, hash, 4, key_id, signature FROM head"),
        ("a question's text", "UPDATE private SET text = replace(text, 'J123', 'J124') WHERE seq = 4"),
        ("the salt of a question", "UPDATE private SET salt = zeroblob(32) WHERE seq = 4"),
        ("a text removed that nobody erased", "DELETE FROM private WHERE seq = 4"),
        ("a text added to an ending", "INSERT INTO private SELECT 6, salt, text FROM private WHERE seq = 4"),
        ("a text added after the end", "INSERT INTO private SELECT 99, salt, text FROM private WHERE seq = 4"),
        (
            "two texts swapped",
            "UPDATE private SET seq = -4 WHERE seq = 4; UPDATE private SET seq = 4 WHERE seq = 7; UPDATE private SET seq = 7 WHERE seq = -4",
        ),
        ("the id of the log", "UPDATE log SET id = zeroblob(16)"),
        ("the id of the log removed", "DELETE FROM log"),
        (
            "a first segment removed as if by retention",
            "DELETE FROM record WHERE seq <= 4; DELETE FROM private WHERE seq <= 4",
        ),
        ("an index removed", "DROP INDEX record_by_kind"),
        (
            "an index replaced and record 5 changed",
            "DROP INDEX record_by_kind; CREATE INDEX record_by_kind ON record (seq); UPDATE record SET body = replace(body, '120', '121') WHERE seq = 5",
        ),
        ("a table added and another changed", "CREATE TABLE extra (a); ALTER TABLE rotation ADD COLUMN b TEXT"),
        (
            "a trigger added",
            "CREATE TRIGGER quiet AFTER INSERT ON record BEGIN DELETE FROM record WHERE seq = new.seq; END",
        ),
    ];
    let report: Vec<String> = cases
        .into_iter()
        .map(|(name, sql)| {
            let test = TestLog::with_questions(4);
            test.tamper(sql);
            format!("{name}\n  {}", test.verify())
        })
        .collect();
    insta::assert_snapshot!("tampered", report.join("\n"));
}

#[test]
fn a_record_hashed_anew_alone_is_named_and_not_its_successor() {
    let test = TestLog::with_questions(4);
    test.tamper(&forge(&test, 5));
    let what = "it was changed and hashed anew: the next record covers another".to_owned();
    assert_eq!(test.verify(), Verdict::Broken(Broken { seq: Some(5), what }));
}

#[test]
fn a_tail_hashed_anew_is_found_between_two_checkpoints() {
    let test = TestLog::with_questions(4);
    test.tamper(&forge(&test, 12));
    let what = "a record from 5 to 8 was changed and all after it hashed anew".to_owned();
    assert_eq!(test.verify(), Verdict::Broken(Broken { seq: Some(5), what }));
}

#[test]
fn a_log_is_not_whole_to_who_trusts_another_key() {
    let test = TestLog::with_questions(2);
    let other = AuditKey::from_secret([8; 32]).public();
    let verdict = test.reader().verify(&other).unwrap();
    let mine = TestLog::public_key().id();
    let what = format!("the checkpoint there is signed with key {mine}, not with {}", other.id());
    assert_eq!(verdict, Verdict::Broken(Broken { seq: Some(4), what }));
}

#[test]
fn a_single_flipped_bit_anywhere_in_a_record_is_found_and_located() {
    let test = TestLog::with_questions(1);
    for row in rows(&test) {
        let cells = [("body", &row.body[..]), ("prev", &row.prev[..]), ("hash", &row.hash[..])];
        for (cell, bytes) in cells {
            // Every byte of every record of a long log is flipped elsewhere, against its hash alone.
            for index in (row.seq as usize..bytes.len()).step_by(5) {
                let write = |bytes: &[u8]| {
                    let value = if cell == "body" { text(bytes) } else { blob(bytes) };
                    test.tamper(&format!("UPDATE record SET {cell} = {value} WHERE seq = {}", row.seq));
                };
                let mut flipped = bytes.to_vec();
                flipped[index] ^= 1;
                write(&flipped);
                match test.verify() {
                    Verdict::Broken(broken) => assert_eq!(broken.seq, Some(row.seq), "{cell} {index}"),
                    Verdict::Whole { .. } => panic!("record {} {cell} byte {index}", row.seq),
                }
                write(bytes);
            }
        }
    }
    assert_eq!(test.verify(), Verdict::Whole { records: 3 });
}

/// All that anybody can read out of the log.
fn readable(reader: &AuditReader) -> Result<String, String> {
    let mut exported = Vec::new();
    reader.export(&mut exported).map_err(|error| error.to_string())?;
    let filters = [Filter::default(), Filter { until: Some(at("2030-01-01T00:00:00Z")), ..Filter::default() }];
    let lists: Vec<String> = filters.iter().map(|filter| format!("{:?}", reader.list(filter))).collect();
    Ok(format!("{}{lists:?}", String::from_utf8_lossy(&exported)))
}

#[test]
fn a_flipped_byte_anywhere_in_the_file_is_found_or_changes_nothing_that_can_be_read() {
    let test = TestLog::with_questions(4);
    let original = fs::read(test.path()).unwrap();
    let expected = readable(&test.reader()).unwrap();
    let mut found = 0;
    // A stride that is coprime to the page size visits every kind of place.
    for index in (0..original.len()).step_by(251) {
        let mut flipped = original.clone();
        flipped[index] ^= 0x55;
        fs::write(test.path(), &flipped).unwrap();
        let verdict = AuditReader::open(&test.path()).and_then(|reader| reader.verify(&TestLog::public_key()));
        match verdict {
            Ok(Verdict::Whole { .. }) => assert_eq!(readable(&test.reader()).as_ref(), Ok(&expected), "byte {index}"),
            Ok(Verdict::Broken(_)) | Err(_) => found += 1,
        }
    }
    assert!(found > 0);
}

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
PRAGMA application_id = 1397506389;
PRAGMA user_version = 1;

use super::{Insert, Kill, KillId, Statement, parse_statement, with_client_query_ids};

fn insert(head: &str, tail: &str, data: &[u8]) -> Statement {
    Statement::Insert(Insert { head: head.into(), tail: tail.into(), data: data.to_vec() })
}

fn refusal(text: &str) -> String {
    parse_statement(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_second_statement_is_refused_however_it_hides() {
    for text in [
        "SELECT 1; SELECT 2",
        "SELECT 1;; DROP TABLE t",
        "SELECT ';' /* x */",
        "SELECT ‘'’; DROP TABLE t; --'",
        "SELECT $a$ ; $a$",
        "SELECT 1 -- ; \n, 2",
        "INSERT INTO t; DROP TABLE t",
    ] {
        assert!(refusal(text).contains("more than one statement"), "{text}");
    }
}

#[test]
fn semicolons_in_strings_and_at_the_end_are_fine() {
    let select = Statement::Select { format: None, streamable: true };
    assert_eq!(parse_statement(b"SELECT 'a;b' ;\n"), Ok(select));
    let select = Statement::Select { format: None, streamable: true };
    assert_eq!(parse_statement(b"SELECT `a;b`, '\\';'"), Ok(select));
}

#[test]
fn the_format_clause_is_found_outside_brackets_only() {
    let select = |format: Option<&str>| Statement::Select { format: format.map(str::to_owned), streamable: true };
    assert_eq!(parse_statement(b"SELECT 1 FORMAT JSONEachRow;"), Ok(select(Some("JSONEachRow"))));
    assert_eq!(parse_statement(b"SELECT format('{}', 1) FROM (SELECT 1 AS format x)"), Ok(select(None)));
    assert_eq!(parse_statement(b"show tables format JSON"), Ok(Statement::Other { format: Some("JSON".to_owned()) }));
}

#[test]
fn totals_are_not_streamed() {
    assert_eq!(
        parse_statement(b"SELECT count() GROUP BY 1 WITH TOTALS"),
        Ok(Statement::Select { format: None, streamable: false })
    );
}

#[test]
fn an_insert_is_cut_before_its_settings_and_after_its_format() {
    assert_eq!(
        parse_statement(b"INSERT INTO a.t (x, y) SETTINGS s = 'FORMAT' FORMAT JSONEachRow {\"x\":\"';\"}"),
        Ok(insert("INSERT INTO a.t (x, y) ", "SETTINGS s = 'FORMAT' FORMAT JSONEachRow", b"{\"x\":\"';\"}"))
    );
    assert_eq!(
        parse_statement(b"INSERT INTO t FORMAT RowBinary\n\n\x00;'"),
        Ok(insert("INSERT INTO t ", "FORMAT RowBinary", b"\n\x00;'"))
    );
    assert_eq!(
        parse_statement(b"insert into t values (1, ';'), (2, '')"),
        Ok(insert("insert into t ", "FORMAT Values", b"(1, ';'), (2, '')"))
    );
    assert_eq!(parse_statement(b"INSERT INTO t(`format`) SELECT 1"), Ok(Statement::Other { format: None }));
}

#[test]
fn files_of_the_engine_process_are_out_of_reach() {
    assert!(refusal("SELECT 1 INTO OUTFILE '/tmp/x'").contains("INTO OUTFILE"));
    assert!(refusal("INSERT INTO t FROM INFILE '/etc/passwd' FORMAT CSV").contains("INFILE"));
}

#[test]
fn kill_names_one_query_by_its_id() {
    assert_eq!(
        parse_statement(b"KILL QUERY WHERE query_id = 'a\\'b' ASYNC"),
        Ok(Statement::Kill(Kill { id: KillId::Literal(b"a'b".to_vec()), wait: false }))
    );
    assert_eq!(
        parse_statement(b"kill query where query_id={id:String} sync;"),
        Ok(Statement::Kill(Kill { id: KillId::Parameter("id".to_owned()), wait: true }))
    );
    for text in ["KILL QUERY WHERE 1", "KILL QUERY WHERE query_id = 'a' OR 1", "KILL MUTATION WHERE query_id = 'a'"] {
        assert!(refusal(text).contains("KILL is served"), "{text}");
    }
}

#[test]
fn processes_are_seen_under_the_ids_of_their_clients() {
    let text = with_client_query_ids(b"SELECT count() FROM system.processes WHERE query_id = 'x'");
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "SELECT count() FROM (SELECT * REPLACE (if(Settings['log_comment'] = '', query_id, Settings['log_comment']) AS \
         query_id) FROM system.processes) WHERE query_id = 'x'"
    );
    assert_eq!(with_client_query_ids(b"SELECT 'FROM system.processes'"), b"SELECT 'FROM system.processes'");
}

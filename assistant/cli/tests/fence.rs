//! Nothing is answered and nothing is served before the second fence is proved.

#![cfg(test)]

mod harness;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use harness::{Lab, command, stderr};
use sightline_model::rows::Rows;

const QUESTION: &str = "top 3 hottest GPUs in the last hour";
const UNPROVED: &str = "sightline: the second fence is not proved, so no question is answered: not shown that ";

/// A server that takes everything it is sent, as one does whose user may write.
fn takes_everything() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

#[test]
fn a_server_that_takes_writes_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let url = takes_everything();
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["ask", "--as", "viewer@atlas", QUESTION]] {
        let output = command(folder.path(), arguments).env("SIGHTLINE_CLICKHOUSE_URL", &url).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(
            stderr(&output),
            format!(
                "{UNPROVED}rows that are sent are refused (the engine carried it out); run `sightline doctor` to see every proof\n"
            )
        );
    }
    let doctor = command(folder.path(), &["doctor"]).env("SIGHTLINE_CLICKHOUSE_URL", &url).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let said = String::from_utf8(doctor.stdout).unwrap();
    for line in [
        "WRONG second fence: not shown that a new table is refused: the engine carried it out",
        "WRONG second fence: not shown that a request without a fence reads nothing of `sightline.metrics`: the engine carried it out",
        "WRONG second fence: not shown that the role `sightline_t_atlas` reads rows of its tenant only: the engine's answer could not be read",
    ] {
        assert!(said.lines().any(|found| found == line), "{line}\n{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_shows_a_foreign_row_or_loses_the_canary_is_not_asked() {
    let lab = Lab::start();
    lab.fill(&Rows::default()).await;
    let ask = || lab.run(&["ask", "--as", "viewer@atlas", QUESTION]);
    assert!(ask().status.success());
    let doctor = lab.run(&["doctor"]);
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert_eq!(said.matches("ok    second fence: ").count(), 14, "{said}");
    // A row of the canary's tenant in a mapped table comes back through its fence as a foreign row would.
    lab.write("INSERT INTO sightline.logs (tenant, time) VALUES ('sightline-canary', now())").await;
    let output = ask();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        format!(
            "{UNPROVED}a tenant without telemetry sees its canary row and no row of `sightline` (rows of `logs` came back); run `sightline doctor` to see every proof\n"
        )
    );
    lab.write("TRUNCATE TABLE sightline.logs").await;
    assert!(ask().status.success());
    lab.write("TRUNCATE TABLE sightline.fence_canary").await;
    assert!(stderr(&ask()).contains("the canary row did not come back"));
    let doctor = lab.run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(String::from_utf8(doctor.stdout).unwrap().contains("WRONG second fence: not shown that a tenant without"));
}

#[test]
fn what_an_administrator_runs_is_printed_for_the_tenants_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let sql = |arguments: &[&str]| {
        let output = command(folder.path(), arguments).env("SIGHTLINE_CLICKHOUSE_URL", "http://127.0.0.1:1").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let of_principals = sql(&["doctor", "--sql"]);
    for line in [
        "GRANT `sightline_t_atlas`, `sightline_t_borealis`, `sightline_t_sightline-canary` TO `sightline`;",
        "CREATE ROW POLICY OR REPLACE `sightline_t_atlas` ON sightline.logs FOR SELECT USING tenant = 'atlas' AS PERMISSIVE TO `sightline_t_atlas`;",
        "    max_execution_time = 60 MIN 1 MAX 60 CHANGEABLE_IN_READONLY,",
    ] {
        assert!(of_principals.lines().any(|found| found == line), "{line}\n{of_principals}");
    }
    let of_named = sql(&["doctor", "--sql", "--tenants", "x,team 7"]);
    assert!(of_named.contains("`sightline_t_x`") && of_named.contains("`sightline_t_team_207`"), "{of_named}");
    assert!(!of_named.contains("atlas"), "{of_named}");
    assert_eq!(command(folder.path(), &["doctor", "--tenants", "x"]).output().unwrap().status.code(), Some(2));
}

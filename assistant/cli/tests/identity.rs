//! Tokens and sessions end to end: the command line makes and ends them, the service sees it at once, and the audit log has it.

#![cfg(test)]

mod harness;
#[path = "harness/service.rs"]
mod service;
#[path = "harness/worlds.rs"]
mod worlds;

use std::path::Path;

use harness::{Lab, run, stderr};
use reqwest::Method;
use reqwest::header::{COOKIE, SET_COOKIE};
use serde_json::{Value, json};
use service::{Service, hold_audit_log_whole, problem};

const HOTTEST: &str = "top 3 hottest GPUs in the last hour";

/// The one line on stdout.
fn line(data_dir: &Path, arguments: &[&str]) -> String {
    let output = run(data_dir, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim().to_owned()
}

fn refused(data_dir: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(data_dir, arguments);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

/// The audit log's file and all that lies in it, as text.
fn audit_text(data_dir: &Path) -> String {
    let names = ["audit.db", "audit.db-wal"];
    let bytes: Vec<u8> = names.iter().flat_map(|name| std::fs::read(data_dir.join(name)).unwrap_or_default()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_command_line_says_what_is_wrong_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), &["token", "new", "--for", "root"], 2);
    assert!(said.contains("no principal `root`") && said.contains("viewer@atlas"), "{said}");
    let said = refused(folder.path(), &["token", "new", "--for", "admin", "--expires", "soon"], 2);
    assert!(said.contains("`90d`"), "{said}");
    let said = refused(folder.path(), &["token", "revoke", "0011223344556677"], 2);
    assert!(said.contains("no token `0011223344556677`"), "{said}");
    let said = refused(folder.path(), &["token", "revoke", "--for", "admin"], 2);
    assert!(said.contains("`admin` has no token"), "{said}");
    refused(folder.path(), &["token", "revoke"], 2);
    assert!(line_list(folder.path()).is_empty());
}

fn line_list(data_dir: &Path) -> Vec<Value> {
    let list: Value = serde_json::from_str(&line(data_dir, &["token", "list", "--json"])).unwrap();
    list["tokens"].as_array().unwrap().clone()
}

/// The events of a kind, as an admin lists them.
fn events(data_dir: &Path, kind: &str) -> Vec<Value> {
    let page = run(data_dir, &["audit", "list", "--as", "admin", "--kind", kind, "--json"]);
    let page: Value = serde_json::from_slice(&page.stdout).unwrap();
    page["entries"].as_array().unwrap().clone()
}

#[test]
fn who_manages_tokens_is_checked_and_recorded() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let uid = std::fs::metadata(folder.path()).unwrap().uid().to_string();
    // The first token of a site: nobody is named, and the folder is ours.
    line(folder.path(), &["token", "new", "--for", "admin", "--label", "first"]);
    line(folder.path(), &["token", "new", "--for", "viewer@atlas", "--as", "admin"]);
    for arguments in [
        &["token", "new", "--for", "admin", "--as", "viewer@atlas"][..],
        &["token", "revoke", "--for", "admin", "--as", "operator@atlas"],
        &["token", "list", "--as", "viewer@atlas"],
    ] {
        let said = refused(folder.path(), arguments, 1);
        assert!(said.contains("make or revoke tokens of others"), "{said}");
    }
    assert!(refused(folder.path(), &["token", "list", "--as", "root"], 2).contains("no principal `root`"));
    let of_admin: Vec<Value> =
        line_list(folder.path()).into_iter().filter(|token| token["principal"] == "admin").collect();
    assert_eq!(of_admin.len(), 1);
    assert_eq!(of_admin[0]["state"], "valid");
    let made = events(folder.path(), "token_created");
    let by: Vec<Option<&str>> = made.iter().map(|event| event["who"].as_str()).collect();
    assert_eq!(by, [Some("admin"), None], "the newest first");
    assert!(made.iter().all(|event| event["detail"]["uid"] == uid.as_str()), "{made:?}");
    assert_eq!(events(folder.path(), "denied").len(), 3);
}

#[test]
fn a_token_that_cannot_be_recorded_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("audit.db"), "this is no database, and it is longer than a header".repeat(20))
        .unwrap();
    let said = refused(folder.path(), &["token", "new", "--for", "admin"], 1);
    assert!(said.contains("audit"), "{said}");
    assert!(line_list(folder.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_sessions_live_and_end_across_processes() {
    let lab = Lab::start();
    lab.fill(&worlds::two_tenants()).await;
    let service = Service::start(lab.data_dir());
    let token = line(lab.data_dir(), &["token", "new", "--for", "viewer@atlas", "--label", "laptop"]);
    let mine = line_list(lab.data_dir()).into_iter().find(|token| token["label"] == "laptop").unwrap();
    let id = mine["id"].as_str().unwrap().to_owned();
    assert_eq!((mine["state"].as_str(), mine["last_used"].as_str()), (Some("valid"), None));
    assert!(token.starts_with(&format!("sl_{id}_")), "the id is the token's public part");
    let ask = |token: &str| {
        let body = json!({ "question": HOTTEST, "as_of": worlds::END });
        service.client.post(format!("{}/v1/chat", service.url)).bearer_auth(token).json(&body).send()
    };
    assert_eq!(ask(&token).await.unwrap().status(), 200);
    assert!(line_list(lab.data_dir()).iter().any(|token| token["id"] == id.as_str() && token["last_used"].is_string()));

    let login = service.client.post(format!("{}/login", service.url)).json(&json!({ "token": token }));
    let login = login.send().await.unwrap();
    let cookie = login.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let csrf = login.json::<Value>().await.unwrap()["csrf_token"].as_str().unwrap().to_owned();
    let by_session = |method: Method, path: &str| {
        let request = service.client.request(method, format!("{}{path}", service.url));
        request.header(COOKIE, &cookie).header("X-CSRF-Token", &csrf)
    };
    let body = json!({ "question": HOTTEST, "as_of": worlds::END });
    let answer: Value = by_session(Method::POST, "/v1/chat").json(&body).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["outcome"], "answered", "{answer}");
    let evidence = format!("/v1/evidence/{}.E1", answer["answer_id"].as_str().unwrap());
    assert_eq!(by_session(Method::GET, &evidence).send().await.unwrap().status(), 200);

    let output = run(lab.data_dir(), &["token", "revoke", &id]);
    assert!(output.status.success() && stderr(&output).contains("is revoked"), "{}", stderr(&output));
    assert!(problem(ask(&token).await.unwrap(), 401).await.contains("was revoked"));
    let ended = by_session(Method::GET, "/v1/session").send().await.unwrap();
    assert!(problem(ended, 401).await.contains("log in again"));
    assert_eq!(service.answer("viewer@atlas", HOTTEST, worlds::END.parse().unwrap()).await["outcome"], "answered");

    hold_audit_log_whole(lab.data_dir());
    let audit = audit_text(lab.data_dir());
    for event in ["token_created", "token_revoked", "login", "login_failed", &id] {
        assert!(audit.contains(event), "{event}");
    }
    for secret in [token.as_str(), cookie.as_str(), csrf.as_str()] {
        let secret = secret.rsplit(['_', '=']).next().unwrap();
        assert!(!audit.contains(secret) && !service.log().contains(secret));
    }
}

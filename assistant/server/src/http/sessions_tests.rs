//! Log-in, sessions, CSRF, log-out and lock-out through the whole router, with a clock that is set by hand.

use axum::body::Body;
use axum::http::request::Builder;
use axum::http::{Request, header};
use serde_json::{Value, json};
use sightline_model::audit::{Event, EventKind};
use sightline_policies::Policies;

use super::test_service::{Came, TestService};
use crate::identity::test_keys::{self, Pair};

const HOST: &str = "127.0.0.1:8787";

fn post(path: &str) -> Builder {
    Request::post(path).header(header::HOST, HOST).header(header::CONTENT_TYPE, "application/json")
}

fn get(path: &str) -> Builder {
    Request::get(path).header(header::HOST, HOST)
}

fn empty(request: Builder) -> Request<Body> {
    request.body(Body::empty()).unwrap()
}

async fn log_in(service: &TestService, token: &str) -> Came {
    service.send(post("/login").body(Body::from(json!({ "token": token }).to_string())).unwrap()).await
}

/// Name and value of the cookie that was set.
fn cookie(came: &Came) -> String {
    assert_eq!(came.status, 200, "{came:?}");
    let line = came.headers[header::SET_COOKIE].to_str().unwrap();
    line.split(';').next().unwrap().to_owned()
}

async fn session(service: &TestService, cookie: &str) -> Came {
    service.send(empty(get("/v1/session").header(header::COOKIE, cookie))).await
}

async fn bearer(service: &TestService, token: &str) -> Came {
    service.send(empty(get("/v1/session").header(header::AUTHORIZATION, format!("Bearer {token}")))).await
}

/// The kinds of the events, and the facts of each.
fn events(service: &TestService, kind: EventKind) -> Vec<Event> {
    service.log.events().into_iter().filter(|event| event.event == kind).collect()
}

#[tokio::test]
async fn a_log_in_opens_a_session_and_a_log_out_ends_it() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None);
    let came = log_in(&service, &token.text).await;
    let line = came.headers[header::SET_COOKIE].to_str().unwrap();
    let (name_and_value, attributes) = line.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=604799");
    assert!(name_and_value.starts_with("sightline_session="));
    let opened = came.json();
    assert_eq!(opened["principal"], "operator@atlas");
    assert_eq!(opened["role"], "operator");
    assert_eq!(opened["expires"], "2027-01-22T08:00:00Z");

    let cookie = cookie(&came);
    assert_eq!(session(&service, &cookie).await.json(), opened, "a reload of the page gets the same");
    let csrf = opened["csrf_token"].as_str().unwrap();
    let out = service.send(empty(post("/logout").header(header::COOKIE, &cookie).header("x-csrf-token", csrf))).await;
    assert_eq!(out.status, 204);
    assert!(out.headers[header::SET_COOKIE].to_str().unwrap().contains("sightline_session=; "));
    assert!(out.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    assert!(session(&service, &cookie).await.problem(401).contains("log in again"));
    // The token itself goes on.
    assert_eq!(bearer(&service, &token.text).await.status, 200);

    let kinds: Vec<EventKind> = service.log.events().iter().map(|event| event.event).collect();
    assert_eq!(kinds, [EventKind::Login, EventKind::Logout, EventKind::LoginFailed]);
    let first = &service.log.events()[0];
    assert_eq!(first.principal.as_deref(), Some("operator@atlas"));
    assert_eq!(first.detail["token_id"], token.id);
}

#[tokio::test]
async fn every_log_in_gets_an_id_of_its_own_whatever_the_browser_brought() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let body = json!({ "token": token }).to_string();
    let fixed = format!("sightline_session={}", "ab".repeat(32));
    let came = service.send(post("/login").header(header::COOKIE, &fixed).body(Body::from(body)).unwrap()).await;
    let (first, second) = (cookie(&came), cookie(&log_in(&service, &token).await));
    assert!(first != second && first != fixed && second != fixed);
    assert_eq!(session(&service, &fixed).await.status, 401);
    assert_eq!(session(&service, &first).await.status, 200);
}

#[tokio::test]
async fn over_tls_the_cookie_is_bound_to_this_host() {
    let service = TestService::at(Some("https://sightline.example.com"));
    let token = service.token("operator@atlas", None).text;
    let came = log_in(&service, &token).await;
    let line = came.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(line.starts_with("__Host-sightline_session=") && line.ends_with("; Secure"), "{line}");
    assert!(line.contains("; Path=/;") && !line.to_lowercase().contains("domain"));
    let cookie = cookie(&came);
    assert_eq!(session(&service, &cookie).await.status, 200);
    let plain = cookie.trim_start_matches("__Host-").to_owned();
    assert_eq!(session(&service, &plain).await.status, 401, "a cookie that any way could have set");
}

#[tokio::test]
async fn a_sessions_request_that_changes_something_needs_its_csrf_token_and_a_page_of_ours() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let (one, other) = (log_in(&service, &token).await, log_in(&service, &token).await);
    let csrf = |came: &Came| came.json()["csrf_token"].as_str().unwrap().to_owned();
    let stop = |csrf: Option<String>, origin: Option<&str>| {
        let mut request = Request::delete("/v1/chat/x").header(header::HOST, HOST).header(header::COOKIE, cookie(&one));
        if let Some(csrf) = csrf {
            request = request.header("x-csrf-token", csrf);
        }
        if let Some(origin) = origin {
            request = request.header(header::ORIGIN, origin);
        }
        service.send(empty(request))
    };
    for wrong in [None, Some(String::new()), Some("0".repeat(64)), Some(csrf(&other)), Some(csrf(&one).split_off(1))] {
        assert!(stop(wrong, None).await.problem(403).contains("CSRF"));
    }
    for foreign in ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8787.evil.example"] {
        assert!(stop(Some(csrf(&one)), Some(foreign)).await.problem(403).contains("another site"), "{foreign}");
    }
    // 404 comes from the handler: there is no such question.
    stop(Some(csrf(&one)), None).await.problem(404);
    stop(Some(csrf(&one)), Some("http://127.0.0.1:8787")).await.problem(404);
    // What only looks needs neither, and a bearer token is sent by nobody's page.
    assert_eq!(session(&service, &cookie(&one)).await.status, 200);
    let request = Request::delete("/v1/chat/x").header(header::AUTHORIZATION, format!("bearer {token}"));
    service.send(empty(request.header(header::ORIGIN, "http://evil.example"))).await.problem(404);
    // A log-in from another site's page would make somebody ask as somebody else.
    let body = Body::from(json!({ "token": token }).to_string());
    let came = service.send(post("/login").header(header::ORIGIN, "http://evil.example").body(body).unwrap()).await;
    came.problem(403);
    assert!(!came.headers.contains_key(header::SET_COOKIE));
}

#[tokio::test]
async fn two_credentials_of_one_kind_are_none() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let cookie = cookie(&log_in(&service, &token).await);
    session(&service, &format!("{cookie}; {cookie}")).await.problem(401);
    assert_eq!(session(&service, &format!("a=b; {cookie}; c=d")).await.status, 200);
    let value = format!("Bearer {token}");
    let twice = get("/v1/session").header(header::AUTHORIZATION, &value).header(header::AUTHORIZATION, &value);
    service.send(empty(twice)).await.problem(401);
}

#[tokio::test]
async fn a_session_ends_with_time_with_its_token_and_with_its_principal() {
    let service = TestService::start();
    let lasting = service.token("operator@atlas", None);
    let first = cookie(&log_in(&service, &lasting.text).await);
    service.clock.forward(12 * 3600 - 1);
    assert_eq!(session(&service, &first).await.status, 200);
    service.clock.forward(12 * 3600);
    assert_eq!(session(&service, &first).await.problem(401), "your session has ended; log in again");

    let short = service.token("operator@atlas", Some(3600));
    let second = cookie(&log_in(&service, &short.text).await);
    let third = cookie(&log_in(&service, &lasting.text).await);
    service.clock.forward(3600);
    session(&service, &second).await.problem(401);
    assert!(bearer(&service, &short.text).await.problem(401).contains("expired at 2027-"));
    assert_eq!(session(&service, &third).await.status, 200);
    // Another process revokes it.
    service.store().revoke_token(&lasting.id, jiff::Timestamp::UNIX_EPOCH).unwrap();
    session(&service, &third).await.problem(401);
    assert!(bearer(&service, &lasting.text).await.problem(401).contains("was revoked"));
}

#[tokio::test]
async fn whom_the_policy_no_longer_knows_has_neither_token_nor_session() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let cookie = cookie(&log_in(&service, &token).await);
    let sources = sightline_policies::Sources {
        principals: sightline_policies::Source {
            name: "principals.toml",
            text: "[[principal]]\nid = \"admin\"\nrole = \"admin\"\n",
        },
        ..sightline_policies::Sources::SHIPPED
    };
    service.service.assistant().policies.replace(Policies::from_sources(&sources).unwrap());
    assert!(bearer(&service, &token).await.problem(401).contains("no longer knows"));
    session(&service, &cookie).await.problem(401);
    log_in(&service, &token).await.problem(401);
}

#[tokio::test]
async fn a_log_in_body_that_cannot_be_read_is_not_quoted() {
    let service = TestService::start();
    for (body, status) in [
        ("{\"token\": \"sl_planted", 400),
        ("{\"token\": \"sl_planted\", \"x\": 1}", 422),
        ("{\"sl_planted\": 1}", 422),
        ("\"sl_planted\"", 422),
    ] {
        let came = service.send(post("/login").body(Body::from(body)).unwrap()).await;
        let said = came.problem(status);
        assert!(said.contains("{\"token\": \"…\"}") && !came.body.contains("planted"), "{said}");
    }
}

#[tokio::test]
async fn no_credential_of_any_kind_is_taken_from_afar() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let cookie = cookie(&log_in(&service, &token).await);
    let body = || Body::from(json!({ "token": token }).to_string());
    let requests = [
        post("/login").body(body()).unwrap(),
        empty(get("/v1/session").header(header::AUTHORIZATION, format!("Bearer {token}"))),
        empty(get("/v1/session").header(header::COOKIE, &cookie)),
    ];
    for request in requests {
        let came = service.send_from("192.0.2.7:50000", request).await;
        assert!(came.problem(403).contains("plain HTTP"));
    }
}

#[tokio::test]
async fn who_guesses_a_tokens_secret_is_locked_out_and_its_holder_never() {
    let service = TestService::start();
    let (token, other) = (service.token("operator@atlas", None), service.token("operator@atlas", None));
    let wrong = format!("sl_{}_{}", token.id, "0".repeat(64));
    for _ in 0..5 {
        bearer(&service, &wrong).await.problem(401);
    }
    for _ in 0..2 {
        let came = bearer(&service, &wrong).await;
        assert!(came.problem(429).contains("try again in 60 s"));
        assert_eq!(came.headers[header::RETRY_AFTER], "60");
        // The id is public, and behind a proxy everybody has this address: a right secret gets in, and opens no lock for a wrong one.
        assert_eq!(bearer(&service, &token.text).await.status, 200);
        assert_eq!(log_in(&service, &token.text).await.status, 200);
    }
    assert_eq!(log_in(&service, &wrong).await.status, 429, "by any entrance");
    let other_wrong = format!("sl_{}_{}", other.id, "0".repeat(64));
    assert_eq!(bearer(&service, &other_wrong).await.status, 401, "another token is counted by itself");
    let elsewhere = empty(get("/v1/session").header(header::AUTHORIZATION, format!("Bearer {wrong}")));
    assert_eq!(service.send_from("127.0.0.2:1", elsewhere).await.status, 401, "and so is another address");
    service.clock.forward(60);
    assert_eq!(bearer(&service, &wrong).await.status, 401);

    let locked = events(&service, EventKind::LockedOut);
    assert_eq!(locked.len(), 1);
    assert_eq!(locked[0].detail["token_id"], token.id);
    assert_eq!(locked[0].principal.as_deref(), Some("operator@atlas"), "whose token was guessed at");
    assert_eq!(locked[0].detail["peer"], "127.0.0.1");
    assert_eq!(locked[0].detail["seconds"], "60");
    let failed = events(&service, EventKind::LoginFailed);
    let of_token = failed.iter().filter(|e| e.detail["token_id"] == token.id && e.detail["peer"] == "127.0.0.1");
    assert_eq!(of_token.map(|e| e.detail["attempts"].as_str()).collect::<Vec<_>>(), ["1", "8"]);
}

#[tokio::test]
async fn what_names_no_token_is_counted_by_address_and_locks_out_only_what_is_wrong() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let cookie = cookie(&log_in(&service, &token).await);
    let made_up = |n: u8| match n % 3 {
        0 => format!("sl_{}", hex::encode([n; 32])),
        1 => format!("sl_{}_{}", hex::encode([n; 8]), hex::encode([n; 32])),
        _ => format!("secret-{n}"),
    };
    for n in 0..5 {
        bearer(&service, &made_up(n)).await.problem(401);
    }
    for n in 5..40 {
        assert_eq!(bearer(&service, &made_up(n)).await.status, 429);
    }
    // A cookie of no session is no guess, and is told what it always is.
    session(&service, &format!("sightline_session={}", "0".repeat(64))).await.problem(401);
    // Everybody behind the same proxy has this address.
    assert_eq!(bearer(&service, &token).await.status, 200);
    assert_eq!(session(&service, &cookie).await.status, 200);
    service.clock.forward(60);
    service.service.record_counted().await;
    let failed = events(&service, EventKind::LoginFailed);
    assert_eq!(failed.iter().map(|event| event.detail["attempts"].as_str()).collect::<Vec<_>>(), ["1", "40"]);
    assert!(failed.iter().all(|event| event.principal.is_none() && event.detail.len() == 3), "{failed:?}");
    assert_eq!(failed[1].detail["reasons"], "session ended: 1, wrong: 39");
    let all = format!("{:?}", service.log.events());
    for n in 0..40 {
        assert!(!all.contains(&made_up(n)));
    }
}

/// Sends a request, and hangs up once the audit log is asked to take an event of it, and has not.
async fn hang_up_on(service: &TestService, request: Request<Body>) {
    let busy = service.log.busy().await;
    let asked = service.log.asked();
    let sent = service.send(request);
    let noticed = async {
        while service.log.asked() == asked {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        came = sent => panic!("an answer before its event: {came:?}"),
        () = noticed => {}
    }
    drop(busy);
}

/// Waits until so many events of a kind stand in the log.
async fn recorded(service: &TestService, kind: EventKind, count: usize) {
    let seen = async {
        while events(service, kind).len() < count {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_secs(10), seen).await;
    assert!(waited.is_ok(), "{kind:?} is not {count} times in {:?}", service.log.events());
}

#[tokio::test]
async fn what_a_client_hangs_up_on_is_recorded_all_the_same() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None);
    let wrong = format!("sl_{}_{}", token.id, "0".repeat(64));
    let guess = || empty(get("/v1/session").header(header::AUTHORIZATION, format!("Bearer {wrong}")));
    for _ in 0..4 {
        service.send(guess()).await.problem(401);
    }
    hang_up_on(&service, guess()).await;
    recorded(&service, EventKind::LockedOut, 1).await;
    service.clock.forward(60);
    hang_up_on(&service, guess()).await;
    recorded(&service, EventKind::LoginFailed, 2).await;
    let failed = events(&service, EventKind::LoginFailed);
    assert_eq!(failed.iter().map(|event| event.detail["attempts"].as_str()).collect::<Vec<_>>(), ["1", "5"]);

    let came = log_in(&service, &token.text).await;
    let (cookie, csrf) = (cookie(&came), came.json()["csrf_token"].as_str().unwrap().to_owned());
    hang_up_on(&service, empty(post("/logout").header(header::COOKIE, &cookie).header("x-csrf-token", csrf))).await;
    recorded(&service, EventKind::Logout, 1).await;
    session(&service, &cookie).await.problem(401);
}

#[tokio::test]
async fn every_refusal_is_counted_with_its_reason_and_with_whom_it_names() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None);
    let opened = log_in(&service, &token.text).await;
    let cookie = cookie(&opened);
    let csrf = opened.json()["csrf_token"].as_str().unwrap().to_owned();
    let stop = || Request::delete("/v1/chat/x").header(header::HOST, HOST).header(header::COOKIE, &cookie);
    service.send(empty(stop())).await.problem(403);
    let foreign = stop().header("x-csrf-token", csrf).header(header::ORIGIN, "http://evil.example");
    service.send(empty(foreign)).await.problem(403);
    let body = Body::from(json!({ "token": token.text }).to_string());
    service.send(post("/login").header(header::ORIGIN, "http://evil.example").body(body).unwrap()).await.problem(403);
    for from in ["192.0.2.7:50000", "192.0.2.8:50000"] {
        let request = empty(get("/v1/session").header(header::AUTHORIZATION, format!("Bearer {}", token.text)));
        service.send_from(from, request).await.problem(403);
    }
    // The policy loses the principal: the token's and the session's.
    let sources = sightline_policies::Sources {
        principals: sightline_policies::Source {
            name: "principals.toml",
            text: "[[principal]]\nid = \"admin\"\nrole = \"admin\"\n",
        },
        ..sightline_policies::Sources::SHIPPED
    };
    service.service.assistant().policies.replace(Policies::from_sources(&sources).unwrap());
    bearer(&service, &token.text).await.problem(401);
    session(&service, &cookie).await.problem(401);
    service.clock.forward(60);
    service.service.record_counted().await;

    let mut told: Vec<String> = events(&service, EventKind::LoginFailed)
        .iter()
        .map(|event| {
            let fact = |name: &str| event.detail.get(name).map_or("-", String::as_str).to_owned();
            let who = event.principal.as_deref().unwrap_or("nobody");
            format!("{who} from {}: {}", fact("peer"), fact("reasons"))
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "nobody from 127.0.0.1: foreign origin: 1",
            "nobody from other machines: from afar: 1",
            "nobody from other machines: from afar: 1",
            "operator@atlas from 127.0.0.1: foreign origin: 1, no principal: 1",
            "operator@atlas from 127.0.0.1: no CSRF token: 1",
            "operator@atlas from 127.0.0.1: no principal: 1",
        ]
    );
    let all = format!("{:?}", service.log.events());
    assert!(!all.contains(&token.text));
}

#[tokio::test]
async fn people_who_come_back_with_old_cookies_lock_nobody_out() {
    let service = TestService::start();
    for n in 0..20 {
        let said = session(&service, &format!("sightline_session={}", hex::encode([n; 32]))).await.problem(401);
        assert_eq!(said, "your session has ended; log in again");
    }
    bearer(&service, "sl_mistyped").await.problem(401);
    assert_eq!(events(&service, EventKind::LockedOut), []);
}

#[tokio::test]
async fn a_store_that_fails_while_the_service_runs_is_503_and_lets_nobody_in() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    let cookie = cookie(&log_in(&service, &token).await);
    let database = rusqlite::Connection::open(service.folder.path().join("identity.db")).unwrap();
    database.execute_batch("DROP TABLE session; DROP TABLE token;").unwrap();
    for came in [bearer(&service, &token).await, session(&service, &cookie).await, log_in(&service, &token).await] {
        let said = came.problem(503);
        assert!(said.contains("cannot be checked now") && !said.contains("identity.db"), "{said}");
    }
}

#[tokio::test]
async fn a_log_in_that_cannot_be_recorded_opens_nothing() {
    let service = TestService::start();
    let token = service.token("operator@atlas", None).text;
    service.log.fail();
    let came = log_in(&service, &token).await;
    assert!(came.problem(503).contains("audit log"));
    assert!(!came.headers.contains_key(header::SET_COOKIE));
    let database = rusqlite::Connection::open(service.folder.path().join("identity.db")).unwrap();
    let sessions: u64 = database.query_row("SELECT count() FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(sessions, 0);
    // Who fails stays out all the same.
    bearer(&service, "sl_00").await.problem(401);
}

#[tokio::test]
async fn a_bearer_token_is_told_whose_it_is_and_has_no_session_to_end() {
    let service = TestService::start();
    let token = service.token("auditor", None).text;
    let expected: Value = json!({ "principal": "auditor", "role": "auditor", "csrf_token": null, "expires": null });
    assert_eq!(bearer(&service, &token).await.json(), expected);
    let out = service.send(empty(post("/logout").header(header::AUTHORIZATION, format!("Bearer {token}")))).await;
    assert!(out.problem(422).contains("token revoke"));
}

/// A provider whose one key is this one.
fn provider(service: &TestService, pair: &Pair) {
    let path = service.folder.path().join("keys.json");
    std::fs::write(&path, json!({ "keys": [pair.jwk("a")] }).to_string()).unwrap();
    let policies = test_keys::policies(&format!("jwks_file = \"{}\"", path.display()));
    service.service.assistant().policies.replace(policies);
}

#[tokio::test]
async fn a_providers_token_is_a_bearer_token_and_opens_a_session_of_a_working_day() {
    let service = TestService::start();
    let pair = Pair::ec();
    let token = pair.token("a", &test_keys::claims());
    bearer(&service, &token).await.problem(401);
    provider(&service, &pair);
    let came = bearer(&service, &token).await;
    assert_eq!(
        (came.json()["principal"].as_str(), came.json()["role"].as_str()),
        (Some("corp:ann@example.com"), Some("operator"))
    );
    let opened = log_in(&service, &token).await;
    assert_eq!(opened.json()["expires"], "2027-01-15T20:00:00Z");
    let cookie = cookie(&opened);
    // The token itself is good for an hour.
    service.clock.forward(3631);
    assert!(bearer(&service, &token).await.problem(401).contains("has expired"));
    assert_eq!(session(&service, &cookie).await.json()["principal"], "corp:ann@example.com");
    let login = &events(&service, EventKind::Login)[0];
    assert_eq!(login.principal.as_deref(), Some("corp:ann@example.com"));
    assert_eq!(login.detail["issuer"], test_keys::ISSUER);
    // What the policy makes of the claims counts at once.
    service.service.assistant().policies.replace(Policies::builtin().unwrap());
    session(&service, &cookie).await.problem(401);
}

#[tokio::test]
async fn a_provider_that_the_policy_gives_no_role_or_that_has_no_keys_lets_nobody_in() {
    let service = TestService::start();
    let pair = Pair::ed();
    provider(&service, &pair);
    let mut claims = test_keys::claims();
    claims["roles"] = json!(["nobody"]);
    assert!(bearer(&service, &pair.token("a", &claims)).await.problem(401).contains("gives you no role"));
    for _ in 0..4 {
        bearer(&service, &Pair::ed().token("a", &test_keys::claims())).await.problem(401);
    }
    bearer(&service, &Pair::ed().token("a", &test_keys::claims())).await.problem(401);
    bearer(&service, &Pair::ed().token("a", &test_keys::claims())).await.problem(429);
    assert_eq!(bearer(&service, &pair.token("a", &test_keys::claims())).await.status, 200, "what is right is let in");
    let missing = test_keys::policies("jwks_file = \"/nowhere/keys.json\"");
    service.service.assistant().policies.replace(missing);
    let came = bearer(&service, &pair.token("a", &test_keys::claims())).await;
    assert!(came.problem(503).contains("keys of your identity provider"));
}

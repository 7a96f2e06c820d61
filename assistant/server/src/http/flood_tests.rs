//! Whoever has a valid credential and sends requests in a loop: neither the log nor the CPU is theirs to fill.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use sightline_model::audit::EventKind;

use super::route::Access;
use super::routes;
use super::test_service::{Came, TestService};

async fn send(service: &TestService, verb: &str, path: &str, token: &str) -> Came {
    let request = Request::builder().method(verb).uri(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
    service.send(request.body(Body::empty()).unwrap()).await
}

async fn log_in(service: &TestService, token: &str) -> Came {
    let request = Request::post("/login").header(header::CONTENT_TYPE, "application/json");
    service.send(request.body(Body::from(json!({ "token": token }).to_string())).unwrap()).await
}

#[tokio::test]
async fn a_principal_that_sends_too_many_requests_is_told_to_wait_on_every_route_and_nobody_else_is() {
    let service = TestService::start();
    let (token, second) = (service.token("viewer@atlas", None).text, service.token("viewer@atlas", None).text);
    let other = service.token("operator@atlas", None).text;
    let cookie = {
        let came = log_in(&service, &token).await;
        came.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned()
    };
    for _ in 1..400 {
        assert_eq!(send(&service, "GET", "/v1/session", &token).await.status, 200);
    }
    for route in routes().iter().filter(|route| route.access() == Access::Identified) {
        let path = route.path().replace(['{', '}'], "");
        let came = send(&service, route.verb().as_str(), &path, &second).await;
        assert!(came.problem(429).contains("more than 20 requests a second"), "{path}");
        assert_eq!(came.headers[header::RETRY_AFTER], "1");
    }
    let with_cookie = Request::get("/v1/session").header(header::COOKIE, &cookie).body(Body::empty()).unwrap();
    assert_eq!(service.send(with_cookie).await.status, 429, "by any credential");
    let logins = || service.log.events().iter().filter(|event| event.event == EventKind::Login).count();
    let before = logins();
    log_in(&service, &token).await.problem(429);
    assert_eq!(logins(), before, "what is refused is no record");
    assert_eq!(send(&service, "GET", "/v1/session", &other).await.status, 200);
    service.clock.forward(1);
    for n in 1..=21 {
        assert_eq!(send(&service, "GET", "/v1/session", &token).await.status == 200, n <= 20, "{n}");
    }
}

#[tokio::test]
async fn log_ins_with_a_valid_token_in_a_loop_are_bounded() {
    let service = TestService::start();
    let token = service.token("viewer@atlas", None).text;
    let mut opened = 0;
    for _ in 0..420 {
        opened += usize::from(log_in(&service, &token).await.status == 200);
    }
    assert_eq!(opened, 400);
}

#[tokio::test]
async fn a_denial_that_is_asked_for_again_and_again_is_one_record_a_minute() {
    let service = TestService::start();
    let token = service.token("viewer@atlas", None).text;
    for _ in 0..30 {
        send(&service, "GET", "/v1/audit", &token).await.problem(403);
        send(&service, "POST", "/v1/audit/verify", &token).await.problem(403);
    }
    let denied = || -> Vec<_> {
        let all = service.log.events().into_iter().filter(|event| event.event == EventKind::Denied);
        all.map(|event| {
            assert_eq!(event.principal.as_deref(), Some("viewer@atlas"));
            (event.detail["action"].clone(), event.detail["attempts"].clone())
        })
        .collect()
    };
    let fact = |action: &str, attempts: &str| (action.to_owned(), attempts.to_owned());
    assert_eq!(denied(), [fact("read_audit", "1"), fact("verify_audit", "1")]);
    service.service.record_counted().await;
    assert_eq!(denied().len(), 2, "its minute is not over");
    service.clock.forward(60);
    service.service.record_counted().await;
    let mut later = denied().split_off(2);
    later.sort();
    assert_eq!(later, [fact("read_audit", "29"), fact("verify_audit", "29")]);
    send(&service, "GET", "/v1/audit", &token).await.problem(403);
    service.service.record_last_counted().await;
    assert_eq!(denied()[4..], [fact("read_audit", "1")]);
}

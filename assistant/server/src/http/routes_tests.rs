//! Walks the table of routes: what is not public on purpose lets nobody in without a credential.

use std::collections::BTreeSet;
use std::path::Path;

use axum::body::Body;
use axum::http::{Request, header};

use super::route::{Access, Route};
use super::routes::routes;
use super::test_service::TestService;

/// A path that this route matches.
fn example(route: &Route) -> String {
    let part = |part: &str| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() };
    route.path().split('/').map(part).collect::<Vec<_>>().join("/")
}

fn request(route: &Route) -> axum::http::request::Builder {
    Request::builder()
        .method(route.verb().as_str())
        .uri(example(route))
        .header(header::CONTENT_TYPE, "application/json")
}

#[tokio::test]
async fn without_a_valid_credential_every_identified_route_answers_401_with_a_problem_document() {
    let service = TestService::start();
    let mut walked = 0;
    for route in routes().iter().filter(|route| route.access() == Access::Identified) {
        let wrong = [
            None,
            Some("Bearer "),
            Some("Bearer sl_00"),
            Some("Basic YWRtaW46YWRtaW4="),
            Some("admin"),
            Some("Bearer \u{e9}"),
        ];
        for credential in wrong {
            let mut request = request(route);
            if let Some(credential) = credential {
                request = request.header(header::AUTHORIZATION, credential);
            }
            let came = service.send(request.body(Body::from("{}")).unwrap()).await;
            let said = came.problem(401);
            assert!(said.contains("valid token"), "{} {}: {said}", route.verb().as_str(), route.path());
            assert!(came.headers.contains_key(header::WWW_AUTHENTICATE));
        }
        let request = request(route).header(header::COOKIE, format!("sightline_session={}", "0".repeat(64)));
        service.send(request.body(Body::from("{}")).unwrap()).await.problem(401);
        // Who tries this often is locked out for a minute.
        service.clock.forward(60);
        walked += 1;
    }
    assert!(walked >= 5, "only {walked} routes were walked");
}

#[tokio::test]
async fn a_parameter_that_a_route_does_not_know_is_refused_with_a_problem_document() {
    let service = TestService::start();
    let [admin, auditor] = ["admin", "auditor"].map(|who| format!("Bearer {}", service.token(who, None).text));
    for route in routes() {
        let uri = format!("{}?surprise=1", example(&route));
        let who = if uri.starts_with("/v1/audit") { &auditor } else { &admin };
        let request = request(&route).uri(uri).header(header::AUTHORIZATION, who);
        let came = service.send(request.body(Body::from("{}")).unwrap()).await;
        let said = came.problem(422);
        assert!(said.contains("query string"), "{} {}: {said}", route.verb().as_str(), route.path());
        service.clock.forward(1);
    }
    assert_eq!(service.log.events(), [], "nothing was done");
}

#[test]
fn the_routes_for_everybody_are_these_each_for_a_reason() {
    let table = routes();
    let all: BTreeSet<(&str, &str)> = table.iter().map(|route| (route.path(), route.verb().as_str())).collect();
    assert_eq!(all.len(), table.len(), "a route stands in the table twice");
    let public = table.iter().filter_map(|route| match route.access() {
        Access::Public(why) => Some(format!("{:<6} {:<12} {why}", route.verb().as_str(), route.path())),
        Access::Identified => None,
    });
    insta::assert_snapshot!("public_routes", public.collect::<Vec<_>>().join("\n"));
}

#[test]
fn no_route_stands_beside_the_table() {
    let mut files = Vec::new();
    sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    let ways = [".route(", ".route_service(", ".nest(", ".nest_service(", ".merge(", ".fallback_service("];
    let mut found = Vec::new();
    for (name, text) in &files {
        for (number, line) in text.lines().enumerate() {
            if ways.iter().any(|way| line.contains(way)) {
                found.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(files.len() > 20, "only {} source files were seen", files.len());
    assert_eq!(found.len(), 1, "hand routes over in routes.rs, so that they get their identity: {found:#?}");
    assert!(found[0].starts_with("route.rs:"), "{found:#?}");
}

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("_tests.rs") {
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

//! Key sets at an address: cached, fetched again when a key is unknown, rotated, kept while the provider is away.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use sightline_policies::Policies;

use super::jwt::JwtFault;
use super::providers::{ProviderFault, Providers, Vouched};
use super::test_keys::{NOW, Pair, claims, policies};

/// What an address answers.
#[derive(Clone)]
enum Says {
    Keys(Vec<Value>),
    Text(StatusCode, String),
    Elsewhere(String),
    /// Keys, after a while.
    Slowly(Vec<Value>),
    Nothing,
}

/// A provider's address on this machine.
struct Address {
    says: Arc<Mutex<Says>>,
    asked: Arc<AtomicUsize>,
    url: String,
}

impl Address {
    async fn start(says: Says) -> Self {
        let (says, asked) = (Arc::new(Mutex::new(says)), Arc::new(AtomicUsize::new(0)));
        let (current, count) = (Arc::clone(&says), Arc::clone(&asked));
        let router = Router::new().fallback(move || {
            count.fetch_add(1, Ordering::SeqCst);
            let says = current.lock().unwrap().clone();
            async move { answer(says).await }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { says, asked, url }
    }

    fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn policies(&self) -> Policies {
        policies(&format!("jwks_url = \"{}\"", self.url))
    }
}

async fn answer(says: Says) -> Response {
    match says {
        Says::Keys(keys) => json!({ "keys": keys }).to_string().into_response(),
        Says::Text(status, text) => (status, text).into_response(),
        Says::Elsewhere(url) => (StatusCode::FOUND, [(header::LOCATION, url)]).into_response(),
        Says::Slowly(keys) => {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            json!({ "keys": keys }).to_string().into_response()
        }
        Says::Nothing => std::future::pending().await,
    }
}

/// Asks at this many seconds after the start; the token's own times do not matter here.
async fn verify(
    providers: &Providers,
    policies: &Policies,
    token: &str,
    second: u32,
) -> Result<Vouched, ProviderFault> {
    providers.verify(token, policies, Timestamp::from_second(NOW).unwrap(), f64::from(second) * 1000.0).await
}

fn is_unknown_key(result: &Result<Vouched, ProviderFault>) -> bool {
    matches!(result, Err(ProviderFault::Token(JwtFault::UnknownKey)))
}

#[tokio::test]
async fn a_rotated_key_is_fetched_when_it_is_first_seen_and_a_withdrawn_one_ends() {
    let (old, new) = (Pair::ec(), Pair::ed());
    let address = Address::start(Says::Keys(vec![old.jwk("old")])).await;
    let (providers, policies) = (Providers::new(), address.policies());
    let (by_old, by_new) = (old.token("old", &claims()), new.token("new", &claims()));
    for _ in 0..10 {
        assert!(verify(&providers, &policies, &by_old, 0).await.is_ok());
    }
    assert_eq!(address.asked(), 1, "the set is kept");
    address.say(Says::Keys(vec![old.jwk("old"), new.jwk("new")]));
    assert!(is_unknown_key(&verify(&providers, &policies, &by_new, 59).await), "not within a minute");
    assert!(verify(&providers, &policies, &by_new, 60).await.is_ok());
    assert!(verify(&providers, &policies, &by_old, 60).await.is_ok());
    assert_eq!(address.asked(), 2);
    address.say(Says::Keys(vec![new.jwk("new")]));
    assert!(verify(&providers, &policies, &by_old, 659).await.is_ok());
    assert!(
        is_unknown_key(&verify(&providers, &policies, &by_old, 660).await),
        "withdrawn, and the set is ten minutes old"
    );
    assert!(verify(&providers, &policies, &by_new, 661).await.is_ok());
    assert_eq!(address.asked(), 3);
}

#[tokio::test]
async fn made_up_key_ids_make_it_fetch_once_a_minute() {
    let pair = Pair::ed();
    let address = Address::start(Says::Keys(vec![pair.jwk("a")])).await;
    let (providers, policies) = (Arc::new(Providers::new()), Arc::new(address.policies()));
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (providers, policies) = (Arc::clone(&providers), Arc::clone(&policies));
        let token = pair.token(&format!("made-up-{n}"), &claims());
        asking.spawn(async move { is_unknown_key(&verify(&providers, &policies, &token, n / 10).await) });
    }
    assert!(asking.join_all().await.into_iter().all(|unknown| unknown));
    assert_eq!(address.asked(), 1);
    assert!(is_unknown_key(&verify(&providers, &policies, &pair.token("b", &claims()), 65).await));
    assert_eq!(address.asked(), 2);
}

#[tokio::test]
async fn clients_that_hang_up_make_it_fetch_once_a_minute_and_what_came_is_kept() {
    let pair = Pair::ed();
    let address = Address::start(Says::Slowly(vec![pair.jwk("a")])).await;
    let (providers, policies) = (Arc::new(Providers::new()), Arc::new(address.policies()));
    let token = pair.token("a", &claims());
    for n in 0..20 {
        let asking = verify(&providers, &policies, &token, 0);
        let begun = async {
            while address.asked() == 0 {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
        };
        tokio::select! {
            biased;
            answer = asking => panic!("{n}: {answer:?}"),
            () = begun => {}
        }
    }
    assert!(verify(&providers, &policies, &token, 1).await.is_ok(), "the keys that the first one asked for");
    assert_eq!(address.asked(), 1);
}

#[tokio::test]
async fn while_the_provider_is_away_its_last_good_keys_hold_for_a_day() {
    let pair = Pair::ed();
    let token = pair.token("a", &claims());
    let address = Address::start(Says::Text(StatusCode::BAD_GATEWAY, String::new())).await;
    let (providers, policies) = (Providers::new(), address.policies());
    let refused = verify(&providers, &policies, &token, 0).await.unwrap_err();
    assert_eq!(refused.to_string(), "the keys of `corp` cannot be had: the answer is 502 Bad Gateway");
    address.say(Says::Keys(vec![pair.jwk("a")]));
    assert!(verify(&providers, &policies, &token, 1).await.is_err(), "it is asked again a minute later");
    assert!(verify(&providers, &policies, &token, 60).await.is_ok());
    for (says, second) in [
        (Says::Text(StatusCode::INTERNAL_SERVER_ERROR, String::new()), 4000),
        (Says::Text(StatusCode::OK, "<html>".to_owned()), 8000),
        (Says::Keys(Vec::new()), 12000),
        (Says::Text(StatusCode::OK, " ".repeat(300_000)), 16000),
        (Says::Elsewhere(address.url.clone()), 20000),
    ] {
        let asked = address.asked();
        address.say(says);
        assert!(verify(&providers, &policies, &token, second).await.is_ok(), "{second}");
        assert_eq!(address.asked(), asked + 1, "{second}");
    }
    let refused = verify(&providers, &policies, &token, 60 + 86_400).await.unwrap_err();
    assert!(refused.to_string().contains("the answer is 302 Found"), "{refused}");
}

#[tokio::test]
async fn a_key_that_is_known_does_not_wait_for_a_provider_that_does_not_answer() {
    let pair = Pair::ed();
    let address = Address::start(Says::Keys(vec![pair.jwk("a")])).await;
    let (providers, policies) = (Arc::new(Providers::new()), Arc::new(address.policies()));
    let (known, unknown) = (pair.token("a", &claims()), pair.token("b", &claims()));
    assert!(verify(&providers, &policies, &known, 0).await.is_ok());
    address.say(Says::Nothing);
    let waiting = {
        let (providers, policies) = (Arc::clone(&providers), Arc::clone(&policies));
        tokio::spawn(async move { verify(&providers, &policies, &unknown, 700).await.is_err() })
    };
    while address.asked() < 2 {
        tokio::task::yield_now().await;
    }
    // Old enough to be fetched anew, were somebody not doing so already.
    assert!(verify(&providers, &policies, &known, 700).await.is_ok());
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test]
async fn what_is_given_back_holds_nothing_of_a_person_that_is_not_needed() {
    let pair = Pair::ec();
    let address = Address::start(Says::Keys(vec![pair.jwk("a")])).await;
    let vouched = verify(&Providers::new(), &address.policies(), &pair.token("a", &claims()), 0).await.unwrap();
    let names: std::collections::BTreeSet<&str> = vouched.claims.keys().map(String::as_str).collect();
    assert_eq!(names, ["email", "email_verified", "groups", "roles"].into());
}

#[tokio::test]
async fn an_address_with_tls_is_asked_over_tls_alone() {
    let pair = Pair::ec();
    let address = Address::start(Says::Keys(vec![pair.jwk("a")])).await;
    let policies = policies(&format!("jwks_url = \"{}\"", address.url.replace("http://", "https://")));
    let refused = verify(&Providers::new(), &policies, &pair.token("a", &claims()), 0).await.unwrap_err();
    assert!(refused.to_string().starts_with("the keys of `corp` cannot be had: "), "{refused}");
    assert_eq!(address.asked(), 0, "it was asked in clear");
}

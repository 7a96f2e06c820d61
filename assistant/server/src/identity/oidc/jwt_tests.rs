//! Tokens that are right, and every way to be wrong: each is refused for its own reason.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Value, json};

use super::jwt::{JwtFault, looks_like_jwt};
use super::providers::{ProviderFault, Providers};
use super::test_keys::{ISSUER, NOW, Pair, claims, policies};

/// A provider with these keys, in a file.
struct Provider {
    providers: Providers,
    policies: sightline_policies::Policies,
    _folder: tempfile::TempDir,
}

impl Provider {
    fn with(keys: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.json");
        std::fs::write(&path, json!({ "keys": keys }).to_string()).unwrap();
        let policies = policies(&format!("jwks_file = \"{}\"", path.display()));
        Self { providers: Providers::new(), policies, _folder: folder }
    }

    async fn at(&self, text: &str, second: i64) -> Result<String, ProviderFault> {
        let now = Timestamp::from_second(second).unwrap();
        self.providers.verify(text, &self.policies, now, 0.0).await.map(|vouched| vouched.principal.id)
    }

    async fn fault(&self, text: &str) -> JwtFault {
        match self.at(text, NOW).await {
            Err(ProviderFault::Token(fault)) => fault,
            other => panic!("{other:?}"),
        }
    }
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

#[tokio::test]
async fn tokens_of_each_algorithm_stand_for_whom_their_claims_are_mapped_to() {
    let pairs = [Pair::rsa(), Pair::ec(), Pair::ed()];
    let provider = Provider::with(&pairs.iter().map(|pair| pair.jwk(pair.algorithm())).collect::<Vec<_>>());
    for pair in &pairs {
        for claims in
            [claims(), with("aud", json!(["other", "sightline-cli"])), without("iat"), with("nbf", json!(NOW))]
        {
            let token = pair.token(pair.algorithm(), &claims);
            assert!(looks_like_jwt(&token));
            assert_eq!(provider.at(&token, NOW).await.unwrap(), "corp:ann@example.com");
        }
    }
}

#[tokio::test]
async fn one_changed_byte_of_any_part_is_refused() {
    for pair in [Pair::rsa(), Pair::ec(), Pair::ed()] {
        let provider = Provider::with(&[pair.jwk("a")]);
        let token = pair.token("a", &claims());
        for at in (0..token.len()).step_by(7).filter(|at| token.as_bytes()[*at] != b'.') {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(provider.at(&changed, NOW).await.is_err(), "{} byte {at}", pair.algorithm());
        }
    }
}

#[tokio::test]
async fn a_token_without_a_signature_or_with_one_that_everybody_can_make_is_refused() {
    let rsa = Pair::rsa();
    let jwk = rsa.jwk("a");
    let provider = Provider::with(std::slice::from_ref(&jwk));
    let b64 = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    let body = b64(claims().to_string().as_bytes());
    for name in ["none", "None", "NONE", ""] {
        let header = b64(json!({ "alg": name, "kid": "a" }).to_string().as_bytes());
        assert_eq!(provider.fault(&format!("{header}.{body}.")).await, JwtFault::Algorithm, "{name}");
    }
    // The public key taken as the secret of a symmetric algorithm.
    for secret in [jwk["n"].as_str().unwrap().to_owned(), jwk.to_string()] {
        let message = format!("{}.{body}", b64(json!({ "alg": "HS256", "kid": "a" }).to_string().as_bytes()));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
        assert_eq!(provider.fault(&format!("{message}.{}", b64(tag.as_ref()))).await, JwtFault::Algorithm);
    }
    let signed = rsa.token("a", &claims());
    let unsigned = format!("{}.", signed.rsplit_once('.').unwrap().0);
    assert_eq!(provider.fault(&unsigned).await, JwtFault::Signature);
}

#[tokio::test]
async fn a_key_is_used_for_its_own_algorithm_alone() {
    let (rsa, ec, ed) = (Pair::rsa(), Pair::ec(), Pair::ed());
    let provider = Provider::with(&[rsa.jwk("rsa"), ec.jwk("ec"), ed.jwk("ed")]);
    for (pair, claimed, id) in
        [(&rsa, "ES256", "rsa"), (&ec, "RS256", "ec"), (&ed, "ES256", "ed"), (&ec, "EdDSA", "ec")]
    {
        let token = pair.signed(&json!({ "alg": claimed, "kid": id }).to_string(), &claims().to_string());
        assert_eq!(provider.fault(&token).await, JwtFault::UnknownKey, "{claimed} with {id}");
    }
    for name in ["RS384", "RS512", "PS256", "ES384", "ES512", "HS384", "ES256K", "Ed448"] {
        let token = rsa.signed(&json!({ "alg": name, "kid": "rsa" }).to_string(), &claims().to_string());
        assert_eq!(provider.fault(&token).await, JwtFault::Algorithm, "{name}");
    }
    // One provider's key signs nothing for another.
    assert_eq!(provider.fault(&Pair::ec().token("ec", &claims())).await, JwtFault::Signature);
}

#[tokio::test]
async fn keys_that_are_not_for_signatures_are_passed_over() {
    let pair = Pair::ec();
    let keys =
        [("use", json!("enc")), ("key_ops", json!(["encrypt"])), ("alg", json!("ECDH-ES")), ("crv", json!("P-384"))];
    for (name, value) in keys {
        let mut wrong = pair.jwk("a");
        wrong[name] = value;
        let other = Pair::ed().jwk("b");
        let provider = Provider::with(&[wrong, json!({ "kty": "oct", "k": "AAAA", "kid": "a" }), json!(7), other]);
        assert_eq!(provider.fault(&pair.token("a", &claims())).await, JwtFault::UnknownKey, "{name}");
    }
}

#[tokio::test]
async fn a_token_that_names_no_key_means_the_only_one_there_is() {
    let (a, b) = (Pair::ec(), Pair::ec());
    let nameless = |pair: &Pair| pair.signed(r#"{"alg":"ES256"}"#, &claims().to_string());
    let one = Provider::with(&[a.jwk("a")]);
    assert!(one.at(&nameless(&a), NOW).await.is_ok());
    assert_eq!(one.fault(&nameless(&b)).await, JwtFault::Signature);
    let two = Provider::with(&[a.jwk("a"), b.jwk("b")]);
    assert_eq!(two.fault(&nameless(&a)).await, JwtFault::AmbiguousKey);
    let same = Provider::with(&[a.jwk("a"), b.jwk("a")]);
    assert_eq!(same.fault(&a.token("a", &claims())).await, JwtFault::AmbiguousKey);
    assert_eq!(two.fault(&a.token("c", &claims())).await, JwtFault::UnknownKey);
}

#[tokio::test]
async fn another_issuer_or_audience_is_refused() {
    let pair = Pair::ed();
    let provider = Provider::with(&[pair.jwk("a")]);
    for (claims, fault) in [
        (with("iss", json!("https://login.example.com")), JwtFault::Issuer),
        (with("iss", json!([ISSUER])), JwtFault::Issuer),
        (without("iss"), JwtFault::Issuer),
        (with("aud", json!("another-app")), JwtFault::Audience),
        (with("aud", json!([])), JwtFault::Audience),
        (with("aud", json!(["SIGHTLINE"])), JwtFault::Audience),
        (with("aud", json!({ "a": "sightline" })), JwtFault::Missing),
        (without("aud"), JwtFault::Missing),
    ] {
        assert_eq!(provider.fault(&pair.token("a", &claims)).await, fault, "{claims}");
    }
}

#[tokio::test]
async fn a_token_counts_in_its_time_give_or_take_the_leeway() {
    let pair = Pair::ed();
    let provider = Provider::with(&[pair.jwk("a")]);
    let token = pair.token("a", &with("nbf", json!(NOW)));
    for (second, expected) in [
        (NOW - 31, Some(JwtFault::Early)),
        (NOW - 30, None),
        (NOW + 3629, None),
        (NOW + 3630, Some(JwtFault::Expired)),
        (NOW + 1_000_000, Some(JwtFault::Expired)),
    ] {
        match (provider.at(&token, second).await, expected) {
            (Ok(_), None) => {}
            (Err(ProviderFault::Token(fault)), Some(expected)) => assert_eq!(fault, expected, "{second}"),
            other => panic!("{second}: {other:?}"),
        }
    }
    assert!(provider.at(&pair.token("a", &with("exp", json!(NOW as f64 + 0.5))), NOW).await.is_ok());
    for (claims, fault) in [
        (without("exp"), JwtFault::Missing),
        (with("exp", json!("2999-01-01")), JwtFault::Missing),
        (with("exp", json!(null)), JwtFault::Missing),
        (with("nbf", json!("0")), JwtFault::Times),
        (with("iat", json!(NOW + 31)), JwtFault::Early),
    ] {
        assert_eq!(provider.fault(&pair.token("a", &claims)).await, fault, "{claims}");
    }
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    let pair = Pair::ed();
    let provider = Provider::with(&[pair.jwk("a")]);
    let claims = claims().to_string();
    let twice = format!("{},\"roles\":[\"gpu-readers\"]}}", claims.strip_suffix('}').unwrap());
    let right = r#"{"alg":"EdDSA","kid":"a"}"#;
    for (header, body, fault) in [
        (right, twice.as_str(), JwtFault::Unreadable),
        (r#"{"alg":"EdDSA","alg":"EdDSA","kid":"a"}"#, &claims, JwtFault::Unreadable),
        (r#"{"alg":"EdDSA","kid":"a","kid":"a"}"#, &claims, JwtFault::Unreadable),
        (r#"{"alg":"EdDSA","kid":7}"#, &claims, JwtFault::Unreadable),
        (r#"{"alg":"EdDSA","kid":"a","crit":["exp"]}"#, &claims, JwtFault::Critical),
        (r#"{"alg":"EdDSA","kid":"a","crit":[]}"#, &claims, JwtFault::Critical),
        (r#"{"alg":"EdDSA","kid":"a","typ":"dpop+jwt"}"#, &claims, JwtFault::Kind),
        (r#"{"alg":"EdDSA","kid":"a","typ":7}"#, &claims, JwtFault::Kind),
        (r#"["alg"]"#, &claims, JwtFault::Unreadable),
        (right, "[]", JwtFault::Unreadable),
        (right, "", JwtFault::Unreadable),
        (right, r#"{"iss":"#, JwtFault::Unreadable),
    ] {
        assert_eq!(provider.fault(&pair.signed(header, body)).await, fault, "{header} {body}");
    }
    let token = pair.token("a", &with("filler", json!("x".repeat(9000))));
    assert_eq!(provider.fault(&token).await, JwtFault::Shape);
    for text in ["a.b", "a.b.c.d", "..", "a.b.c", &format!("{}=", pair.token("a", &with("a", json!(1))))] {
        assert!(provider.at(text, NOW).await.is_err(), "{text}");
    }
}

#[tokio::test]
async fn claims_that_are_mapped_to_nothing_let_nobody_in() {
    let pair = Pair::ed();
    let provider = Provider::with(&[pair.jwk("a")]);
    for claims in
        [with("roles", json!([])), with("groups", json!("team-borealis")), with("email_verified", json!(false))]
    {
        let fault = provider.at(&pair.token("a", &claims), NOW).await.unwrap_err();
        assert!(matches!(fault, ProviderFault::Claims(_)), "{fault:?}");
    }
}

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use crate::chain::{Hash, Head};
use crate::error::AuditError;
use crate::record::Kind;
use crate::test_log::{TestLog, begin, call, complete};

/// The canonical text, with the text that it commits to behind it.
fn canonical(kind: Kind, record: &impl Serialize) -> Result<String, AuditError> {
    let (body, text) = crate::record::canonical(kind, record, &|| Ok([1; 32]))?;
    Ok(text.map_or(body.clone(), |text| format!("{body}\n  {}", text.text)))
}

#[test]
fn each_kind_of_record_has_the_canonical_text_that_was_reviewed() {
    let texts = [
        canonical(Kind::Begin, &begin("q1")).unwrap(),
        canonical(Kind::Call, &call("q1")).unwrap(),
        canonical(Kind::Complete, &complete("q1", "answered")).unwrap(),
    ];
    insta::assert_snapshot!("canonical", texts.join("\n"));
}

#[test]
fn the_hashes_and_the_signature_of_a_log_are_those_of_the_format() {
    let genesis = Hash::genesis(&[9; 16]);
    let first = genesis.next(1, canonical(Kind::Begin, &begin("q1")).unwrap().as_bytes());
    let head = Head { seq: 1, hash: first, previous: 0 };
    let signature = TestLog::settings().key.sign(&head.signed_bytes(&[9; 16]));
    insta::assert_snapshot!(
        "hashes",
        format!("genesis {genesis}\nfirst {first}\nsignature {}", hex::encode(signature))
    );
}

#[test]
fn the_hash_covers_number_predecessor_and_text() {
    let genesis = Hash::genesis(&[0; 16]);
    let hashes =
        [genesis.next(1, b"a"), genesis.next(2, b"a"), genesis.next(1, b"b"), Hash::genesis(&[1; 16]).next(1, b"a")];
    let distinct: std::collections::BTreeSet<String> = hashes.iter().map(Hash::to_string).collect();
    assert_eq!(distinct.len(), hashes.len());
}

#[test]
fn keys_are_sorted_and_numbers_are_written_the_one_way() {
    let record = BTreeMap::from([
        ("b", json!({ "z": 1.50, "a": [1e3, -0.0, 100_000_000_000_000_000_000_000.0] })),
        ("a", json!("é\n\u{1}\"")),
    ]);
    assert_eq!(
        canonical(Kind::Complete, &record).unwrap(),
        "{\"a\":\"é\\n\\u0001\\\"\",\"b\":{\"a\":[1000,0,1e+23],\"z\":1.5},\"kind\":\"complete\"}"
    );
}

#[test]
fn an_integer_that_a_double_cannot_hold_is_kept_digit_by_digit() {
    let record = BTreeMap::from([(
        "arguments",
        json!([9_007_199_254_740_992_u64, 9_007_199_254_740_993_u64, i64::MIN, u64::MAX]),
    )]);
    assert_eq!(
        canonical(Kind::Complete, &record).unwrap(),
        r#"{"arguments":[9007199254740992,"9007199254740993","-9223372036854775808","18446744073709551615"],"kind":"complete"}"#
    );
}

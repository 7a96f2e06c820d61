//! The checker on any text with any parameters. What it lets pass must be what the guard could have written.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sightline_guard::{Mapping, check_sql};

use super::tool;

/// Ends the text and each parameter: a byte that UTF-8 has not.
pub(crate) const END: u8 = 0xff;
const ATTACKS: &str = include_str!("../../../../fixtures/redteam/sql_attacks.jsonl");
/// The one way a query is bound to its tenants.
const SCOPE: &str = " AS t PREWHERE t.tenant IN {p0:Array(String)} AND ";

pub(crate) fn run(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == END).map(std::str::from_utf8);
    let Some(Ok(text)) = parts.next() else { return };
    let named = parts.filter_map(|part| part.ok()?.split_once('='));
    let params: BTreeMap<String, String> = named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let tenants = tool::tenants();
    match check_sql(text, &params, &mapping(), &tenants) {
        Ok(()) => holds(text.trim_end_matches(['\n', '\r']), &params, &tenants),
        Err(faults) => {
            assert!(!faults.is_empty(), "refused without a fault");
            assert!(faults.iter().all(|fault| !fault.what().is_empty()), "a fault without words");
        }
    }
}

pub(crate) fn mapping() -> Mapping {
    Mapping::native("sightline").expect("a plain name")
}

/// What is true of every text that may run, looked for in the bare text.
pub(crate) fn holds(text: &str, params: &BTreeMap<String, String>, tenants: &BTreeSet<String>) {
    let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || b" _.,()[]{}:<>=!'".contains(&byte);
    assert!(text.bytes().all(is_ours), "a sign that we never write: {text}");
    assert_eq!(text.matches('\'').count(), 2 * text.matches("'UTC'").count(), "a literal: {text}");
    for word in ["SELECT ", " FROM ", "PREWHERE", " LIMIT ", SCOPE, " IN {p0:", "tenant IN"] {
        assert_eq!(text.matches(word).count(), 1, "`{word}`: {text}");
    }
    assert!(text.matches("WHERE ").count() <= 2 && text.starts_with("SELECT "), "{text}");
    let (_, limit) = text.rsplit_once(" LIMIT ").expect("a limit");
    assert!(limit.parse::<u32>().is_ok_and(|limit| limit > 0), "{text}");
    let table = text.split_once(" FROM sightline.").map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
    assert!(["metrics", "logs", "spans", "events", "jobs", "job_gpus"].contains(&table.unwrap_or_default()), "{text}");

    let named: BTreeSet<&str> =
        text.split("{p").skip(1).filter_map(|rest| rest.split_once(':')).map(|(n, _)| n).collect();
    let given: BTreeSet<&str> = params.keys().filter_map(|name| name.strip_prefix('p')).collect();
    assert_eq!(named, given, "{text}");
    for value in params.values() {
        assert!(!value.contains(['\t', '\n', '\r', '\0']), "a value that ends its field: {value:?}");
    }
    let scope = list(params.get("p0").map_or("", String::as_str));
    assert!(!scope.is_empty() && scope.iter().all(|tenant| tenants.contains(tenant)), "{scope:?}");
}

/// The texts of a list as it is sent.
fn list(sent: &str) -> Vec<String> {
    let inside = sent.strip_prefix("['").and_then(|rest| rest.strip_suffix("']")).expect("a list of texts");
    // A quote inside is escaped, so that this can only be the end of one text and the beginning of the next.
    let texts = inside.replace("', '", "','");
    texts.split("','").map(|text| text.replace("\\'", "'").replace("\\\\", "\\")).collect()
}

/// The attacks, and a text of ours with its parameters for every query that the tools plan for made-up arguments.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let attacks = ATTACKS.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(line.get("sql")?.as_str()?.as_bytes().to_vec())
    });
    let ours = tool::texts().into_iter().map(|(text, params)| {
        let mut seed = text.into_bytes();
        for (name, value) in params {
            seed.push(END);
            seed.extend(format!("{name}={value}").into_bytes());
        }
        seed
    });
    attacks.chain(ours).collect()
}

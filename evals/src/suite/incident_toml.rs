//! The format of `incident.toml`. Unknown keys are passed over: others keep notes there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use sightline_model::{Component, Outcome};

/// The only version there is.
const SCHEMA: u32 = 1;
/// The largest relative difference at which a fact counts as right unless the file says otherwise.
const DEFAULT_TOLERANCE: f64 = 0.02;

/// A recorded incident with its questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Its name.
    pub id: String,
    /// The bundle's folder.
    pub dir: PathBuf,
    /// The half of the suite it belongs to, where the suite has halves.
    pub half: Option<String>,
    /// What is asked about it.
    pub questions: Vec<Question>,
}

/// One question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// As typed.
    pub text: String,
    /// Who asks.
    pub principal: String,
    /// When; the bundle's latest sample without.
    pub as_of: Option<Timestamp>,
    /// The asker's zone.
    pub time_zone: String,
    /// What is expected.
    pub expect: Expectation,
}

/// What an answer is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Outcomes that are right, the expected one first.
    pub outcomes: Vec<Outcome>,
    /// The cause that stands in the file.
    pub cause: Option<String>,
    /// Causes that are right in first place, the expected one first; empty where none is asked for.
    pub causes: Vec<String>,
    /// Causes that are an error in first place.
    pub wrong_causes: Vec<String>,
    /// The culprits: each a list of names that are all right for it.
    pub components: Vec<Vec<Component>>,
    /// Since when.
    pub onset: Option<Timestamp>,
    /// What is to be cited.
    pub evidence: Vec<ExpectedEvidence>,
    /// Numbers to be borne out.
    pub facts: Vec<ExpectedFact>,
    /// What is not to be asserted, in lower case.
    pub must_not_say: Vec<String>,
}

/// A piece of evidence that an answer should cite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExpectedEvidence {
    /// The dataset.
    pub dataset: String,
    /// The metric, by stored or canonical name.
    #[serde(default)]
    pub metric: Option<String>,
    /// Labels that narrow it, as stored or canonical.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A number that the cited series should bear out.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ExpectedFact {
    /// The metric, by stored or canonical name.
    pub metric: String,
    /// Labels that narrow it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The statistic: min, max, mean, median, first, last, count or sum.
    pub agg: String,
    /// From when; from the beginning without.
    #[serde(default)]
    pub from: Option<String>,
    /// Until when; until the end without.
    #[serde(default)]
    pub to: Option<String>,
    /// The number.
    pub value: f64,
    /// The relative difference that is let pass.
    #[serde(default = "default_tolerance")]
    pub tolerance: f64,
}

fn default_tolerance() -> f64 {
    DEFAULT_TOLERANCE
}

#[derive(Deserialize)]
struct RawFile {
    schema: toml::Spanned<u32>,
    id: String,
    as_of: Option<toml::Spanned<String>>,
    time_zone: Option<toml::Spanned<String>>,
    half: Option<String>,
    #[serde(default)]
    question: Vec<RawQuestion>,
}

#[derive(Deserialize)]
struct RawQuestion {
    text: String,
    principal: String,
    as_of: Option<toml::Spanned<String>>,
    time_zone: Option<toml::Spanned<String>>,
    expect: RawExpect,
}

#[derive(Deserialize)]
struct RawExpect {
    outcome: toml::Spanned<String>,
    #[serde(default)]
    accept_outcomes: Vec<toml::Spanned<String>>,
    cause: Option<String>,
    #[serde(default)]
    accept_causes: Vec<String>,
    #[serde(default)]
    wrong_causes: Vec<String>,
    #[serde(default)]
    components: Vec<toml::Spanned<String>>,
    #[serde(default)]
    aliases: BTreeMap<String, Vec<String>>,
    onset: Option<toml::Spanned<String>>,
    #[serde(default)]
    evidence: Vec<ExpectedEvidence>,
    #[serde(default)]
    facts: Vec<ExpectedFact>,
    #[serde(default)]
    must_not_say: Vec<String>,
}

/// Reads the text of an `incident.toml`; the folder is left empty.
///
/// # Errors
/// `line N: what is wrong`, for a person to mend.
pub fn parse(text: &str) -> Result<Incident, String> {
    let raw: RawFile = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        format!("line {}: {}", line(text, at), error.message())
    })?;
    let fault = |at: std::ops::Range<usize>, what: String| format!("line {}: {what}", line(text, at.start));
    if *raw.schema.get_ref() != SCHEMA {
        let what = format!("`schema` is {}; this program reads {SCHEMA}", raw.schema.get_ref());
        return Err(fault(raw.schema.span(), what));
    }
    if raw.question.is_empty() {
        return Err(format!("line 1: `{}` asks nothing; add a [[question]]", raw.id));
    }
    let instant = |value: &toml::Spanned<String>| -> Result<Timestamp, String> {
        let text = value.get_ref();
        text.parse().map_err(|_| fault(value.span(), format!("`{text}` is no instant like 2026-05-04T10:00:00Z")))
    };
    let zone = |value: &toml::Spanned<String>| -> Result<String, String> {
        let name = value.get_ref();
        TimeZone::get(name).map_err(|_| fault(value.span(), format!("`{name}` is no IANA time zone")))?;
        Ok(name.clone())
    };
    let outcome = |value: &toml::Spanned<String>| -> Result<Outcome, String> {
        let known =
            [Outcome::Answered, Outcome::NoFault, Outcome::InsufficientData, Outcome::Clarify, Outcome::Refused];
        let name = value.get_ref();
        known.into_iter().find(|outcome| outcome.as_str() == name).ok_or_else(|| {
            let names = known.map(Outcome::as_str).join(", ");
            fault(value.span(), format!("`{name}` is no outcome; write one of {names}"))
        })
    };
    let of_file = (
        raw.as_of.as_ref().map(instant).transpose()?,
        raw.time_zone.as_ref().map(zone).transpose()?.unwrap_or_else(|| "UTC".to_owned()),
    );
    let mut questions = Vec::new();
    for RawQuestion { text, principal, as_of, time_zone, expect } in raw.question {
        let outcomes = [&expect.outcome].into_iter().chain(&expect.accept_outcomes).map(outcome);
        let mut components = Vec::new();
        for named in &expect.components {
            let selector = selector(named.get_ref()).map_err(|what| fault(named.span(), what))?;
            let others = expect.aliases.get(named.get_ref()).into_iter().flatten();
            let others = others.map(|other| alias(&selector, other)).collect::<Result<Vec<_>, _>>();
            let others = others.map_err(|what| fault(named.span(), what))?;
            components.push([selector].into_iter().chain(others).collect());
        }
        let causes = expect.cause.iter().chain(&expect.accept_causes).cloned().collect();
        questions.push(Question {
            text,
            principal,
            as_of: as_of.as_ref().map(instant).transpose()?.or(of_file.0),
            time_zone: time_zone.as_ref().map(zone).transpose()?.unwrap_or_else(|| of_file.1.clone()),
            expect: Expectation {
                outcomes: outcomes.collect::<Result<_, _>>()?,
                cause: expect.cause,
                causes,
                wrong_causes: expect.wrong_causes,
                components,
                onset: expect.onset.as_ref().map(instant).transpose()?,
                evidence: expect.evidence,
                facts: expect.facts,
                must_not_say: expect.must_not_say.iter().map(|words| words.to_lowercase()).collect(),
            },
        });
    }
    Ok(Incident { id: raw.id, dir: PathBuf::new(), half: raw.half, questions })
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// `node=n1,gpu=3` as names and values.
fn selector(text: &str) -> Result<Component, String> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        (!name.trim().is_empty() && !value.trim().is_empty()).then(|| (name.trim().to_owned(), value.trim().to_owned()))
    };
    let pairs: Option<Component> = text.split(',').map(pair).collect();
    pairs.ok_or_else(|| format!("`{text}` is no component; write it like `node=n1,gpu=3`"))
}

/// Another name for the same component: a whole selector, or a bare value for its only key.
fn alias(of: &Component, other: &str) -> Result<Component, String> {
    match of.keys().next() {
        Some(key) if of.len() == 1 && !other.contains('=') => Ok([(key.clone(), other.to_owned())].into()),
        Some(_) | None => selector(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
schema = 1
id = "hot-gpu-07"
as_of = "2026-05-04T10:00:00Z"
time_zone = "Europe/Berlin"
source = { kind = "simulated", seed = 7 }
[[question]]
text = "Why was training job J123 slow yesterday?"
principal = "operator@atlas"
tier = "hard"
[question.expect]
outcome = "answered"
cause = "thermal_throttling"
components = ["node=atlas-n07,gpu=3"]
onset = "2026-05-03T14:10:00Z"
evidence = [ { dataset = "metrics", metric = "DCGM_FI_DEV_GPU_TEMP", labels = { gpu = "3" } } ]
facts = [ { metric = "DCGM_FI_DEV_SM_CLOCK", labels = { gpu = "3" }, agg = "min", value = 1095, tolerance = 0.02 } ]
must_not_say = ["Data loader"]
accept_outcomes = ["clarify"]
canary = "x"
[[question]]
text = "Is it?"
principal = "viewer@atlas"
as_of = "2026-05-04T11:00:00Z"
[question.expect]
outcome = "answered"
components = ["service=PetSearch_AWS::ECS::Fargate"]
aliases = { "service=PetSearch_AWS::ECS::Fargate" = ["PetSearch", "service=petsearch"] }
accept_causes = ["error_spike"]
"#;

    #[test]
    fn a_whole_file_is_read_and_unknown_keys_are_passed_over() {
        let incident = parse(WHOLE).unwrap();
        assert_eq!((incident.id.as_str(), incident.questions.len()), ("hot-gpu-07", 2));
        let [first, second] = incident.questions.as_slice() else { panic!("two questions") };
        assert_eq!(first.expect.outcomes, [Outcome::Answered, Outcome::Clarify]);
        assert_eq!(first.expect.causes, ["thermal_throttling"]);
        assert_eq!(first.expect.components[0][0]["gpu"], "3");
        assert_eq!(first.expect.must_not_say, ["data loader"]);
        assert_eq!(first.expect.facts[0].value, 1095.0);
        assert_eq!((first.time_zone.as_str(), second.time_zone.as_str()), ("Europe/Berlin", "Europe/Berlin"));
        assert_eq!(second.as_of.unwrap().to_string(), "2026-05-04T11:00:00Z");
        let names: Vec<&str> = second.expect.components[0].iter().map(|name| name["service"].as_str()).collect();
        assert_eq!(names, ["PetSearch_AWS::ECS::Fargate", "PetSearch", "petsearch"]);
        assert_eq!((second.expect.cause.clone(), second.expect.causes.len()), (None, 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (change, to, expected) in [
            ("schema = 1", "schema = 9", "line 2: `schema` is 9"),
            ("\"2026-05-03T14:10:00Z\"", "\"soon\"", "line 15: `soon` is no instant"),
            ("\"Europe/Berlin\"", "\"Mars\"", "line 5: `Mars` is no IANA time zone"),
            ("[\"node=atlas-n07,gpu=3\"]", "[\"gpu 3\"]", "line 14: `gpu 3` is no component"),
            ("[\"clarify\"]", "[\"maybe\"]", "line 19: `maybe` is no outcome"),
        ] {
            let error = parse(&WHOLE.replace(change, to)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(parse("schema = 1\nid = \"x\"\n").unwrap_err().contains("asks nothing"));
    }
}

//! The answer as a model hands it in: a headline, claims, causes in order. Read leniently, capped hard.

use serde::Deserialize;
use serde_json::Value;

/// The most claims and causes that are read.
const MAX_ITEMS: usize = 16;
/// The most characters of one sentence.
const MAX_SENTENCE: usize = 400;

/// An answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ModelAnswer {
    pub(crate) headline: Option<String>,
    pub(crate) claims: Vec<String>,
    pub(crate) causes: Vec<RankedCause>,
}

/// A cause in the place that the model gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RankedCause {
    pub(crate) id: String,
    pub(crate) why: Option<String>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    headline: Option<String>,
    #[serde(default)]
    claims: Option<Vec<Value>>,
    #[serde(default)]
    causes: Option<Vec<Value>>,
}

/// Reads an answer.
///
/// # Errors
/// When it has no form of one, in words the model can act on.
pub(crate) fn read(answer: &Value) -> Result<ModelAnswer, String> {
    let Raw { headline, claims, causes } = Raw::deserialize(answer).map_err(|_| {
        "an answer is {\"headline\":\"…\",\"claims\":[\"…\"],\"causes\":[{\"id\":\"…\",\"why\":\"…\"}]}".to_owned()
    })?;
    let claims = claims.into_iter().flatten().take(MAX_ITEMS).filter_map(|claim| sentence(&claim)).collect();
    let causes = causes.into_iter().flatten().take(MAX_ITEMS).filter_map(|cause| match &cause {
        Value::String(id) => Some(RankedCause { id: id.clone(), why: None }),
        Value::Object(fields) => {
            let id = fields.get("id")?.as_str()?.to_owned();
            Some(RankedCause { id, why: fields.get("why").and_then(sentence) })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    });
    let headline = headline.filter(|text| !text.trim().is_empty()).map(|text| capped(&text));
    Ok(ModelAnswer { headline, claims, causes: causes.collect() })
}

fn sentence(value: &Value) -> Option<String> {
    let text = value.as_str().or_else(|| value.get("text").and_then(Value::as_str))?.trim();
    (!text.is_empty()).then(|| capped(text))
}

fn capped(text: &str) -> String {
    text.trim().chars().take(MAX_SENTENCE).collect()
}

/// The first JSON object in a text: some models put words or fences around it.
pub(crate) fn first_object(text: &str) -> Option<Value> {
    let begin = text.find('{')?;
    let mut documents = serde_json::Deserializer::from_str(text.get(begin..)?).into_iter::<Value>();
    documents.next()?.ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_read_in_the_forms_that_models_send() {
        let answer = json!({"headline":" F1 ","claims":["F2",{"text":"x {E1.max}"},7,""],"causes":["a",{"id":"b","why":"F3"},{"x":1}]});
        let read = read(&answer).unwrap();
        assert_eq!(read.headline.as_deref(), Some("F1"));
        assert_eq!(read.claims, ["F2", "x {E1.max}"]);
        assert_eq!(read.causes.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(super::read(&json!({"claims":"all is well"})).is_err());
        assert_eq!(first_object("Sure!\n```json\n{\"a\":{}}\n```"), Some(json!({"a":{}})));
        assert_eq!(first_object("no object"), None);
        let endless = json!({"claims": vec!["y".repeat(10_000); 1_000]});
        let read = super::read(&endless).unwrap();
        assert!(read.claims.len() == MAX_ITEMS && read.claims.iter().all(|c| c.len() == MAX_SENTENCE));
    }
}

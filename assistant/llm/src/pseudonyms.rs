//! Names of users and hosts, replaced on the way to a model and put back on the way in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use sightline_model::{Entity, Evidence};

use crate::words;

/// The dimensions whose values are names of users or hosts.
const NAMED: [&str; 6] = ["node", "user", "pod", "host", "hostname", "instance"];

/// Addresses and full host names in free text.
static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b[\w.+-]+@[\w-]+\.[\w.-]+\b|\b\d{1,3}(?:\.\d{1,3}){3}\b|\b[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+\.(?:com|net|org|io|internal|local|lan|corp|cluster)\b")
        .ok()
});

/// A word of a question that has the form of a host's name: letters and digits, with a hyphen or dot.
static HOST_LIKE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)+\b").ok());

/// The word that a question calls a user's name.
static USER_SAID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:\b(\w+)\s+)?\buser\s+[`'\x22]?([A-Za-z0-9][\w.-]*\w)").ok());
/// Before these words and after those, `user` is about all of them.
const OF_ALL: [&str; 7] = ["which", "what", "whose", "each", "every", "any", "per"];

/// The names of one question, both ways. Where nothing is to be replaced it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pseudonyms {
    on: bool,
    out: BTreeMap<String, String>,
    back: BTreeMap<String, String>,
    numbers: BTreeMap<&'static str, usize>,
}

impl Pseudonyms {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    /// Learns the names that evidence is about.
    pub(crate) fn learn(&mut self, evidence: &[Evidence]) {
        if !self.on {
            return;
        }
        for piece in evidence {
            let entities = piece.series.iter().map(|s| &s.entity).chain(piece.rows.iter().map(|r| &r.entity));
            let fields = piece.rows.iter().map(|r| &r.fields);
            for entity in entities.chain(fields).chain([&piece.labels]) {
                self.learn_entity(entity);
            }
        }
    }

    pub(crate) fn learn_entity(&mut self, entity: &Entity) {
        for (key, value) in entity {
            if let Some(kind) = NAMED.iter().find(|kind| *kind == key) {
                self.name(kind, value);
            }
        }
    }

    /// Learns the words of a question that have the form of a host's name, and those that it calls users.
    pub(crate) fn learn_question(&mut self, text: &str) {
        if let Some(pattern) = USER_SAID.as_ref().filter(|_| self.on) {
            let plain = words::list("after_kinds");
            for found in pattern.captures_iter(text) {
                let is_of_all =
                    found.get(1).is_some_and(|word| OF_ALL.contains(&word.as_str().to_lowercase().as_str()));
                let user = found.get(2).map_or("", |word| word.as_str());
                if !is_of_all && !plain.contains(user.to_lowercase().as_str()) {
                    self.name("user", user);
                }
            }
        }
        let Some(pattern) = HOST_LIKE.as_ref().filter(|_| self.on) else { return };
        let found: Vec<String> = pattern
            .find_iter(text)
            .map(|found| found.as_str().to_owned())
            .filter(|word| word.chars().any(|c| c.is_ascii_digit()))
            .collect();
        for word in found {
            self.name("node", &word);
        }
    }

    fn name(&mut self, kind: &'static str, value: &str) {
        // A single letter or a number would be replaced in the middle of anything.
        if !self.on || value.len() < 3 || value.parse::<f64>().is_ok() || self.out.contains_key(value) {
            return;
        }
        let number = self.numbers.entry(kind).or_insert(0);
        *number += 1;
        let name = format!("{kind}-x{number}");
        self.out.insert(value.to_owned(), name.clone());
        self.back.insert(name, value.to_owned());
    }

    /// A text as it may leave.
    pub(crate) fn out(&self, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        let replaced = replace(text, &self.out);
        match &*ADDRESSES {
            Some(addresses) => addresses.replace_all(&replaced, "(address)").into_owned(),
            None => replaced,
        }
    }

    /// A text with the real names again.
    pub(crate) fn back(&self, text: &str) -> String {
        if self.on { replace(text, &self.back) } else { text.to_owned() }
    }

    /// The same for every text in arguments.
    pub(crate) fn back_in(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.back(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.back_in(item)).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, field)| (key, self.back_in(field))).collect())
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }
}

/// Replaces names where they stand as a whole, the longest first.
fn replace(text: &str, names: &BTreeMap<String, String>) -> String {
    let mut longest: Vec<&String> = names.keys().collect();
    longest.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let mut replaced = String::new();
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(c) = rest.chars().next() {
        let starts = !before.is_some_and(is_part);
        let found = longest.iter().find(|name| {
            starts && rest.strip_prefix(name.as_str()).is_some_and(|tail| !tail.chars().next().is_some_and(is_part))
        });
        let taken = match found {
            Some(name) => {
                replaced.push_str(names.get(*name).map_or("", String::as_str));
                name.len()
            }
            None => {
                replaced.push(c);
                c.len_utf8()
            }
        };
        before = rest.get(..taken).and_then(|part| part.chars().next_back());
        rest = rest.get(taken..).unwrap_or_default();
    }
    replaced
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_go_out_as_others_and_come_back() {
        let mut names = Pseudonyms::new(true);
        names.learn_question("why is atlas-n07 slower than atlas-n070 since 14:00?");
        names.learn_entity(&[("user".to_owned(), "alice".to_owned()), ("gpu".to_owned(), "3".to_owned())].into());
        let out = names.out("atlas-n07, atlas-n070: alice (alice@corp.example.com, 10.0.0.7) malice");
        assert_eq!(out, "node-x1, node-x2: user-x1 ((address), (address)) malice");
        let back = names.back_in(json!({"filters":[{"dim":"node","values":["node-x1"]}],"k":3}));
        assert_eq!(back, json!({"filters":[{"dim":"node","values":["atlas-n07"]}],"k":3}));
        let mut asked = Pseudonyms::new(true);
        asked.learn_question("which jobs of user bob.m ran on atlas-n07?");
        assert_eq!(asked.out("bob.m on atlas-n07"), "user-x1 on node-x1");
        asked.learn_question("which user uses most GPUs, by user over the last day?");
        assert_eq!(asked.out("uses over"), "uses over");
        let off = Pseudonyms::new(false);
        assert_eq!(off.out("alice@corp.example.com"), "alice@corp.example.com");
    }
}

//! Rules that score what a question may be: which features speak for a class, and how much. The best score is the reading; the second
//! is what it was held against.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::super::classify::Class;

/// One rule.
#[derive(Clone, Debug)]
pub(in crate::offline) struct Rule {
    /// What it speaks for.
    pub(in crate::offline) class: Class,
    /// What it asks for, as written.
    pub(in crate::offline) when: String,
    /// How much it speaks for it.
    pub(in crate::offline) score: u32,
    wanted: Vec<Vec<String>>,
    unwanted: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRules {
    rule: Vec<RawRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    class: String,
    when: String,
    score: u32,
}

impl Rule {
    /// Whether all it asks for is there, and nothing that it rules out.
    pub(in crate::offline) fn holds(&self, features: &BTreeSet<&str>) -> bool {
        self.wanted.iter().all(|any| any.iter().any(|name| features.contains(name.as_str())))
            && !self.unwanted.iter().any(|name| features.contains(name.as_str()))
    }
}

/// Reads rules: `when = "metric two_times|before !slow"` asks for a metric, for one of two features, and for the lack of a third.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let raw: RawRules = toml::from_str(text).map_err(|error| error.to_string())?;
    raw.rule
        .into_iter()
        .map(|rule| {
            let class = Class::parse(&rule.class).ok_or_else(|| format!("`{}` is no class", rule.class))?;
            let (unwanted, wanted): (Vec<&str>, Vec<&str>) =
                rule.when.split_whitespace().partition(|part| part.starts_with('!'));
            Ok(Rule {
                class,
                score: rule.score,
                wanted: wanted.iter().map(|any| any.split('|').map(str::to_owned).collect()).collect(),
                unwanted: unwanted.iter().map(|name| name.trim_start_matches('!').to_owned()).collect(),
                when: rule.when,
            })
        })
        .collect()
}

//! Knowledge about causes as data: what they are called, what to do, which runbook.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Why the built-in knowledge could not be read; it is compiled in, so a test catches it before anybody meets it.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// The file is not what it should be.
    #[error("the built-in file `{file}` cannot be read: {source}; it is part of this build, so the build is broken")]
    Malformed {
        /// Which file.
        file: &'static str,
        /// What is wrong.
        #[source]
        source: Box<toml::de::Error>,
    },
}

/// What is known about a cause beyond its check.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CauseInfo {
    /// What it is called in a sentence.
    pub title: String,
    /// Its runbook's id.
    pub runbook: String,
    /// What to do about it.
    pub next_steps: Vec<String>,
}

static CAUSES: LazyLock<BTreeMap<String, CauseInfo>> = LazyLock::new(|| load().unwrap_or_default());

fn load() -> Result<BTreeMap<String, CauseInfo>, KnowledgeError> {
    toml::from_str(include_str!("../data/causes.toml"))
        .map_err(|source| KnowledgeError::Malformed { file: "causes.toml", source: Box::new(source) })
}

/// What is known about the cause with this id.
pub fn cause_info(id: &str) -> Option<&'static CauseInfo> {
    CAUSES.get(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::CHECKS;

    #[test]
    fn every_check_has_a_title_a_runbook_and_next_steps_and_no_entry_is_orphaned() {
        let known = load().unwrap();
        let checked: std::collections::BTreeSet<&str> = CHECKS.iter().map(|c| c.id).collect();
        assert_eq!(known.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), checked);
        assert!(known.values().all(|c| !c.title.is_empty() && !c.runbook.is_empty() && !c.next_steps.is_empty()));
        assert!(known.values().all(|c| !c.title.contains(|ch: char| ch.is_ascii_digit())));
    }
}

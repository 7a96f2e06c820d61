//! Knowledge as data: what causes are called, what to do about them, which runbook; and everything that can be looked up.

mod entry;
mod facts;
mod runbook;
mod shelf;

pub use entry::{Entry, EntryKind, MAX_PASSAGE, Passage, Section};
pub use facts::{
    CompatFact, Pitfall, ThrottleBit, ThrottleFault, compat_facts, pitfalls, throttle_bits, version_at_least,
};
pub use runbook::{Runbook, RunbookFault, parse_runbook, runbooks};
pub use shelf::{Knowledge, SiteRunbook};

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
    /// A file is well formed and says something that makes no sense.
    #[error("the built-in file `{file}` cannot be used: {fault}; it is part of this build, so the build is broken")]
    Fault {
        /// Which file.
        file: &'static str,
        /// What is wrong.
        fault: String,
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

/// The files, one for each family of causes.
const FILES: [(&str, &str); 4] = [
    ("causes/training.toml", include_str!("../data/causes/training.toml")),
    ("causes/serving.toml", include_str!("../data/causes/serving.toml")),
    ("causes/services.toml", include_str!("../data/causes/services.toml")),
    ("causes/platform.toml", include_str!("../data/causes/platform.toml")),
];

fn load() -> Result<BTreeMap<String, CauseInfo>, KnowledgeError> {
    let mut all = BTreeMap::new();
    for (file, text) in FILES {
        let family: BTreeMap<String, CauseInfo> =
            toml::from_str(text).map_err(|source| KnowledgeError::Malformed { file, source: Box::new(source) })?;
        all.extend(family);
    }
    Ok(all)
}

/// What is known about the cause with this id.
pub fn cause_info(id: &str) -> Option<&'static CauseInfo> {
    CAUSES.get(id)
}

/// Every cause that is known, by id.
pub(crate) fn causes() -> impl Iterator<Item = (&'static str, &'static CauseInfo)> {
    CAUSES.iter().map(|(id, info)| (id.as_str(), info))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::CHECKS;

    #[test]
    fn every_check_has_a_title_a_runbook_and_next_steps_and_no_entry_is_orphaned() {
        let known = load().unwrap();
        let families = [crate::serving::IDS, crate::services::IDS];
        let checked: std::collections::BTreeSet<&str> =
            CHECKS.iter().map(|c| c.id).chain(families.into_iter().flatten().copied()).collect();
        assert_eq!(known.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), checked);
        assert!(known.values().all(|c| !c.title.is_empty() && !c.runbook.is_empty() && !c.next_steps.is_empty()));
        assert!(known.values().all(|c| !c.title.contains(|ch: char| ch.is_ascii_digit())));
    }

    #[test]
    fn every_runbook_that_a_cause_names_exists() {
        let shelf: std::collections::BTreeSet<&str> = runbooks().iter().map(|r| r.id.as_str()).collect();
        for (id, cause) in load().unwrap() {
            assert!(shelf.contains(cause.runbook.as_str()), "cause `{id}` names runbook `{}`", cause.runbook);
        }
    }
}

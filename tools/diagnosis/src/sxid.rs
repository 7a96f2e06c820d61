//! SXids: what an NVSwitch's error codes mean. They are numbered apart from a GPU's Xids.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::knowledge::KnowledgeError;

/// How bad a code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SxidSeverity {
    /// The switch mended it itself.
    Corrected,
    /// Traffic of one port may stall.
    Nonfatal,
    /// The port or its partition is lost.
    Fatal,
    /// The whole fabric of the node is lost.
    AlwaysFatal,
}

impl SxidSeverity {
    /// What to do, in words.
    pub fn as_words(self) -> &'static str {
        match self {
            Self::Corrected => "Nothing: count them, many on one link are a link to look at.",
            Self::Nonfatal => "Look at the GPUs on the other end of the link; the job behind it was aborted.",
            Self::Fatal => "Drain the node and reset its GPUs and switches together, or reboot it.",
            Self::AlwaysFatal => "Drain the node and reboot it: the whole fabric is lost.",
        }
    }
}

/// What is known about a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SxidInfo {
    /// The code.
    pub code: u32,
    /// How bad it is as a rule; what the line itself says is right where both are known.
    pub severity: SxidSeverity,
    /// What it means.
    pub meaning: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    codes: Vec<u32>,
    severity: SxidSeverity,
    meaning: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SxidFile {
    sxid: Vec<Group>,
}

static SXIDS: LazyLock<BTreeMap<u32, SxidInfo>> = LazyLock::new(|| load().unwrap_or_default());

fn load() -> Result<BTreeMap<u32, SxidInfo>, KnowledgeError> {
    let file: SxidFile = toml::from_str(include_str!("../data/sxid.toml"))
        .map_err(|source| KnowledgeError::Malformed { file: "sxid.toml", source: Box::new(source) })?;
    let mut all = BTreeMap::new();
    for Group { codes, severity, meaning } in file.sxid {
        for code in codes {
            all.insert(code, SxidInfo { code, severity, meaning: meaning.clone() });
        }
    }
    Ok(all)
}

/// What is known about a switch's code; `None` for codes that the table does not explain.
pub fn sxid_info(code: u32) -> Option<&'static SxidInfo> {
    SXIDS.get(&code)
}

/// Every code of the table.
pub(crate) fn all() -> impl Iterator<Item = &'static SxidInfo> {
    SXIDS.values()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed_and_tells_corrected_from_fatal() {
        let table = load().unwrap();
        assert!(table.len() > 30 && table.values().all(|x| !x.meaning.contains(|c: char| c.is_ascii_digit())));
        let severity = |code| sxid_info(code).map(|x| x.severity);
        assert_eq!(severity(11012), Some(SxidSeverity::Corrected));
        assert_eq!(severity(20034), Some(SxidSeverity::Fatal));
        assert_eq!(severity(1), None);
    }
}

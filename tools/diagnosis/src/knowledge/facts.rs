//! Tables of facts: how metrics mislead, what throttle bits mean, which versions fit together.

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::KnowledgeError;

/// How a metric misleads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pitfall {
    /// Its name.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// The metrics it is about, by canonical id.
    pub metrics: Vec<String>,
    /// Words by which it is found.
    pub keywords: Vec<String>,
    /// How they mislead.
    pub pitfall: String,
    /// What to do instead.
    pub instead: String,
    /// Where that is known from.
    pub source: String,
}

/// Whether a throttle bit means that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleFault {
    /// Normal by itself.
    Never,
    /// Compare with peers.
    Maybe,
    /// Look at cooling, power or the board.
    Yes,
}

/// A bit of DCGM field 112.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottleBit {
    /// Its value.
    pub value: u32,
    /// The exporter's name for it.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// Whether something is wrong.
    pub fault: ThrottleFault,
    /// What to look at.
    pub check: String,
}

/// What fits together and what is known not to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatFact {
    /// Its name.
    pub id: String,
    /// What it is about: `cuda`, `driver`, `fabric_manager`, `exporter`, `scheduler`, `engine`.
    pub product: String,
    /// The CUDA version it is about.
    #[serde(default)]
    pub cuda_major: Option<u32>,
    /// The oldest driver that this CUDA version takes.
    #[serde(default)]
    pub min_driver: Option<String>,
    /// Branches that have the fault.
    #[serde(default)]
    pub affected: Vec<String>,
    /// The first version without it.
    #[serde(default)]
    pub fixed_in: Option<String>,
    /// The fact.
    pub statement: String,
    /// Where that is known from.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PitfallFile {
    pitfall: Vec<Pitfall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThrottleFile {
    bit: Vec<ThrottleBit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompatFile {
    fact: Vec<CompatFact>,
}

static PITFALLS: LazyLock<Vec<Pitfall>> = LazyLock::new(|| load_pitfalls().unwrap_or_default());
static BITS: LazyLock<Vec<ThrottleBit>> = LazyLock::new(|| load_bits().unwrap_or_default());
static COMPAT: LazyLock<Vec<CompatFact>> = LazyLock::new(|| load_compat().unwrap_or_default());

fn read<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, KnowledgeError> {
    toml::from_str(text).map_err(|source| KnowledgeError::Malformed { file, source: Box::new(source) })
}

fn load_pitfalls() -> Result<Vec<Pitfall>, KnowledgeError> {
    read("pitfalls.toml", include_str!("../../data/pitfalls.toml")).map(|file: PitfallFile| file.pitfall)
}

fn load_bits() -> Result<Vec<ThrottleBit>, KnowledgeError> {
    read("throttle.toml", include_str!("../../data/throttle.toml")).map(|file: ThrottleFile| file.bit)
}

fn load_compat() -> Result<Vec<CompatFact>, KnowledgeError> {
    read("compat.toml", include_str!("../../data/compat.toml")).map(|file: CompatFile| file.fact)
}

/// How metrics mislead.
pub fn pitfalls() -> &'static [Pitfall] {
    &PITFALLS
}

/// What the bits of the clock event reasons mean.
pub fn throttle_bits() -> &'static [ThrottleBit] {
    &BITS
}

/// What fits together and what does not.
pub fn compat_facts() -> &'static [CompatFact] {
    &COMPAT
}

/// Whether a version (`525.105.17`) is at least another, compared number by number; a missing number counts as 0. None where one of them
/// holds something else than numbers and points.
pub fn version_at_least(version: &str, least: &str) -> Option<bool> {
    let numbers = |text: &str| -> Option<Vec<u64>> { text.trim().split('.').map(|part| part.parse().ok()).collect() };
    let (mut left, mut right) = (numbers(version)?, numbers(least)?);
    let length = left.len().max(right.len());
    left.resize(length, 0);
    right.resize(length, 0);
    Some(left.cmp(&right) != Ordering::Less)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_tables_are_well_formed() {
        let (pitfalls, bits, compat) = (load_pitfalls().unwrap(), load_bits().unwrap(), load_compat().unwrap());
        assert!(pitfalls.len() >= 30 && compat.len() >= 15);
        let ids: BTreeSet<&str> = pitfalls.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(ids.len(), pitfalls.len());
        assert!(pitfalls.iter().all(|p| !p.source.is_empty() && p.pitfall.ends_with('.') && p.instead.ends_with('.')));
        assert!(compat.iter().all(|f| !f.source.is_empty() && f.statement.ends_with('.')));
        assert!(bits.iter().all(|b| b.value.is_power_of_two() && !b.meaning.contains(|c: char| c.is_ascii_digit())));
        assert_eq!(bits.iter().fold(0, |all, b| all | b.value), 0x1ff, "every bit of the field");
        for fact in &compat {
            assert_eq!(fact.cuda_major.is_some(), fact.min_driver.is_some(), "{}", fact.id);
            let versions = fact.min_driver.iter().chain(&fact.fixed_in);
            assert!(versions.into_iter().all(|v| version_at_least(v, v) == Some(true)), "{}", fact.id);
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(version_at_least("525.105.17", "525.60.13"), Some(true));
        assert_eq!(version_at_least("525.60", "525.60.13"), Some(false));
        assert_eq!(version_at_least("580", "580.0"), Some(true));
        assert_eq!(version_at_least("9.1", "10.0"), Some(false));
        assert_eq!(version_at_least("v5", "5"), None);
    }
}

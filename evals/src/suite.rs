//! A suite: recorded incidents, each a bundle with an `incident.toml` that says what is asked and what is expected.

pub mod built_in;
mod incident_toml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub use sightline_engine::SeriesShift;
pub use sightline_fixtures::Stretch;

pub use incident_toml::{Expectation, ExpectedEvidence, ExpectedFact, Incident, Question, parse};

/// The scorer's file in a bundle's folder.
pub const INCIDENT_FILE: &str = "incident.toml";
/// How deep below the suite's folder bundles are looked for.
const MAX_DEPTH: usize = 6;

/// Which half of a suite is asked. A suite that names no halves is all of it in either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halves {
    /// Every incident.
    #[default]
    All,
    /// Those that may be looked at while the product is changed.
    Tuning,
    /// Those that are only scored.
    HeldOut,
}

/// What is left out of a suite.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The half.
    pub halves: Halves,
    /// Only incidents whose id holds this.
    pub only: Option<String>,
    /// Only about one in so many kinds of incident; none or 1 for all. Which ones hangs on their names, so that a new kind moves
    /// no other in or out, and of a kind that is taken both halves are.
    pub every: Option<u64>,
    /// Only these incidents, by their ids.
    pub among: Option<BTreeSet<String>>,
}

impl Selection {
    /// Whether an incident of that id and half is asked.
    pub fn takes(&self, id: &str, half: Option<&str>) -> bool {
        let in_half = match (self.halves, half) {
            (Halves::All, _) | (_, None) => true,
            (Halves::Tuning, Some(half)) => half == TUNING,
            (Halves::HeldOut, Some(half)) => half == HELD_OUT,
        };
        let is_among = self.among.as_ref().is_none_or(|among| among.contains(id));
        in_half && is_among && self.only.as_deref().is_none_or(|part| id.contains(part)) && self.is_sampled(id)
    }

    fn is_sampled(&self, id: &str) -> bool {
        let kind = id.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        // FNV-1a: any spread will do, as long as it stays the same.
        let hash = kind
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        self.every.is_none_or(|every| (hash >> 20).is_multiple_of(every.max(1)))
    }
}

/// The halves' names in `incident.toml`.
pub const TUNING: &str = "tuning";
/// The other.
pub const HELD_OUT: &str = "held-out";

/// Why there is no suite to ask.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// No incident at all.
    #[error(
        "there is nothing to ask: no folder below `{dir}` holds an {INCIDENT_FILE} that was asked for; name a suite with --suite, and look at --half and --only"
    )]
    Empty {
        /// Where was looked.
        dir: String,
    },
    /// A folder or file cannot be read.
    #[error("cannot read `{path}`: {source}; give the folder of a suite with --suite")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Files that are no incidents; each line names one.
    #[error("{0}")]
    Malformed(String),
    /// Two incidents of one id.
    #[error("two incidents are called `{id}`; give each `id` once")]
    Twice {
        /// The id.
        id: String,
    },
    /// The built-in suite cannot be made.
    #[error("the built-in suite cannot be made: {0}")]
    BuiltIn(String),
}

/// Reads every incident below a folder, sorted by id. Reads files, so call it where blocking is fine.
///
/// # Errors
/// When nothing is there, and every file that is no incident, not only the first.
pub fn read(dir: &Path, selection: &Selection) -> Result<Vec<Incident>, SuiteError> {
    let mut folders = Vec::new();
    find(dir, 0, &mut folders)?;
    let mut incidents = Vec::new();
    let mut faults = Vec::new();
    for folder in folders {
        let file = folder.join(INCIDENT_FILE);
        let text = std::fs::read_to_string(&file).map_err(|source| unreadable(&file, source))?;
        match parse(&text) {
            Ok(mut incident) => {
                incident.dir = folder;
                incidents.push(incident);
            }
            Err(fault) => faults.push(format!("`{}`, {fault}", file.display())),
        }
    }
    if !faults.is_empty() {
        return Err(SuiteError::Malformed(faults.join("\n")));
    }
    incidents.retain(|incident| selection.takes(&incident.id, incident.half.as_deref()));
    checked(incidents, dir)
}

/// Sorted, none twice, at least one.
fn checked(mut incidents: Vec<Incident>, dir: &Path) -> Result<Vec<Incident>, SuiteError> {
    if incidents.is_empty() {
        return Err(SuiteError::Empty { dir: dir.display().to_string() });
    }
    incidents.sort_by(|a, b| a.id.cmp(&b.id));
    let mut seen = BTreeSet::new();
    match incidents.iter().find(|incident| !seen.insert(incident.id.as_str())) {
        Some(again) => Err(SuiteError::Twice { id: again.id.clone() }),
        None => Ok(incidents),
    }
}

fn find(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), SuiteError> {
    if dir.join(INCIDENT_FILE).is_file() {
        found.push(dir.to_owned());
        return Ok(());
    }
    if depth >= MAX_DEPTH {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).map_err(|source| unreadable(dir, source))? {
        let path = entry.map_err(|source| unreadable(dir, source))?.path();
        // A link could lead back up.
        if path.is_dir() && !path.is_symlink() {
            find(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

fn unreadable(path: &Path, source: std::io::Error) -> SuiteError {
    SuiteError::Unreadable { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = dir.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        dir
    }

    fn incident(id: &str, half: &str) -> String {
        format!(
            "schema = 1\nid = \"{id}\"\nhalf = \"{half}\"\n[[question]]\ntext = \"why?\"\nprincipal = \"operator@atlas\"\n[question.expect]\noutcome = \"no_fault\"\n"
        )
    }

    #[test]
    fn every_incident_below_the_folder_is_read_in_order() {
        let (b, a) = (incident("b", TUNING), incident("a", HELD_OUT));
        let dir = suite(&[("x/b/incident.toml", &b), ("a/incident.toml", &a), ("readme.md", "")]);
        let ids = |selection: &Selection| -> Vec<String> {
            read(dir.path(), selection).unwrap().into_iter().map(|incident| incident.id).collect()
        };
        assert_eq!(ids(&Selection::default()), ["a", "b"]);
        assert_eq!(ids(&Selection { halves: Halves::Tuning, ..Selection::default() }), ["b"]);
        assert_eq!(ids(&Selection { halves: Halves::HeldOut, ..Selection::default() }), ["a"]);
        assert_eq!(ids(&Selection { only: Some("b".to_owned()), ..Selection::default() }), ["b"]);
    }

    #[test]
    fn nothing_to_ask_is_an_error_that_says_where_was_looked() {
        let dir = suite(&[("a/readme.md", "")]);
        let error = read(dir.path(), &Selection::default()).unwrap_err().to_string();
        assert!(error.contains("nothing to ask") && error.contains(&dir.path().display().to_string()), "{error}");
        let none = Selection { only: Some("z".to_owned()), ..Selection::default() };
        let dir = suite(&[("a/incident.toml", &incident("a", TUNING))]);
        assert!(matches!(read(dir.path(), &none), Err(SuiteError::Empty { .. })));
        assert!(matches!(read(&dir.path().join("nowhere"), &none), Err(SuiteError::Unreadable { .. })));
    }

    #[test]
    fn every_file_that_is_no_incident_is_named_with_its_line() {
        let dir = suite(&[
            ("a/incident.toml", "schema = 1\nid = \"a\"\n[[question]]\ntext = 7\n"),
            ("b/incident.toml", "schema = \n"),
            ("c/incident.toml", &incident("c", TUNING)),
        ]);
        let error = read(dir.path(), &Selection::default()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
        assert!(error.contains("a/incident.toml`, line 4") && error.contains("b/incident.toml`, line 1"), "{error}");
    }

    #[test]
    fn an_id_that_stands_twice_is_an_error() {
        let dir = suite(&[("a/incident.toml", &incident("a", TUNING)), ("b/incident.toml", &incident("a", TUNING))]);
        assert!(matches!(read(dir.path(), &Selection::default()), Err(SuiteError::Twice { .. })));
    }

    #[test]
    fn a_sample_takes_both_halves_of_some_kinds_and_no_kind_twice_differently() {
        let sample = Selection { every: Some(4), ..Selection::default() };
        let kinds =
            || (0..400).map(|n| format!("{}-fault", char::from(b'a' + (n % 26) as u8).to_string().repeat(1 + n / 26)));
        let taken = kinds().filter(|kind| sample.takes(&format!("{kind}-21000"), None)).count();
        assert!((60..140).contains(&taken), "{taken} of 400");
        assert!(kinds().all(|kind| {
            sample.takes(&format!("{kind}-21000"), None) == sample.takes(&format!("{kind}-48123"), None)
        }));
    }
}

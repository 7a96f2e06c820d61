//! The files of labelled questions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sightline_model::Outcome;

/// The instant that all labelled questions are asked at: a Monday noon in Berlin.
pub const AS_OF: &str = "2026-05-04T10:00:00Z";
/// Who asks unless a question says otherwise.
const ASKER: &str = "operator@atlas";
/// Where the asker is unless a question says otherwise.
const ZONE: &str = "Europe/Berlin";

/// One question, or several that make a conversation, with what its answer should be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labelled {
    /// Its id, unique.
    pub id: String,
    /// What kind of question it is: the file's name.
    #[serde(skip)]
    pub class: String,
    /// The conversation; the last question is the one that is scored.
    pub turns: Vec<String>,
    /// Who asks.
    #[serde(default = "asker")]
    pub principal: String,
    /// The asker's zone.
    #[serde(default = "zone")]
    pub zone: String,
    /// How the answer may end.
    pub outcome: Vec<Outcome>,
    /// Which tools may have been called; empty where none has to be.
    #[serde(default)]
    pub tool: Vec<String>,
    /// The metrics that may be meant, canonical ids.
    #[serde(default, deserialize_with = "one_or_many")]
    pub metric: Vec<String>,
    /// When the window begins.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// When it ends.
    #[serde(default)]
    pub to: Option<Timestamp>,
    /// What the call has to be limited to.
    #[serde(default)]
    pub entities: BTreeMap<String, String>,
    /// What it must not be limited to.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Further arguments that the words decide.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
    /// An independent statement of the number that the answer has to state.
    #[serde(default)]
    pub value_sql: Option<String>,
    /// Its unit.
    #[serde(default)]
    pub unit: Option<String>,
    /// Texts that must be part of some offered choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Words that have to be in the answer, in any case of letters.
    #[serde(default)]
    pub says: Vec<String>,
    /// Why it is read so.
    #[serde(default)]
    pub why: Option<String>,
}

fn asker() -> String {
    ASKER.to_owned()
}

fn zone() -> String {
    ZONE.to_owned()
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ids {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Ids::deserialize(deserializer)? {
        Ids::One(id) => vec![id],
        Ids::Many(ids) => ids,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    question: Vec<Labelled>,
}

/// Why labelled questions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum QuestionsError {
    /// The folder or a file.
    #[error("`{}` cannot be read: {reason}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file that is no list of labelled questions.
    #[error("`{}` is no file of labelled questions: {reason}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// Nothing to ask.
    #[error("there is no labelled question in `{}`; an empty set proves nothing", .0.display())]
    Empty(PathBuf),
    /// Two questions of one id.
    #[error("the id `{0}` is there twice; give each question one of its own")]
    Twice(String),
}

/// Reads every file of a folder, in the order of their names.
///
/// # Errors
/// When a file cannot be read or is none, an id is there twice, or nothing is asked.
pub fn read(dir: &Path) -> Result<Vec<Labelled>, QuestionsError> {
    let unreadable = |path: &Path, error: std::io::Error| QuestionsError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let entries = std::fs::read_dir(dir).map_err(|error| unreadable(dir, error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    let mut all: Vec<Labelled> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let file: File = toml::from_str(&text)
            .map_err(|error| QuestionsError::Malformed { path: path.clone(), reason: error.to_string() })?;
        let class = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        all.extend(file.question.into_iter().map(|question| Labelled { class: class.clone(), ..question }));
    }
    let mut ids: Vec<&str> = all.iter().map(|question| question.id.as_str()).collect();
    ids.sort_unstable();
    if let Some([twice, _]) =
        ids.windows(2).find(|pair| pair.first() == pair.last()).and_then(|pair| <[&str; 2]>::try_from(pair).ok())
    {
        return Err(QuestionsError::Twice(twice.to_owned()));
    }
    if all.is_empty() {
        return Err(QuestionsError::Empty(dir.to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn all() -> Vec<Labelled> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("questions");
        ["tuning", "held-out"].iter().flat_map(|split| read(&folder.join(split)).unwrap()).collect()
    }

    #[test]
    fn the_set_is_large_enough_in_every_class_and_its_windows_end_by_now() {
        let all = all();
        assert!(all.len() >= 300, "{}", all.len());
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        all.iter().for_each(|question| *classes.entry(&question.class).or_default() += 1);
        assert!(classes.values().all(|count| *count >= 25), "{classes:?}");
        let now: Timestamp = AS_OF.parse().unwrap();
        for question in &all {
            assert!(question.to.is_none_or(|to| to <= now), "{}", question.id);
            assert!(question.from.zip(question.to).is_none_or(|(from, to)| from < to), "{}", question.id);
            assert!(!question.turns.is_empty() && !question.outcome.is_empty(), "{}", question.id);
        }
    }

    #[test]
    fn an_empty_folder_and_an_id_that_is_there_twice_are_faults() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(read(folder.path()), Err(QuestionsError::Empty(_))));
        let one = "[[question]]\nid = \"a\"\nturns = [\"x\"]\noutcome = [\"refused\"]\n";
        std::fs::write(folder.path().join("why.toml"), format!("{one}{one}")).unwrap();
        assert!(matches!(read(folder.path()), Err(QuestionsError::Twice(id)) if id == "a"));
        std::fs::write(folder.path().join("why.toml"), "[[question]]\nid = 3\n").unwrap();
        assert!(matches!(read(folder.path()), Err(QuestionsError::Malformed { .. })));
    }
}

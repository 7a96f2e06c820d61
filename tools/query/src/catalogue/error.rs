//! What can be wrong with the catalogue's files.

use std::fmt;

/// All faults found in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueError {
    faults: Vec<Fault>,
}

impl CatalogueError {
    pub(super) fn new(faults: Vec<Fault>) -> Self {
        Self { faults }
    }

    /// Every fault, in the order of the files.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CatalogueError {}

/// One fault with the place it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// The metric or label, where one is at fault.
    pub entry: Option<String>,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some(entry) => write!(f, "{}: `{entry}`: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

/// What is wrong with one entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is no TOML of the expected form.
    #[error("line {line}: {message}")]
    Unreadable {
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A required key is missing or blank.
    #[error("`{key}` is missing or empty; write it")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// An id is not snake_case.
    #[error("the id is not snake_case; use lower-case letters, digits and single underscores, a letter first")]
    BadId,
    /// Two entries have one id.
    #[error("the id is used in {file} already; keep one of the two")]
    DuplicateId {
        /// Where it was first used.
        file: String,
    },
    /// A word from a closed list is not in it.
    #[error("{what} `{value}` is not known; use one of {}", known.join(", "))]
    Unknown {
        /// What it names.
        what: &'static str,
        /// What was written.
        value: String,
        /// What may be written.
        known: Vec<&'static str>,
    },
    /// A unit is not known.
    #[error("unit `{unit}` is not known; units are listed in the model's dataset module")]
    UnknownUnit {
        /// The unit.
        unit: String,
    },
    /// A stored name belongs to another metric.
    #[error("the stored name `{name}` belongs to `{owner}` ({file}) already; list it once")]
    StoredTaken {
        /// The name.
        name: String,
        /// The metric that has it.
        owner: String,
        /// Where.
        file: String,
    },
    /// A stored name is another metric's id.
    #[error("the stored name `{name}` is the id of another metric; rename one of them")]
    StoredIsId {
        /// The name.
        name: String,
    },
    /// Two metrics claim one DCGM field.
    #[error("DCGM field {field} belongs to `{owner}` already; names of one field are one metric")]
    FieldTaken {
        /// The field.
        field: u16,
        /// The metric that has it.
        owner: String,
    },
    /// A word that could never be matched.
    #[error("the word `{word}` is not plain lower case with single spaces; write it as people type it, lower-cased")]
    BadWord {
        /// The word.
        word: String,
    },
    /// `same_as` names no other metric of this kind in another unit.
    #[error("`same_as` must name another metric of the same kind in another unit; `{name}` is none")]
    BadSameAs {
        /// What it names.
        name: String,
    },
    /// An alias is given for a metric nobody knows.
    #[error("no metric is called that{}", hint(near))]
    UnknownMetric {
        /// Names that are close.
        near: Vec<String>,
    },
    /// A label's spelling stands under two labels.
    #[error(
        "the spelling `{name}` stands under `{owner}` already; list it once, or tell the two apart by `with` and `unless`"
    )]
    SpellingTaken {
        /// The spelling.
        name: String,
        /// The label that has it.
        owner: String,
    },
    /// A label's spelling is read after a prefix, but no prefix is given, or the other way round.
    #[error("the spelling `{name}` needs `prefix` with form `after_prefix`, and with that form only")]
    PrefixAndForm {
        /// The spelling.
        name: String,
    },
}

fn hint(near: &[String]) -> String {
    if near.is_empty() {
        "; give a canonical id".to_owned()
    } else {
        let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        format!("; did you mean {}?", names.join(", "))
    }
}

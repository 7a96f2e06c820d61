//! What is wrong with policy text, with the place where it stands.

use std::fmt;

/// One text of a policy set, with the name that errors give it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name, for example `rules/viewer.cedar`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Source<'_> {
    /// A fault at this byte of the text; at its first line when there is no place.
    pub(crate) fn fault(&self, offset: Option<usize>, what: impl Into<String>) -> Fault {
        let before = self.text.as_bytes().get(..offset.unwrap_or(0)).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|&&byte| byte == b'\n').count().saturating_add(1);
        Fault { file: self.name.to_owned(), line, what: what.into() }
    }
}

/// One fault in a policy text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct Fault {
    /// The text's name.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Everything that is wrong with a policy set; none of it was taken. Guaranteed: not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyErrors {
    faults: Vec<Fault>,
}

impl PolicyErrors {
    /// These faults, in the order of files and lines.
    pub(crate) fn new(mut faults: Vec<Fault>) -> Self {
        faults.sort_by(|a, b| (&a.file, a.line, &a.what).cmp(&(&b.file, b.line, &b.what)));
        faults.dedup();
        Self { faults }
    }

    /// The faults, by file and line.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for PolicyErrors {
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

impl std::error::Error for PolicyErrors {}

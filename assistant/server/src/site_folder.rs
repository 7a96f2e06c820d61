//! The site's own folder: `words.toml` with what its people call things, `runbooks/*.md` beside the shipped ones. Read at start, and again
//! when a file has changed. All or nothing: what cannot be used leaves in force what was.
//!
//! Who can write the folder decides what is quoted and how questions are read, not what is done or who may read what: a runbook's text is
//! shown as a quotation, like telemetry, and whose runbooks somebody sees is decided by policy.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sightline_core::offline::{LexiconFault, LiveWords, SiteWords};
use sightline_query::Catalogue;
use sightline_tools::{Knowledge, LiveKnowledge, SiteRunbook};

use crate::settled::{EVERY, settled};

/// The most runbooks that are read; more is a folder of something else.
const MAX_FILES: usize = 500;
/// The most that is read of a file, bytes: beyond what a runbook may have, so that a longer one is told as such.
const MAX_READ: u64 = 256 * 1024;
const WORDS: &str = "words.toml";
const RUNBOOKS: &str = "runbooks";

/// Everything that is wrong with a site's folder; none of it was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the site's folder cannot be used; correct it, or `site.dir`:\n{}", faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n"))]
pub struct SiteFaults {
    /// By file. Guaranteed: not empty.
    pub faults: Vec<String>,
}

/// The texts of a site's folder as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteFolder {
    words: String,
    runbooks: Vec<SiteRunbook>,
}

/// What the texts come to.
#[derive(Debug)]
pub struct SiteOwn {
    /// What its people call things.
    pub words: SiteWords,
    /// The shipped knowledge with its runbooks.
    pub knowledge: Arc<Knowledge>,
}

impl SiteFolder {
    /// Reads a folder. Either part may be missing; the folder itself may not.
    ///
    /// # Errors
    /// Everything that cannot be read.
    pub fn read(dir: &Path) -> Result<Self, SiteFaults> {
        let mut faults = Vec::new();
        if !dir.is_dir() {
            faults.push(format!("`{}` is no folder that can be read", dir.display()));
            return Err(SiteFaults { faults });
        }
        let words = read_text(&dir.join(WORDS), &mut faults).unwrap_or_default();
        let mut runbooks = Vec::new();
        for path in runbook_paths(&dir.join(RUNBOOKS), &mut faults) {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            runbooks.extend(read_text(&path, &mut faults).map(|text| SiteRunbook { file, text }));
        }
        if faults.is_empty() { Ok(Self { words, runbooks }) } else { Err(SiteFaults { faults }) }
    }

    /// What the texts come to.
    ///
    /// # Errors
    /// Every file that is not what it should be.
    pub fn own(&self, catalogue: &Catalogue) -> Result<SiteOwn, SiteFaults> {
        let mut faults = Vec::new();
        let words = match SiteWords::parse(&self.words, catalogue) {
            Ok(words) => words,
            Err(wrong) => {
                faults.extend(wrong.0.into_iter().map(|what| format!("`{WORDS}`: {what}")));
                SiteWords::default()
            }
        };
        let (knowledge, broken) = Knowledge::builtin().with_site(&self.runbooks);
        faults.extend(broken.into_iter().map(|(file, fault)| format!("`{RUNBOOKS}/{file}`: {fault}")));
        if faults.is_empty() {
            Ok(SiteOwn { words, knowledge: Arc::new(knowledge) })
        } else {
            Err(SiteFaults { faults })
        }
    }

    /// How many runbooks there are.
    pub fn runbooks(&self) -> usize {
        self.runbooks.len()
    }
}

/// The Markdown files of a folder, by name: of two with one id the later one wins, wherever the folder lies. None where there is no folder.
fn runbook_paths(dir: &Path, faults: &mut Vec<String>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            faults.push(format!("`{}` cannot be listed: {error}", dir.display()));
            return Vec::new();
        }
    };
    let is_runbook = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md") && path.is_file();
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).filter(is_runbook).collect();
    paths.sort();
    if paths.len() > MAX_FILES {
        faults.push(format!("`{}` holds {} files; at most {MAX_FILES} are read", dir.display(), paths.len()));
        paths.clear();
    }
    paths
}

/// A file's text; none where there is no such file.
fn read_text(path: &Path, faults: &mut Vec<String>) -> Option<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MAX_READ + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() as u64 > MAX_READ => {
            faults.push(format!("`{}` has over {MAX_READ} bytes; divide it", path.display()));
            None
        }
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            faults.push(format!("`{}` cannot be read: {error}", path.display()));
            None
        }
    }
}

/// What a look at the folder has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteLook {
    /// It is what is in force, or what was refused before.
    Unchanged,
    /// It is in force from here on.
    Taken,
    /// It was refused; what was in force stays.
    Refused,
    /// It changed while it was read.
    Unsettled,
}

/// Keeps what is in force up to date with the folder.
#[derive(Clone)]
pub struct SiteWatch {
    dir: PathBuf,
    catalogue: Arc<Catalogue>,
    words: Arc<LiveWords>,
    knowledge: Arc<LiveKnowledge>,
    in_force: SiteFolder,
    refused: Option<Result<SiteFolder, SiteFaults>>,
}

/// Why a site's folder is not in force at start.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// What it holds is wrong.
    #[error(transparent)]
    Faults(#[from] SiteFaults),
    /// The words that ship are.
    #[error(transparent)]
    Lexicon(#[from] LexiconFault),
}

impl SiteWatch {
    /// Reads the folder and puts it in force.
    ///
    /// # Errors
    /// What is wrong with it: a site that names a folder relies on it.
    pub fn start(
        dir: &Path,
        catalogue: Arc<Catalogue>,
        words: Arc<LiveWords>,
        knowledge: Arc<LiveKnowledge>,
    ) -> Result<Self, SiteError> {
        let in_force = SiteFolder::read(dir)?;
        let own = in_force.own(&catalogue)?;
        words.replace(&own.words)?;
        knowledge.replace(own.knowledge);
        Ok(Self { dir: dir.to_owned(), catalogue, words, knowledge, in_force, refused: None })
    }

    /// Looks at the folder every two seconds, until it is dropped.
    pub async fn run(mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.look().await;
        }
    }

    /// Looks at the folder once, and puts it in force if it has changed and is whole.
    pub async fn look(&mut self) -> SiteLook {
        let is_in_force = |read: &Result<SiteFolder, SiteFaults>| read.as_ref() == Ok(&self.in_force);
        let Some(read) = settled(|| self.read(), is_in_force).await else { return SiteLook::Unsettled };
        if read.as_ref() == Ok(&self.in_force) {
            self.refused = None;
            return SiteLook::Unchanged;
        }
        if self.refused.as_ref() == Some(&read) {
            return SiteLook::Unchanged;
        }
        self.take(read)
    }

    async fn read(&self) -> Option<Result<SiteFolder, SiteFaults>> {
        let dir = self.dir.clone();
        tokio::task::spawn_blocking(move || SiteFolder::read(&dir)).await.ok()
    }

    fn take(&mut self, read: Result<SiteFolder, SiteFaults>) -> SiteLook {
        let own = read.clone().and_then(|folder| Ok((folder.own(&self.catalogue)?, folder)));
        let replaced = match own {
            Ok((own, folder)) => {
                self.words.replace(&own.words).map(|()| (own, folder)).map_err(|fault| fault.to_string())
            }
            Err(faults) => Err(faults.to_string()),
        };
        match replaced {
            Ok((own, folder)) => {
                tracing::info!(
                    phrases = own.words.phrases(),
                    runbooks = folder.runbooks(),
                    "the site's words and runbooks were read again"
                );
                self.knowledge.replace(own.knowledge);
                (self.in_force, self.refused) = (folder, None);
                SiteLook::Taken
            }
            Err(error) => {
                tracing::error!(%error, "the site's folder is refused; the words and runbooks in force stay");
                self.refused = Some(read);
                SiteLook::Refused
            }
        }
    }
}

#[cfg(test)]
#[path = "site_folder_tests.rs"]
mod tests;

//! Bearer tokens: random, shown once, kept as SHA-256 digests only.
//!
//! A token holds 256 bits of randomness, so a plain digest cannot be turned back by guessing; no slow hash is needed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The version of the file's format.
const VERSION: u32 = 1;
/// What every token begins with, so that scanners recognise a leaked one.
const PREFIX: &str = "sl_";

/// Why the tokens cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("the token file `{}` cannot be used: {source}; check that the data folder is yours and the disk is not full", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not one of ours.
    #[error("the token file `{}` is damaged: {reason}; move it away and make new tokens", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file is from a newer version.
    #[error("the token file `{}` has format {found}, newer than this version's {VERSION}; use the newer `sightline`", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// No randomness.
    #[error("the system gives no randomness for a token: {reason}")]
    Randomness {
        /// What the system says.
        reason: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    version: u32,
    tokens: Vec<Stored>,
}

/// A token as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    /// The principal it stands for.
    principal: String,
    /// SHA-256 of the token, hex.
    digest: String,
    /// When it was made.
    created: Timestamp,
}

/// The tokens of a data folder.
#[derive(Debug)]
pub struct Tokens {
    path: PathBuf,
    stored: Vec<Stored>,
}

impl Tokens {
    /// Opens the token file of a data folder; a missing one has no tokens.
    ///
    /// # Errors
    /// When the file is there but cannot be read, is damaged or newer.
    pub fn open(data_dir: &Path) -> Result<Self, TokenError> {
        let path = data_dir.join("tokens.json");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self { path, stored: Vec::new() }),
            Err(source) => return Err(TokenError::File { path, source }),
        };
        let file: File = serde_json::from_str(&text)
            .map_err(|error| TokenError::Damaged { path: path.clone(), reason: error.to_string() })?;
        if file.version > VERSION {
            return Err(TokenError::Newer { path, found: file.version });
        }
        Ok(Self { path, stored: file.tokens })
    }

    /// Makes a token for a principal in place of any it had. The text is given back once and kept nowhere.
    ///
    /// # Errors
    /// When there is no randomness or the file cannot be written; the old token then still holds.
    pub fn replace(&mut self, principal: &str, now: Timestamp) -> Result<String, TokenError> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::Randomness { reason: error.to_string() })?;
        let token = format!("{PREFIX}{}", hex::encode(bytes));
        let mut stored: Vec<Stored> = self.stored.iter().filter(|s| s.principal != principal).cloned().collect();
        stored.push(Stored { principal: principal.to_owned(), digest: digest(&token), created: now });
        self.write(&stored)?;
        self.stored = stored;
        Ok(token)
    }

    /// The principal a token stands for.
    pub fn principal(&self, token: &str) -> Option<&str> {
        let digest = digest(token);
        // Every entry is compared, each in constant time: how long it takes says nothing about which one came close.
        let mut found = None;
        for stored in &self.stored {
            if bool::from(stored.digest.as_bytes().ct_eq(digest.as_bytes())) {
                found = Some(stored.principal.as_str());
            }
        }
        found
    }

    /// Writes beside and renames, so that a full disk leaves the old file whole.
    fn write(&self, stored: &[Stored]) -> Result<(), TokenError> {
        let file = |source| TokenError::File { path: self.path.clone(), source };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(file)?;
        let text = serde_json::to_vec_pretty(&File { version: VERSION, tokens: stored.to_vec() })
            .map_err(|error| file(std::io::Error::other(error)))?;
        beside.write_all(&text).map_err(file)?;
        beside.as_file().sync_all().map_err(file)?;
        beside.persist(&self.path).map_err(|error| file(error.error))?;
        Ok(())
    }
}

fn digest(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_for_its_principal_and_only_its_digest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::open(folder.path()).unwrap();
        let token = tokens.replace("viewer@atlas", Timestamp::UNIX_EPOCH).unwrap();
        let reopened = Tokens::open(folder.path()).unwrap();
        assert_eq!(reopened.principal(&token), Some("viewer@atlas"));
        assert_eq!(reopened.principal("sl_00"), None);
        let file = std::fs::read_to_string(folder.path().join("tokens.json")).unwrap();
        assert!(!file.contains(token.trim_start_matches(PREFIX)));
    }

    #[test]
    fn a_replaced_token_no_longer_holds() {
        let folder = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::open(folder.path()).unwrap();
        let old = tokens.replace("admin", Timestamp::UNIX_EPOCH).unwrap();
        let new = tokens.replace("admin", Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((tokens.principal(&old), tokens.principal(&new)), (None, Some("admin")));
    }

    #[test]
    fn a_newer_or_damaged_file_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        std::fs::write(&path, r#"{"version":9,"tokens":[]}"#).unwrap();
        assert!(Tokens::open(folder.path()).unwrap_err().to_string().contains("use the newer `sightline`"));
        std::fs::write(&path, "{").unwrap();
        assert!(Tokens::open(folder.path()).unwrap_err().to_string().contains("make new tokens"));
    }
}

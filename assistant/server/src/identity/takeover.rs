//! Takes over the tokens of earlier versions, which lie in `tokens.json`.

use std::io::ErrorKind;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::params;
use serde::Deserialize;

use super::error::IdentityError;
use super::secret::random_hex;
use super::store::IdentityStore;

/// The format of the file.
const VERSION: i64 = 1;
/// What its tokens are labelled with.
pub(super) const LABEL: &str = "from tokens.json";

#[derive(Deserialize)]
struct File {
    version: i64,
    tokens: Vec<Stored>,
}

#[derive(Deserialize)]
struct Stored {
    principal: String,
    /// SHA-256 of the token, hex.
    digest: String,
    created: Timestamp,
}

/// Takes the tokens into the store and moves the file aside. Done twice it does nothing the second time, so that it may be cut off at
/// any point: a token that was taken over and then revoked stays so.
pub(super) fn tokens_file(store: &IdentityStore, data_dir: &Path) -> Result<(), IdentityError> {
    let path = data_dir.join("tokens.json");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(IdentityError::File { path, source }),
    };
    let damaged = |reason: String| IdentityError::Damaged { path: path.clone(), reason };
    let File { version, tokens } = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    if version > VERSION {
        return Err(IdentityError::Newer { path, found: version });
    }
    let mut rows = Vec::with_capacity(tokens.len());
    for Stored { principal, digest, created } in tokens {
        let mut bytes = [0_u8; 32];
        hex::decode_to_slice(&digest, &mut bytes)
            .map_err(|_| damaged(format!("the digest of `{principal}` is no SHA-256")))?;
        rows.push((random_hex::<8>()?, principal, bytes, created.as_second()));
    }
    store.write(|transaction| {
        for (id, principal, digest, created) in &rows {
            transaction.execute(
                "INSERT OR IGNORE INTO token (id, principal, digest, unnamed, label, created) VALUES (?1, ?2, ?3, 1, ?4, ?5)",
                params![id, principal, digest, LABEL, created],
            )?;
        }
        Ok(())
    })?;
    match std::fs::rename(&path, data_dir.join("tokens.json.migrated")) {
        Ok(()) => Ok(()),
        // Another process was as quick.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(IdentityError::File { path, source }),
    }
}

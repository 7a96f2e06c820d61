//! The key that signs the head of the chain.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::AuditError;

/// The secret key of a log. It is never printed and never leaves its file.
pub struct AuditKey {
    signing: SigningKey,
}

/// The public half: what a reviewer needs to check a log. In JSON its 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey {
    verifying: VerifyingKey,
}

impl AuditKey {
    /// The key in this file. At the very first start the file is made, mode 0600, from 32 random bytes of the caller.
    pub fn load_or_create(path: &Path, random: [u8; 32]) -> Result<Self, AuditError> {
        match Self::load(path) {
            Ok(Some(key)) => return Ok(key),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
        create(path, &random)?;
        // What counts is what the file holds: another process may have made it first.
        Self::load(path)?.ok_or_else(|| fault(path, "vanished while it was made; start again"))
    }

    /// The key in this file; none when there is no such file.
    ///
    /// # Errors
    /// When the file may be read by others or does not hold a key.
    pub fn load(path: &Path) -> Result<Option<Self>, AuditError> {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(fault(path, format!("cannot be read: {error}"))),
        };
        let metadata = file.metadata().map_err(|error| fault(path, format!("cannot be read: {error}")))?;
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            let what = format!("may be read by others (mode {:o}); run `chmod 600` on it", mode & 0o777);
            return Err(fault(path, what));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| fault(path, format!("cannot be read: {error}")))?;
        let mut secret = [0; 32];
        hex::decode_to_slice(text.trim(), &mut secret)
            .map_err(|_error| fault(path, "does not hold 64 hex digits; restore it from a copy"))?;
        Ok(Some(Self::from_secret(secret)))
    }

    /// The key of these 32 secret bytes.
    pub fn from_secret(secret: [u8; 32]) -> Self {
        Self { signing: SigningKey::from_bytes(&secret) }
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey { verifying: self.signing.verifying_key() }
    }

    pub(crate) fn sign(&self, bytes: &[u8]) -> [u8; 64] {
        self.signing.sign(bytes).to_bytes()
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditKey({})", self.public().id())
    }
}

impl PublicKey {
    /// The public key with these 64 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).ok()?;
        Self::from_bytes(&bytes)
    }

    /// Its id: the first 16 hex digits of its SHA-256.
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.verifying.as_bytes())).chars().take(16).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        VerifyingKey::from_bytes(bytes).ok().map(|verifying| Self { verifying })
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        self.verifying.as_bytes()
    }

    pub(crate) fn signed(&self, bytes: &[u8], signature: &[u8; 64]) -> bool {
        self.verifying.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok()
    }
}

impl TryFrom<String> for PublicKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is no Ed25519 public key of 64 hex digits"))
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.verifying.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// Writes the whole file beside its place and links it there, so that no other process ever sees half a key.
fn create(path: &Path, random: &[u8; 32]) -> Result<(), AuditError> {
    let failed = |error: std::io::Error| fault(path, format!("cannot be made: {error}; check its folder"));
    let mut draft_name = path.as_os_str().to_owned();
    draft_name.push(format!(".{}", AuditKey::from_secret(*random).public().id()));
    let draft = Path::new(&draft_name);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(draft).map_err(failed)?;
    let written = file.write_all(format!("{}\n", hex::encode(random)).as_bytes()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(draft, path));
    std::fs::remove_file(draft).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn fault(path: &Path, what: impl Into<String>) -> AuditError {
    AuditError::Key { path: path.display().to_string(), what: what.into() }
}

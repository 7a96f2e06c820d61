//! Who somebody is: tokens, sessions, identity providers, and what is done against guessing.

mod error;
mod gate;
mod lockout;
mod oidc;
mod pace;
mod record;
mod secret;
mod sessions;
mod store;
#[cfg(test)]
mod store_tests;
mod takeover;
mod tokens;

pub use error::IdentityError;
pub use gate::Identity;
pub(crate) use gate::{Identified, Proof, Refused, Why};
pub(crate) use oidc::read_key_file;
#[cfg(test)]
pub(crate) use oidc::test_keys;
pub(crate) use secret::{csrf_token, same_text};
pub(crate) use sessions::NewSession;
pub use store::IdentityStore;
pub use tokens::{NewToken, Token, TokenOrder, TokenState};

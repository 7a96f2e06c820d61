//! Who somebody is: tokens, sessions, identity providers, and what is done against guessing.

mod error;
mod lockout;
mod secret;
mod sessions;
mod store;
#[cfg(test)]
mod store_tests;
mod takeover;
mod tokens;

pub use error::IdentityError;
pub(crate) use lockout::{Attempts, Lockout, Locked};
pub(crate) use secret::{csrf_token, same_text};
pub(crate) use sessions::{Cookie, NewSession, OpenedBy, Session};
pub use store::IdentityStore;
pub(crate) use tokens::{Presented, Shape, shape};
pub use tokens::{NewToken, Token, TokenOrder, TokenState};

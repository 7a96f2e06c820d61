//! Tokens of identity providers: OpenID Connect, JSON Web Tokens signed with a provider's key.
//!
//! Which providers there are and what their claims mean is policy; here is checked that a token is theirs, for us, and in its time.

mod fetch;
mod jwt;
#[cfg(test)]
mod jwt_tests;
mod keys;
mod providers;
#[cfg(test)]
mod providers_tests;
mod signature;
#[cfg(test)]
pub(crate) mod test_keys;

pub(crate) use fetch::read_key_file;
pub(super) use jwt::{JwtFault, looks_like_jwt};
pub(super) use providers::{ProviderFault, Providers, Vouched};

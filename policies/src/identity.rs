//! Who a person is that proves its identity elsewhere: claims of an identity provider, users of Slack.
//!
//! A principal made from claims is called `provider:claim`. No listed principal can be called that, so claims reach the rights
//! of a listed one only where the file says so by name.

mod claims;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use sightline_model::{Principal, Role};

pub use claims::ClaimFault;
pub(crate) use parse::parse;

/// Where the public keys of a provider come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwksSource {
    /// A file on this machine, by its whole path.
    File(PathBuf),
    /// An address: https, or plain http on this machine.
    Url(String),
}

/// Which claim says who somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalClaim {
    /// `email`, and only where `email_verified` is true.
    Email,
    /// `sub`.
    Subject,
}

/// An identity provider whose tokens are taken, and what its claims mean here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcIssuer {
    /// What it is called here; principals made from its claims are `name:claim`.
    pub name: String,
    /// The exact text of a token's `iss`.
    pub issuer: String,
    /// A token's `aud` must name one of these. Guaranteed: not empty.
    pub audience: Vec<String>,
    /// Its public keys.
    pub jwks: JwksSource,
    /// How far its clock and ours may differ, seconds.
    pub leeway_seconds: u64,
    /// Which claim says who it is.
    pub principal_claim: PrincipalClaim,
    /// Whether its viewers and operators may read the jobs of one user of the scheduler alone: their own.
    pub own_jobs_only: bool,
    /// Which claim says what the scheduler calls them; the principal claim where there is none.
    user_claim: Option<String>,
    tenant_claim: String,
    role_claim: String,
    roles: BTreeMap<String, Role>,
    tenants: BTreeMap<String, String>,
    /// What the principal claim must be to stand for a listed principal.
    principals: BTreeMap<String, Principal>,
}

impl OidcIssuer {
    /// The tenants that groups are mapped to.
    pub fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.values().map(String::as_str)
    }
}

/// Everything an identity file says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) issuers: Vec<OidcIssuer>,
    pub(crate) slack_users: BTreeMap<String, Principal>,
    pub(crate) slack_emails: BTreeMap<String, Principal>,
}

impl Identity {
    /// The principal of a user of Slack: by its id, else by the address that Slack has verified.
    pub(crate) fn principal_of_slack(&self, user_id: &str, verified_email: Option<&str>) -> Option<Principal> {
        let by_email = || self.slack_emails.get(&verified_email?.to_ascii_lowercase());
        self.slack_users.get(user_id).or_else(by_email).cloned()
    }
}

//! From the claims of a token that was verified to a principal.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use sightline_model::{Principal, Role, TenantScope};

use super::{OidcIssuer, PrincipalClaim};
use crate::principals::is_user;

/// The longest claim that may become part of a principal's id, bytes.
const LONGEST: usize = 128;

/// Why claims stand for nobody here. For the log of whoever runs this: it names claims and what they are called, never a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimFault {
    /// The claim that says who it is does not stand there, or is no usable text.
    #[error(
        "the claim `{claim}` is missing or no text of 1 to 128 visible ASCII characters; let the provider send it, or choose another `principal_claim`"
    )]
    NoPrincipal {
        /// The claim.
        claim: &'static str,
    },
    /// The address is not known to be its own.
    #[error(
        "the claim `email_verified` is not true, so anybody could have entered that address; let the provider send it, or use `principal_claim = \"sub\"`"
    )]
    EmailNotVerified,
    /// It may read its own jobs alone, and what the scheduler calls it is not said.
    #[error(
        "the claim `{claim}` is missing or no name of a scheduler's user, and without it there are no jobs of its own; let the provider send it, or correct `user_claim` of `{issuer}`"
    )]
    NoUser {
        /// The claim.
        claim: String,
        /// What the provider is called here.
        issuer: String,
    },
    /// None of its groups is mapped to a role.
    #[error("nothing in the claim `{claim}` is mapped to a role; add its group to `[oidc.roles]` of `{issuer}`")]
    NoRole {
        /// The claim.
        claim: String,
        /// What the provider is called here.
        issuer: String,
    },
    /// None of its groups is mapped to a tenant.
    #[error("nothing in the claim `{claim}` is mapped to a tenant; add its group to `[oidc.tenants]` of `{issuer}`")]
    NoTenant {
        /// The claim.
        claim: String,
        /// What the provider is called here.
        issuer: String,
    },
}

impl PrincipalClaim {
    /// The claim's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Subject => "sub",
        }
    }
}

impl OidcIssuer {
    /// The principal that these claims stand for. Signature, issuer, audience and times must have been checked before.
    ///
    /// Who is named in `[oidc.principals]` is that listed principal and nothing else: its groups add nothing. Everybody else has
    /// the highest role and all tenants that its groups are mapped to, under an id that no listed principal can have.
    ///
    /// # Errors
    /// Why it stands for nobody.
    pub fn principal(&self, claims: &Map<String, Value>) -> Result<Principal, ClaimFault> {
        let claim = self.principal_claim.name();
        let who = claims
            .get(claim)
            .and_then(Value::as_str)
            .filter(|who| (1..=LONGEST).contains(&who.len()) && who.chars().all(|c| c.is_ascii_graphic()))
            .ok_or(ClaimFault::NoPrincipal { claim })?;
        match self.principal_claim {
            PrincipalClaim::Email if claims.get("email_verified") != Some(&Value::Bool(true)) => {
                return Err(ClaimFault::EmailNotVerified);
            }
            PrincipalClaim::Email | PrincipalClaim::Subject => {}
        }
        if let Some(listed) = self.principals.get(who) {
            return Ok(listed.clone());
        }
        let role = mapped(&self.roles, claims, &self.role_claim)
            .into_iter()
            .max_by_key(|role| rank(*role))
            .ok_or_else(|| ClaimFault::NoRole { claim: self.role_claim.clone(), issuer: self.name.clone() })?;
        let tenants: BTreeSet<String> = mapped(&self.tenants, claims, &self.tenant_claim).into_iter().collect();
        let tenants = match role {
            Role::Admin => TenantScope::All,
            Role::Auditor => TenantScope::Only(BTreeSet::new()),
            Role::Viewer | Role::Operator if tenants.is_empty() => {
                return Err(ClaimFault::NoTenant { claim: self.tenant_claim.clone(), issuer: self.name.clone() });
            }
            Role::Viewer | Role::Operator => TenantScope::Only(tenants),
        };
        let jobs_of = match role {
            Role::Viewer | Role::Operator if self.own_jobs_only => Some(self.user(claims, who)?),
            Role::Viewer | Role::Operator | Role::Admin | Role::Auditor => None,
        };
        Ok(Principal { id: format!("{}:{who}", self.name), role, tenants, jobs_of })
    }

    /// What the scheduler calls who is called `who` here.
    fn user(&self, claims: &Map<String, Value>, who: &str) -> Result<String, ClaimFault> {
        let user = match (&self.user_claim, self.principal_claim) {
            (Some(claim), _) => find(claims, claim).and_then(Value::as_str),
            (None, PrincipalClaim::Email) => Some(who.split_once('@').map_or(who, |(name, _)| name)),
            (None, PrincipalClaim::Subject) => Some(who),
        };
        let claim = || self.user_claim.clone().unwrap_or_else(|| self.principal_claim.name().to_owned());
        user.filter(|user| is_user(user))
            .map(str::to_owned)
            .ok_or_else(|| ClaimFault::NoUser { claim: claim(), issuer: self.name.clone() })
    }

    /// Those of the claims that [`principal`](Self::principal) looks at: what is worth keeping of them, and nothing more about a person.
    pub fn relevant(&self, claims: &Map<String, Value>) -> Map<String, Value> {
        let top = |claim: &str| {
            claim.strip_prefix('/').map_or(claim, |path| path.split('/').next().unwrap_or(path)).to_owned()
        };
        let wanted = [
            "email_verified".to_owned(),
            top(self.principal_claim.name()),
            top(&self.role_claim),
            top(&self.tenant_claim),
            self.user_claim.as_deref().map(top).unwrap_or_default(),
        ];
        claims
            .iter()
            .filter(|(name, _)| wanted.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// Of several roles of one person the highest counts. Who checks the record is above those who are in it.
fn rank(role: Role) -> u8 {
    match role {
        Role::Viewer => 0,
        Role::Operator => 1,
        Role::Auditor => 2,
        Role::Admin => 3,
    }
}

/// What the groups of a claim are mapped to.
fn mapped<T: Clone>(map: &BTreeMap<String, T>, claims: &Map<String, Value>, claim: &str) -> Vec<T> {
    let groups: Vec<&str> = match find(claims, claim) {
        Some(Value::String(group)) => vec![group],
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    };
    groups.into_iter().filter_map(|group| map.get(group)).cloned().collect()
}

/// A claim by its name, or by a path like `/realm_access/roles`.
fn find<'a>(claims: &'a Map<String, Value>, claim: &str) -> Option<&'a Value> {
    let Some(path) = claim.strip_prefix('/') else { return claims.get(claim) };
    let mut keys = path.split('/');
    let first = claims.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}

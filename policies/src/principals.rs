//! Who there is.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sightline_model::{Principal, Role, TenantScope};
use toml::Spanned;

use crate::error::{Fault, Source};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables")]
struct RawFile {
    #[serde(default)]
    principal: Vec<RawPrincipal>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[principal]]`")]
struct RawPrincipal {
    id: Spanned<String>,
    role: Spanned<String>,
    /// Whether it may read its own jobs alone.
    own_jobs_only: Option<Spanned<bool>>,
    /// Who it is for the scheduler; the name before the `@` unless given.
    user: Option<Spanned<String>>,
}

/// The principal `role@tenant` of a recorded incident, which brings tenants that no file names.
///
/// For bundles alone: it is made up, so it must never be reachable from a credential.
pub fn bundle_principal(role: Role, tenant: &str) -> Principal {
    match role {
        Role::Viewer | Role::Operator => Principal {
            id: format!("{}@{tenant}", role.as_str()),
            role,
            tenants: TenantScope::Only(BTreeSet::from([tenant.to_owned()])),
            jobs_of: None,
        },
        Role::Admin => Principal { id: role.as_str().to_owned(), role, tenants: TenantScope::All, jobs_of: None },
        Role::Auditor => {
            Principal { id: role.as_str().to_owned(), role, tenants: TenantScope::Only(BTreeSet::new()), jobs_of: None }
        }
    }
}

/// The principals by id, or everything that is wrong with the text.
pub(crate) fn parse(source: Source<'_>) -> Result<BTreeMap<String, Principal>, Vec<Fault>> {
    let RawFile { principal: raw_principals } = toml::from_str(source.text)
        .map_err(|error| vec![source.fault(error.span().map(|span| span.start), error.message())])?;
    let mut principals = BTreeMap::new();
    let mut faults = Vec::new();
    for raw in raw_principals {
        let id_at = raw.id.span().start;
        match checked(&raw, source) {
            Err(fault) => faults.push(fault),
            Ok(principal) => {
                if let Some(earlier) = principals.insert(principal.id.clone(), principal) {
                    faults.push(source.fault(Some(id_at), format!("`{}` stands here twice; keep one", earlier.id)));
                }
            }
        }
    }
    if faults.is_empty() { Ok(principals) } else { Err(faults) }
}

fn checked(raw: &RawPrincipal, source: Source<'_>) -> Result<Principal, Fault> {
    let RawPrincipal { id: raw_id, role: raw_role, own_jobs_only, user } = raw;
    let id = raw_id.get_ref();
    let fault = |what: String| source.fault(Some(raw_id.span().start), what);
    let Some(role) = Role::parse(raw_role.get_ref()) else {
        let what = format!("there is no role `{}`; the roles are viewer, operator, admin, auditor", raw_role.get_ref());
        return Err(source.fault(Some(raw_role.span().start), what));
    };
    let (name, tenants) = match id.split_once('@') {
        None => (id.as_str(), Vec::new()),
        Some((name, tenants)) => (name, tenants.split(',').collect()),
    };
    if let Some(part) = std::iter::once(&name).chain(&tenants).find(|part| !is_name(part)) {
        return Err(fault(format!(
            "`{part}` in `{id}` is no name; write `name@tenant` with letters, digits, `.`, `_` and `-`, several tenants parted by commas"
        )));
    }
    let tenant_set: BTreeSet<String> = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
    if tenant_set.len() < tenants.len() {
        return Err(fault(format!("`{id}` names a tenant twice; name it once")));
    }
    let scope = match role {
        Role::Viewer | Role::Operator if tenant_set.is_empty() => {
            return Err(fault(format!("`{id}` has no tenant, so it could read nothing; write `{id}@tenant`")));
        }
        Role::Admin | Role::Auditor if !tenant_set.is_empty() => {
            return Err(fault(format!(
                "`{id}` names tenants, but the role {} is above them; write `{name}`",
                role.as_str()
            )));
        }
        Role::Viewer | Role::Operator | Role::Auditor => TenantScope::Only(tenant_set),
        Role::Admin => TenantScope::All,
    };
    let jobs_of = jobs_of(name, role, own_jobs_only.as_ref(), user.as_ref(), source)?;
    Ok(Principal { id: id.clone(), role, tenants: scope, jobs_of })
}

/// The scheduler's user whose jobs are all that this principal may read, if it is so restricted.
fn jobs_of(
    name: &str,
    role: Role,
    own_jobs_only: Option<&Spanned<bool>>,
    user: Option<&Spanned<String>>,
    source: Source<'_>,
) -> Result<Option<String>, Fault> {
    match (own_jobs_only.filter(|only| *only.get_ref()), user) {
        (None, None) => Ok(None),
        (None, Some(user)) => Err(source.fault(
            Some(user.span().start),
            "`user` says whose jobs it may read, so it needs `own_jobs_only = true`; add that, or take `user` away",
        )),
        (Some(only), user) => match role {
            Role::Admin | Role::Auditor => Err(source.fault(
                Some(only.span().start),
                format!(
                    "the role {} has no jobs of its own; give `own_jobs_only` to a viewer or an operator",
                    role.as_str()
                ),
            )),
            Role::Viewer | Role::Operator => match user {
                None => Ok(Some(name.to_owned())),
                Some(user) if is_user(user.get_ref()) => Ok(Some(user.get_ref().clone())),
                Some(user) => Err(source.fault(
                    Some(user.span().start),
                    "`user` is no name of a scheduler's user; write it as the scheduler does, without spaces",
                )),
            },
        },
    }
}

/// Whether the scheduler may know a user by this name.
pub(crate) fn is_user(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic())
}

pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

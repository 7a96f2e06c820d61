//! `identity.toml`, made into checked values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use sightline_model::{Principal, Role};
use toml::Spanned;

use super::{Identity, JwksSource, OidcIssuer, PrincipalClaim};
use crate::error::{Fault, Source};
use crate::principals::is_name;

/// The most that two clocks may differ, seconds: more would let a token live on after its end.
const MOST_LEEWAY: u64 = 300;
/// What is allowed unless told otherwise, seconds.
const LEEWAY: u64 = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables")]
struct RawFile {
    #[serde(default)]
    oidc: Vec<RawIssuer>,
    #[serde(default)]
    slack: Vec<RawSlack>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[oidc]]`")]
struct RawIssuer {
    name: Option<Spanned<String>>,
    issuer: Spanned<String>,
    audience: Spanned<OneOrMore>,
    jwks_file: Option<Spanned<PathBuf>>,
    jwks_url: Option<Spanned<String>>,
    leeway_seconds: Option<Spanned<u64>>,
    principal_claim: Option<Spanned<String>>,
    #[serde(default)]
    own_jobs_only: bool,
    user_claim: Option<Spanned<String>>,
    tenant_claim: Option<String>,
    role_claim: Option<String>,
    #[serde(default)]
    roles: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    tenants: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    principals: BTreeMap<String, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table `[[slack]]`")]
struct RawSlack {
    user: Option<Spanned<String>>,
    email: Option<Spanned<String>>,
    principal: Spanned<String>,
}

/// What a part of the file is checked against, and where its faults go.
struct Check<'a> {
    source: Source<'a>,
    principals: &'a BTreeMap<String, Principal>,
    faults: Vec<Fault>,
}

/// The mappings, or everything that is wrong with the text. Who is mapped to by name must be one of `principals`.
pub(crate) fn parse(source: Source<'_>, principals: &BTreeMap<String, Principal>) -> Result<Identity, Vec<Fault>> {
    let RawFile { oidc, slack } = toml::from_str(source.text)
        .map_err(|error| vec![source.fault(error.span().map(|span| span.start), error.message())])?;
    let mut check = Check { source, principals, faults: Vec::new() };
    let mut identity = Identity::default();
    for raw in oidc {
        let issuer_at = raw.issuer.span().start;
        let Some(issuer) = check.issuer(raw) else { continue };
        // A provider that uses several audiences is written once with all of them, so that it has one mapping.
        if identity.issuers.iter().any(|other| other.issuer == issuer.issuer) {
            check.fault(issuer_at, format!("the issuer `{}` stands here twice; keep one", issuer.issuer));
        }
        if identity.issuers.iter().any(|other| other.name == issuer.name) {
            check.fault(issuer_at, format!("two issuers are called `{}`; give each a `name` of its own", issuer.name));
        }
        identity.issuers.push(issuer);
    }
    for raw in slack {
        check.slack(&raw, &mut identity);
    }
    if check.faults.is_empty() { Ok(identity) } else { Err(check.faults) }
}

impl Check<'_> {
    fn fault(&mut self, at: usize, what: impl Into<String>) {
        self.faults.push(self.source.fault(Some(at), what));
    }

    fn issuer(&mut self, raw: RawIssuer) -> Option<OidcIssuer> {
        let faults_before = self.faults.len();
        let at = raw.issuer.span().start;
        let issuer = raw.issuer.into_inner();
        if !is_safe_address(&issuer) {
            self.fault(
                at,
                format!("the issuer `{issuer}` must begin with `https://` (`http://` on this machine alone), exactly as its tokens say `iss`"),
            );
        }
        let (name_at, name) = match raw.name {
            Some(name) => (name.span().start, name.into_inner()),
            None => (at, host(&issuer).to_owned()),
        };
        if !is_name(&name) {
            self.fault(name_at, format!("`{name}` is no name; give `name` with letters, digits, `.`, `_` and `-`"));
        }
        let audience_at = raw.audience.span().start;
        let audience = match raw.audience.into_inner() {
            OneOrMore::One(audience) => vec![audience],
            OneOrMore::More(audiences) => audiences,
        };
        if audience.is_empty() || audience.iter().any(|audience| audience.trim().is_empty()) {
            self.fault(audience_at, "`audience` is empty, so tokens made for other services would be taken; name this service as the provider does");
        }
        let jwks = self.jwks(at, raw.jwks_file, raw.jwks_url);
        let leeway_seconds = raw.leeway_seconds.map_or(LEEWAY, |leeway| {
            if *leeway.get_ref() > MOST_LEEWAY {
                let what = format!("`leeway_seconds` is over {MOST_LEEWAY}, so a token would live long after its end; set the clocks instead");
                self.fault(leeway.span().start, what);
            }
            leeway.into_inner()
        });
        let principal_claim = match raw.principal_claim {
            None => Some(PrincipalClaim::Subject),
            Some(claim) => match claim.get_ref().as_str() {
                "sub" => Some(PrincipalClaim::Subject),
                "email" => Some(PrincipalClaim::Email),
                other => {
                    let what = format!(
                        "`principal_claim` is `{other}`, which people can often change themselves; use `sub` or `email`"
                    );
                    self.fault(claim.span().start, what);
                    None
                }
            },
        };
        if let Some(claim) = raw.user_claim.as_ref().filter(|_| !raw.own_jobs_only) {
            self.fault(
                claim.span().start,
                "`user_claim` says whose jobs people may read, so it needs `own_jobs_only = true`; add that, or take `user_claim` away",
            );
        }
        let roles = self.all(raw.roles, |check, role| check.role(role));
        let tenants = self.all(raw.tenants, |check, tenant| check.tenant(tenant));
        let principals = self.all(raw.principals, |check, principal| check.listed(principal));
        if roles.is_empty() && principals.is_empty() && self.faults.len() == faults_before {
            self.fault(
                at,
                format!("`{name}` lets nobody in; map a group in `[oidc.roles]`, or a person in `[oidc.principals]`"),
            );
        }
        let issuer = OidcIssuer {
            name,
            issuer,
            audience,
            jwks: jwks?,
            leeway_seconds,
            principal_claim: principal_claim?,
            own_jobs_only: raw.own_jobs_only,
            user_claim: raw.user_claim.map(Spanned::into_inner),
            tenant_claim: raw.tenant_claim.unwrap_or_else(|| "groups".to_owned()),
            role_claim: raw.role_claim.unwrap_or_else(|| "groups".to_owned()),
            roles,
            tenants,
            principals,
        };
        (self.faults.len() == faults_before).then_some(issuer)
    }

    fn jwks(&mut self, at: usize, file: Option<Spanned<PathBuf>>, url: Option<Spanned<String>>) -> Option<JwksSource> {
        match (file, url) {
            (Some(file), None) if file.get_ref().is_absolute() => Some(JwksSource::File(file.into_inner())),
            (None, Some(url)) if is_safe_address(url.get_ref()) => Some(JwksSource::Url(url.into_inner())),
            (Some(file), None) => {
                self.fault(file.span().start, "`jwks_file` must be a whole path, beginning with `/`");
                None
            }
            (None, Some(url)) => {
                self.fault(url.span().start, "`jwks_url` must begin with `https://` (`http://` on this machine alone): whoever can change the keys on the way can be anybody");
                None
            }
            (None, None) | (Some(_), Some(_)) => {
                self.fault(at, "give the provider's keys by one of `jwks_file` and `jwks_url`");
                None
            }
        }
    }

    /// A table of mappings, without the entries that are wrong.
    fn all<T>(
        &mut self,
        raw: BTreeMap<String, Spanned<String>>,
        mut one: impl FnMut(&mut Self, &Spanned<String>) -> Option<T>,
    ) -> BTreeMap<String, T> {
        raw.into_iter().filter_map(|(key, value)| Some((key, one(self, &value)?))).collect()
    }

    fn role(&mut self, raw: &Spanned<String>) -> Option<Role> {
        let role = Role::parse(raw.get_ref());
        if role.is_none() {
            let what = format!("there is no role `{}`; the roles are viewer, operator, admin, auditor", raw.get_ref());
            self.fault(raw.span().start, what);
        }
        role
    }

    fn tenant(&mut self, raw: &Spanned<String>) -> Option<String> {
        if is_name(raw.get_ref()) {
            return Some(raw.get_ref().clone());
        }
        let what = format!("`{}` is no tenant; use letters, digits, `.`, `_` and `-`", raw.get_ref());
        self.fault(raw.span().start, what);
        None
    }

    fn listed(&mut self, raw: &Spanned<String>) -> Option<Principal> {
        let found = self.principals.get(raw.get_ref()).cloned();
        if found.is_none() {
            let what = format!("there is no principal `{}`; add it to principals.toml first", raw.get_ref());
            self.fault(raw.span().start, what);
        }
        found
    }

    fn slack(&mut self, raw: &RawSlack, identity: &mut Identity) {
        let at = raw.principal.span().start;
        let Some(principal) = self.listed(&raw.principal) else { return };
        let (map, key) = match (&raw.user, &raw.email) {
            (Some(user), None) if is_slack_user(user.get_ref()) => (&mut identity.slack_users, user.get_ref().clone()),
            (None, Some(email)) if is_email(email.get_ref()) => {
                (&mut identity.slack_emails, email.get_ref().to_ascii_lowercase())
            }
            (Some(user), None) => {
                let what = format!(
                    "`{}` is no user id of Slack; copy the member id from the profile, like `U024BE7LH`",
                    user.get_ref()
                );
                return self.fault(user.span().start, what);
            }
            (None, Some(email)) => {
                return self
                    .fault(email.span().start, format!("`{}` is no address; write `name@host`", email.get_ref()));
            }
            (None, None) | (Some(_), Some(_)) => {
                return self.fault(at, "say who in Slack is meant by one of `user` and `email`");
            }
        };
        if map.insert(key.clone(), principal).is_some() {
            self.fault(at, format!("`{key}` stands here twice; keep one"));
        }
    }
}

fn is_slack_user(text: &str) -> bool {
    text.starts_with(['U', 'W'])
        && (2..=32).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && text.len() <= 254
        && text.chars().all(|c| c.is_ascii_graphic())
}

/// The host of an address, without its port.
fn host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.chars().all(|c| c.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

/// Whether what comes from this address comes from who it says: over TLS, or without leaving this machine.
fn is_safe_address(address: &str) -> bool {
    let host = host(address);
    let on_this_machine = matches!(host, "localhost" | "[::1]")
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    address.chars().all(|c| c.is_ascii_graphic())
        && match address.split_once("://") {
            Some(("https", _)) => !host.is_empty(),
            Some(("http", _)) => on_this_machine,
            Some(_) | None => false,
        }
}

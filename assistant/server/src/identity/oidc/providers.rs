//! The identity providers of the policy in force, with their keys kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};
use sightline_model::Principal;
use sightline_policies::{ClaimFault, JwksSource, OidcIssuer, Policies};
use tokio::sync::OwnedMutexGuard;

use super::fetch::Fetcher;
use super::jwt::{JwtFault, Unverified};
use super::keys::{Key, Keys, NoKey};
use super::signature;

/// A key set older than this is fetched anew, so that a key that was withdrawn ends.
const FRESH_MS: f64 = 10.0 * 60_000.0;
/// Between two fetches of a set at least: whoever makes up key ids makes us fetch no oftener.
const BETWEEN_MS: f64 = 60_000.0;
/// While the provider does not answer, its last good keys hold this long.
const STALE_MS: f64 = 24.0 * 3_600_000.0;

/// Why a provider's token lets nobody in.
#[derive(Debug, thiserror::Error)]
pub(in crate::identity) enum ProviderFault {
    /// The token is wrong.
    #[error(transparent)]
    Token(#[from] JwtFault),
    /// It is right, and the policy knows nobody by it.
    #[error(transparent)]
    Claims(#[from] ClaimFault),
    /// It cannot be told.
    #[error("the keys of `{issuer}` cannot be had: {reason}")]
    NoKeys {
        /// Which provider.
        issuer: String,
        /// Why.
        reason: String,
    },
}

/// Who a provider vouches for.
#[derive(Debug)]
pub(in crate::identity) struct Vouched {
    pub(in crate::identity) principal: Principal,
    pub(in crate::identity) issuer: String,
    /// What the principal was made from.
    pub(in crate::identity) claims: Map<String, Value>,
}

/// A set as it was last fetched.
#[derive(Default)]
struct Cached {
    keys: Option<(Keys, f64)>,
    tried: Option<f64>,
    fault: Option<String>,
    /// One fetch at a time.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

/// The key sets. One is found by where it comes from, so that a change of policy changes it.
pub(in crate::identity) struct Providers {
    cached: Arc<Mutex<HashMap<String, Cached>>>,
    fetcher: Fetcher,
}

impl Providers {
    pub(in crate::identity) fn new() -> Self {
        signature::install();
        Self { cached: Arc::default(), fetcher: Fetcher::default() }
    }

    /// Whom this token stands for under these policies. Times come from the caller: `now` for the token's, `now_ms` for the keys' age.
    pub(in crate::identity) async fn verify(
        &self,
        text: &str,
        policies: &Policies,
        now: Timestamp,
        now_ms: f64,
    ) -> Result<Vouched, ProviderFault> {
        let token = Unverified::read(text)?;
        let issuer = policies.issuers().iter().find(|known| known.issuer == token.issuer).ok_or(JwtFault::Issuer)?;
        let key = self.key(issuer, &token, now_ms).await?;
        let claims = token.verify(&key, issuer, now)?;
        let principal = issuer.principal(&claims)?;
        Ok(Vouched { principal, issuer: issuer.issuer.clone(), claims: issuer.relevant(&claims) })
    }

    async fn key(&self, issuer: &OidcIssuer, token: &Unverified<'_>, now_ms: f64) -> Result<Key, ProviderFault> {
        let place = place(&issuer.jwks);
        let find = |keys: &Keys| keys.find(token.key_id.as_deref(), token.algorithm).cloned();
        let age = |at: f64| now_ms - at;
        let have = |cached: &Cached| {
            cached.keys.as_ref().filter(|(_, at)| age(*at) < STALE_MS).map(|(keys, at)| (find(keys), *at))
        };
        let (found, fetching) = {
            let mut all = self.cached();
            let cached = all.entry(place.clone()).or_default();
            (have(cached), Arc::clone(&cached.fetching))
        };
        // A key that is known and fresh waits for nobody, nor does one that somebody else is asking after.
        let alone = match (found, Arc::clone(&fetching).try_lock_owned()) {
            (Some((Ok(key), at)), _) if age(at) < FRESH_MS => return Ok(key),
            (Some((Ok(key), _)), Err(_)) => return Ok(key),
            (_, Ok(alone)) => alone,
            (_, Err(_)) => fetching.lock_owned().await,
        };
        let is_due = {
            let mut all = self.cached();
            let cached = all.entry(place.clone()).or_default();
            let is_due = cached.tried.is_none_or(|at| age(at) >= BETWEEN_MS);
            if is_due {
                // Before it is asked: whoever hangs up meanwhile does not make us ask again.
                cached.tried = Some(now_ms);
            }
            is_due
        };
        if is_due {
            // A task of its own, which holds the place: what was asked for is kept though the client that brought it about has gone.
            let fetched = tokio::spawn(self.fetch(issuer, place.clone(), now_ms, alone)).await;
            if let Err(error) = fetched {
                tracing::error!(%error, "fetching the keys of an identity provider was cut off");
            }
        }
        let all = self.cached();
        let cached = all.get(&place);
        match cached.and_then(have) {
            Some((Ok(key), _)) => Ok(key),
            Some((Err(NoKey::Unknown), _)) => Err(JwtFault::UnknownKey.into()),
            Some((Err(NoKey::Ambiguous), _)) => Err(JwtFault::AmbiguousKey.into()),
            None => Err(ProviderFault::NoKeys {
                issuer: issuer.name.clone(),
                reason: cached.and_then(|cached| cached.fault.clone()).unwrap_or_default(),
            }),
        }
    }

    /// Fetches a set and keeps what came.
    fn fetch(
        &self,
        issuer: &OidcIssuer,
        place: String,
        now_ms: f64,
        alone: OwnedMutexGuard<()>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (cached, fetcher) = (Arc::clone(&self.cached), self.fetcher.clone());
        let (name, source) = (issuer.name.clone(), issuer.jwks.clone());
        async move {
            let _alone = alone;
            let fetched = fetcher.fetch(&source).await;
            let mut all = lock(&cached);
            let cached = all.entry(place).or_default();
            match fetched {
                Ok(keys) => (cached.keys, cached.fault) = (Some((keys, now_ms)), None),
                Err(fault) => {
                    tracing::error!(issuer = %name, %fault, "the keys of an identity provider cannot be had");
                    cached.fault = Some(fault);
                }
            }
        }
    }

    fn cached(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        lock(&self.cached)
    }
}

/// A poisoned lock only means that a thread died between two whole states.
fn lock(cached: &Mutex<HashMap<String, Cached>>) -> MutexGuard<'_, HashMap<String, Cached>> {
    cached.lock().unwrap_or_else(PoisonError::into_inner)
}

fn place(source: &JwksSource) -> String {
    match source {
        JwksSource::File(path) => format!("file {}", path.display()),
        JwksSource::Url(url) => url.clone(),
    }
}

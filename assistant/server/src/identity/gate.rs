//! From a credential to a principal: the one way in, whatever the entrance.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sightline_core::{Assistant, Clock};
use sightline_model::Principal;
use sightline_model::audit::AuditLog;
use sightline_policies::{LivePolicies, Policies};

use super::error::IdentityError;
use super::lockout::{Attempts, Lockout};
use super::oidc::{JwtFault, ProviderFault, Providers, Vouched, looks_like_jwt};
use super::record;
use super::sessions::{Cookie, NewSession, OpenedBy, Session};
use super::store::IdentityStore;
use super::tokens::{Presented, Token, TokenState};

/// Knows who holds which credential. Every check reads the store and the policies in force, so that what was revoked is so at once.
pub struct Identity {
    store: Arc<IdentityStore>,
    pub(super) lockout: Lockout,
    providers: Providers,
    policies: Arc<LivePolicies>,
    pub(super) audit: Arc<dyn AuditLog>,
    pub(super) clock: Arc<dyn Clock>,
}

/// What proved who it is.
#[derive(Clone)]
pub(crate) enum Proof {
    /// A credential that was sent with the request.
    Bearer(OpenedBy),
    /// A session, and the cookie's value.
    Session {
        /// The session.
        session: Session,
        /// The cookie's value.
        id: String,
    },
}

/// Somebody known.
#[derive(Clone)]
pub(crate) struct Identified {
    /// Who.
    pub(crate) principal: Principal,
    /// What proved it.
    pub(crate) proof: Proof,
}

/// Why a credential lets nobody in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// It stands for nobody.
    #[error(
        "this needs a valid token in the header `Authorization: Bearer …`; the operator of this service hands them out"
    )]
    Unknown,
    /// The secret is right, and the token's time is over.
    #[error("this token expired at {at}; ask the operator of this service for a new one")]
    Expired {
        /// When.
        at: Timestamp,
    },
    /// The secret is right, and the token was revoked.
    #[error("this token was revoked; ask the operator of this service for a new one")]
    Revoked,
    /// The provider's token is right, and its time is over.
    #[error("this token of your identity provider has expired; get a new one there")]
    ProviderExpired,
    /// Its time has not come.
    #[error("this token of your identity provider is not valid yet; its clock and this service's differ")]
    ProviderEarly,
    /// The provider's token is right, and the policy maps its claims to nobody.
    #[error(
        "your identity provider knows you, and the policy of this service gives you no role; ask its operator, whose log says what is missing"
    )]
    NoRights,
    /// There was such a session.
    #[error("your session has ended; log in again")]
    SessionEnded,
    /// Its principal is gone.
    #[error("the policy of this service no longer knows whom this credential stands for; ask its operator")]
    NoPrincipal,
    /// Too many wrong ones came before.
    #[error("too many wrong credentials came from here; try again in {seconds} s")]
    LockedOut {
        /// How long to wait.
        seconds: u64,
    },
    /// It cannot be told.
    #[error("who you are cannot be checked now: {0}")]
    Unavailable(String),
}

impl From<IdentityError> for Refused {
    fn from(error: IdentityError) -> Self {
        tracing::error!(%error, "tokens and sessions cannot be read");
        // The message names files of this machine: it is for the log.
        Self::Unavailable(
            "the store of tokens and sessions does not answer; the log of the service says why".to_owned(),
        )
    }
}

impl Identity {
    /// Checks credentials against this store and the assistant's policies.
    pub fn new(store: IdentityStore, assistant: &Assistant) -> Self {
        Self {
            store: Arc::new(store),
            lockout: Lockout::default(),
            providers: Providers::new(),
            policies: Arc::clone(&assistant.policies),
            audit: Arc::clone(&assistant.audit),
            clock: Arc::clone(&assistant.clock),
        }
    }

    /// Who sends this bearer credential: a token of ours, or of an identity provider.
    pub(crate) async fn bearer(&self, text: &str, peer: IpAddr) -> Result<Identified, Refused> {
        if looks_like_jwt(text) { self.vouched(text, peer).await } else { self.token(text, peer).await }
    }

    async fn vouched(&self, text: &str, peer: IpAddr) -> Result<Identified, Refused> {
        let whose = Attempts::Other { peer };
        let policies = self.policies.now();
        let verified = self.providers.verify(text, &policies, self.clock.now(), self.clock.monotonic_ms()).await;
        let fault = match verified {
            Ok(Vouched { principal, issuer, claims }) => {
                let opened_by = OpenedBy::Provider { issuer, claims: Value::Object(claims).to_string() };
                return Ok(Identified { principal, proof: Proof::Bearer(opened_by) });
            }
            Err(fault) => fault,
        };
        // For whoever runs this: people who cannot log in send their administrator here.
        tracing::warn!(%fault, %peer, "a token of an identity provider was not taken");
        match fault {
            ProviderFault::Token(JwtFault::Expired) => Err(self.failed(whose, false, Refused::ProviderExpired).await),
            ProviderFault::Token(JwtFault::Early) => Err(self.failed(whose, false, Refused::ProviderEarly).await),
            ProviderFault::Claims(_) => Err(self.failed(whose, false, Refused::NoRights).await),
            ProviderFault::NoKeys { .. } => Err(Refused::Unavailable(
                "the keys of your identity provider cannot be had; the log of the service says why".to_owned(),
            )),
            ProviderFault::Token(_) => Err(self.failed(whose, true, Refused::Unknown).await),
        }
    }

    async fn token(&self, text: &str, peer: IpAddr) -> Result<Identified, Refused> {
        let now = self.clock.now();
        let presented = {
            let text = text.to_owned();
            self.ask(move |store| store.present_token(&text, now)).await?
        };
        match presented {
            Presented::Known(token) => {
                let whose = Attempts::Token { peer, id: token.id.clone() };
                if let Some(ended) = ended(&token, now) {
                    return Err(self.failed(whose, false, ended).await);
                }
                let principal = self.policies.now().principal(&token.principal).ok_or(Refused::NoPrincipal)?;
                Ok(Identified { principal, proof: Proof::Bearer(OpenedBy::Token { id: token.id }) })
            }
            Presented::WrongSecret { id } => {
                Err(self.failed(Attempts::Token { peer, id }, true, Refused::Unknown).await)
            }
            Presented::Unknown => Err(self.failed(Attempts::Other { peer }, true, Refused::Unknown).await),
        }
    }

    /// Whose session this cookie is of.
    pub(crate) async fn session(&self, id: &str, peer: IpAddr) -> Result<Identified, Refused> {
        let now = self.clock.now();
        let cookie = {
            let id = id.to_owned();
            self.ask(move |store| store.session(&id, now)).await?
        };
        match cookie {
            Cookie::Living(session) => {
                // A principal that the policy no longer knows ends its sessions.
                let principal = match &session.opened_by {
                    OpenedBy::Token { .. } => self.policies.now().principal(&session.principal),
                    OpenedBy::Provider { issuer, claims } => {
                        vouched_still(&self.policies.now(), issuer, claims).filter(|now| now.id == session.principal)
                    }
                };
                let principal = principal.ok_or(Refused::SessionEnded)?;
                Ok(Identified { principal, proof: Proof::Session { session, id: id.to_owned() } })
            }
            Cookie::Ended => Err(Refused::SessionEnded),
            // No guess: every page that was left open through a log-out or over a weekend sends such a cookie, and behind a proxy five
            // people who come back would otherwise lock one another's typing errors out.
            Cookie::Unknown => Err(self.failed(Attempts::Other { peer }, false, Refused::SessionEnded).await),
        }
    }

    /// Opens a session for who holds this credential. It is recorded before it can be used.
    pub(crate) async fn log_in(&self, text: &str, peer: IpAddr) -> Result<(Principal, NewSession), Refused> {
        let Identified { principal, proof } = self.bearer(text, peer).await?;
        let Proof::Bearer(opened_by) = proof else { return Err(Refused::Unknown) };
        record::write(self, record::login(&principal, &opened_by, peer)).await?;
        let now = self.clock.now();
        let id = principal.id.clone();
        let session = self.ask(move |store| store.open_session(&id, &opened_by, now)).await?;
        Ok((principal, session))
    }

    /// Ends a session. It ends even if that cannot be recorded.
    pub(crate) async fn log_out(&self, principal: &Principal, session: Session) -> Result<(), Refused> {
        self.ask(move |store| store.end_session(&session)).await?;
        record::write(self, record::logout(principal)).await
    }

    /// The store waits for the disk and for other processes, so it is asked on a thread of its own.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&IdentityStore) -> Result<T, IdentityError> + Send + 'static,
    ) -> Result<T, Refused> {
        let store = Arc::clone(&self.store);
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(done) => Ok(done?),
            Err(error) => {
                tracing::error!(%error, "a check of a credential was cut off");
                Err(Refused::Unavailable("the check was cut off; try again".to_owned()))
            }
        }
    }

    /// Counts and records a failure, once a credential was found wrong; what is locked is told so.
    async fn failed(&self, whose: Attempts, is_guess: bool, refusal: Refused) -> Refused {
        let now_ms = self.clock.monotonic_ms();
        let locked = self.lockout.locked_for(&whose, now_ms);
        let counted = self.lockout.failed(&whose, is_guess, now_ms);
        record::failures(self, counted.reports).await;
        if let Some(seconds) = counted.locked_for_s {
            record::locked_out(self, &whose, seconds).await;
        }
        match (is_guess, locked) {
            (true, Some(seconds)) => Refused::LockedOut { seconds },
            (true | false, Some(_) | None) => refusal,
        }
    }

    /// Records failures that were counted and not recorded yet; called now and then.
    pub async fn record_failures(&self) {
        record::failures(self, self.lockout.due(self.clock.monotonic_ms())).await;
    }

    /// Records all of them, when the service ends.
    pub async fn record_last_failures(&self) {
        record::failures(self, self.lockout.rest()).await;
    }
}

fn ended(token: &Token, now: Timestamp) -> Option<Refused> {
    match token.state(now) {
        TokenState::Valid => None,
        TokenState::Revoked => Some(Refused::Revoked),
        TokenState::Expired => Some(Refused::Expired { at: token.expires.unwrap_or(now) }),
    }
}

/// Whom the policy in force makes of what a provider vouched for when a session was opened.
fn vouched_still(policies: &Policies, issuer: &str, claims: &str) -> Option<Principal> {
    let issuer = policies.issuers().iter().find(|known| known.issuer == issuer)?;
    let claims: Map<String, Value> = serde_json::from_str(claims).ok()?;
    issuer.principal(&claims).ok()
}

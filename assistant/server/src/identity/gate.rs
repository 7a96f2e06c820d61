//! From a credential to a principal: the one way in, whatever the entrance.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sightline_core::{Assistant, Clock};
use sightline_model::Principal;
use sightline_policies::{LivePolicies, Policies};

use super::error::IdentityError;
use super::lockout::{Attempts, Lockout};
use super::oidc::{JwtFault, ProviderFault, Providers, Vouched, looks_like_jwt};
use super::pace::{PER_SECOND, Pace};
use super::record::{self, Recorder};
use super::sessions::{Cookie, NewSession, OpenedBy, Session};
use super::store::IdentityStore;
use super::tokens::{Presented, Token, TokenState};
use crate::tally::Tally;

/// Knows who holds which credential. Every check reads the store and the policies in force, so that what was revoked is so at once.
pub struct Identity {
    store: Arc<IdentityStore>,
    lockout: Lockout,
    failures: Tally<Attempts>,
    pace: Pace,
    providers: Providers,
    policies: Arc<LivePolicies>,
    recorder: Recorder,
    clock: Arc<dyn Clock>,
}

/// Why a credential was not taken, as the audit log counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is wrong: this alone is a guess.
    Wrong,
    /// It is right, and its time is over.
    Expired,
    /// It is right, and its time has not come.
    Early,
    /// It is right, and was revoked.
    Revoked,
    /// The policy knows nobody by it.
    NoPrincipal,
    /// It is of a session that has ended, or of none.
    SessionEnded,
    /// A session's request lacked its CSRF token.
    NoCsrfToken,
    /// A page of another site sent it.
    ForeignOrigin,
    /// It came over plain HTTP from another machine.
    FromAfar,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Expired => "expired",
            Self::Early => "not valid yet",
            Self::Revoked => "revoked",
            Self::NoPrincipal => "no principal",
            Self::SessionEnded => "session ended",
            Self::NoCsrfToken => "no CSRF token",
            Self::ForeignOrigin => "foreign origin",
            Self::FromAfar => "from afar",
        }
    }
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
    /// The credential is right, and too many requests came with it.
    #[error("you send more than {PER_SECOND} requests a second; send fewer, and go on in {seconds} s")]
    TooFast {
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
            failures: Tally::default(),
            pace: Pace::new(Arc::clone(&assistant.clock)),
            providers: Providers::new(),
            policies: Arc::clone(&assistant.policies),
            recorder: Recorder { audit: Arc::clone(&assistant.audit), clock: Arc::clone(&assistant.clock) },
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
            ProviderFault::Token(JwtFault::Expired) => {
                Err(self.failed(whose, Why::Expired, Refused::ProviderExpired).await)
            }
            ProviderFault::Token(JwtFault::Early) => Err(self.failed(whose, Why::Early, Refused::ProviderEarly).await),
            ProviderFault::Claims(_) => Err(self.failed(whose, Why::NoPrincipal, Refused::NoRights).await),
            ProviderFault::NoKeys { .. } => Err(Refused::Unavailable(
                "the keys of your identity provider cannot be had; the log of the service says why".to_owned(),
            )),
            ProviderFault::Token(_) => Err(self.failed(whose, Why::Wrong, Refused::Unknown).await),
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
                let whose = Attempts::Token { peer, id: token.id.clone(), principal: token.principal.clone() };
                if let Some((why, ended)) = ended(&token, now) {
                    return Err(self.failed(whose, why, ended).await);
                }
                let Some(principal) = self.policies.now().principal(&token.principal) else {
                    return Err(self.failed(whose, Why::NoPrincipal, Refused::NoPrincipal).await);
                };
                Ok(Identified { principal, proof: Proof::Bearer(OpenedBy::Token { id: token.id }) })
            }
            Presented::WrongSecret { id, principal } => {
                Err(self.failed(Attempts::Token { peer, id, principal }, Why::Wrong, Refused::Unknown).await)
            }
            Presented::Unknown => Err(self.failed(Attempts::Other { peer }, Why::Wrong, Refused::Unknown).await),
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
                let Some(principal) = principal else {
                    let whose = Attempts::Named { peer, principal: session.principal };
                    return Err(self.failed(whose, Why::NoPrincipal, Refused::SessionEnded).await);
                };
                Ok(Identified { principal, proof: Proof::Session { session, id: id.to_owned() } })
            }
            Cookie::Ended { principal } => {
                Err(self.failed(Attempts::Named { peer, principal }, Why::SessionEnded, Refused::SessionEnded).await)
            }
            // No guess: every page that was left open through a log-out or over a weekend sends such a cookie, and behind a proxy five
            // people who come back would otherwise lock one another's typing errors out.
            Cookie::Unknown => {
                Err(self.failed(Attempts::Other { peer }, Why::SessionEnded, Refused::SessionEnded).await)
            }
        }
    }

    /// Counts a request of a principal whose credential was found right.
    pub(crate) fn within_pace(&self, principal: &Principal) -> Result<(), Refused> {
        self.pace.request(&principal.id).map_err(|seconds| Refused::TooFast { seconds })
    }

    /// Opens a session for who holds this credential. It is recorded before it can be used.
    pub(crate) async fn log_in(&self, text: &str, peer: IpAddr) -> Result<(Principal, NewSession), Refused> {
        let Identified { principal, proof } = self.bearer(text, peer).await?;
        let Proof::Bearer(opened_by) = proof else { return Err(Refused::Unknown) };
        // Each log-in is a record on the disk and a session.
        self.within_pace(&principal)?;
        // Whole, even if its client hangs up: a record of a log-in and its session belong together.
        let (recorder, store, now) = (self.recorder.clone(), Arc::clone(&self.store), self.clock.now());
        whole(async move {
            recorder.write(record::login(&principal, &opened_by, peer)).await?;
            let id = principal.id.clone();
            let session = ask(store, move |store| store.open_session(&id, &opened_by, now)).await?;
            Ok((principal, session))
        })
        .await
    }

    /// Ends a session. It ends even if that cannot be recorded.
    pub(crate) async fn log_out(&self, principal: &Principal, session: Session) -> Result<(), Refused> {
        let (recorder, store, principal) = (self.recorder.clone(), Arc::clone(&self.store), principal.id.clone());
        whole(async move {
            ask(store, move |store| store.end_session(&session)).await?;
            recorder.write(record::logout(&principal)).await
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&IdentityStore) -> Result<T, IdentityError> + Send + 'static,
    ) -> Result<T, Refused> {
        ask(Arc::clone(&self.store), work).await
    }

    /// Counts and records a failure, once a credential was found wrong; what is locked is told so.
    async fn failed(&self, whose: Attempts, why: Why, refusal: Refused) -> Refused {
        let now_ms = self.clock.monotonic_ms();
        let mut locked = None;
        let mut drafts: Vec<_> =
            self.failures.count(&whose, why.as_str(), now_ms).iter().map(record::failures).collect();
        if why == Why::Wrong {
            locked = self.lockout.locked_for(&whose, now_ms);
            let begun = self.lockout.guessed(&whose, now_ms);
            drafts.extend(begun.map(|seconds| record::locked_out(&whose, seconds)));
        }
        self.recorder.write_all(drafts).await;
        locked.map_or(refusal, |seconds| Refused::LockedOut { seconds })
    }

    /// Counts a request that was refused for how it came: with which credential does not matter any more.
    pub(crate) async fn turned_away(&self, peer: Option<IpAddr>, principal: Option<&Principal>, why: Why) {
        let whose = match (peer, principal) {
            (Some(peer), Some(principal)) => Attempts::Named { peer, principal: principal.id.clone() },
            (Some(peer), None) => Attempts::Other { peer },
            (None, Some(_) | None) => Attempts::Afar,
        };
        let reports = self.failures.count(&whose, why.as_str(), self.clock.monotonic_ms());
        self.recorder.write_all(reports.iter().map(record::failures).collect()).await;
    }

    /// Records failures that were counted and not recorded yet; called now and then.
    pub async fn record_failures(&self) {
        let reports = self.failures.due(self.clock.monotonic_ms());
        self.recorder.write_all(reports.iter().map(record::failures).collect()).await;
    }

    /// Records all of them, when the service ends.
    pub async fn record_last_failures(&self) {
        self.recorder.write_all(self.failures.rest().iter().map(record::failures).collect()).await;
    }
}

/// The store waits for the disk and for other processes, so it is asked on a thread of its own.
async fn ask<T: Send + 'static>(
    store: Arc<IdentityStore>,
    work: impl FnOnce(&IdentityStore) -> Result<T, IdentityError> + Send + 'static,
) -> Result<T, Refused> {
    match tokio::task::spawn_blocking(move || work(&store)).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(cut_off(&error)),
    }
}

/// Does this to its end, even if the client that wanted it goes away.
async fn whole<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refused>> + Send + 'static,
) -> Result<T, Refused> {
    tokio::spawn(work).await.unwrap_or_else(|error| Err(cut_off(&error)))
}

fn cut_off(error: &tokio::task::JoinError) -> Refused {
    tracing::error!(%error, "a check of a credential was cut off");
    Refused::Unavailable("the check was cut off; try again".to_owned())
}

fn ended(token: &Token, now: Timestamp) -> Option<(Why, Refused)> {
    match token.state(now) {
        TokenState::Valid => None,
        TokenState::Revoked => Some((Why::Revoked, Refused::Revoked)),
        TokenState::Expired => Some((Why::Expired, Refused::Expired { at: token.expires.unwrap_or(now) })),
    }
}

/// Whom the policy in force makes of what a provider vouched for when a session was opened.
fn vouched_still(policies: &Policies, issuer: &str, claims: &str) -> Option<Principal> {
    let issuer = policies.issuers().iter().find(|known| known.issuer == issuer)?;
    let claims: Map<String, Value> = serde_json::from_str(claims).ok()?;
    issuer.principal(&claims).ok()
}

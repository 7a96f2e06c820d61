//! `sightline token`: makes, lists and revokes bearer tokens. A running service sees each change at its next request.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};
use serde_json::json;
use sightline_core::Clock as _;
use sightline_model::audit::{AuditLog, Event, EventKind, EventOutcome};
use sightline_policies::{Action, Policies};

use super::audit::{known, told};
use super::{CommandError, failed};
use crate::audit_log;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::identity::{IdentityStore, NewToken, Token, TokenOrder, TokenState};
use crate::output;
use crate::policies::PolicyFiles;
use crate::review::Reviewer;
use crate::room::make_data_dir;

/// How long a token holds unless told otherwise.
const DEFAULT_EXPIRY: SignedDuration = SignedDuration::from_hours(90 * 24);
/// The longest label, characters.
const LONGEST_LABEL: usize = 100;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenCommand {
    /// Make one.
    New {
        /// The principal it stands for.
        principal: String,
        /// For how long, like `90d`; or `never`.
        expires: Option<String>,
        /// What it is for.
        label: Option<String>,
    },
    /// List them all.
    List {
        /// As one JSON document.
        json: bool,
    },
    /// Revoke the one of this id.
    Revoke {
        /// Its public id.
        id: String,
    },
    /// Revoke all of a principal, and end its sessions.
    RevokeOf {
        /// The principal; it may be gone from the policy.
        principal: String,
    },
}

/// Who makes or ends a token, as the audit log names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Actor {
    /// The principal, where one was named; the policy has let it.
    principal: Option<String>,
    /// The user of the operating system.
    uid: u32,
}

impl Actor {
    /// Whoever runs this process.
    pub(super) fn of_system() -> Result<Self, CommandError> {
        // The owner of a process's own entry is its effective user.
        let uid = std::fs::metadata("/proc/self").map_err(|error| {
            CommandError::Failed(format!(
                "which user runs this cannot be told, and each token's record names it: {error}"
            ))
        })?;
        Ok(Self { principal: None, uid: uid.uid() })
    }
}

/// Does it, for the principal that `--as` or the configuration names. Where neither does, as for the first token of a site, whoever owns
/// the data folder may.
///
/// # Errors
/// When a name is unknown, the policy does not let the actor, or the store or the audit log cannot be used.
pub async fn token(config: &Config, named: Option<&str>, command: TokenCommand) -> Result<(), CommandError> {
    make_data_dir(&config.data_dir).map_err(failed)?;
    let actor = actor(config, named).await?;
    // What is said now is what is kept: whole seconds.
    let now = SystemClock::start().now();
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let store = IdentityStore::open(&config.data_dir).map_err(failed)?;
    match command {
        TokenCommand::New { principal, expires, label } => {
            let order = order(&policies(config)?, &principal, expires.as_deref(), label, now)?;
            new(config, &store, &order, &actor).await
        }
        TokenCommand::List { json } => list(&store, json, now),
        TokenCommand::Revoke { id } => {
            let revoked = store.revoke_token(&id, now).map_err(failed)?;
            let none = || {
                CommandError::Usage(format!(
                    "there is no token `{id}`, or it was revoked before; `sightline token list` shows them"
                ))
            };
            record_revoked(config, &[revoked.ok_or_else(none)?], now, &actor).await
        }
        TokenCommand::RevokeOf { principal } => {
            let revoked = store.revoke_tokens_of(&principal, now).map_err(failed)?;
            let sessions = store.end_vouched_sessions_of(&principal, now).map_err(failed)?;
            if revoked.is_empty() && sessions == 0 {
                return Err(CommandError::Usage(format!(
                    "`{principal}` has no token that could be revoked and no session; `sightline token list` shows the tokens"
                )));
            }
            if sessions > 0 {
                output::note(&sessions_ended(&principal, sessions));
            }
            record_revoked(config, &revoked, now, &actor).await?;
            if sessions > 0 { record_sessions(config, &principal, sessions, now, &actor).await } else { Ok(()) }
        }
    }
}

fn policies(config: &Config) -> Result<Policies, CommandError> {
    PolicyFiles::read(config.policies_dir.as_deref()).and_then(|files| files.policies()).map_err(failed)
}

/// Who does this, if it may. A denial is in the audit log.
async fn actor(config: &Config, named: Option<&str>) -> Result<Actor, CommandError> {
    let actor = Actor::of_system()?;
    let Some(name) = named.or(config.cli_principal.as_deref()) else {
        let folder = std::fs::metadata(&config.data_dir).map_err(failed)?;
        // No policy is read here: a site whose policy is broken can still end a token.
        return if owns(actor.uid, folder.uid()) {
            Ok(actor)
        } else {
            Err(CommandError::Failed(format!(
                "`{}` belongs to the system's user {}, and you are {}; say with --as which principal you are, or run this as its owner",
                config.data_dir.display(),
                folder.uid(),
                actor.uid
            )))
        };
    };
    let policies = policies(config)?;
    let principal = known(&policies, name)?;
    let (log, clock) = (audit_log::open(config, None).map_err(failed)?, SystemClock::start());
    let reviewer = Reviewer {
        principal: &principal,
        policies: &policies,
        log: &log,
        clock: &clock,
        entrance: "cli",
        denials: None,
    };
    reviewer.may(Action::ManageTokens).await.map_err(told)?;
    Ok(Actor { principal: Some(principal.id), ..actor })
}

/// The system's administrator could read and change every file there, too.
fn owns(uid: u32, owner: u32) -> bool {
    uid == owner || uid == 0
}

/// The end of a token for which none was named.
pub(super) fn default_expiry(now: Timestamp) -> Option<Timestamp> {
    now.checked_add(DEFAULT_EXPIRY).ok()
}

/// Records that a token was made. Durable when this returns: only then is its text shown.
pub(super) async fn record_created(
    audit: &dyn AuditLog,
    order: &TokenOrder,
    made: &NewToken,
    actor: &Actor,
) -> Result<(), CommandError> {
    let expires = order.expires.map_or_else(|| "never".to_owned(), |expires| expires.to_string());
    let detail = [
        ("token_id", made.id.clone()),
        ("for", order.principal.clone()),
        ("label", order.label.clone()),
        ("expires", expires),
    ];
    audit.event(event(EventKind::TokenCreated, order.created, actor, detail)).await.map_err(failed)
}

fn event<const N: usize>(kind: EventKind, at: Timestamp, actor: &Actor, detail: [(&str, String); N]) -> Event {
    let uid = ("uid", actor.uid.to_string());
    Event {
        at,
        event: kind,
        principal: actor.principal.clone(),
        entrance: "cli".to_owned(),
        outcome: EventOutcome::Done,
        detail: detail
            .into_iter()
            .chain([uid])
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>(),
    }
}

fn order(
    policies: &Policies,
    principal: &str,
    expires: Option<&str>,
    label: Option<String>,
    now: Timestamp,
) -> Result<TokenOrder, CommandError> {
    if policies.principal(principal).is_none() {
        let known: Vec<String> = policies.principals().into_iter().map(|principal| principal.id).collect();
        return Err(CommandError::Usage(format!(
            "the policy has no principal `{principal}`; it has {}",
            known.join(", ")
        )));
    }
    let label = label.unwrap_or_default();
    if label.chars().count() > LONGEST_LABEL || label.chars().any(char::is_control) {
        return Err(CommandError::Usage(format!("a label has at most {LONGEST_LABEL} characters, in one line")));
    }
    Ok(TokenOrder { principal: principal.to_owned(), label, created: now, expires: expiry(expires, now)? })
}

fn expiry(text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, CommandError> {
    let wrong = || CommandError::Usage("`--expires` takes a time such as `90d`, `12h` or `1y`, or `never`".to_owned());
    match text {
        None => Ok(default_expiry(now)),
        Some("never") => Ok(None),
        Some(text) => {
            let span: Span = text.parse().map_err(|_| wrong())?;
            let end = now.to_zoned_datetime(TimeZone::UTC).checked_add(span).map_err(|_| wrong())?.timestamp();
            if end > now { Ok(Some(end)) } else { Err(wrong()) }
        }
    }
}

async fn new(config: &Config, store: &IdentityStore, order: &TokenOrder, actor: &Actor) -> Result<(), CommandError> {
    // Opened before the token is made: where nothing can be recorded, nothing is made.
    let audit = audit_log::open(config, None).map_err(failed)?;
    let made = store.new_token(order).map_err(failed)?;
    if let Err(error) = record_created(&audit, order, &made, actor).await {
        // Nobody has seen it; it is ended all the same.
        store.revoke_token(&made.id, order.created).map_err(failed)?;
        return Err(error);
    }
    output::result(&made.text).map_err(failed)?;
    let until = order.expires.map_or_else(|| "it does not expire".to_owned(), |at| format!("it expires at {at}"));
    output::note(&format!(
        "token {} for {}; {until}. It is shown this once: keep it where secrets are kept. `sightline token revoke {}` ends it.",
        made.id, order.principal, made.id
    ));
    Ok(())
}

/// What has ended is so already: an audit log that cannot be written keeps nobody's access alive, and is told of.
async fn record_sessions(
    config: &Config,
    principal: &str,
    sessions: u64,
    now: Timestamp,
    actor: &Actor,
) -> Result<(), CommandError> {
    let detail = [("for", principal.to_owned()), ("sessions_ended", sessions.to_string())];
    let recorded = match audit_log::open(config, None).map_err(failed) {
        Ok(audit) => audit.event(event(EventKind::TokenRevoked, now, actor, detail)).await.map_err(failed),
        Err(error) => Err(error),
    };
    recorded.map_err(|error| {
        CommandError::Failed(format!("the sessions have ended, but that could not be recorded: {error}"))
    })
}

fn sessions_ended(principal: &str, sessions: u64) -> String {
    let have = if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") };
    format!(
        "{have} of {principal}, opened through an identity provider, ended. Whoever still holds a valid token of an identity provider can log in again, and such a session lives 12 hours though the token may be shorter: end the account at the provider, and run this again"
    )
}

/// What was revoked is so already: an audit log that cannot be written keeps nobody's access alive, and is told of.
async fn record_revoked(config: &Config, revoked: &[Token], now: Timestamp, actor: &Actor) -> Result<(), CommandError> {
    for token in revoked {
        output::note(&format!(
            "token {} of {} is revoked, and the sessions it opened have ended",
            token.id, token.principal
        ));
    }
    let unrecorded =
        |error: CommandError| CommandError::Failed(format!("it is revoked, but that could not be recorded: {error}"));
    let audit = audit_log::open(config, None).map_err(|error| unrecorded(failed(error)))?;
    for token in revoked {
        let detail = [("token_id", token.id.clone()), ("for", token.principal.clone()), ("label", token.label.clone())];
        audit
            .event(event(EventKind::TokenRevoked, now, actor, detail))
            .await
            .map_err(|error| unrecorded(failed(error)))?;
    }
    Ok(())
}

fn list(store: &IdentityStore, as_json: bool, now: Timestamp) -> Result<(), CommandError> {
    let tokens = store.tokens().map_err(failed)?;
    if as_json {
        let tokens: Vec<_> = tokens.iter().map(|token| document(token, now)).collect();
        output::result(&json!({ "tokens": tokens }).to_string()).map_err(failed)?;
        return Ok(());
    }
    if tokens.is_empty() {
        output::note("there are no tokens; `sightline token new --for PRINCIPAL` makes one");
    }
    for token in &tokens {
        output::result(&line(token, now)).map_err(failed)?;
    }
    Ok(())
}

fn document(token: &Token, now: Timestamp) -> serde_json::Value {
    let Token { id, principal, label, created, expires, revoked, last_used } = token;
    json!({
        "id": id, "principal": principal, "label": label, "state": token.state(now).as_str(), "created": created,
        "expires": expires, "revoked": revoked, "last_used": last_used.map(day),
    })
}

fn line(token: &Token, now: Timestamp) -> String {
    let state = match (token.state(now), token.revoked, token.expires) {
        (TokenState::Revoked, Some(at), _) => format!("revoked {}", day(at)),
        (TokenState::Expired, _, Some(at)) => format!("expired {}", day(at)),
        (TokenState::Valid, _, Some(at)) => format!("until {}", day(at)),
        (TokenState::Valid, _, None) => "does not expire".to_owned(),
        (TokenState::Revoked | TokenState::Expired, _, _) => token.state(now).as_str().to_owned(),
    };
    let used = token.last_used.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", day(at)));
    format!("{}  {:<20}  {state:<18}  {used:<20}  {}", token.id, token.principal, token.label)
}

fn day(at: Timestamp) -> String {
    at.to_zoned_datetime(TimeZone::UTC).date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-05-04T10:00:00Z".parse().unwrap()
    }

    #[test]
    fn an_expiry_is_a_time_from_now_and_never_must_be_said() {
        let end = |text| expiry(text, now()).unwrap().map(|at| at.to_string());
        assert_eq!(end(None).as_deref(), Some("2026-08-02T10:00:00Z"));
        assert_eq!(end(Some("never")), None);
        assert_eq!(end(Some("12h")).as_deref(), Some("2026-05-04T22:00:00Z"));
        assert_eq!(end(Some("1y")).as_deref(), Some("2027-05-04T10:00:00Z"));
        for wrong in ["", "90", "-1d", "0d", "soon", "99999y", "Never"] {
            assert!(matches!(expiry(Some(wrong), now()), Err(CommandError::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_for_a_principal_of_the_policy_under_a_label_of_one_line() {
        let policies = Policies::builtin().unwrap();
        let said = order(&policies, "root", None, None, now()).unwrap_err().to_string();
        assert!(said.contains("`root`") && said.contains("operator@atlas, operator@borealis"), "{said}");
        for label in ["two\nlines".to_owned(), "x".repeat(101)] {
            assert!(order(&policies, "admin", None, Some(label), now()).unwrap_err().to_string().contains("label"));
        }
        assert_eq!(order(&policies, "admin", None, Some("CI".to_owned()), now()).unwrap().label, "CI");
    }

    #[test]
    fn without_a_principal_the_owner_of_the_data_folder_may_and_nobody_else() {
        assert!(owns(1000, 1000) && owns(0, 1000));
        assert!(!owns(1001, 1000) && !owns(1000, 0));
    }

    #[test]
    fn a_list_says_what_became_of_each_token() {
        let token = |revoked, expires| Token {
            id: "0011223344556677".to_owned(),
            principal: "viewer@atlas".to_owned(),
            label: "laptop".to_owned(),
            created: now(),
            expires,
            revoked,
            last_used: Some(now()),
        };
        let earlier = "2026-05-01T10:00:00Z".parse().ok();
        let lines = [
            line(&token(None, None), now()),
            line(&token(None, "2026-08-02T10:00:00Z".parse().ok()), now()),
            line(&token(None, earlier), now()),
            line(&Token { last_used: None, ..token(earlier, None) }, now()),
        ];
        insta::assert_snapshot!("token_list", lines.join("\n"));
    }
}

//! Browser sessions: opened with a credential, ended by log-out, by time, or by the end of the credential.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension as _, Row, params};

use super::error::IdentityError;
use super::secret::{csrf_token, digest, random_hex, same};
use super::store::IdentityStore;
use super::tokens::time;

/// A session that is not used for this long ends.
pub(crate) const IDLE: SignedDuration = SignedDuration::from_hours(12);
/// No session lives longer.
pub(crate) const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Nor does one that an identity provider's token opened: the provider cannot tell us that somebody has left, so who works on logs in
/// anew each day.
pub(crate) const LONGEST_VOUCHED: SignedDuration = SignedDuration::from_hours(12);
/// A session's use is written down at most this often.
const TOUCH_EVERY: SignedDuration = SignedDuration::from_mins(1);
/// Sessions that a principal may have at once; the oldest goes when another is opened.
const MOST: i64 = 50;

/// What opened a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenedBy {
    /// One of our tokens, by its public id.
    Token {
        /// The public id.
        id: String,
    },
    /// A token of an identity provider.
    Provider {
        /// Which.
        issuer: String,
        /// What it vouched for, a JSON object.
        claims: String,
    },
}

/// A session that was just opened. Its id is nowhere else but in the browser's cookie.
pub(crate) struct NewSession {
    /// The cookie's value.
    pub(crate) id: String,
    /// What the page sends back with every change.
    pub(crate) csrf_token: String,
    /// When it ends at the latest.
    pub(crate) ends: Timestamp,
}

/// A living session.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Session {
    /// The principal that opened it.
    pub(crate) principal: String,
    /// What opened it.
    pub(crate) opened_by: OpenedBy,
    /// When it ends at the latest.
    pub(crate) ends: Timestamp,
    digest: Vec<u8>,
    idle_until: Timestamp,
}

/// What a cookie turned out to be.
pub(crate) enum Cookie {
    /// A living session.
    Living(Session),
    /// A session that has ended: by time, or with its token.
    Ended {
        /// Whose it was.
        principal: String,
    },
    /// None of ours, or one that was logged out.
    Unknown,
}

impl IdentityStore {
    /// Opens a session under a new id, whatever the browser had before.
    pub(crate) fn open_session(
        &self,
        principal: &str,
        opened_by: &OpenedBy,
        now: Timestamp,
    ) -> Result<NewSession, IdentityError> {
        let id = random_hex::<32>()?;
        // What is said now is what is kept: whole seconds.
        let now = time(now.as_second());
        let (token, issuer, claims, longest) = match opened_by {
            OpenedBy::Token { id } => (Some(id), None, None, LONGEST),
            OpenedBy::Provider { issuer, claims } => (None, Some(issuer), Some(claims), LONGEST_VOUCHED),
        };
        let ends = now.saturating_add(longest).unwrap_or(now);
        let idle_until = now.saturating_add(IDLE).unwrap_or(now).min(ends);
        self.write(|transaction| {
            // What ended a day ago is told of no more.
            transaction.execute(
                "DELETE FROM session WHERE ends < ?1 OR idle_until < ?1",
                [now.as_second().saturating_sub(86_400)],
            )?;
            transaction.execute(
                "DELETE FROM session WHERE digest IN
                   (SELECT digest FROM session WHERE principal = ?1 ORDER BY created DESC, digest LIMIT -1 OFFSET ?2)",
                params![principal, MOST - 1],
            )?;
            transaction.execute(
                "INSERT INTO session (digest, principal, token_id, issuer, claims, created, idle_until, ends)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    digest(&id),
                    principal,
                    token,
                    issuer,
                    claims,
                    now.as_second(),
                    idle_until.as_second(),
                    ends.as_second()
                ],
            )
        })?;
        Ok(NewSession { csrf_token: csrf_token(&id), id, ends })
    }

    /// Whose session this cookie is of. Its use puts off its idle end.
    pub(crate) fn session(&self, id: &str, now: Timestamp) -> Result<Cookie, IdentityError> {
        let digest = digest(id);
        let found = self.read(|database| {
            let sql = "SELECT s.principal, s.token_id, s.issuer, s.claims, s.idle_until, s.ends, s.digest, t.expires, t.revoked
                       FROM session AS s LEFT JOIN token AS t ON t.id = s.token_id WHERE s.digest = ?1";
            database.prepare_cached(sql)?.query_row([digest.as_slice()], row_of).optional()
        })?;
        let Some(Found { session, token_ended }) = found.filter(|found| same(&found.session.digest, &digest)) else {
            return Ok(Cookie::Unknown);
        };
        if session.ends <= now || session.idle_until <= now || token_ended.is_some_and(|ended| ended <= now) {
            return Ok(Cookie::Ended { principal: session.principal });
        }
        self.touch(&session, now);
        Ok(Cookie::Living(session))
    }

    /// Ends a session for good. False when it was gone.
    pub(crate) fn end_session(&self, session: &Session) -> Result<bool, IdentityError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM session WHERE digest = ?1", [session.digest.as_slice()])
        })
        .map(|ended| ended > 0)
    }

    /// That it cannot be noted is no reason to turn its holder away; the session then ends earlier.
    fn touch(&self, session: &Session, now: Timestamp) {
        let idle_until = now.saturating_add(IDLE).unwrap_or(now).min(session.ends);
        if idle_until.duration_since(session.idle_until) < TOUCH_EVERY {
            return;
        }
        let written = self.write(|transaction| {
            transaction.execute(
                "UPDATE session SET idle_until = ?1 WHERE digest = ?2",
                params![idle_until.as_second(), session.digest],
            )
        });
        if let Err(error) = written {
            tracing::warn!(%error, principal = %session.principal, "the use of a session was not noted");
        }
    }
}

struct Found {
    session: Session,
    /// When the token that opened it ended, if it has an end.
    token_ended: Option<Timestamp>,
}

fn row_of(row: &Row<'_>) -> Result<Found, rusqlite::Error> {
    let token: Option<String> = row.get(1)?;
    let opened_by = match token {
        Some(id) => OpenedBy::Token { id },
        None => OpenedBy::Provider { issuer: row.get(2)?, claims: row.get(3)? },
    };
    let (expires, revoked): (Option<i64>, Option<i64>) = (row.get(7)?, row.get(8)?);
    let session = Session {
        principal: row.get(0)?,
        opened_by,
        idle_until: time(row.get(4)?),
        ends: time(row.get(5)?),
        digest: row.get(6)?,
    };
    // What was revoked is so whenever that was: the clock may have been set back since.
    let revoked = revoked.map(|_| Timestamp::MIN);
    Ok(Found { session, token_ended: revoked.or(expires.map(time)) })
}

//! Bearer tokens: random, shown once, kept as digests.
//!
//! The text is `sl_<public id>_<secret>`. The id names the token in lists, in the audit log and when it is revoked; the secret is 256
//! random bits. Earlier versions wrote `sl_<64 hex digits>`, which still hold.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::IdentityError;
use super::secret::{digest, random_hex, same};
use super::store::IdentityStore;
use super::takeover;

/// What every token begins with, so that scanners recognise a leaked one.
const PREFIX: &str = "sl_";
/// Hex digits of a public id.
const ID_DIGITS: usize = 16;
/// Hex digits of a secret.
const SECRET_DIGITS: usize = 64;

const COLUMNS: &str = "id, principal, label, created, expires, revoked, last_used_day";
const SECONDS_PER_DAY: i64 = 86_400;

/// What a token is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenOrder {
    /// The principal it stands for.
    pub principal: String,
    /// What it is for, in its owner's words.
    pub label: String,
    /// When it is made.
    pub created: Timestamp,
    /// When it ends; never if none.
    pub expires: Option<Timestamp>,
}

/// A token that was just made. Its text is nowhere else.
#[derive(Clone)]
pub struct NewToken {
    /// Its public id.
    pub id: String,
    /// Its text, in clear: shown once.
    pub text: String,
}

impl std::fmt::Debug for NewToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewToken").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A token as it is kept, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public id.
    pub id: String,
    /// The principal it stands for.
    pub principal: String,
    /// What it is for.
    pub label: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// The day on which it was last used, UTC, at its beginning.
    pub last_used: Option<Timestamp>,
}

/// Whether a token can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// It can.
    Valid,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

impl TokenState {
    /// Its name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Token {
    /// Whether it can be used at this time.
    pub fn state(&self, now: Timestamp) -> TokenState {
        match (self.revoked, self.expires) {
            (Some(_), _) => TokenState::Revoked,
            (None, Some(expires)) if expires <= now => TokenState::Expired,
            (None, Some(_) | None) => TokenState::Valid,
        }
    }
}

/// What a text that was sent as a token looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape<'a> {
    /// `sl_<id>_<secret>`
    Named {
        /// The public id.
        id: &'a str,
    },
    /// `sl_<64 hex digits>`
    Unnamed,
    /// None of ours.
    Other,
}

/// What it looks like; whether it holds is another question.
pub(crate) fn shape(text: &str) -> Shape<'_> {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let Some(rest) = text.strip_prefix(PREFIX) else { return Shape::Other };
    match rest.split_once('_') {
        Some((id, secret)) if is_hex(id, ID_DIGITS) && is_hex(secret, SECRET_DIGITS) => Shape::Named { id },
        None if is_hex(rest, SECRET_DIGITS) => Shape::Unnamed,
        Some(_) | None => Shape::Other,
    }
}

/// What a presented token turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presented {
    /// The secret is right. The token may have ended all the same: see [`Token::state`].
    Known(Token),
    /// A token of this id exists, and the secret is another.
    WrongSecret {
        /// The public id.
        id: String,
        /// Whom the token stands for.
        principal: String,
    },
    /// There is no such token.
    Unknown,
}

impl IdentityStore {
    /// Makes a token. The text is given back once and kept nowhere.
    ///
    /// # Errors
    /// When there is no randomness or the store cannot be written.
    pub fn new_token(&self, order: &TokenOrder) -> Result<NewToken, IdentityError> {
        let (token, digest) = fresh()?;
        self.write(|transaction| insert(transaction, order, &token, &digest))?;
        Ok(token)
    }

    /// Makes a token in place of those of this principal with the same label, and of those taken over from an earlier version.
    ///
    /// # Errors
    /// As above; the old ones then still hold.
    pub(crate) fn replace_token(&self, order: &TokenOrder) -> Result<NewToken, IdentityError> {
        let (token, digest) = fresh()?;
        self.write(|transaction| {
            transaction.execute(
                "UPDATE token SET revoked = ?1 WHERE principal = ?2 AND label IN (?3, ?4) AND revoked IS NULL",
                params![order.created.as_second(), order.principal, order.label, takeover::LABEL],
            )?;
            insert(transaction, order, &token, &digest)
        })?;
        Ok(token)
    }

    /// Every token, those of a principal together, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tokens(&self) -> Result<Vec<Token>, IdentityError> {
        self.read(|database| {
            let sql = format!("SELECT {COLUMNS} FROM token ORDER BY principal, created, id");
            database.prepare(&sql)?.query_map([], token_of)?.collect()
        })
    }

    /// Revokes the token of this id. Gives it back as it was; none if there is none or it was revoked before.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn revoke_token(&self, id: &str, now: Timestamp) -> Result<Option<Token>, IdentityError> {
        Ok(self.revoke("id", id, now)?.pop())
    }

    /// Revokes every token of a principal that was not revoked yet, and gives them back as they were.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn revoke_tokens_of(&self, principal: &str, now: Timestamp) -> Result<Vec<Token>, IdentityError> {
        self.revoke("principal", principal, now)
    }

    /// Ends a principal's sessions that an identity provider's token opened: no token of ours stands behind them, whose end would end them.
    /// Gives back how many lived.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_vouched_sessions_of(&self, principal: &str, now: Timestamp) -> Result<u64, IdentityError> {
        self.write(|transaction| {
            let living =
                "SELECT count(*) FROM session WHERE principal = ?1 AND token_id IS NULL AND min(ends, idle_until) > ?2";
            let count = transaction.query_row(living, params![principal, now.as_second()], |row| row.get(0))?;
            transaction.execute("DELETE FROM session WHERE principal = ?1 AND token_id IS NULL", [principal])?;
            Ok(count)
        })
    }

    /// Sessions that a revoked token opened end with it: they are looked up together with their token.
    fn revoke(&self, column: &'static str, value: &str, now: Timestamp) -> Result<Vec<Token>, IdentityError> {
        self.write(|transaction| {
            let sql =
                format!("SELECT {COLUMNS} FROM token WHERE {column} = ?1 AND revoked IS NULL ORDER BY created, id");
            let found = transaction.prepare(&sql)?.query_map([value], token_of)?.collect::<Result<Vec<_>, _>>()?;
            let sql = format!("UPDATE token SET revoked = ?1 WHERE {column} = ?2 AND revoked IS NULL");
            transaction.execute(&sql, params![now.as_second(), value])?;
            Ok(found)
        })
    }

    /// Whose token this is. Its use is noted once a day.
    pub(crate) fn present_token(&self, text: &str, now: Timestamp) -> Result<Presented, IdentityError> {
        let digest = digest(text);
        let presented = match shape(text) {
            Shape::Other => Presented::Unknown,
            Shape::Named { id } => match self.read(|database| by_id(database, id))? {
                Some((kept, token)) if same(&kept, &digest) => Presented::Known(token),
                Some((_, token)) => Presented::WrongSecret { id: id.to_owned(), principal: token.principal },
                None => Presented::Unknown,
            },
            Shape::Unnamed => {
                self.read(|database| by_digest(database, &digest))?.map_or(Presented::Unknown, Presented::Known)
            }
        };
        if let Presented::Known(token) = &presented {
            self.note_use(token, now);
        }
        Ok(presented)
    }

    /// That it cannot be noted is no reason to turn its holder away.
    fn note_use(&self, token: &Token, now: Timestamp) {
        let today = now.as_second().div_euclid(SECONDS_PER_DAY);
        let noted = token.last_used.map(|day| day.as_second().div_euclid(SECONDS_PER_DAY));
        if token.state(now) != TokenState::Valid || noted == Some(today) {
            return;
        }
        let written = self.write(|transaction| {
            transaction.execute("UPDATE token SET last_used_day = ?1 WHERE id = ?2", params![today, token.id])
        });
        if let Err(error) = written {
            tracing::warn!(%error, token = %token.id, "the use of a token was not noted");
        }
    }
}

fn fresh() -> Result<(NewToken, [u8; 32]), IdentityError> {
    let id = random_hex::<{ ID_DIGITS / 2 }>()?;
    let text = format!("{PREFIX}{id}_{}", random_hex::<{ SECRET_DIGITS / 2 }>()?);
    let digest = digest(&text);
    Ok((NewToken { id, text }, digest))
}

fn insert(database: &Connection, order: &TokenOrder, token: &NewToken, digest: &[u8]) -> Result<(), rusqlite::Error> {
    let TokenOrder { principal, label, created, expires } = order;
    database.execute(
        "INSERT INTO token (id, principal, digest, unnamed, label, created, expires) VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)",
        params![token.id, principal, digest, label, created.as_second(), expires.map(Timestamp::as_second)],
    )?;
    Ok(())
}

fn by_id(database: &Connection, id: &str) -> Result<Option<(Vec<u8>, Token)>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS}, digest FROM token WHERE id = ?1 AND unnamed = 0");
    database.prepare_cached(&sql)?.query_row([id], |row| Ok((row.get(7)?, token_of(row)?))).optional()
}

/// Every token of the old shape is compared, each in constant time: how long it takes says nothing about which one came close. They are
/// few, and no more are made.
fn by_digest(database: &Connection, digest: &[u8]) -> Result<Option<Token>, rusqlite::Error> {
    let sql = format!("SELECT {COLUMNS}, digest FROM token WHERE unnamed = 1");
    let mut found = None;
    let mut statement = database.prepare_cached(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let kept: Vec<u8> = row.get(7)?;
        if same(&kept, digest) {
            found = Some(token_of(row)?);
        }
    }
    Ok(found)
}

fn token_of(row: &Row<'_>) -> Result<Token, rusqlite::Error> {
    Ok(Token {
        id: row.get(0)?,
        principal: row.get(1)?,
        label: row.get(2)?,
        created: time(row.get(3)?),
        expires: row.get::<_, Option<i64>>(4)?.map(time),
        revoked: row.get::<_, Option<i64>>(5)?.map(time),
        last_used: row.get::<_, Option<i64>>(6)?.map(|day| time(day.saturating_mul(SECONDS_PER_DAY))),
    })
}

/// A second that is none can only have been written by somebody else; taken as the earliest time, it opens nothing.
pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::MIN)
}

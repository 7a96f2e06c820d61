//! What a reviewer asks for, as text: from a query string or from flags.

use std::collections::BTreeMap;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Unit};
use serde::Deserialize;
use sightline_audit::{Cursor, Search, UsageFilter, Wanted};
use sightline_model::audit::EventKind;

use super::ReviewError;

/// Which entries of the log are wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// `question`, `event`, or the name of a kind of event; both kinds without the heartbeats when left out.
    pub kind: Option<String>,
    /// The principal's id.
    pub who: Option<String>,
    /// A tenant of the principal.
    pub tenant: Option<String>,
    /// A tool that was called.
    pub tool: Option<String>,
    /// A table that was read.
    pub table: Option<String>,
    /// `allowed` or `denied`.
    pub decision: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// From this time or day on.
    pub from: Option<String>,
    /// Before this time or day.
    pub to: Option<String>,
    /// Text that the question holds.
    pub text: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// The most entries.
    pub limit: Option<u32>,
}

impl SearchQuery {
    /// The search that it says.
    ///
    /// # Errors
    /// What cannot be understood, and how to write it.
    pub fn search(&self) -> Result<Search, ReviewError> {
        let Self { kind, who, tenant, tool, table, decision, outcome, from, to, text, cursor, limit } = self;
        Ok(Search {
            wanted: kind.as_deref().map(wanted).transpose()?.unwrap_or_default(),
            who: who.clone(),
            tenant: tenant.clone(),
            tool: tool.clone(),
            table: table.clone(),
            allowed: decision.as_deref().map(allowed).transpose()?,
            outcome: outcome.clone(),
            from: from.as_deref().map(instant).transpose()?,
            to: to.as_deref().map(instant).transpose()?,
            text: text.clone(),
            cursor: cursor.as_deref().map(place).transpose()?,
            limit: *limit,
            oldest_first: false,
        })
    }

    /// What is set, for the record of the look. Of a searched text only its length: events cannot be erased, and who looks for a
    /// question types what may have to be.
    pub fn detail(&self) -> BTreeMap<String, String> {
        let Self { kind, who, tenant, tool, table, decision, outcome, from, to, text, cursor, limit } = self;
        let limit = limit.map(|limit| limit.to_string());
        let text = text.as_ref().map(|text| format!("({} characters)", text.chars().count()));
        let set = [
            ("kind", kind),
            ("who", who),
            ("tenant", tenant),
            ("tool", tool),
            ("table", table),
            ("decision", decision),
            ("outcome", outcome),
            ("from", from),
            ("to", to),
            ("text", &text),
            ("cursor", cursor),
            ("limit", &limit),
        ];
        set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
    }
}

/// Whose usage is wanted, on which days.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// From this day on.
    pub from: Option<String>,
    /// Before this day.
    pub to: Option<String>,
    /// The principal's id.
    pub principal: Option<String>,
    /// A tenant of the principal.
    pub tenant: Option<String>,
}

impl UsageQuery {
    /// What is set, for the record of the look.
    pub fn detail(&self) -> BTreeMap<String, String> {
        let Self { from, to, principal, tenant } = self;
        let set = [("from", from), ("to", to), ("who", principal), ("tenant", tenant)];
        let mut detail: BTreeMap<String, String> =
            set.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect();
        detail.insert("what".to_owned(), "usage".to_owned());
        detail
    }

    /// The filter that it says.
    ///
    /// # Errors
    /// What cannot be understood, and how to write it.
    pub fn filter(&self) -> Result<UsageFilter, ReviewError> {
        let Self { from, to, principal, tenant } = self;
        Ok(UsageFilter {
            from: from.as_deref().map(day).transpose()?,
            to: to.as_deref().map(day).transpose()?,
            principal: principal.clone(),
            tenant: tenant.clone(),
        })
    }
}

fn wanted(kind: &str) -> Result<Wanted, ReviewError> {
    match kind {
        "question" => Ok(Wanted::Questions),
        "event" => Ok(Wanted::Events),
        other => serde_json::from_value::<EventKind>(serde_json::Value::String(other.to_owned()))
            .map(Wanted::Event)
            .map_err(|_| {
                let other: String = other.chars().take(40).collect();
                ReviewError::Query(format!(
                    "there is no kind `{other}`; use `question`, `event` or a kind of event such as `login_failed`"
                ))
            }),
    }
}

fn allowed(decision: &str) -> Result<bool, ReviewError> {
    match decision {
        "allowed" => Ok(true),
        "denied" => Ok(false),
        _ => Err(ReviewError::Query("a decision is `allowed` or `denied`".to_owned())),
    }
}

/// An instant, or the beginning of a day in UTC.
fn instant(text: &str) -> Result<Timestamp, ReviewError> {
    let unreadable = || {
        let text: String = text.chars().take(40).collect();
        ReviewError::Query(format!("`{text}` is no time; write it like 2026-05-04T10:00:00Z, or a day like 2026-05-04"))
    };
    if let Ok(at) = text.parse::<Timestamp>() {
        return at.round(Unit::Millisecond).map_err(|_| unreadable());
    }
    let day: Date = text.parse().map_err(|_| unreadable())?;
    TimeZone::UTC.to_timestamp(day.to_datetime(Time::midnight())).map_err(|_| unreadable())
}

fn day(text: &str) -> Result<Date, ReviewError> {
    text.parse().map_err(|_| {
        let text: String = text.chars().take(40).collect();
        ReviewError::Query(format!("`{text}` is no day; write it like 2026-05-04 (UTC)"))
    })
}

fn place(text: &str) -> Result<Cursor, ReviewError> {
    Cursor::parse(text).ok_or_else(|| {
        ReviewError::Query("this cursor is not one of ours; leave it out to begin with the newest".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use sightline_audit::Wanted;
    use sightline_model::audit::EventKind;

    use super::SearchQuery;

    fn query(set: impl FnOnce(&mut SearchQuery)) -> SearchQuery {
        let mut query = SearchQuery::default();
        set(&mut query);
        query
    }

    #[test]
    fn words_become_a_search_and_a_record() {
        let query = query(|query| {
            query.kind = Some("login_failed".to_owned());
            query.decision = Some("denied".to_owned());
            query.from = Some("2026-05-04".to_owned());
            query.to = Some("2026-05-04T10:00:00.0004Z".to_owned());
            query.limit = Some(5);
            query.text = Some("why was J1 slow?".to_owned());
        });
        let search = query.search().unwrap();
        assert_eq!(search.wanted, Wanted::Event(EventKind::LoginFailed));
        assert_eq!(search.allowed, Some(false));
        assert_eq!(search.from.unwrap().to_string(), "2026-05-04T00:00:00Z");
        assert_eq!(search.to.unwrap().to_string(), "2026-05-04T10:00:00Z");
        let detail = query.detail();
        assert_eq!(detail.keys().collect::<Vec<_>>(), ["decision", "from", "kind", "limit", "text", "to"]);
        assert_eq!(detail["limit"], "5");
        assert_eq!(detail["text"], "(16 characters)");
    }

    #[test]
    fn what_cannot_be_understood_says_how_to_write_it() {
        for (query, says) in [
            (query(|query| query.kind = Some("nothing".to_owned())), "`login_failed`"),
            (query(|query| query.decision = Some("maybe".to_owned())), "`allowed` or `denied`"),
            (query(|query| query.from = Some("yesterday".to_owned())), "2026-05-04T10:00:00Z"),
            (query(|query| query.cursor = Some("12".to_owned())), "leave it out"),
        ] {
            let said = query.search().unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }
}

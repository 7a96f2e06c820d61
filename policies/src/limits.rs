//! How much a role may read.

use std::collections::BTreeMap;

use serde::Deserialize;
use sightline_model::Role;
use toml::Spanned;

use crate::error::{Fault, Source};

/// The bounds of one principal. The last four bound the principal, the others one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time range, seconds.
    pub max_range_seconds: u64,
    /// The most points of one series.
    pub max_points: u64,
    /// The most series.
    pub max_series: u64,
    /// The most rows that come back.
    pub max_result_rows: u64,
    /// The most bytes that come back.
    pub max_result_bytes: u64,
    /// The most rows read.
    pub max_rows_read: u64,
    /// The most bytes read.
    pub max_bytes_read: u64,
    /// The most memory the engine may take.
    pub max_memory_bytes: u64,
    /// The longest the engine may run, seconds.
    pub max_seconds: u64,
    /// The most queries at once.
    pub max_concurrent: u64,
    /// The most questions a minute.
    pub questions_per_minute: u64,
    /// The most bytes read a day.
    pub bytes_per_day: u64,
    /// The most tokens of a model a day.
    pub tokens_per_day: u64,
}

impl Limits {
    /// The bounds that let nothing through: what holds where no limits are known.
    pub(crate) const NOTHING: Self = Self {
        max_range_seconds: 0,
        max_points: 0,
        max_series: 0,
        max_result_rows: 0,
        max_result_bytes: 0,
        max_rows_read: 0,
        max_bytes_read: 0,
        max_memory_bytes: 0,
        max_seconds: 0,
        max_concurrent: 0,
        questions_per_minute: 0,
        bytes_per_day: 0,
        tokens_per_day: 0,
    };
}

/// One role's table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    max_range_seconds: Spanned<u64>,
    max_points: Spanned<u64>,
    max_series: Spanned<u64>,
    max_result_rows: Spanned<u64>,
    max_result_bytes: Spanned<u64>,
    max_rows_read: Spanned<u64>,
    max_bytes_read: Spanned<u64>,
    max_memory_bytes: Spanned<u64>,
    max_seconds: Spanned<u64>,
    max_concurrent: Spanned<u64>,
    questions_per_minute: Spanned<u64>,
    bytes_per_day: Spanned<u64>,
    tokens_per_day: Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    viewer: RawLimits,
    operator: RawLimits,
    admin: RawLimits,
    auditor: RawLimits,
}

/// The limits of every role, or what is wrong with the text.
pub(crate) fn parse(source: Source<'_>) -> Result<BTreeMap<Role, Limits>, Vec<Fault>> {
    let RawFile { viewer, operator, admin, auditor } = toml::from_str(source.text)
        .map_err(|error| vec![source.fault(error.span().map(|span| span.start), error.message())])?;
    let mut faults = Vec::new();
    let limits = [(Role::Viewer, viewer), (Role::Operator, operator), (Role::Admin, admin), (Role::Auditor, auditor)]
        .into_iter()
        .map(|(role, raw)| (role, raw.checked(source, &mut faults)))
        .collect();
    if faults.is_empty() { Ok(limits) } else { Err(faults) }
}

impl RawLimits {
    fn checked(self, source: Source<'_>, faults: &mut Vec<Fault>) -> Limits {
        let mut positive = |name: &str, value: &Spanned<u64>| {
            if *value.get_ref() == 0 {
                let what =
                    format!("`{name}` is 0, which would refuse everything; give at least 1, or take the rule away");
                faults.push(source.fault(Some(value.span().start), what));
            }
            *value.get_ref()
        };
        let limits = Limits {
            max_range_seconds: positive("max_range_seconds", &self.max_range_seconds),
            max_points: positive("max_points", &self.max_points),
            max_series: positive("max_series", &self.max_series),
            max_result_rows: positive("max_result_rows", &self.max_result_rows),
            max_result_bytes: positive("max_result_bytes", &self.max_result_bytes),
            max_rows_read: positive("max_rows_read", &self.max_rows_read),
            max_bytes_read: positive("max_bytes_read", &self.max_bytes_read),
            max_memory_bytes: positive("max_memory_bytes", &self.max_memory_bytes),
            max_seconds: positive("max_seconds", &self.max_seconds),
            max_concurrent: positive("max_concurrent", &self.max_concurrent),
            questions_per_minute: positive("questions_per_minute", &self.questions_per_minute),
            bytes_per_day: positive("bytes_per_day", &self.bytes_per_day),
            tokens_per_day: positive("tokens_per_day", &self.tokens_per_day),
        };
        if limits.bytes_per_day < limits.max_bytes_read {
            let what = format!(
                "`bytes_per_day` ({}) is less than `max_bytes_read` ({}), so one query could use up more than a day; raise the one or lower the other",
                limits.bytes_per_day, limits.max_bytes_read
            );
            faults.push(source.fault(Some(self.bytes_per_day.span().start), what));
        }
        limits
    }
}

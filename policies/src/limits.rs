//! How much a role may read, and a role of one tenant.

mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use sightline_model::{Principal, Role, TenantScope};

pub(crate) use parse::parse;

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

/// What the names of all bounds are, for code that must miss none of them.
macro_rules! for_every_limit {
    ($macro:ident) => {
        $macro! {
            max_range_seconds, max_points, max_series, max_result_rows, max_result_bytes, max_rows_read, max_bytes_read,
            max_memory_bytes, max_seconds, max_concurrent, questions_per_minute, bytes_per_day, tokens_per_day
        }
    };
}
pub(crate) use for_every_limit;

macro_rules! arithmetic {
    ($($name:ident),*) => {
        impl Limits {
            /// The bounds that let nothing through: what holds where no limits are known.
            pub(crate) const NOTHING: Self = Self { $($name: 0),* };

            /// The lower of both in every bound.
            fn least(self, other: &Self) -> Self {
                Self { $($name: self.$name.min(other.$name)),* }
            }
        }
    };
}
for_every_limit!(arithmetic);

/// The limits of every role, and of roles of tenants that have their own.
#[derive(Debug)]
pub(crate) struct LimitSet {
    /// Guaranteed: every role is there.
    roles: BTreeMap<Role, Limits>,
    /// By tenant, then role: a viewer's and an operator's.
    tenants: BTreeMap<String, BTreeMap<Role, Limits>>,
    /// Where each tenant's table stands, bytes.
    places: BTreeMap<String, usize>,
}

impl LimitSet {
    /// The limits of this principal: those of its role; where its tenants have their own, the least of them in every bound, so that
    /// a second tenant never widens the first. An admin belongs to no tenant, so no tenant's table touches it.
    pub(crate) fn of(&self, principal: &Principal) -> Limits {
        let base = self.roles.get(&principal.role).unwrap_or(&Limits::NOTHING);
        let own =
            |tenant: &String| self.tenants.get(tenant).and_then(|roles| roles.get(&principal.role)).unwrap_or(base);
        match &principal.tenants {
            TenantScope::All => base.clone(),
            TenantScope::Only(tenants) => {
                tenants.iter().map(own).cloned().reduce(|least, own| least.least(&own)).unwrap_or_else(|| base.clone())
            }
        }
    }

    /// All limits that somebody may have.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Limits> {
        self.roles.values().chain(self.tenants.values().flat_map(BTreeMap::values))
    }

    /// The tenants that have their own, each with the byte where its table stands.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = (&str, usize)> {
        self.places.iter().map(|(tenant, place)| (tenant.as_str(), *place))
    }
}

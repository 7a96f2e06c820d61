//! `limits.toml`, made into checked values.

use std::collections::BTreeMap;

use serde::Deserialize;
use sightline_model::Role;
use toml::Spanned;

use super::{LimitSet, Limits, for_every_limit};
use crate::error::{Fault, Source};

macro_rules! raw {
    ($($name:ident),*) => {
        /// One role's table as it is written: every bound.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table of every bound")]
        struct RawLimits {
            $($name: Spanned<u64>,)*
        }

        /// What a tenant has otherwise, for all of its roles and for one of them.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table like `[tenant.atlas]`")]
        struct RawTenant {
            $($name: Option<Spanned<u64>>,)*
            viewer: Option<RawChanges>,
            operator: Option<RawChanges>,
        }

        /// What a role of a tenant has otherwise.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table like `[tenant.atlas.viewer]`")]
        struct RawChanges {
            $($name: Option<Spanned<u64>>,)*
        }

        impl RawLimits {
            fn checked(&self, check: &mut Check<'_>) -> Limits {
                Limits { $($name: check.positive(stringify!($name), &self.$name)),* }
            }
        }

        impl RawTenant {
            fn checked(&self, check: &mut Check<'_>) {
                $(if let Some(value) = &self.$name { check.positive(stringify!($name), value); })*
            }

            fn over(&self, base: &Limits) -> Limits {
                Limits { $($name: self.$name.as_ref().map_or(base.$name, |value| *value.get_ref())),* }
            }
        }

        impl RawChanges {
            fn checked(&self, check: &mut Check<'_>) {
                $(if let Some(value) = &self.$name { check.positive(stringify!($name), value); })*
            }

            fn over(&self, base: &Limits) -> Limits {
                Limits { $($name: self.$name.as_ref().map_or(base.$name, |value| *value.get_ref())),* }
            }
        }
    };
}
for_every_limit!(raw);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables")]
struct RawFile {
    viewer: RawLimits,
    operator: RawLimits,
    admin: RawLimits,
    auditor: RawLimits,
    #[serde(default)]
    tenant: BTreeMap<Spanned<String>, RawTenant>,
}

/// Where faults of the text go.
struct Check<'a> {
    source: Source<'a>,
    faults: Vec<Fault>,
}

/// The limits of every role and tenant, or what is wrong with the text.
pub(crate) fn parse(source: Source<'_>) -> Result<LimitSet, Vec<Fault>> {
    let RawFile { viewer, operator, admin, auditor, tenant: raw_tenants } = toml::from_str(source.text)
        .map_err(|error| vec![source.fault(error.span().map(|span| span.start), error.message())])?;
    let mut check = Check { source, faults: Vec::new() };
    let mut roles = BTreeMap::new();
    for (role, raw) in
        [(Role::Viewer, viewer), (Role::Operator, operator), (Role::Admin, admin), (Role::Auditor, auditor)]
    {
        let limits = raw.checked(&mut check);
        check.day_holds_a_query(&limits, raw.bytes_per_day.span().start, role.as_str());
        roles.insert(role, limits);
    }
    let mut tenants = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (name, raw) in raw_tenants {
        let place = name.span().start;
        let name = name.into_inner();
        raw.checked(&mut check);
        let mut of_tenant = BTreeMap::new();
        for (role, changes) in [(Role::Viewer, &raw.viewer), (Role::Operator, &raw.operator)] {
            let Some(base) = roles.get(&role) else { continue };
            let for_all = raw.over(base);
            let limits = match changes {
                None => for_all,
                Some(changes) => {
                    changes.checked(&mut check);
                    changes.over(&for_all)
                }
            };
            let day =
                changes.as_ref().and_then(|changes| changes.bytes_per_day.as_ref()).or(raw.bytes_per_day.as_ref());
            let query =
                changes.as_ref().and_then(|changes| changes.max_bytes_read.as_ref()).or(raw.max_bytes_read.as_ref());
            let at = day.or(query).map_or(place, |value| value.span().start);
            check.day_holds_a_query(&limits, at, &format!("{} of {name}", role.as_str()));
            of_tenant.insert(role, limits);
        }
        tenants.insert(name.clone(), of_tenant);
        places.insert(name, place);
    }
    if check.faults.is_empty() { Ok(LimitSet { roles, tenants, places }) } else { Err(check.faults) }
}

impl Check<'_> {
    fn positive(&mut self, name: &str, value: &Spanned<u64>) -> u64 {
        if *value.get_ref() == 0 {
            let what = format!("`{name}` is 0, which would refuse everything; give at least 1, or take the rule away");
            self.faults.push(self.source.fault(Some(value.span().start), what));
        }
        *value.get_ref()
    }

    fn day_holds_a_query(&mut self, limits: &Limits, at: usize, whose: &str) {
        if limits.bytes_per_day < limits.max_bytes_read {
            let what = format!(
                "`bytes_per_day` ({}) of {whose} is less than `max_bytes_read` ({}), so one query could use up more than a day; raise the one or lower the other",
                limits.bytes_per_day, limits.max_bytes_read
            );
            self.faults.push(self.source.fault(Some(at), what));
        }
    }
}

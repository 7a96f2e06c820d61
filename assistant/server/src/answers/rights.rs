//! With which rights an answer was got: it may be read only for as long as its asker still has them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sightline_model::{Principal, Role, TenantScope};

/// What a reader is told whose rights are no longer those of then.
pub(crate) const RIGHTS_CHANGED: &str = "your rights have changed since this was answered; ask again";

/// The rights of an asker when an answer was got.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rights {
    role: Role,
    /// None for every tenant.
    tenants: Option<BTreeSet<String>>,
    jobs_of: Option<String>,
}

impl Rights {
    /// Those of this principal.
    pub(super) fn of(principal: &Principal) -> Self {
        let tenants = match &principal.tenants {
            TenantScope::Only(tenants) => Some(tenants.clone()),
            TenantScope::All => None,
        };
        Self { role: principal.role, tenants, jobs_of: principal.jobs_of.clone() }
    }

    /// Whether today's principal may read what was got with the rights that are stored as this text. Which role reads more than
    /// which is for policies to say, which may change: another role asks again. Of an answer from before rights were stored nobody
    /// knows with which it was got.
    pub(super) fn still_had_by(stored: Option<&str>, today: &Principal) -> bool {
        let Some(then) = stored.and_then(|json| serde_json::from_str::<Self>(json).ok()) else { return false };
        let has_tenants = match (&then.tenants, &today.tenants) {
            (_, TenantScope::All) => true,
            (Some(then), TenantScope::Only(today)) => then.is_subset(today),
            (None, TenantScope::Only(_)) => false,
        };
        then.role == today.role && then.jobs_of == today.jobs_of && has_tenants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(role: Role, tenants: Option<&[&str]>, jobs_of: Option<&str>) -> Principal {
        let tenants = tenants
            .map_or(TenantScope::All, |tenants| TenantScope::Only(tenants.iter().map(|&t| t.to_owned()).collect()));
        Principal { id: "ann".to_owned(), role, tenants, jobs_of: jobs_of.map(str::to_owned) }
    }

    #[test]
    fn an_answer_is_read_with_the_same_rights_or_more_tenants() {
        let then = who(Role::Operator, Some(&["atlas", "borealis"]), None);
        let stored = serde_json::to_string(&Rights::of(&then)).unwrap();
        for (today, may) in [
            (then.clone(), true),
            (who(Role::Operator, Some(&["atlas", "borealis", "cygnus"]), None), true),
            (who(Role::Operator, None, None), true),
            (who(Role::Operator, Some(&["atlas"]), None), false),
            (who(Role::Operator, Some(&[]), None), false),
            (who(Role::Viewer, Some(&["atlas", "borealis"]), None), false),
            (who(Role::Admin, None, None), false),
            (who(Role::Operator, Some(&["atlas", "borealis"]), Some("ann")), false),
        ] {
            assert_eq!(Rights::still_had_by(Some(&stored), &today), may, "{today:?}");
        }
        let everything = who(Role::Admin, None, None);
        let stored = serde_json::to_string(&Rights::of(&everything)).unwrap();
        assert!(Rights::still_had_by(Some(&stored), &everything));
        assert!(!Rights::still_had_by(Some(&stored), &who(Role::Admin, Some(&["atlas"]), None)));
        let own = who(Role::Operator, Some(&["atlas"]), Some("ann"));
        let stored = serde_json::to_string(&Rights::of(&own)).unwrap();
        assert!(!Rights::still_had_by(Some(&stored), &who(Role::Operator, Some(&["atlas"]), Some("bob"))));
        assert!(!Rights::still_had_by(None, &then) && !Rights::still_had_by(Some("{}"), &then));
    }
}

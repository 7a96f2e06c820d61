//! Who asks. A principal comes from a credential or a policy file, never from a question or a model.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What kind of asker a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads the metrics and jobs of its tenants.
    Viewer,
    /// Reads everything of its tenants.
    Operator,
    /// Reads every tenant, and the audit log.
    Admin,
    /// Reads the audit log only.
    Auditor,
}

impl Role {
    /// Its name as written in policies and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Auditor => "auditor",
        }
    }

    /// The role of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Admin, Self::Auditor].into_iter().find(|r| r.as_str() == text)
    }
}

/// Which tenants' rows may be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TenantScope {
    /// These tenants only.
    Only(BTreeSet<String>),
    /// Every tenant (admin). The guard still binds the list of tenants that exist.
    All,
}

/// An authenticated asker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// `name@tenant[,tenant…]`, or a bare name for those without a tenant.
    pub id: String,
    /// Its role.
    pub role: Role,
    /// The tenants it belongs to; all for an admin.
    pub tenants: TenantScope,
    /// The user of the scheduler whose jobs are all it may read; none for those who read whole tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_of: Option<String>,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

//! What the rules said.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::request::JobRows;

/// What the rows of a scope are narrowed to, for who may read own jobs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnRows {
    /// The rows about jobs of this user of the scheduler: what finding an own job needs.
    JobsOf {
        /// The user.
        user: String,
    },
    /// The rows of this job: its places, while it ran.
    Job(Arc<JobRows>),
}

/// The tenants whose rows may be read. Guaranteed: not empty, and granted by a rule; narrowed for every principal that may
/// read own jobs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowScope {
    tenants: BTreeSet<String>,
    own: Option<OwnRows>,
}

impl RowScope {
    /// A scope over these tenants, or `None` when there are none.
    pub(crate) fn new(tenants: BTreeSet<String>) -> Option<Self> {
        (!tenants.is_empty()).then_some(Self { tenants, own: None })
    }

    /// A scope that no rule granted, for tests of the crates that take one.
    ///
    /// Exists under the feature `for_tests` alone.
    #[cfg(feature = "for_tests")]
    pub fn for_tests(tenants: &[&str]) -> Option<Self> {
        Self::new(tenants.iter().map(|&tenant| tenant.to_owned()).collect())
    }

    /// The same scope, narrowed to these rows, for tests of the crates that take one.
    ///
    /// Exists under the feature `for_tests` alone.
    #[cfg(feature = "for_tests")]
    #[must_use]
    pub fn narrowed_for_tests(self, own: OwnRows) -> Self {
        Self { own: Some(own), ..self }
    }

    /// The tenants.
    pub fn tenants(&self) -> &BTreeSet<String> {
        &self.tenants
    }

    /// What the rows are narrowed to within these tenants; nothing further when none.
    pub fn own(&self) -> Option<&OwnRows> {
        self.own.as_ref()
    }
}

/// The answer to a request. Guaranteed: it carries a scope only when it is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    allowed: bool,
    rules: Vec<String>,
    reasons: Vec<String>,
    scope: Option<RowScope>,
}

impl Decision {
    /// Allowed by these rules, for a thing that is no row.
    pub(crate) fn allow(rules: Vec<String>, reasons: Vec<String>) -> Self {
        Self { allowed: true, rules, reasons, scope: None }
    }

    /// Allowed by these rules, for the rows of these tenants.
    pub(crate) fn allow_rows(rules: Vec<String>, reasons: Vec<String>, scope: RowScope) -> Self {
        Self { allowed: true, rules, reasons, scope: Some(scope) }
    }

    /// The same decision with its rows, if it has any, narrowed to these.
    pub(crate) fn narrowed(mut self, own: OwnRows) -> Self {
        if let Some(scope) = &mut self.scope {
            scope.own = Some(own);
        }
        self
    }

    /// Denied: by these rules, or by none.
    pub(crate) fn deny(rules: Vec<String>, reasons: Vec<String>) -> Self {
        Self { allowed: false, rules, reasons, scope: None }
    }

    /// An allowed decision that no rule made, for tests of the crates that take one.
    ///
    /// Exists under the feature `for_tests` alone.
    #[cfg(feature = "for_tests")]
    pub fn allowed_for_tests(scope: RowScope) -> Self {
        Self::allow_rows(vec!["for-tests".to_owned()], vec!["allowed for a test".to_owned()], scope)
    }

    /// A denied decision, for tests of the crates that take one.
    ///
    /// Exists under the feature `for_tests` alone.
    #[cfg(feature = "for_tests")]
    pub fn denied_for_tests(reason: &str) -> Self {
        Self::deny(Vec::new(), vec![reason.to_owned()])
    }

    /// Whether it is allowed.
    pub fn allowed(&self) -> bool {
        self.allowed
    }

    /// The ids of the rules that decided; none when nothing matched.
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// Why, in words for people: the rules' reasons, or what is missing and whom to ask.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }

    /// The rows that may be read; `None` when denied, and for what is no row.
    pub fn scope(&self) -> Option<&RowScope> {
        self.scope.as_ref()
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.allowed {
            return write!(f, "denied: {}", self.reasons.join("; "));
        }
        let rules: Vec<String> = self.rules.iter().map(|rule| format!("`{rule}`")).collect();
        write!(f, "allowed by rule {}: {}", rules.join(", "), self.reasons.join("; "))
    }
}

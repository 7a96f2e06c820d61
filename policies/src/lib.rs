//! Who may ask what, and for how much: access rules as data, and the code that decides.
//!
//! Rules are Cedar (`rules/*.cedar`, `schema.cedarschema`), bounds and principals are TOML. Text comes in as
//! arguments: this crate reads no file, no clock and no environment, and knows no SQL. No rule is a deny, and so
//! is any error. Only this crate can make a [`RowScope`], so whoever holds one was allowed.
//!
//! ```
//! # use std::collections::BTreeSet;
//! # use sightline_model::Dataset;
//! # use sightline_policies::{Policies, Request};
//! let policies = Policies::builtin()?;
//! let principal = policies.principal("viewer@atlas").ok_or("no such principal")?;
//! let known_tenants = BTreeSet::from(["atlas".to_owned(), "borealis".to_owned()]);
//! let request = Request { principal: &principal, tool: "search_logs", dataset: Dataset::Logs, known_tenants: &known_tenants, job: None };
//! assert_eq!(policies.decide(&request).to_string(), "denied: no rule lets role `viewer` read logs; ask an operator");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decision;
mod error;
mod examples;
mod identity;
mod limits;
mod live;
mod matrix;
mod memo;
mod policies;
mod principals;
mod request;
mod rules;
mod sources;

#[cfg(test)]
mod own_jobs_tests;
#[cfg(test)]
mod policies_tests;
#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod sources_tests;

pub use decision::{Decision, OwnRows, RowScope};
pub use error::{Fault, PolicyErrors, Source};
pub use identity::{ClaimFault, JwksSource, OidcIssuer, PrincipalClaim};
pub use limits::Limits;
pub use live::LivePolicies;
pub use policies::Policies;
pub use principals::bundle_principal;
pub use request::{Action, JobRows, Request};
pub use sources::Sources;

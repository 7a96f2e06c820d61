//! Who may do what, as tables that a person can read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use sightline_model::{Dataset, Principal, Role};

use crate::policies::{Policies, ROLES};
use crate::principals::bundle_principal;
use crate::request::{Action, JobRows, Request, ResourceKind};

/// A tenant that no principal of the tables belongs to.
const OTHER: &str = "another-tenant";
/// What rows are marked with that belong to no tenant.
const NO_TENANT: &str = "";
/// The scheduler's user of those that may read own jobs only.
const USER: &str = "user";

impl Policies {
    /// For every role, and for its members that may read own jobs only: whose rows of each dataset it reads through these tools,
    /// and what else it may do. Tools for which the same holds stand together.
    ///
    /// `tenant` is the tenant that the members belong to; rules may name one.
    pub fn matrix(&self, tools: &[&str], tenant: &str) -> String {
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for &tool in tools {
            groups.entry(table(&self.reads(tool, tenant))).or_default().push(tool);
        }
        let mut parts: Vec<String> = Vec::new();
        for (reads, tools) in groups {
            parts.push(format!("Reads through {}:\n\n{reads}", tools.join(", ")));
        }
        parts.push(format!("Everything else:\n\n{}", table(&self.deeds(tenant))));
        parts.join("\n")
    }

    /// Rows of datasets through one tool.
    fn reads(&self, tool: &str, tenant: &str) -> Vec<Vec<String>> {
        let mut rows = vec![header(["who", "whose rows"], Dataset::ALL.into_iter().map(|dataset| dataset.to_string()))];
        let known: BTreeSet<String> = [tenant, OTHER, NO_TENANT].map(str::to_owned).into();
        for role in ROLES {
            let whole = bundle_principal(role, tenant);
            for (whose, of) in [("own tenant", tenant), ("other tenant", OTHER), ("no tenant", NO_TENANT)] {
                let cells = Dataset::ALL.into_iter().map(|dataset| {
                    let request = Request { principal: &whole, tool, dataset, known_tenants: &known, job: None };
                    let decision = self.decide(&request);
                    mark(decision.scope().is_some_and(|scope| scope.tenants().contains(of)))
                });
                rows.push(header([role.as_str(), whose], cells));
            }
            let restricted = match role {
                Role::Viewer | Role::Operator => Principal { jobs_of: Some(USER.to_owned()), ..whole },
                Role::Admin | Role::Auditor => continue,
            };
            let who = format!("{}, own jobs only", role.as_str());
            for (whose, job) in [
                ("own job", Some(job(USER, tenant))),
                ("own job, other tenant", Some(job(USER, OTHER))),
                ("job of another", Some(job("another", tenant))),
                ("no job named", None),
            ] {
                let cells = Dataset::ALL.into_iter().map(|dataset| {
                    let job = job.as_ref();
                    let request = Request { principal: &restricted, tool, dataset, known_tenants: &known, job };
                    match (self.decide(&request).scope().and_then(|scope| scope.own()), job) {
                        (Some(_), Some(_)) => mark(true),
                        (Some(_), None) => "own jobs".to_owned(),
                        (None, _) => mark(false),
                    }
                });
                rows.push(header([who.as_str(), whose], cells));
            }
        }
        rows
    }

    /// What is no read.
    fn deeds(&self, tenant: &str) -> Vec<Vec<String>> {
        let roles = ROLES.into_iter().map(|role| role.as_str().to_owned());
        let mut rows = vec![header(["action", "on"], roles)];
        for action in Action::all().filter(|action| !matches!(action, Action::Read(_))) {
            let on = match action.resource_kind() {
                ResourceKind::Tenant => "own tenant",
                ResourceKind::Assistant => "assistant",
                ResourceKind::AuditLog => "audit log",
            };
            let cells =
                ROLES.into_iter().map(|role| mark(self.check(&bundle_principal(role, tenant), action, "").allowed()));
            rows.push(header([action.id(), on], cells));
        }
        rows
    }
}

fn job(user: &str, tenant: &str) -> Arc<JobRows> {
    Arc::new(JobRows {
        job_id: "job".to_owned(),
        cluster: String::new(),
        user: user.to_owned(),
        tenant: tenant.to_owned(),
        slots: BTreeSet::new(),
        from: Timestamp::UNIX_EPOCH,
        to: Timestamp::UNIX_EPOCH,
    })
}

fn mark(allowed: bool) -> String {
    if allowed { "yes" } else { "-" }.to_owned()
}

fn header(first: [&str; 2], rest: impl Iterator<Item = String>) -> Vec<String> {
    first.into_iter().map(str::to_owned).chain(rest).collect()
}

/// Columns of equal width, two spaces apart.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

//! Who may do what, as a table that a person can read.

use std::collections::BTreeSet;

use sightline_model::{Principal, TenantScope};

use crate::policies::Policies;
use crate::request::{Action, Request};

impl Policies {
    /// Every principal against every action, for these tenants: which tenants' rows it may read, `yes`, or `-`.
    pub fn matrix(&self, tool: &str, known_tenants: &BTreeSet<String>) -> String {
        let principals = self.principals();
        let mut rows =
            vec![std::iter::once("action".to_owned()).chain(principals.iter().map(|p| p.id.clone())).collect()];
        for action in Action::all() {
            let cells = principals.iter().map(|principal| self.cell(principal, action, tool, known_tenants));
            rows.push(std::iter::once(action.id().to_owned()).chain(cells).collect::<Vec<String>>());
        }
        table(&rows)
    }

    fn cell(&self, principal: &Principal, action: Action, tool: &str, known_tenants: &BTreeSet<String>) -> String {
        let decision = match action {
            Action::Read(dataset) => self.decide(&Request { principal, tool, dataset, known_tenants, job: None }),
            _ => self.check(principal, action, tool),
        };
        match (decision.allowed(), decision.scope(), &principal.tenants) {
            (false, _, _) => "-".to_owned(),
            (true, None, _) => "yes".to_owned(),
            (true, Some(scope), TenantScope::All) if scope.tenants() == known_tenants => "every tenant".to_owned(),
            (true, Some(scope), _) => scope.tenants().iter().cloned().collect::<Vec<_>>().join(","),
        }
    }
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

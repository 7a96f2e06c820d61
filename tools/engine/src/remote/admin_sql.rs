//! What an administrator runs once on a ClickHouse of one's own, so that the server itself keeps tenants apart.
//!
//! It is made from the mapping, the tenants and the settings that the client sends, so that it cannot fall behind them. Tests hold its
//! syntax with the embedded engine's parser, which knows users and roles though the engine has none; whether it keeps rows apart on a
//! given server is what the proofs at start find out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sightline_guard::{Bounds, Mapping};
use sightline_model::Dataset;

use super::role_name;
use crate::client::OWN_SETTINGS;
use crate::front::lexer::string_literal;
use crate::native::{CANARY_TABLE, CANARY_TENANT, kept_steps};

/// The settings profile of the reading user.
const PROFILE: &str = "sightline_reader";
/// What an administrator replaces. It is no digest, so the server refuses the statement as long as it stands there.
const DIGEST: &str = "put the SHA-256 of a long random password here, in hex";

/// What the SQL is made for.
#[derive(Clone, Copy, Debug)]
pub struct AdminSql<'a> {
    /// The user that the client logs in as.
    pub user: &'a str,
    /// The tables that may be read.
    pub mapping: &'a Mapping,
    /// The tenants that get a role.
    pub tenants: &'a BTreeSet<String>,
    /// The widest bounds that any query is sent with.
    pub widest: &'a Bounds,
}

impl AdminSql<'_> {
    /// The statements, in the order in which they are run. They may be run again, with more tenants or tables.
    pub fn statements(&self) -> Vec<String> {
        let Self { user, mapping, tenants, widest } = self;
        let user = name(user);
        let roles: Vec<&str> = tenants.iter().map(String::as_str).chain([CANARY_TENANT]).collect();
        let role_list = roles.iter().map(|tenant| name(&role_name(tenant))).collect::<Vec<_>>().join(", ");
        let mut statements = canaries(mapping);
        statements.push(profile(widest));
        statements.push(format!(
            "CREATE USER IF NOT EXISTS {user} IDENTIFIED WITH sha256_hash BY '{DIGEST}' DEFAULT ROLE NONE SETTINGS PROFILE '{PROFILE}'"
        ));
        statements.push(format!("REVOKE ALL ON *.* FROM {user}"));
        // A user sees and stops its own queries without a further right; this is what both read.
        statements.push(format!("GRANT SELECT(query_id, user, query) ON system.processes TO {user}"));
        statements.push(format!("CREATE ROLE IF NOT EXISTS {role_list}"));
        // The rows are divided before anyone may read them.
        for (database, table, column) in tables(mapping) {
            statements.push(format!(
                "CREATE ROW POLICY OR REPLACE sightline_nothing ON {database}.{table} FOR SELECT USING 0 AS PERMISSIVE TO {user}"
            ));
            statements.extend(roles.iter().map(|tenant| policy(database, table, column, tenant)));
            statements.push(format!("GRANT SELECT ON {database}.{table} TO {role_list}"));
        }
        statements.push(format!("GRANT {role_list} TO {user}"));
        statements.push(format!("ALTER USER {user} DEFAULT ROLE NONE SETTINGS PROFILE '{PROFILE}'"));
        statements
    }

    /// The whole as a script with remarks.
    pub fn script(&self) -> String {
        let mut script = format!(
            "-- Run this once as an administrator of ClickHouse, and again when a tenant or a table is added.\n\
             -- Before: choose a long random password for `clickhouse.password`, and put its SHA-256 in the place of `{DIGEST}`.\n\
             -- The server needs, in its configuration, access_control_improvements with\n\
             --   settings_constraints_replace_previous = true   (else CHANGEABLE_IN_READONLY means nothing)\n\
             --   users_without_row_policies_can_read_rows = true   (the default: other users keep seeing what they saw)\n\
             -- On a cluster put ON CLUSTER into each statement; the policies must stand on every shard's local tables too.\n\
             -- Afterwards `sightline doctor` tries whether it holds.\n"
        );
        script.push_str(
            "-- Not needed, but long windows are read twenty times as fast where the table of samples keeps steps beside its rows:\n",
        );
        for table in self.mapping.tables().iter().filter(|table| table.dataset() == Dataset::Metrics) {
            for statement in kept_steps(&format!("{}.{}", table.database(), table.table())) {
                let _ = writeln!(script, "--   {};", statement.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
        for statement in self.statements() {
            script.push('\n');
            script.push_str(&statement);
            script.push_str(";\n");
        }
        script
    }
}

/// Every table that a role may read, with the column of its tenant.
fn tables(mapping: &Mapping) -> Vec<(&str, &str, &str)> {
    let mapped = mapping.tables().iter().map(|t| (t.database(), t.table(), t.tenant_column()));
    mapped.chain(databases(mapping).into_iter().map(|database| (database, CANARY_TABLE, "tenant"))).collect()
}

fn databases(mapping: &Mapping) -> BTreeSet<&str> {
    mapping.tables().iter().map(|table| table.database()).collect()
}

fn canaries(mapping: &Mapping) -> Vec<String> {
    let of_database = |database: &str| {
        let table = format!("{database}.{CANARY_TABLE}");
        [
            format!("CREATE TABLE IF NOT EXISTS {table} (tenant String) ENGINE = ReplacingMergeTree ORDER BY tenant"),
            format!("INSERT INTO {table} SELECT {}", text(CANARY_TENANT)),
        ]
    };
    databases(mapping).into_iter().flat_map(of_database).collect()
}

/// Every setting that the client sends: what is a bound may be lowered and never lifted, what differs from table to table may be
/// either, and the rest stays as it is. Zero would mean no bound.
fn profile(widest: &Bounds) -> String {
    let own = OWN_SETTINGS.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let sent = widest.settings().into_iter().chain(own);
    let constrained = sent.map(|(name, value)| {
        let value = if value.bytes().all(|byte| byte.is_ascii_digit()) { value } else { text(&value) };
        match name {
            "force_primary_key" => format!("{name} = 0 MIN 0 MAX 1 CHANGEABLE_IN_READONLY"),
            _ if name.starts_with("max_") => format!("{name} = {value} MIN 1 MAX {value} CHANGEABLE_IN_READONLY"),
            _ => format!("{name} = {value} CONST"),
        }
    });
    let settings: Vec<String> = constrained.chain(["readonly = 1 CONST".to_owned()]).collect();
    format!("CREATE SETTINGS PROFILE OR REPLACE {PROFILE} SETTINGS\n    {}", settings.join(",\n    "))
}

/// The rows of one tenant to its role. Without a role a session has no right to the table at all, with several it sees the rows of
/// each, and one whose policy is missing sees none, since the user's own policy gives none.
fn policy(database: &str, table: &str, column: &str, tenant: &str) -> String {
    let role = name(&role_name(tenant));
    format!(
        "CREATE ROW POLICY OR REPLACE {role} ON {database}.{table} FOR SELECT USING {column} = {} AS PERMISSIVE TO {role}",
        text(tenant)
    )
}

fn text(value: &str) -> String {
    String::from_utf8_lossy(&string_literal(value.as_bytes())).into_owned()
}

fn name(value: &str) -> String {
    format!("`{}`", value.replace('\\', "\\\\").replace('`', "\\`"))
}

use sightline_model::{Principal, Role, TenantScope};

use super::{LimitSet, Limits};
use crate::error::Source;

const SHIPPED: &str = include_str!("../../limits.toml");

fn load(more: &str) -> Result<LimitSet, String> {
    let text = format!("{SHIPPED}\n{more}");
    super::parse(Source { name: "limits.toml", text: &text }).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

fn of(set: &LimitSet, role: Role, tenants: &[&str]) -> Limits {
    let tenants = match role {
        Role::Admin => TenantScope::All,
        Role::Viewer | Role::Operator | Role::Auditor => {
            TenantScope::Only(tenants.iter().map(|&tenant| tenant.to_owned()).collect())
        }
    };
    set.of(&Principal { id: "x".to_owned(), role, tenants, jobs_of: None })
}

const ATLAS: &str = "[tenant.atlas]\nmax_seconds = 20\nmax_series = 5\n[tenant.atlas.viewer]\nmax_series = 7\n[tenant.borealis]\nmax_seconds = 3\nmax_points = 9\n";

#[test]
fn a_tenants_table_changes_its_roles_and_a_role_of_it_changes_that_again() {
    let set = load(ATLAS).unwrap();
    let base = of(&set, Role::Viewer, &["cetus"]);
    assert_eq!(base.max_seconds, 10);
    let expected = Limits { max_seconds: 20, max_series: 7, ..base.clone() };
    assert_eq!(of(&set, Role::Viewer, &["atlas"]), expected);
    let operator = of(&set, Role::Operator, &["atlas"]);
    assert_eq!((operator.max_seconds, operator.max_series, operator.max_points), (20, 5, 11_000));
}

#[test]
fn who_belongs_to_several_tenants_has_the_least_of_each_bound() {
    let set = load(ATLAS).unwrap();
    let both = of(&set, Role::Viewer, &["atlas", "borealis"]);
    assert_eq!((both.max_seconds, both.max_series, both.max_points), (3, 7, 9));
    // A tenant without a table of its own counts with what its role has.
    let with_plain = of(&set, Role::Viewer, &["atlas", "cetus"]);
    assert_eq!((with_plain.max_seconds, with_plain.max_series), (10, 7));
}

#[test]
fn no_tenants_table_touches_who_belongs_to_none() {
    let (plain, set) = (load("").unwrap(), load(ATLAS).unwrap());
    for role in [Role::Admin, Role::Auditor] {
        assert_eq!(of(&plain, role, &[]), of(&set, role, &[]));
    }
    assert_eq!(set.all().count(), 8);
}

#[test]
fn broken_tenant_tables_are_refused_with_line_and_what_to_do() {
    let cases = [
        ("unknown key", load("[tenant.atlas]\nmax_point = 1")),
        ("unknown role", load("[tenant.atlas.guest]\nmax_points = 1")),
        ("a role above tenants", load("[tenant.atlas.admin]\nmax_points = 1")),
        ("no tenant", load("[tenant]\nmax_points = 1")),
        ("zero", load("[tenant.atlas]\nmax_points = 1\nmax_series = 0\n[tenant.atlas.viewer]\nmax_rows_read = 0")),
        ("a day under a query", load("[tenant.atlas]\nmax_points = 1\nbytes_per_day = 1")),
        ("a query over a day", load("[tenant.atlas.operator]\nmax_bytes_read = 900_000_000_000")),
        ("a day of all under a query of one", load("[tenant.atlas]\nbytes_per_day = 20_000_000_000")),
        ("negative", load("[tenant.atlas]\nmax_points = -1")),
        ("twice", load("[tenant.atlas]\nmax_points = 1\n[tenant.atlas]\nmax_points = 2")),
    ];
    let report: Vec<String> = cases
        .into_iter()
        .map(|(name, loaded)| format!("# {name}\n{}", loaded.map(|_| "it loads".to_owned()).unwrap_or_else(|e| e)))
        .collect();
    assert!(!report.join("\n").contains("it loads"));
    insta::assert_snapshot!("broken_tenants", report.join("\n\n"));
}

//! The second fence: row filters that the engine applies whatever the text says.

use std::collections::BTreeSet;

use crate::literal;

/// The tenant filter of every mapped table, set on the connection before it becomes read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    tables: Vec<(String, String)>,
}

impl Fence {
    /// The filter `tenant IN (…)` over these tables, each as database, table, tenant column.
    pub fn new<'a>(tables: impl Iterator<Item = (&'a str, &'a str, &'a str)>, tenants: &BTreeSet<String>) -> Self {
        let list: Vec<String> = tenants.iter().map(|tenant| literal::quoted(tenant)).collect();
        let list = list.join(", ");
        let tables = tables
            .map(|(database, table, column)| {
                // `IN ()` does not parse; no tenant is no row.
                let filter = if list.is_empty() { "0".to_owned() } else { format!("{column} IN ({list})") };
                (format!("{database}.{table}"), filter)
            })
            .collect();
        Self { tables }
    }

    /// Each mapped table, as `database.table`, with its filter expression.
    pub fn filters(&self) -> &[(String, String)] {
        &self.tables
    }

    /// The name of the setting.
    pub fn setting(&self) -> &'static str {
        "additional_table_filters"
    }

    /// The value of the setting, a map literal: `{'db.table':'tenant IN (\'atlas\')'}`.
    pub fn value(&self) -> String {
        let entries: Vec<String> = self
            .tables
            .iter()
            .map(|(table, filter)| format!("{}:{}", literal::quoted(table), literal::quoted(filter)))
            .collect();
        format!("{{{}}}", entries.join(","))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Fence;

    fn fence(tenants: &[&str]) -> String {
        let tenants: BTreeSet<String> = tenants.iter().map(|&tenant| tenant.to_owned()).collect();
        Fence::new([("db", "metrics", "tenant"), ("db", "logs", "tenant")].into_iter(), &tenants).value()
    }

    #[test]
    fn every_mapped_table_is_fenced_with_tenants_escaped_twice() {
        assert_eq!(
            fence(&["atlas", "it's"]),
            r"{'db.metrics':'tenant IN (\'atlas\', \'it\\\'s\')','db.logs':'tenant IN (\'atlas\', \'it\\\'s\')'}"
        );
    }

    #[test]
    fn no_tenant_is_no_row() {
        assert_eq!(fence(&[]), "{'db.metrics':'0','db.logs':'0'}");
    }
}

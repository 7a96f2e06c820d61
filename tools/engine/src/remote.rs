//! A ClickHouse server of the site's own: which of its roles stand for which tenants, and how it
//! comes to have them.

mod admin_sql;
mod role;

pub use admin_sql::AdminSql;
pub use role::role_name;

//! A ClickHouse server of the site's own: which of its roles stand for which tenants.

mod role;

pub use role::role_name;

//! The role that stands for a tenant.

/// What every such role's name begins with.
const PREFIX: &str = "sightline_t_";

/// The name of the role that reads the rows of this tenant. Any text is a tenant, so what is no letter, digit or hyphen is written
/// as `_` and two hex digits a byte: two tenants never share a role, and a name needs no escaping.
pub fn role_name(tenant: &str) -> String {
    let mut name = PREFIX.to_owned();
    for byte in tenant.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("_{other:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{PREFIX, role_name};

    /// The tenant that a role stands for.
    fn tenant(role: &str) -> Vec<u8> {
        let mut rest = role.strip_prefix(PREFIX).unwrap().as_bytes();
        let mut tenant = Vec::new();
        while let Some((first, after)) = rest.split_first() {
            if *first == b'_' {
                let (hex, after) = after.split_at(2);
                tenant.push(u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap());
                rest = after;
            } else {
                tenant.push(*first);
                rest = after;
            }
        }
        tenant
    }

    #[test]
    fn a_plain_tenant_stays_readable() {
        assert_eq!(role_name("team-7"), "sightline_t_team-7");
        assert_eq!(role_name("a_b"), "sightline_t_a_5fb");
        assert_eq!(role_name("it's`"), "sightline_t_it_27s_60");
        assert_eq!(role_name(""), "sightline_t_");
    }

    proptest! {
        #[test]
        fn two_tenants_never_share_a_role(name in any::<String>()) {
            let role = role_name(&name);
            prop_assert!(role.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            prop_assert_eq!(tenant(&role), name.as_bytes());
        }
    }
}

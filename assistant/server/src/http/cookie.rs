//! The session's cookie: no script reads it, no other site's page sends it, and over TLS no other host or path can have set it.

use axum::http::{HeaderMap, HeaderValue, header};

use super::site::Site;

/// Over plain HTTP, which is for this machine alone.
const PLAIN: &str = "sightline_session";
/// Over TLS: with this prefix a browser takes it only from this very host, with `Secure` and for every path.
const SECURE: &str = "__Host-sightline_session";

fn name(site: &Site) -> &'static str {
    if site.is_secure() { SECURE } else { PLAIN }
}

/// The value of the session's cookie. Two of that name are none: one of them was set by somebody else.
pub(super) fn session_id<'a>(headers: &'a HeaderMap, site: &Site) -> Option<&'a str> {
    let pairs =
        headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let mut values = pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name(site))
        .map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => Some(value),
        (Some(_) | None, Some(_) | None) => None,
    }
}

/// `Set-Cookie` for a session that lasts this long.
pub(super) fn set(site: &Site, session_id: &str, seconds: i64) -> Option<HeaderValue> {
    let secure = if site.is_secure() { "; Secure" } else { "" };
    let text = format!("{}={session_id}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}", name(site));
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `Set-Cookie` that takes it away.
pub(super) fn clear(site: &Site) -> Option<HeaderValue> {
    set(site, "", 0)
}

//! Under which address people reach the service: what a cookie is bound to, and which pages are ours.

/// The address, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    public_origin: Option<String>,
}

impl Site {
    /// A service that is reached under this URL; under the address it listens on if there is none.
    pub fn new(public_url: Option<&str>) -> Self {
        Self { public_origin: public_url.map(|url| url.trim_end_matches('/').to_ascii_lowercase()) }
    }

    /// Whether browsers reach it over TLS, so that a cookie may be kept from any other way.
    pub(super) fn is_secure(&self) -> bool {
        self.public_origin.as_deref().is_some_and(|origin| origin.starts_with("https://"))
    }

    /// Whether a page of this origin is ours: one under the public URL, or under the very name this request was sent to.
    pub(super) fn is_own_origin(&self, origin: &str, host: Option<&str>) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.public_origin.as_ref() == Some(&origin) {
            return true;
        }
        // A site that is reached over TLS has no page over plain HTTP.
        let schemes: &[&str] = if self.is_secure() { &["https://"] } else { &["http://", "https://"] };
        let name = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme));
        match (name, host) {
            (Some(name), Some(host)) => name.eq_ignore_ascii_case(host),
            (Some(_) | None, Some(_) | None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Site;

    #[test]
    fn only_pages_of_the_public_url_or_of_the_name_that_was_asked_are_ours() {
        let local = Site::new(None);
        let host = Some("127.0.0.1:8787");
        for (origin, own) in [
            ("http://127.0.0.1:8787", true),
            ("http://127.0.0.1:8788", false),
            ("http://127.0.0.1", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
            ("http://127.0.0.1:8787.evil.example", false),
        ] {
            assert_eq!(local.is_own_origin(origin, host), own, "{origin}");
        }
        assert!(!local.is_own_origin("http://127.0.0.1:8787", None));
        let public = Site::new(Some("https://Sightline.example.com/"));
        assert!(public.is_secure() && !local.is_secure() && !Site::new(Some("http://x")).is_secure());
        assert!(public.is_own_origin("https://sightline.example.com", Some("127.0.0.1:8787")));
        assert!(public.is_own_origin("https://other.example.com", Some("other.example.com")));
        assert!(!public.is_own_origin("http://sightline.example.com", Some("sightline.example.com")));
        assert!(!public.is_own_origin("https://sightline.example.com:444", Some("sightline.example.com")));
    }
}

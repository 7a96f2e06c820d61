//! sightline-audit

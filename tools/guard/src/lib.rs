//! sightline-guard

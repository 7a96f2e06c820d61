//! sightline-tools

//! sightline-core

//! sightline-engine

//! sightline-server

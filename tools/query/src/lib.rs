//! sightline-query

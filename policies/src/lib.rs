//! sightline-policies

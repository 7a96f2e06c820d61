//! sightline-diagnosis

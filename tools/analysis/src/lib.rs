//! sightline-analysis

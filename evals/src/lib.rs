//! sightline-evals

//! Who may see which rows, over real HTTP: typed calls, five tenants beside each other, and askers who may see their own jobs only.

#![cfg(test)]

mod alike;
#[path = "../harness/mod.rs"]
mod harness;
mod own_jobs;
mod own_jobs_world;
mod policies;
#[path = "../harness/service.rs"]
mod service;
mod tenants;
mod tenants_world;
mod typed_calls;
#[path = "../harness/worlds.rs"]
mod worlds;

//! Who may see which rows, over real HTTP: typed calls, five tenants beside each other, and askers who may see their own jobs only.

#![cfg(test)]

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../harness/service.rs"]
mod service;
mod typed_calls;
#[path = "../harness/worlds.rs"]
mod worlds;

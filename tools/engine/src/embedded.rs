//! The engine in a child process: starting it, keeping it alive, finding one that is there already.

pub(crate) mod ffi;
pub(crate) mod folder;
pub(crate) mod library;

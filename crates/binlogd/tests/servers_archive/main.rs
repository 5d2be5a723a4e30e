//! The archive, end to end.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod archive;

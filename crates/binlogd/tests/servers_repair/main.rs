//! The verbs on copies: cat, find, rescue, restore, row, show, undo, verify.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod called;
mod cat;
mod find;
mod rescue;
mod rescue_compare;
mod rescue_or_replica;
mod rescue_refusals;
mod rescue_settings;
mod rescue_writers;
mod restore;
mod row;
mod show;
mod undo;
mod undo_kinds;
mod verify;

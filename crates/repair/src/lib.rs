//! What is done with a history: shown, cut, undone, restored, and given to the successor of a dead source.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod cut;
pub mod detail;
mod hear;
pub mod history;
pub mod rescue;
pub mod restore;
pub mod searched;
pub mod undo;

pub use hear::{Event, Hear};

//! Backups beside the log: taken with the tools that operators trust, kept, listed, and the way back from one.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod drill;
pub mod new_server;
pub mod table;
pub mod take;

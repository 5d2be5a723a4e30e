//! The formats of MySQL and MariaDB replication: packets, binary-log events, the rows in them, GTID sets.
//!
//! Everything that a peer or a file says passes through this crate first. It does no I/O and has no clock, so that
//! each function is a plain mapping from bytes to values and can be fuzzed and replayed.
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod binlog_name;
pub mod dump_stream;
pub mod event;
pub mod gtid;
pub mod packet;
mod position;
pub mod rows;
pub mod secrets;
mod server_kind;

pub use binlog_name::{BadBinlogName, BinlogName};
pub use position::Position;
pub use server_kind::{ServerKind, UnknownServerKind};

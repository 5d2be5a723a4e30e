//! A transaction with everything that the log has of it: its statements, and its rows value by value.
//!
//! ```text
//! the events of a transaction (points::walk::events)
//!   → parts: statements, and rows of a table      parts.rs
//!   → names and types that a server adds           known.rs, definition.rs
//!   → unless the log has a definition behind it    definitions.rs
//! ```

mod as_json;
mod definition;
mod definitions;
mod known;
mod parts;

pub use as_json::as_json;
pub use definition::{ColumnDefinition, is_table};
pub use definitions::{Definitions, Place};
pub use known::{Known, KnownTable};
pub use parts::{Part, each_part};

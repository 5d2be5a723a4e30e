//! What a row was, and who changed it, by the log alone: without a restore.
//!
//! ```text
//! the timelines of a source → one line of files                     line.rs
//! a point → the place of the first transaction behind it            point.rs
//! a transaction → what it says of one table                         saying.rs, definition.rs
//!   → and of one row                                                reader.rs, seen.rs, key.rs
//! backwards from a place, by another key or name where it had one   backward.rs
//!   → the row at the point                                          state.rs, cascades.rs
//!   → all that became of it, the newest first                       history.rs
//! forwards from where a table had no row: all its rows              table/
//! ```
//!
//! A search index says which blocks of a file have events of the table: only those are walked. What the log cannot tell is said, and
//! never guessed.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod backward;
mod cascades;
mod definition;
mod history;
mod key;
mod line;
mod point;
mod reader;
mod request;
mod saying;
mod seen;
mod state;
mod table;

pub use history::{History, Item, Older, history};
pub use key::Key;
pub use line::Line;
pub use request::Request;
pub use seen::{At, Cell, Change, Image, NamedColumn, Note};
pub use state::{Answer, State, state};
pub use table::{Contents, TableRequest, To, table};

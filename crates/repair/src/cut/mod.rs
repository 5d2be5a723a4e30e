//! A part of a history as one binary log that stock tools read.
//!
//! ```text
//! from, until, tables, GTIDs ──► span: walked once; the points are there, nothing is missing between, something is chosen
//!                                  │
//!                                  ▼
//!                                writer: the magic, a format description, what was executed before, whole transactions
//! ```
//!
//! Nothing is written before the walk has shown that all of it can be: what a reader was given cannot be taken back.
//!
//! | file | noun |
//! |---|---|
//! | `choice.rs` | [`Choice`]: what is asked for between the points, and what is decided of a transaction |
//! | `tour.rs` | the transactions of a history, each once, over files and timelines |
//! | `span.rs` | [`Span`]: from where to where, and what was executed before |
//! | `head.rs` | the events that a log begins with |
//! | `writer.rs` | `write`: the second walk, with the bytes |
//! | `error.rs` | [`NoCut`]: why nothing is written, or no more |

mod choice;
mod error;
mod head;
mod span;
#[cfg(test)]
mod tests;
mod tour;
mod writer;

pub use choice::{Choice, Counts};
pub use error::NoCut;
pub use span::{Request, Span};
pub use writer::write;

//! The archive: the timelines of a source in an object store, written once, verified, read back by anything.
//!
//! # What stands in the store
//!
//! Pieces of files in immutable objects ([`segment`]), and one small object a change (`commit`), each made by a conditional
//! creation and never touched again. [`names`] says what they are called. What no commit names does not count.
//!
//! # Who may write
//!
//! Whoever makes the commit of the next number. There is no lease and no clock: a writer that slept for an hour finds its
//! number taken ([`chain`]).
//!
//! # The way of a byte
//!
//! ```text
//! a file of the copy, up to its durable end
//!   → walked to its last boundary, every checksum             local.rs
//!   → segments of about 4 MiB: compressed, encrypted, named    segment.rs, upload.rs
//!   → one commit that names them                               writer.rs, chain.rs
//!   → what all commits add up to                               history.rs
//!   → and, when a file is finished, one object of its segments  segments.rs
//!   → beside the chain: its search index, which is derived     search_index.rs
//!   → and what goes again, in time                             prune.rs
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod begin;
pub mod chain;
pub mod fetch;
pub mod frames;
pub mod keys;
pub mod names;
pub mod past;
pub mod plain_stream;
pub mod reader;
pub mod segment;
#[cfg(test)]
mod stock;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod upkeep;
pub mod writer;

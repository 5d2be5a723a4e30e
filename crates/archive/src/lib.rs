//! The archive: the timelines of a source in an object store, written once, verified, read back by anything.
//!
//! # What stands in the store
//!
//! Pieces of files in immutable objects ([`segment`]), and one small object a change ([`commit`]), each made by a conditional
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

pub mod abandon;
pub mod backup;
pub mod begin;
pub mod chain;
pub mod commit;
pub mod fetch;
pub mod frames;
pub mod gentle;
pub mod history;
pub mod keys;
pub mod lazy;
pub mod local;
pub(crate) mod mapping;
pub mod mark;
pub(crate) mod merge;
pub mod names;
pub mod past;
pub mod presence;
pub mod probe;
pub mod prune;
pub mod reader;
pub mod remote;
pub mod runs;
pub mod scrub;
pub mod search_index;
pub mod segment;
pub mod segments;
#[cfg(test)]
mod stock;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unneeded;
pub mod upload;
mod whole;
pub mod writer;

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

#![forbid(unsafe_code)]

pub mod commit;
pub mod frames;
pub mod keys;
pub mod names;
pub mod runs;
pub mod segment;
#[cfg(test)]
mod stock;
pub mod store;

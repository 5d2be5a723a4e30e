//! Transactions for people and for points in time: what a binary log holds, found fast.
//!
//! ```text
//! a binary log, here or archived (binlog::storage::ReadAt)
//!   → walk: transaction by transaction, with what each does     walk.rs, walk/
//!   → index: what of a whole file is worth knowing at once       index.rs, index/
//!   → search: files and blocks passed over, the rest walked      criteria.rs, search.rs
//! ```
//!
//! A search index is derived: it stands beside its file, is made when the file is sealed, and is made again when it is absent,
//! damaged, of an older version or of another file. Nothing that is safe rests on it.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod criteria;
pub mod effects;
pub mod glob;
pub mod index;
pub mod search;
pub mod statement;
pub mod statistics;
pub mod table;
pub mod transaction;
pub mod walk;
pub mod wanted_gtids;

#[cfg(test)]
mod testing;

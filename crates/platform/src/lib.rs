//! What the C library and the kernel do for us where no crate wraps them.
//!
//! | file | noun |
//! |---|---|
//! | `child.rs` | programs that end with us |
//! | `memory.rs` | how the C library hands out memory |
//! | `time_slice.rs` | how soon a thread that wakes up gets a processor |
//! | `writeback.rs` | when the kernel writes a file's bytes to the disk |
//!
//! This crate has the only unsafe code of the product; all other crates of the product forbid it.

#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod child;
mod memory;
mod time_slice;
mod writeback;

pub use child::ends_with_us;
pub use memory::{OWN_MAPPING_BYTES, give_large_blocks_back};
pub use time_slice::{TIME_SLICE, shorten_time_slice};
pub use writeback::begin_writeback;

//! A store in memory, and a way to it that fails as ways to stores do. With the feature `testing` only; never in the product.
//!
//! ```text
//! Network    loses, delays and doubles requests, loses answers, lists late     network.rs
//!   → Memory each object made once, at one moment; a witness sees each         memory.rs
//! ```

#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used, reason = "for tests")]

mod memory;
mod network;

pub use memory::{Memory, Saved, Witness};
pub use network::{Faults, Network};

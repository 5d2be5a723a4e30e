//! What tests of the log, and of what stands on it, are built from. With the feature `testing` only; never in the product.

#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used, reason = "for tests")]

mod faulty;
mod files;
pub(crate) mod instead;
mod killed;
mod memory;
mod random;

pub use faulty::FaultyStorage;
pub use files::{FileBuilder, NOW, SERVER_UUID, first_timeline};
pub use killed::KilledStorage;
pub use memory::MemoryStorage;
pub use random::Random;

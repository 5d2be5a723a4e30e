//! What is deleted of a copy, and what stays because somebody needs it.
//!
//! `binlog::purge` knows how files are deleted, and what the copy itself needs. Here are those who need more: connected readers,
//! slots, and whoever else is told to [`Purger::heeds`].
//!
//! | file | noun |
//! |---|---|
//! | `purger.rs` | one source's copy, as it is purged: by a statement, by the rules |
//! | `slots.rs` | a reader's place, remembered while it is away |
//! | `absence.rs` | for how long readers were away while they could have come |
//! | `peer_needs.rs` | what other binlogds of the source keep from a purge |
//! | `steady.rs` | whether the clock can be believed |

mod absence;
mod peer_needs;
mod purger;
pub mod slots;
mod steady;

pub use purger::{Gate, InSlot, NO_RULES, Purger, Readers, behind, rules};
pub use steady::SteadyClock;

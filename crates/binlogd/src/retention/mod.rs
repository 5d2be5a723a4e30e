//! What is deleted of a copy, and what stays because somebody needs it.
//!
//! `log::purge` knows how files are deleted, and what the copy itself needs. Here are those who need more: connected readers,
//! slots, and whoever else is told to [`Purger::heeds`].
//!
//! | file | noun |
//! |---|---|
//! | `purger.rs` | one source's copy, as it is purged: by a statement, by the rules |
//! | `slots.rs` | a reader's place, remembered while it is away |
//! | `absence.rs` | for how long readers were away while they could have come |
//! | `steady.rs` | whether the clock can be believed |

mod absence;
mod purger;
pub(crate) mod slots;
mod steady;

pub(crate) use purger::{Gate, InSlot, NO_RULES, Purger, Readers, behind, rules};
pub(crate) use steady::SteadyClock;

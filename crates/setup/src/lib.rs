//! From a server that knows nothing of binlogd to one that waits for it, in an order that is safe at each step.
//!
//! [`Server::ask`] and [`Files::look`] change nothing; [`Plan::make`] is a pure function of what they saw, so that every
//! state is tested without a server. `cli/setup/mod.rs` shows a plan, and carries it out. A plan that was carried out leaves a
//! state for which the next plan has nothing to do: who is interrupted runs the same command again.
//!
//! ```text
//! plugin → settings → password file → account → log in as it → configuration → (binlogd is started) → semi-sync on
//! ```
//!
//! Semi-sync comes last, when binlogd is attached and has caught up: before, every commit would wait for nobody.
//!
//! | file | noun |
//! |---|---|
//! | `wish.rs` | [`Wish`]: what the operator wants |
//! | `server.rs` | [`Server`]: what is there on the server |
//! | `files.rs` | [`Files`]: what is there on this machine |
//! | `here.rs` | [`Here`]: that, and whether binlogd is attached |
//! | `plan.rs` | [`Plan`]: the steps, or why there are none |
//! | `refusal.rs` | what setup cannot change |
//! | `step.rs` | [`Step`] and [`Statement`] |
//! | `account.rs` | the account's name, rights and password |
//! | `semi_sync.rs` | the plugin, its settings, and the switch |
//! | `promote/` | another source for a quorum |
//! | `write.rs` | files that did not exist before |
//! | `undo.rs` | how to take everything back |

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod account;
pub mod doctor;
mod files;
mod here;
mod plan;
pub mod promote;
mod refusal;
mod semi_sync;
mod server;
mod step;
#[cfg(test)]
mod test_states;
mod undo;
mod wish;
pub mod write;

pub use account::make_password;
pub use files::Files;
pub use here::Here;
pub use plan::Plan;
pub use server::Server;
pub use step::{Act, PASSWORD_HERE, State, Statement, Step};
pub use undo::undo;
pub use wish::{CONFIG, DATA_DIR, Wish};

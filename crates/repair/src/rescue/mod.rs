//! Handing a server the transactions that it lacks and the copy holds.
//!
//! ```text
//! the target's GTIDs ──► plan: every lacked transaction, found, read and understood before anything is sent
//!                          │
//!                          ▼
//!                        hold_off: whoever else can write ──► hand_over: each with its own GTID, in the order of the copy
//!                          │
//!                          ▼
//!                        compare: the target's own binary log has each of them as the copy has it ──► put_back
//! ```
//!
//! A transaction goes over as `mysqlbinlog | mysql` would send it: its rows by BINLOG statements, its statements as text with
//! the settings of the session that they ran in, under its own GTID. The target therefore writes it to its binary log under
//! that GTID, its replicas get it, and a transaction that is there already is passed over by the server itself: to do it
//! all again is safe. The server's own replication was not used for it, because a server ignores replicated transactions that
//! carry its own server id, which are the ones that a restarted source lacks.
//!
//! | file | noun |
//! |---|---|
//! | `steps.rs` | [`Rescue`]: look, check, send, for whoever asks for it |
//! | `found.rs`, `lack.rs` | [`Found`]: what it has found; [`Lack`]: why "all" would not be true |
//! | `no_rescue.rs` | [`NoRescue`]: why it does not hand everything over |
//! | `guard.rs` | the care that it takes: who else writes, what is there already |
//! | `plan.rs` | [`Plan`]: which transactions, where they are, what is in the way |
//! | `lacked.rs` | [`Lacked`]: a transaction that the copy holds and the target lacks |
//! | `not_held.rs` | why no file of the copy holds one |
//! | `kinship.rs` | [`Kinship`]: what a server has in common with the copy |
//! | `order.rs` | in which order |
//! | `missing.rs` | what a server counts as there, and its binary log does not hold |
//! | `print.rs` | transactions of the copy as statements that a person runs |
//! | `left_out.rs` | [`LeftOut`]: what the operator leaves out by name |
//! | `xa.rs` | the parts of XA transactions |
//! | `statements.rs` | the statements of one transaction |
//! | `session.rs` | the settings that a statement must find, and setting only what changes |
//! | `events.rs` | the events of a transaction as a server takes them: without checksums, unpacked |
//! | `target.rs` | [`Target`]: the server, what it holds and lets us do |
//! | `batch.rs` | several transactions in one packet |
//! | `send.rs` | sending the transactions of a plan, and what a refusal means |
//! | `applier.rs` | settings of a server that change what is made of a log there |
//! | `writers.rs` | [`Writer`]: who else can write to the target |
//! | `hold.rs`, `hold_error.rs` | holding them off, and letting them in again |
//! | `restore.rs` | [`Restore`]: what is to be put back, on disk before it is changed |
//! | `meanwhile.rs` | GTIDs that the target has by now, and not from us |
//! | `compare.rs` | [`Comparison`]: is a GTID the same transaction on both sides? |
//! | `compared.rs` | [`Compared`]: what that has found |
//! | `ours.rs` | a transaction of the copy, as it is compared |
//! | `chosen.rs` | which of those that are there already are compared |
//! | `target_log.rs` | the target's own binary log |

mod applier;
mod batch;
mod chosen;
mod compare;
mod compared;
mod events;
mod found;
pub(crate) mod guard;
mod hold;
mod hold_error;
mod kinship;
mod lack;
mod lacked;
mod left_out;
mod meanwhile;
mod missing;
mod no_rescue;
mod not_held;
mod order;
mod ours;
mod plan;
pub mod print;
mod restore;
mod send;
mod session;
mod statements;
mod steps;
mod target;
mod target_log;
mod writers;
mod xa;

pub use applier::{Applier, Deviation, Remedy, deviations, refusal};
pub use compare::{Comparison, Scope};
pub use compared::{Compared, Version, time};
pub use found::Found;
pub use hold_error::HoldError;
pub use kinship::Kinship;
pub use lack::Lack;
pub use lacked::Lacked;
pub use left_out::LeftOut;
pub use no_rescue::NoRescue;
pub use plan::Plan;
pub use restore::{Restore, Setting};
pub use send::{HandOverError, Sender};
pub use statements::Translator;
pub use steps::{Next, Request, Rescue};
pub use target::Target;
pub use writers::{Watch, Writer};

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
//! | `plan/` | [`Plan`]: which transactions, where they are, what is in the way |
//! | `plan/lacked.rs` | [`Lacked`]: a transaction that the copy holds and the target lacks |
//! | `plan/not_held.rs` | why no file of the copy holds one |
//! | `plan/kinship.rs` | [`Kinship`]: what a server has in common with the copy |
//! | `plan/order.rs` | in which order |
//! | `plan/left_out.rs` | [`LeftOut`]: what the operator leaves out by name |
//! | `statements/` | the statements of one transaction: its events as a server takes them, the settings that each must find, the parts of XA transactions |
//! | `print.rs` | transactions of the copy as statements that a person runs |
//! | `target.rs` | [`Target`]: the server, what it holds and lets us do |
//! | `send/` | sending the transactions of a plan, several in one packet, and what a refusal means |
//! | `applier.rs` | settings of a server that change what is made of a log there |
//! | `hold/` | holding others off, and letting them in again; [`Writer`]: who else can write to the target |
//! | `hold/restore.rs` | [`Restore`]: what is to be put back, on disk before it is changed |
//! | `hold/meanwhile.rs` | GTIDs that the target has by now, and not from us |
//! | `compare/` | [`Comparison`]: is a GTID the same transaction on both sides? |
//! | `compare/compared.rs` | [`Compared`]: what that has found |
//! | `compare/ours.rs`, `compare/target_log.rs` | a transaction of the copy, as it is compared; the target's own binary log |
//! | `compare/between.rs` | the same between a server and what a binlogd serves |
//! | `compare/chosen.rs` | which of those that are there already are compared |
//! | `compare/missing.rs` | what a server counts as there, and its binary log does not hold |

mod applier;
pub(crate) mod compare;
mod found;
pub(crate) mod guard;
mod hold;
mod lack;
mod no_rescue;
mod plan;
pub mod print;
mod send;
mod statements;
mod steps;
mod target;

pub use applier::{Applier, Deviation, Remedy, deviations, refusal};
pub use compare::between::{Side, between};
pub use compare::compared::{Compared, Version, time};
pub use compare::{Comparison, Scope};
pub use found::Found;
pub use hold::hold_error::HoldError;
pub use hold::restore::{Restore, Setting};
pub use hold::writers::{Watch, Writer};
pub use lack::Lack;
pub use no_rescue::NoRescue;
pub use plan::Plan;
pub use plan::kinship::Kinship;
pub use plan::lacked::Lacked;
pub use plan::left_out::LeftOut;
pub use send::{HandOverError, Sender};
pub use statements::events::format_without_checksums;
pub use statements::session::Session;
pub use statements::{Translator, binlog};
pub use steps::{Next, Request, Rescue};
pub use target::Target;

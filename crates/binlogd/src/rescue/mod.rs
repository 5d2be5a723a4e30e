//! Handing a server the transactions that it lacks and the copy holds.
//!
//! ```text
//! the target's GTIDs ──► plan: every lacked transaction, found, read and understood before anything is sent
//!                          │
//!                          ▼
//!                        hand_over: each with its own GTID, in the order of the copy ──► verified by the target's GTIDs
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
//! | `plan.rs` | [`Plan`]: which transactions, where they are, what is in the way |
//! | `statements.rs` | the statements of one transaction |
//! | `session.rs` | the settings that a statement must find, and setting only what changes |
//! | `events.rs` | the events of a transaction as a server takes them: without checksums, unpacked |
//! | `target.rs` | [`Target`]: the server, what it holds and lets us do, the handing over |

mod events;
mod plan;
mod session;
mod statements;
mod target;

pub use plan::{Lacked, Plan, PlanError};
pub use target::{HandOverError, RefusedTransaction, Target, TargetError};

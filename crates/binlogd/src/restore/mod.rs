//! Bringing a server that was restored from a backup to a point in the history.
//!
//! ```text
//! the target's GTIDs, and the point ──► course: every transaction between, walked; nothing missing, nothing foreign
//!                                         │
//!                                         ▼
//!                                       stream: a port of our own that sends no further than the point
//!                                         │
//!                                         ▼
//!                                       channel: the target's own replication, with its own parallel applier
//!                                         │
//!                                         ▼
//!                                       carry_out: waits, compares the GTIDs exactly, and takes everything back
//! ```
//!
//! The stream is capped by us: `START REPLICA UNTIL SQL_AFTER_GTIDS` would make the applier of MySQL work with one thread.
//!
//! | file | noun |
//! |---|---|
//! | `backup.rs` | [`BackupAt`]: where the backup was made, said by hand |
//! | `course.rs` | [`Course`]: what is between the target and the point |
//! | `stream.rs` | [`Stream`]: the port, and how far it sends |
//! | `target.rs` | [`Target`]: the server, and what keeps it from being restored |
//! | `channel.rs` | the statements of its replication, in its words |
//! | `carry_out.rs` | from the first change of the target to the proof |

mod backup;
mod carry_out;
mod channel;
mod course;
mod stream;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use backup::{BackupAt, told};
pub(crate) use carry_out::{CarryOut, Progress};
pub(crate) use course::{Course, NoCourse};
pub(crate) use stream::Stream;
pub(crate) use target::{Target, own_address};

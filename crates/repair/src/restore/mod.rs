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
//! A server with GTIDs knows what it has. One without, which MySQL may be, is told a position, and its channel keeps how far it is. Where
//! the target cannot reach us, statements over one connection take the place of stream and channel.
//!
//! | file | noun |
//! |---|---|
//! | `steps.rs` | [`Restoring`]: look, check, carry out, for whoever asks for it |
//! | `no_restore.rs` | [`NoRestore`]: why a server is not brought to the point |
//! | `known.rs` | [`Known`]: how it is known what the target has |
//! | `release.rs` | what a person should know of a log of another release |
//! | `backup/` | `BackupAt`: where the backup was made, said by hand |
//! | `ahead.rs` | the same for a backup that no server has yet |
//! | `begin.rs` | `Begin`: what the target has of the history |
//! | `course/` | [`Course`]: what is between the target and the point, or why there is none; the same by positions |
//! | `course/skip.rs`, `course/legs.rs` | [`Skip`]: a transaction that is not to be applied; `Leg`: a part of a course between these |
//! | `target/` | `Target`: the server, what keeps it from being restored, its channel in its words, the room on its disk |
//! | `carry_out/` | from the first change of the target to the proof; a part by its channel or by statements; why it has ended early |
//! | `carry_out/stream.rs` | `Stream`: the port, and how far it sends |
//! | `carry_out/tell.rs`, `carry_out/settings.rs` | what the target is told, and what is changed on it for the time being |

mod ahead;
mod backup;
mod begin;
mod carry_out;
mod course;
mod known;
mod no_restore;
mod release;
mod steps;
mod target;
#[cfg(test)]
mod tests;

pub use ahead::ahead;
pub use begin::Begin;
pub use carry_out::ended::{Ended, Progress};
pub use course::no_course::NoCourse;
pub use course::skip::Skip;
pub use course::{Course, OnTheWay};
pub use known::Known;
pub use no_restore::NoRestore;
pub use steps::{By, Found, Request, Restoring};
pub use target::space::Short;

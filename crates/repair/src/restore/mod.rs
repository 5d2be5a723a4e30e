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
//! | `release.rs`, `space.rs` | what a person should know before: a log of another release, a disk that is too small |
//! | `backup.rs` | `BackupAt`: where the backup was made, said by hand |
//! | `begin.rs` | `Begin`: what the target has of the history |
//! | `course.rs`, `no_course.rs` | [`Course`]: what is between the target and the point; why there is none |
//! | `stretch.rs` | the same by positions |
//! | `skip.rs` | [`Skip`]: a transaction that is not to be applied |
//! | `legs.rs` | `Leg`: a part of a course, where transactions are passed over |
//! | `stream.rs` | `Stream`: the port, and how far it sends |
//! | `target.rs` | `Target`: the server, and what keeps it from being restored |
//! | `channel.rs` | the statements of its replication, in its words |
//! | `tell.rs`, `settings.rs` | what the target is told, and what is changed on it for the time being |
//! | `carry_out.rs` | from the first change of the target to the proof |
//! | `by_channel.rs`, `by_statements.rs` | a part, in one of the two ways |
//! | `ended.rs` | why it has ended early |

mod backup;
mod begin;
mod by_channel;
mod by_statements;
mod carry_out;
mod channel;
mod course;
mod ended;
mod known;
mod legs;
mod no_course;
mod no_restore;
mod release;
mod settings;
mod skip;
mod space;
mod steps;
mod stream;
mod stretch;
mod target;
mod tell;
#[cfg(test)]
mod tests;

pub use course::Course;
pub use ended::{Ended, Progress};
pub use known::Known;
pub use no_course::NoCourse;
pub use no_restore::NoRestore;
pub use skip::Skip;
pub use space::Short;
pub use steps::{By, Found, Request, Restoring};

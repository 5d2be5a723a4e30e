//! Serving: replicas and log readers read from binlogd as from a source.
//!
//! | file | noun |
//! |---|---|
//! | `sql/` | the statements that clients send, and their grammar |
//! | `answer/` | the answers to them, made of facts and the session's own state |
//! | `request.rs` | what a reader asks for |
//! | `bound.rs`, `stop.rs` | what holds a dump back although the log goes on: a delay, and where it stops |
//! | `history.rs` | the files of the present history, over all timelines, as one list |
//! | `head.rs`, `timeline_end.rs` | the beginning of a file; the end of a timeline |
//! | `look.rs` | what a place is found by |
//! | `place.rs`, `mariadb_place.rs` | where a dump begins, or why it cannot |
//! | `next_timeline.rs` | the step from one timeline to the next |
//! | `seen.rs`, `choice.rs`, `mariadb_choice.rs` | which events a reader gets |
//! | `dump.rs`, `dump/ahead.rs`, `dump/hold.rs`, `dump_log.rs` | a dump from its request to its end; a reader that has more than the copy; waits; what the log says |
//! | `stream.rs`, `packets.rs` | the events of a file, from large reads into packets |
//! | `made_up.rs` | events that stand in no file |
//! | `refusal.rs` | errors, in the servers' words |
//! | `asked.rs`, `answers.rs` | what a semi-sync reader was asked to acknowledge; what it answers |
//! | `progress.rs` | how far a reader is, for those who look on |
//! | `listener.rs` | the port: who is let in, and what each connection gets |
//! | `strangers.rs` | who has not logged in yet |
//! | `login.rs` | from a connection to somebody who may read |
//! | `users.rs` | who may read what |
//! | `refusals.rs` | who was turned away, and why |
//! | `certificate.rs` | what clients that encrypt are shown |
//! | `file_sizes.rs`, `size_watch.rs` | how much is between two files; who keeps that |
//! | `gone.rs` | who has gone while its dump waited |
//! | `error.rs` | why readers are not served at all |
//! | `shared.rs` | what all connections share |
//! | `session.rs` | one connection, from its login to its end: commands and answers |
//! | `events.rs`, `events/` | SHOW BINLOG EVENTS: the events of a file, and what is said of each |
//! | `facts.rs` | what a session's answers are made of |
//! | `dump_request.rs` | from a dump command to a request |
//! | `purge.rs` | the answer to PURGE BINARY LOGS |
//! | `limits.rs` | how long a client is waited for, and what its threads get |
//! | `readers.rs` | who is connected |

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::panic, clippy::unwrap_used))]
#![allow(
    clippy::disallowed_methods,
    reason = "real sockets, in real time; the data folder is reached through Storage"
)]

pub mod answer;
pub mod dump;
mod events;
pub mod history;
pub(crate) mod port;
pub mod retention;
pub mod sql;

pub use crate::port::listener::{Place, ServeServer};
pub use crate::port::shared::{ReceiverSwitch, Shared, Source};
pub use crate::port::users::Users;

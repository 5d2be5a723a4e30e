//! Receiving from a source: connect, decide where to go on, receive, and start over when something breaks.
//!
//! | file | noun |
//! |---|---|
//! | `life.rs` | the life of a source's thread: the copy is opened, and one attempt follows the other |
//! | `context.rs` | what the thread of one source works with |
//! | `receive.rs` | the heart: the loop from the socket to the acknowledgement |
//! | `sink.rs`, `sink/` | its second half: batch, write, sync, acknowledge, publish |
//! | `session.rs` | what a session is given, what it tells, and why it ends |
//! | `unproven.rs` | a file that the source went on to, until it is shown that it continues the copy |
//! | `cursor.rs`, `refusal.rs` | what each arriving event is: stored, ignored, or refused and why |
//! | `left_file.rs` | the file that a stream has left, and how it says that it ends |
//! | `unasked.rs` | transactions for which the source asks for no acknowledgement |
//! | `acknowledge.rs` | which acknowledgement is owed, and the one way to pay it |
//! | `downstream.rs` | what an acknowledgement waits for beside our own disk |
//! | `plan.rs` | where a session goes on: a pure decision |
//! | `identify.rs` | who answers |
//! | `settings.rs` | settings of the source that readers decide by |
//! | `negotiate.rs` | what a replica tells its source, and the dump request |
//! | `look.rs` | short looks at a source's logs, to tell a purge from a reset from a fork |
//! | `link.rs` | whether the source's log goes on where the copy ends |
//! | `copy.rs`, `copy_error.rs` | what is held: the folder and its newest timeline, locked and recovered; why that fails |
//! | `open_timeline.rs` | the newest timeline, open for appending |
//! | `found.rs` | what this process has found out about source and timeline |
//! | `ask.rs` | what an attempt asks its host |
//! | `new_timeline.rs` | a timeline that begins |
//! | `attempt.rs` | one attempt: from connecting to the end of the session |
//! | `passed_over.rs` | the files that a session asks for once more, because the place where it begins is an acknowledgement |
//! | `publish.rs` | what is held, as it is shown without a session, to readers too |
//! | `attached.rs` | why a session with MariaDB is not ended in its first moments |
//! | `earlier.rs` | a source that was put back to before the newest timeline began |
//! | `history.rs` | how the source's logs compare with the newest timeline |
//! | `examine.rs` | what a failed session means: a gap, a reset, a fork, or nothing |
//! | `unreadable.rs` | a file that the source itself cannot read to its end |
//! | `attempt_error.rs`, `complaint.rs` | why an attempt ended and what helps; the source's error numbers, and the causes of error 1236 |
//! | `fork_watch.rs` | what became of what a fork took from the source, beside the receiving thread |
//! | `remembered.rs` | what the source had counted at the last look, over restarts of binlogd |
//! | `rival.rs` | another replica with our `server_id` |
//! | `peers.rs`, `peer.rs`, `peer_fetch.rs` | other binlogds of the source: when they are asked, what they say, and what is fetched |
//! | `above.rs`, `above_error.rs` | a host that is another binlogd: what it says of its timelines; why it does not lead on |
//! | `mirror.rs` | which of these timelines comes next here |
//! | `older_at_peer.rs` | the end of an older timeline that a peer alone holds |
//! | `nodes/` | the other nodes of a quorum: how far they are; a quorum begins, a node joins |
//! | `hosts.rs` | which host of the list is the source |
//! | `backoff.rs`, `repeats.rs` | pauses; what the log says of errors that come again and again |
//! | `shortage.rs` | a full disk: when a session is worth another try |
//! | `stop.rs` | the request to stop |
//! | `watch.rs` | a look at the source every few seconds, over a connection of its own |
//! | `counters.rs` | what a look at the source's variables and counters says |
//! | `left_behind.rs` | notices that the source writes another log than the one that arrives |
//! | `clock.rs` | the seam to time |

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

pub mod attempt;
pub mod decide;
pub mod nodes;
pub mod peers;
pub mod session;
mod sink;
pub mod watch;

pub use crate::attempt::context::Upstream;

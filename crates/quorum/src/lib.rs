//! Who may acknowledge, and whose log: a quorum of binlogds. `ballot`, `memory` and `promotion` decide, without I/O and clock; `node`
//! keeps the memory in a file, and `words` are what nodes tell one another.
//!
//! Several binlogds, the *nodes*, are attached to one source, and each receives its log by itself. A commit is acknowledged once a
//! majority of them has it on stable storage. After any failure of a minority, the source included, a [`Promotion`] makes another
//! server the source, which has every acknowledged transaction; the old one gets no acknowledgement any more, wherever it is.
//!
//! # Epochs
//!
//! Each promotion has a [`Ballot`]: an epoch that no node has promised so far, and the promoter's own random name, so that no two
//! promotions have one ballot. It goes in steps, each of which may be repeated:
//!
//! 1. **Fence.** A majority promises the ballot, durably, and with that never to acknowledge or accept anything of a lower epoch.
//!    Each answers with what it holds ([`Promise`]).
//! 2. **Agree.** The history of the epoch is what the most advanced of them holds, by the epoch in which that was received and then
//!    by its length ([`Promotion::agreed`]).
//! 3. **Feed.** The successor is given what it lacks of that.
//! 4. **Accept.** A majority records the epoch's source and its history, durably. Now the source may be written to.
//!
//! # Why nothing acknowledged is lost
//!
//! A node counts for an epoch once it has [entered](Memory::entered) it: its copy of the epoch's source has the place at which the
//! source held the epoch's history. A confirmation names the epoch, and counts for that epoch alone. So a transaction that was acknowledged in epoch *e* is held by
//! a majority that has entered *e*. The majority that promises a later epoch shares a node with it, which had the transaction when it
//! promised: what that majority agrees on was received in *e* and holds the transaction, or was received in an epoch between the two,
//! whose history holds it by the same argument. Were the epoch of the bytes not told apart from the epoch that was accepted, a
//! node which had accepted an epoch and received nothing of it yet would win over one that holds what was acknowledged.
//!
//! In one epoch one server is acknowledged: only who has a majority's promise of a ballot proposes a source for it, and does so once.
//!
//! # A node without memory
//!
//! A node that has lost its disk has lost its promises, and must not vote as if it had made none. Who has accepted nothing is
//! *blank* and is not counted. The first promotion, the *founding*, needs the promises of all nodes, all of which must be blank, and
//! is in force once all have recorded it: who then has no record of it has lost its memory. Later a
//! blank node joins ([`Kind::Joining`]): a promotion of the present source, by the node itself, with so many of the *others* that they share
//! one with every majority which the node may have belonged to before; its own vote counts only when its copy holds what they agree on.
//!
//! # Another machine in the place of a node
//!
//! A machine that has lost its disk has another name, and the old disk may come back in another machine. So each epoch names its
//! [members](Accepted::members). Who joins takes the place of a member that is absent ([`members_with`]); the others refuse while no place
//! is free. It counts once so many of the others have *accepted* the epoch as must promise it: every majority of the members before has one
//! of them, which knows the new members and leaves a promotion short that counts on the old ones. Who hears of an epoch without it has
//! been replaced, and forgets: it is blank from then on.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]

mod ballot;
pub mod kept;
mod memory;
mod node;
mod promotion;
mod words;

pub use ballot::{Accepted, Ballot, Kind, Place, majority};
pub use memory::{Founding, Memory, Refusal, Standing};
pub use node::{Heard, Node, NodeError, QUORUM_FILE, leave, memory_in};
pub use promotion::{Agreed, Held, Parted, Promise, Promotion, members_with};
pub use words::{Confirmation, Reply, Request, Senseless, Told};

//! Crashes and failures without servers: the receiver's own code over doubles of the disk, the network and the clock.
//!
//! | file | noun |
//! |---|---|
//! | `disk/mod.rs`, `disk/file.rs` | the storage double |
//! | `disk/image.rs` | what a disk is sure to hold, what it may hold, and what the page cache shows |
//! | `disk/fate.rs` | what a power failure leaves |
//! | `source.rs` | a source as a state machine over bytes |
//! | `world.rs` | network, clock, and the rest of the world |
//! | `history.rs` | scripted binary logs whose boundaries are known |
//! | `peer.rs` | another binlogd of the source |
//! | `reader.rs` | who reads what is published |
//! | `receiver.rs` | the product over the doubles |
//! | `crash.rs` | the test of every crash |
//! | `stall.rs` | the test of every moment in which a disk hangs while the source's logs are reset |
//! | `chain/mod.rs` | the simulation of a chain of binlogds |
//! | `chain/turns.rs` | whose turn it is, of several binlogds |
//! | `chain/port.rs`, `chain/follower.rs` | a binlogd's port for readers; a binlogd that reads from another one |
//! | `cluster.rs` | what goes wrong among several servers |
//! | `turmoil.rs`, `simulate.rs` | what goes wrong at random, and the simulation of it |
#![allow(unreachable_pub, missing_docs, reason = "the modules are for the tests beside them")]

mod chain;
mod cluster;
mod crash;
mod disk;
mod history;
mod peer;
mod reader;
mod receiver;
mod simulate;
mod source;
mod stall;
mod turmoil;
mod world;

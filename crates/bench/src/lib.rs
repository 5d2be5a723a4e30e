//! Benchmarks of the binlogd binary, whole and from outside.
//!
//! Each benchmark runs the programs that it compares in turn, several rounds of it, and prints medians of the ratios
//! within a round: this machine's disk and neighbours change from minute to minute, and a ratio within a round hardly
//! does. No number here fails anything.
//!
//! | file | noun |
//! |---|---|
//! | `cli.rs` | the subcommands |
//! | `common.rs` | what every benchmark needs |
//! | `receiver.rs` | a program under test: start, processor time, memory, end |
//! | `floor.rs` | what the disk alone takes |
//! | `load.rs` | what the scripted source does: ping-pong, groups in flight |
//! | `acknowledge.rs`, `groups.rs`, `catchup.rs`, `many/`, `find/` | the benchmarks |
//! | `many/load.rs` | many scripted sources in a process of their own |
//! | `archive/` | the archive: speed and memory |
//! | `restore/` | a server from a backup to the end of the log, beside other ways |
//! | `quorum/` | commits on a real source with a quorum of three, and with what else keeps them on two machines |
//! | `stores.rs` | stores that answer nothing, or refuse |
//! | `daemon.rs` | binlogd by a configuration |
//! | `serve/` | readers of binlogd, beside readers of the source |
//! | `backlog.rs` | gigabytes of a real source's log |
//! | `progress.rs` | how the positions in binlogd's status advance |
//! | `compare.rs` | whether a copy is right |

pub mod acknowledge;
pub mod archive;
pub mod backlog;
pub mod catchup;
pub mod cli;
pub mod common;
pub mod compare;
mod daemon;
pub mod find;
pub mod floor;
pub mod groups;
pub mod load;
pub mod many;
pub mod progress;
pub mod quorum;
pub mod receiver;
pub mod restore;
pub mod serve;
pub mod stores;

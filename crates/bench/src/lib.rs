//! Benchmarks of the binlogd binary, whole and from outside.
//!
//! Each benchmark runs the programs that it compares in turn, several rounds of it, and prints medians of the ratios
//! within a round: this machine's disk and neighbours change from minute to minute, and a ratio within a round hardly
//! does. No number here fails anything.
//!
//! | file | noun |
//! |---|---|
//! | `cli.rs` | the subcommands |
//! | `machine.rs` | what it was measured on |
//! | `floor.rs` | one write and one fdatasync, nothing else |
//! | `bare.rs` | the simplest receiver: the yardstick |
//! | `receiver.rs` | a program under test: start, processor time, memory, end |
//! | `load.rs` | what the scripted source does: ping-pong, a pool of clients |
//! | `bulk_load.rs` | the scripted source in a hurry |
//! | `acknowledge.rs`, `clients.rs`, `bulk.rs`, `memory.rs`, `catchup.rs`, `many.rs` | the benchmarks |
//! | `many_load.rs` | many scripted sources in a process of their own |
//! | `source_server.rs`, `backlog.rs` | a real source, and gigabytes of its log |
//! | `status_client.rs`, `progress.rs` | binlogd's status, and how its positions advance |
//! | `compare.rs` | whether a copy is right |
//! | `process.rs` | processor time and memory of a process |
//! | `semisync/` | the whole system on real servers |
//! | `statistics.rs` | percentiles, medians, tables |

pub mod acknowledge;
pub mod backlog;
pub mod bare;
pub mod bulk;
pub mod bulk_load;
pub mod catchup;
pub mod cli;
pub mod clients;
pub mod compare;
pub mod floor;
pub mod load;
pub mod machine;
pub mod many;
pub mod many_load;
pub mod memory;
pub mod process;
pub mod progress;
pub mod receiver;
pub mod semisync;
pub mod source_server;
pub mod statistics;
pub mod status_client;

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
//! | `acknowledge.rs`, `clients.rs`, `bulk.rs`, `memory.rs` | the benchmarks |
//! | `semisync/` | the whole system on real servers |
//! | `statistics.rs` | percentiles, medians, tables |

pub mod acknowledge;
pub mod bare;
pub mod bulk;
pub mod bulk_load;
pub mod cli;
pub mod clients;
pub mod floor;
pub mod load;
pub mod machine;
pub mod memory;
pub mod receiver;
pub mod semisync;
pub mod statistics;

//! What the benchmarks and the lab do alike: servers, programs and the look at what they use.
//!
//! | file | noun |
//! |---|---|
//! | `server.rs` | a real server through `scripts/servers`, and a session with one |
//! | `semi_sync.rs` | a source's counters of semi-sync |
//! | `status_client.rs` | binlogd's status |
//! | `program.rs` | a program that runs to its end |
//! | `sysbench.rs`, `go.rs` | where sysbench is; the Go command |
//! | `interrupt.rs` | Ctrl-C |
//! | `process.rs` | a child; memory and threads of a process |
//! | `processor.rs` | processor time, to the nanosecond |
//! | `machine.rs` | what it was measured on |
//! | `floor.rs` | the durable write alone, in a loop and after a wake-up |
//! | `statistics.rs` | percentiles, medians, tables |

pub mod floor;
pub mod go;
pub mod interrupt;
pub mod machine;
pub mod process;
pub mod processor;
pub mod program;
pub mod semi_sync;
pub mod server;
pub mod statistics;
pub mod status_client;
pub mod sysbench;

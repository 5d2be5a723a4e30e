//! What the benchmarks and the lab do alike: servers, programs and the look at what they use.
//!
//! | file | noun |
//! |---|---|
//! | `server.rs` | a real server through `scripts/servers`, and a session with one |
//! | `window.rs` | one window of measurement: the steps around a load, in their order |
//! | `measured.rs` | what such a window came to |
//! | `semi_sync.rs` | a source's counters of semi-sync |
//! | `status_client.rs` | binlogd's status |
//! | `program.rs` | a program that runs to its end |
//! | `sysbench.rs`, `go.rs` | where sysbench is; the Go command |
//! | `interrupt.rs` | Ctrl-C |
//! | `process.rs` | a child |
//! | `usage.rs` | what a process has used: processor, memory, bytes written |
//! | `bare.rs`, `go_mysqlbinlog.rs` | receivers that binlogd is compared with |
//! | `machine.rs` | what it was measured on |
//! | `floor.rs` | the durable write alone, in a loop and after a wake-up |
//! | `statistics.rs` | percentiles, medians, tables |

pub mod bare;
pub mod floor;
pub mod go;
pub mod go_mysqlbinlog;
pub mod interrupt;
pub mod machine;
pub mod measured;
pub mod process;
pub mod program;
pub mod semi_sync;
pub mod server;
pub mod statistics;
pub mod status_client;
pub mod sysbench;
pub mod usage;
pub mod window;

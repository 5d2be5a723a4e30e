//! What the benchmarks, the lab and tests do alike: servers, stores, programs and the look at what they use.
//!
//! | file | noun |
//! |---|---|
//! | `server.rs` | a real server through `scripts/servers`, and a session with one |
//! | `object_store.rs` | a real object store through `scripts/stores`, and the stock tools that read one |
//! | `gcs.rs` | a stand-in for Google Cloud Storage, which has no program to run here |
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
pub mod gcs;
pub mod go;
pub mod go_mysqlbinlog;
pub mod interrupt;
pub mod machine;
pub mod measured;
pub mod object_store;
pub mod process;
pub mod program;
pub mod semi_sync;
pub mod server;
pub mod statistics;
pub mod status_client;
pub mod sysbench;
pub mod usage;
pub mod window;

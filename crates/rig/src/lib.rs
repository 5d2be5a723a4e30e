//! What the benchmarks, the lab and tests do alike: servers, stores, programs and the look at what they use.
//!
//! | file | noun |
//! |---|---|
//! | `server.rs` | a real server through `scripts/servers`, and a session with one |
//! | `object_store.rs` | a real object store through `scripts/stores`, and the stock tools that read one |
//! | `gcs.rs` | a stand-in for Google Cloud Storage, which has no program to run here |
//! | `status_client.rs` | binlogd's status |
//! | `process.rs` | a child |
//! | `usage.rs` | what a process has used: processor, memory, bytes written |
//! | `bare.rs` | the simplest receiver, which binlogd is compared with |
//! | `machine.rs` | what is measured on: processor, file system, an fdatasync |
//! | `statistics.rs` | percentiles, medians, tables |

pub mod bare;
pub mod gcs;
pub mod machine;
pub mod object_store;
pub mod process;
pub mod server;
pub mod statistics;
pub mod status_client;
pub mod usage;

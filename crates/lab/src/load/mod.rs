//! The loads.
//!
//! | file | noun |
//! |---|---|
//! | `sysbench.rs` | stock sysbench and its stock workloads |
//! | `tpcc.rs` | TPC-C by go-tpc |
//! | `go_tpc.rs` | go-tpc itself, built from a pinned version |
//! | `dataset.rs` | TPC-C's tables, filled once and kept |
//! | `times.rs` | how long transactions took |
//! | `sampler.rs` | throughput in short intervals, as the server counts it |
//! | `rotations.rs` | when the binary log was rotated, and how fast it grew |
//! | `log_filler.rs` | updates of large rows that fill the binary log, and small inserts that are timed beside them |

pub mod dataset;
pub mod go_tpc;
pub mod log_filler;
pub mod rotations;
pub mod sampler;
pub mod sysbench;
pub mod times;
pub mod tpcc;

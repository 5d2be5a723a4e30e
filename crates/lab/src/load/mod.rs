//! The loads.
//!
//! | file | noun |
//! |---|---|
//! | `sysbench.rs` | stock sysbench and its stock workloads |

pub mod sysbench;

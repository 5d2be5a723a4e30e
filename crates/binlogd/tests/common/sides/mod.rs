//! Servers on both sides of binlogd: sources, replicas, what is written and who reads.

pub mod fork_scene;
pub mod nodes;
pub mod pair;
pub mod readers;
pub mod semi_sync;
pub mod switching;
pub mod workload;

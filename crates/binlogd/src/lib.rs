//! binlogd: a virtual MySQL and MariaDB replica.

pub mod cli;
pub mod config;
pub mod wire;

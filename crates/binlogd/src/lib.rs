//! binlogd: a virtual MySQL and MariaDB replica.

pub mod admin;
pub mod cli;
pub mod config;
pub mod status;
pub mod wire;

//! binlogd: a virtual MySQL and MariaDB replica.

#![forbid(unsafe_code)]

pub mod admin;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod rescue;
pub mod status;
pub mod upstream;

//! binlogd: a virtual MySQL and MariaDB replica.

#![forbid(unsafe_code)]
// Public is what the tests, the benchmarks and the lab use; the pages are read by who works here.
#![allow(rustdoc::private_intra_doc_links)]

mod admin;
pub mod cli;
pub mod config;
mod cut;
mod daemon;
mod detail;
mod doctor;
mod history;
mod own_session;
pub mod reference;
mod rescue;
mod restore;
mod retention;
pub mod serve;
mod setup;
pub mod status;
mod undo;
pub mod upstream;

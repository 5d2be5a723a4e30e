//! binlogd: a virtual MySQL and MariaDB replica.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]
// Public is what the tests, the benchmarks and the lab use; the pages are read by who works here.
#![allow(rustdoc::private_intra_doc_links)]

pub mod cli;
pub mod reference;

//! binlogd: a virtual MySQL and MariaDB replica.

#![forbid(unsafe_code)]
// Public is what the tests, the benchmarks and the lab use; the pages are read by who works here.
#![allow(rustdoc::private_intra_doc_links)]

pub mod cli;
mod daemon;
pub mod reference;

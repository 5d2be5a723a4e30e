//! What is on the disk equals what the source wrote and is there after a kill, on a disk that fails, and under load.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod disk;
mod disk_faults;
mod disk_short;
mod encrypted;
mod file_modes;
mod golden;
mod identity;
mod interval;
mod kill;
mod mysql_tests;
mod soak;
mod sync_order;
mod unreadable;

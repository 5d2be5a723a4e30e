//! Everything that needs real servers, in one binary: linked once, and run on as many threads as there are.
//! `cargo test -p binlogd --test servers failover::` runs one module of it.

#[path = "../common/mod.rs"]
mod common;

mod accept;
mod back_again;
mod complaints;
mod disk;
mod disk_faults;
mod doctor;
mod doctor_says;
mod encrypted;
mod failover;
mod file_modes;
mod fleet;
mod fork_scene;
mod forks;
mod identity;
mod interval;
mod kill;
mod lock_out;
mod messages;
mod mysql_tests;
mod network;
mod peers;
mod rescue;
mod rescue_compare;
mod rescue_refusals;
mod rescue_writers;
mod resets;
mod restored;
mod retention;
mod semi_sync;
mod semi_sync_lost;
mod serve;
mod serve_admin;
mod serve_clients;
mod serve_events;
mod serve_mysqlbinlog;
mod serve_packets;
mod serve_points;
mod serve_port;
mod serve_semi_sync;
mod soak;
mod start;
mod status_says;
mod surroundings;
mod sync_order;
mod timelines;
mod top;
mod unreadable;
mod verify;
mod wire;
mod wire_tls;
mod withheld;

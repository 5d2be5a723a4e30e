//! Replicas and programs that read from binlogd.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod accept;
mod chain;
mod retention;
mod serve;
mod serve_admin;
mod serve_ahead;
mod serve_clients;
mod serve_events;
mod serve_mysqlbinlog;
mod serve_packets;
mod serve_points;
mod serve_port;
mod serve_semi_sync;

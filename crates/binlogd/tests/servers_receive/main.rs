//! Connections to sources: semi-sync, networks, restarts and the sources that cannot send.
//! `scripts/test-servers MODULE::` runs one module of all tests on servers, wherever it stands.

#[path = "../common/mod.rs"]
mod common;

mod back_again;
mod complaints;
mod fleet;
mod lock_out;
mod network;
mod nodes;
mod nodes_changed;
mod peers;
mod quorum;
mod semi_sync;
mod semi_sync_lost;
mod start;
mod wire;
mod wire_tls;

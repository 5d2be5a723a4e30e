//! What no real server can be made to do: sources that follow a script, networks and peers that break the protocol.

#[path = "../common/mod.rs"]
mod common;

mod configured;
mod faults;
mod fleet;
mod golden;
mod hostile;
mod hostile_streams;
mod log_in_engine;
mod managed;
mod peer;
mod peers;
mod replicas;
mod scale;
mod wire_scripted;

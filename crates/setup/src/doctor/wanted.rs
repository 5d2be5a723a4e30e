//! Our side: what the configuration wants and who we are to the source.

use std::time::Duration;
use wire::TlsMode;

/// Our side: what the configuration wants and who we are to the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The configured server id, or the one remembered in the data folder; `None` before the first start.
    pub server_id: Option<u32>,
    /// The remembered replica UUID; `None` before the first start.
    pub replica_uuid: Option<String>,
    /// Nothing was copied yet, and the first file will be the newest one.
    pub starts_at_latest: bool,
    /// How many hosts the configuration names for the source.
    pub hosts: usize,
    /// Whether semi-sync is wanted.
    pub semi_sync: bool,
    /// How the connection is to be protected.
    pub tls: TlsMode,
    /// The longest pause between two attempts to connect.
    pub backoff_max: Duration,
    /// What a daemon that runs on the data folder does with the source; `None` when none runs.
    pub running: Option<Running>,
    /// The quorum of which binlogd is to be a node; `None` without one.
    pub quorum: Option<Nodes>,
}

/// The nodes of a quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// How many there are, this one counted.
    pub count: u64,
    /// UUIDs by which those that have answered are replicas of the source, this one among them once it has one.
    pub uuids: Vec<String>,
}

/// What a daemon does with the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The state, in words.
    pub state: String,
    /// It is received.
    pub is_receiving: bool,
}

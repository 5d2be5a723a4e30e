//! Who reads from binlogd.

use super::place;
use codec::Position;
use serde::{Deserialize, Serialize};

/// Whoever serves readers, to those who ask how that stands.
pub(crate) trait Serving: Send + Sync {
    /// How it stands now.
    fn status(&self) -> ServeStatus;
}

/// The port for readers, and who is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ServeStatus {
    /// `ip:port` that is listened on.
    pub(crate) address: String,
    /// Everybody who has logged in, in the order of coming.
    pub(crate) readers: Vec<ReaderStatus>,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ReaderStatus {
    /// Number of the connection, as SHOW PROCESSLIST has it.
    pub(crate) id: u32,
    /// The source that it reads.
    pub(crate) source: String,
    /// The account.
    pub(crate) user: String,
    /// `ip:port` of the client.
    pub(crate) address: String,
    /// The client program, by its own word; empty when it did not say.
    pub(crate) program: String,
    /// Whole seconds since the login.
    pub(crate) connected_seconds: u64,
    /// `Sleep`, `Query`, `Binlog Dump` or `Binlog Dump GTID`.
    pub(crate) command: String,
    /// `server_id` of a replica; null when it has registered none.
    pub(crate) server_id: Option<u32>,
    /// UUID of a replica; empty when it said none.
    pub(crate) uuid: String,
    /// End of what was sent; null before the first event.
    #[serde(with = "place")]
    pub(crate) position: Option<Position>,
    /// True when the reader has everything that there is.
    pub(crate) caught_up: bool,
    /// Bytes sent in dumps, framing included.
    pub(crate) sent_bytes: u64,
}

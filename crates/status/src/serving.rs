//! Who reads from binlogd.

use crate::ladder::place;
use codec::Position;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whoever serves readers, to those who ask how that stands.
pub trait Serving: Send + Sync {
    /// How it stands now. Waits for no disk.
    fn status(&self, now: Timestamp) -> ServeStatus;
}

/// The port for readers, and who is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServeStatus {
    /// `ip:port` that is listened on.
    pub address: String,
    /// Open connections, with those that have not logged in.
    pub connections: u64,
    /// How many may have logged in at a time: `max_connections`, or what the limit of file descriptors leaves.
    pub max_connections: u32,
    /// Which certificate clients are shown: `configured`, or `self-made`; null without TLS.
    pub tls: Option<String>,
    /// Until when it is valid; null without TLS.
    pub tls_certificate_expires: Option<Timestamp>,
    /// Whether who does not encrypt is refused.
    pub require_tls: bool,
    /// Counters since the start.
    pub counters: ServeCounters,
    /// Everybody who has logged in, in the order of coming.
    pub readers: Vec<ReaderStatus>,
    /// The slots of all sources, by source and name.
    pub slots: Vec<SlotStatus>,
}

/// A reader's place that is remembered, and for which files are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotStatus {
    /// A user's `slot`, or a replica's UUID.
    pub name: String,
    /// The source that its reader reads.
    pub source: String,
    /// Folder name of the timeline.
    pub timeline: String,
    /// End of what was written to the reader, as it was written down last.
    #[serde(with = "place")]
    pub position: Option<Position>,
    /// Whether its reader is here.
    pub connected: bool,
    /// Since when it is not, in seconds.
    pub away_seconds: u64,
    /// Bytes from there to the end; null when its file is not held any more.
    pub behind_bytes: Option<u64>,
    /// How far it is behind in time; null before its first event.
    pub behind_seconds: Option<u64>,
    /// Why it keeps nothing; null while it does.
    pub released: Option<String>,
}

/// What the port has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServeCounters {
    /// Connections that came, with those that were refused.
    pub accepted: u64,
    /// Connections that did not get as far as a statement, by why.
    pub refused: BTreeMap<String, u64>,
    /// Logins with a wrong user or password, or by a method that the account has no hash for.
    pub failed_logins: u64,
    /// Bytes sent in dumps, framing included, to all readers.
    pub sent_bytes: u64,
}

/// One connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReaderStatus {
    /// Number of the connection, as SHOW PROCESSLIST has it.
    pub id: u32,
    /// The source that it reads.
    pub source: String,
    /// The account.
    pub user: String,
    /// `ip:port` of the client.
    pub address: String,
    /// The client program, by its own word; empty when it did not say.
    pub program: String,
    /// Whole seconds since the login.
    pub connected_seconds: u64,
    /// `Sleep`, `Query`, `Binlog Dump` or `Binlog Dump GTID`.
    pub command: String,
    /// `server_id` of a replica; null when it has registered none.
    pub server_id: Option<u32>,
    /// UUID of a replica; empty when it said none.
    pub uuid: String,
    /// End of what was sent; null before the first event.
    #[serde(with = "place")]
    pub position: Option<Position>,
    /// True when the reader has everything that there is.
    pub caught_up: bool,
    /// Bytes of the binary logs between `position` and the end of what readers may have; null outside a dump, and when not known.
    pub behind_bytes: Option<u64>,
    /// 0 when nothing is between the two, else now minus the timestamp of the newest event that was sent, and minus the delay that is wanted; 0 too
    /// while the dump stops or waits as it is meant to. Null likewise.
    pub behind_seconds: Option<u64>,
    /// Bytes sent in dumps, framing included.
    pub sent_bytes: u64,
    /// True when the reader acknowledges what it is sent (semi-sync).
    pub semi_sync: bool,
    /// Up to where it has made durable what it was sent, by its acknowledgement; null before the first.
    #[serde(with = "place")]
    pub confirmed: Option<Position>,
    /// Where its dump stops although the log goes on, in words: `after 0-1-100`; null for nowhere.
    pub stop: Option<String>,
    /// What of that point was not in the history when the dump began; null for nothing.
    pub stop_not_here: Option<String>,
    /// True when its dump has come to that point, and sends nothing more.
    pub stopped: bool,
    /// How old transactions are at least that it is sent, in seconds; 0 for no delay.
    pub delay_seconds: u64,
}

impl ReaderStatus {
    /// Whether it reads binary logs now.
    pub fn dumps(&self) -> bool {
        self.command.starts_with("Binlog Dump")
    }
}

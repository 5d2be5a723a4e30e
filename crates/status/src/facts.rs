//! What is known of a source and of the connection to it.

use super::past::{LastError, Missing, PreviousTimeline, Regained, Verified};
use super::peers::PeerStatus;
use super::semi_sync::SemiSyncStatus;
use super::timelines::TimelineStatus;
use codec::gtid::GtidState;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Instant;

/// What is known of a source and of the connection to it. Changes at most a few times a session.
#[derive(Clone, Debug, Default)]
pub struct SourceFacts {
    /// `host:port` in use or tried last. [`SourceMonitor::set_state`](super::SourceMonitor::set_state) fills it when connecting.
    pub host: Option<String>,
    /// The server's own version text.
    pub server_version: Option<String>,
    /// `server_uuid`; `None` for MariaDB, which has none.
    pub server_uuid: Option<String>,
    /// `server_id` of the source.
    pub server_id: Option<u32>,
    /// Where the source is a binlogd: its name for the timeline that this session receives.
    pub timeline_above: Option<String>,
    /// Folder name of the timeline being written.
    pub timeline: Option<String>,
    /// The operator wants semi-sync (`semi_sync`).
    pub semi_sync_wanted: bool,
    /// The newest timelines of the copy, the oldest first.
    pub timelines: Arc<[TimelineStatus]>,
    /// Whether this session acknowledges, and why or why not.
    pub semi_sync: SemiSyncStatus,
    /// TLS version in use, such as `TLSv1.3`; `None` for a connection in clear.
    pub tls: Option<String>,
    /// Until when the server's certificate is valid, as of the last encrypted connection to that host.
    pub certificate_expires: Option<Timestamp>,
    /// What `binlogd verify` found last.
    pub verified: Option<Verified>,
    /// Names and values of settings that readers decide by, as of the last connection.
    pub settings: Arc<[(String, String)]>,
    /// Transactions that forks took from the source and that it lacks; `None` when not known.
    pub source_lacked: Option<GtidState>,
    /// What it lacked and has again; `None` when it lacked nothing, or lacks something still.
    pub regained: Option<Regained>,
    /// The timeline before the present one, when that was begun since the start.
    pub previous_timeline: Option<PreviousTimeline>,
    /// Another replica with our `server_id`, in words, as of the last connection or since.
    pub rival: Option<String>,
    /// Why nobody can tell which host of the list is the source, in words; `None` while there is no doubt.
    pub hosts_in_doubt: Option<String>,
    /// Our `server_id`, which another one had at the source when we came, so that we took one at random; and since when.
    pub taken: Option<(u32, Instant)>,
    /// `server_id` and replica UUID of the last session.
    pub registered: Option<(u32, String)>,
    /// How many GTIDs of what forks took from the source were given to other transactions since, and which, but for those
    /// about which somebody has decided; `None` for none.
    pub given_twice: Option<(u64, GtidState)>,
    /// What was never copied.
    pub missing: Missing,
    /// The other binlogds of the source, in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Why the look at the source fails at present, and since when.
    pub look_error: Option<LastError>,
    /// When the source began to receive. [`SourceMonitor::set_state`](super::SourceMonitor::set_state) fills and clears it.
    pub connected_since: Option<Timestamp>,
}

impl SourceFacts {
    /// What the source lacks or gave twice, as it is known now; of a source that lost something once.
    pub fn lost_in_words(&self) -> String {
        let lacked = self.source_lacked.as_ref().map(GtidState::to_line).unwrap_or_default();
        let twice = self.given_twice.as_ref().map(|(_, twice)| twice.to_line()).unwrap_or_default();
        match (lacked.is_empty(), twice.is_empty()) {
            (false, true) => format!("the source lacks transactions that the copy holds: {lacked}"),
            (true, false) => format!("the source gave GTIDs twice: {twice}"),
            (false, false) => {
                format!(
                    "the source lacks transactions that the copy holds: {lacked}; and it gave GTIDs twice: {twice}"
                )
            }
            (true, true) => {
                "the source had lost transactions that the copy holds, and it has not sent all of them yet"
                    .to_owned()
            }
        }
    }

    /// Another host is tried. What is known of the server belongs to the one before.
    pub(crate) fn turn_to(&mut self, host: &str) {
        if self.host.as_deref() != Some(host) {
            self.host = Some(host.to_owned());
            (self.server_version, self.server_uuid, self.server_id) = (None, None, None);
            self.certificate_expires = None;
            self.settings = Arc::default();
        }
    }
}

/// The server that a session receives from, to whoever wants to look at it over another connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// `host:port` of the list.
    pub host: String,
    /// `server_uuid`; `None` for MariaDB.
    pub server_uuid: Option<String>,
    /// `server_id`.
    pub server_id: Option<u32>,
    /// Where it is a binlogd: its name for the timeline that the session receives.
    pub timeline_above: Option<String>,
    /// When the session began to receive: what tells it from another one with the same server.
    pub since: Option<Timestamp>,
}

impl Watched {
    /// A name of the server that no other has.
    pub fn server(&self) -> String {
        match (&self.server_uuid, self.server_id) {
            (Some(uuid), _) => uuid.clone(),
            (None, id) => format!("{} {}", self.host, id.unwrap_or(0)),
        }
    }
}

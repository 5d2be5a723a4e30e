//! An answer, and what a session may be asked to do.

use super::rows::Rows;
use crate::sql::Limit;
use codec::packet::ErrPacket;

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An OK packet: no rows, nothing affected.
    Done,
    /// An OK packet with one warning, which SHOW WARNINGS tells.
    Warned(ErrPacket),
    /// A result set.
    Rows(Rows),
    /// An ERR packet.
    Error(ErrPacket),
    /// The session is to do this, and answers with how that went.
    Act(Action),
}

/// What a session is asked to do. Names and privileges were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// End a connection, or only what it is doing. The answer is OK.
    Kill {
        /// Which one, possibly the asking session itself.
        connection_id: u32,
        /// A dump or statement only.
        query_only: bool,
    },
    /// Remove binary logs before this file. The answer is OK, with a warning when some stay, or an error that says who still
    /// needs them all.
    PurgeTo(String),
    /// Remove binary logs that were last written before this moment, in microseconds since 1970 UTC.
    PurgeBefore(i64),
    /// Receive again, after [`Action::StopReplica`].
    StartReplica,
    /// Stop receiving until told otherwise.
    StopReplica,
    /// Read events of a file: rows for [`super::binlog_event_columns`].
    BinlogEvents {
        /// The file.
        file: String,
        /// Offset of the first event, in bytes. An offset at which none begins is the error 1220 of a server.
        from: u64,
        /// The published end of the file, in bytes.
        end: u64,
        /// Which events from there on.
        limit: Limit,
    },
}

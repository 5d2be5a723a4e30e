//! What a reader asks for when it asks for a dump.

use super::stop::StopAt;
use codec::gtid::{GtidSet, MariadbGtid};
use std::time::Duration;

/// A binlog dump as a reader asks for it: the command, and what the session was told before.
#[derive(Debug, Clone)]
pub struct DumpRequest {
    /// Where it begins.
    pub from: From,
    /// The dump ends where the log ends (`BINLOG_DUMP_NON_BLOCK`, or a `server_id` of 0).
    pub non_blocking: bool,
    /// What the reader can do with checksums.
    pub checksum: ReaderChecksum,
    /// After so much silence a heartbeat is sent; zero for none.
    pub heartbeat_period: Duration,
    /// The reader knows heartbeats of 64 bits (flag 2 of MySQL's dump commands). Servers before 8.0.26 do not know the flag.
    pub heartbeat_v2: bool,
    /// The reader wants ANNOTATE_ROWS events (flag 2 of MariaDB's dump command).
    pub annotate: bool,
    /// `@mariadb_slave_capability`; 4 for each MariaDB since 10.0.
    pub capability: u8,
    /// The reader acknowledges: each event has two bytes more before it.
    pub semi_sync: bool,
    /// Where the dump stops although the log goes on: at the first of these that is reached.
    pub stop: Vec<StopAt>,
    /// A transaction is sent when so much time has passed since its commit.
    pub delay: Duration,
    /// Who asks, for the log.
    pub reader: String,
    /// `@binlogd_timeline`: the reader is another binlogd, and reads this timeline alone, as it stands. Empty for the one that is
    /// written.
    pub timeline: Option<String>,
}

/// Where a dump begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// COM_BINLOG_DUMP: an event of a file; of the first file if the name is empty.
    Position {
        /// Bare name.
        file: String,
        /// Offset in bytes.
        offset: u64,
    },
    /// COM_BINLOG_DUMP_GTID: what the reader lacks.
    Gtids {
        /// What the reader has.
        executed: GtidSet,
        /// Bare name of the file with which to begin; empty for the one that holds the first transaction that the reader lacks.
        file: String,
        /// Offset in it, in bytes; 4 without a name.
        offset: u64,
    },
    /// COM_BINLOG_DUMP of a MariaDB reader that has set `@slave_connect_state`.
    Mariadb(MariadbStart),
}

/// What a MariaDB reader has set before its dump by GTID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MariadbStart {
    /// `@slave_connect_state`: the last transaction that the reader has, of each domain.
    pub state: Vec<MariadbGtid>,
    /// `@slave_gtid_strict_mode`.
    pub strict: bool,
    /// `@slave_gtid_ignore_duplicates`.
    pub ignore_duplicates: bool,
    /// `@slave_until_gtid`: the last transaction that the reader wants, of each domain; domains that it does not name are not
    /// sent.
    pub until: Option<Vec<MariadbGtid>>,
}

/// What a reader has set as `@source_binlog_checksum` or `@master_binlog_checksum`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderChecksum {
    /// Nothing: it knows no checksums.
    Unaware,
    /// `NONE`. It gets the events of each file as they stand all the same.
    None,
    /// `CRC32`.
    Crc32,
}

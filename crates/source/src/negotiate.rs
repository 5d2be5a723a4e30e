//! What a replica tells its source before the dump, and the dump request itself.

use super::identify::{SourceIdentity, SourceSemiSync};
use binlog::folder::ReplicaIdentity;
use codec::ServerKind;
use codec::event::ChecksumAlgorithm;
use codec::gtid::GtidState;
use codec::packet::command;
use std::time::Duration;
use wire::{Connection, WireError};

/// To MySQL `USE_HEARTBEAT_EVENT_V2` (heartbeats with a 64-bit position, 8.0.26), to MariaDB
/// `BINLOG_SEND_ANNOTATE_ROWS_EVENT` (without it those events are left out and the copy would differ). Servers that know
/// neither ignore it.
const DUMP_FLAGS: u16 = 0x02;

/// `BINLOG_DUMP_NON_BLOCK`: end with an EOF packet instead of waiting for more.
const DUMP_NON_BLOCK: u16 = 0x01;

/// MariaDB's `MARIA_SLAVE_CAPABILITY_GTID`: send GTID events as they are.
const MARIADB_CAPABILITY_GTID: u32 = 4;

/// Who we are to the source in one session.
#[derive(Debug, Clone)]
pub struct Introduction<'a> {
    /// The persistent identity.
    pub replica: &'a ReplicaIdentity,
    /// The server id, from the configuration or the identity.
    pub server_id: u32,
    /// Ask for a heartbeat after this much silence.
    pub heartbeat_period: Duration,
    /// Offer semi-sync.
    pub semi_sync: bool,
}

impl Introduction<'_> {
    /// True when semi-sync is offered to this source.
    pub fn offers_semi_sync(&self, source: &SourceIdentity) -> bool {
        self.semi_sync && source.semi_sync != SourceSemiSync::Absent
    }

    /// Sets the session variables that the dump thread reads, and registers. Both old and new names are set: a server
    /// reads the ones that it knows and ignores the others.
    ///
    /// # Errors
    /// When the source refuses, most often for want of the REPLICATION SLAVE privilege.
    pub fn make(&self, connection: &mut Connection, source: &SourceIdentity) -> Result<(), WireError> {
        let nanoseconds = self.heartbeat_period.as_nanos();
        let uuid = &self.replica.replica_uuid;
        connection.query(&format!(
            "SET @master_heartbeat_period = {nanoseconds}, @source_heartbeat_period = {nanoseconds}"
        ))?;
        connection.query(&format!("SET @slave_uuid = '{uuid}', @replica_uuid = '{uuid}'"))?;
        ask_for_events_as_they_are(connection, source)?;
        if self.offers_semi_sync(source) {
            connection.query("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")?;
        }
        let host = rustix::system::uname();
        connection.command(&command::register_replica(self.server_id, &host.nodename().to_string_lossy(), 0))
    }
}

/// Sets what decides how events are sent: as they stand in the file.
///
/// # Errors
/// When the connection fails.
pub fn ask_for_events_as_they_are(
    connection: &mut Connection,
    source: &SourceIdentity,
) -> Result<(), WireError> {
    if source.knows_checksums {
        // CRC32 says that we understand checksums. Events come as they stand in each file, with or without one; NONE
        // would make MariaDB strip them from files that have them.
        connection.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
    }
    if source.kind == ServerKind::MariaDb {
        // A replica that does not know its GTIDs would get other events in their place.
        connection.query(&format!("SET @mariadb_slave_capability = {MARIADB_CAPABILITY_GTID}"))?;
    }
    Ok(())
}

/// Makes another binlogd send one of its timelines alone, as it stands there. `timeline` is its name for it.
///
/// # Errors
/// When the connection fails.
pub fn choose_timeline(connection: &mut Connection, timeline: &str) -> Result<(), WireError> {
    connection.query(&format!("SET @binlogd_timeline = '{timeline}'")).map(drop)
}

/// The checksum of events that stand in no file, before the first format description.
pub fn checksum_outside_files(source: &SourceIdentity) -> ChecksumAlgorithm {
    if source.knows_checksums { ChecksumAlgorithm::Crc32 } else { ChecksumAlgorithm::None }
}

/// Asks for a file from `offset` on. The request has 32 bits for it; for a place past 4 GiB the whole file is asked for
/// and who receives it passes over what is held. `waits`: for more than there is. Returns the request and the offset that it
/// names.
pub fn dump_request(server_id: u32, file: &str, offset: u64, waits: bool) -> (Vec<u8>, u64) {
    let requested = u32::try_from(offset).unwrap_or(4);
    let flags = if waits { DUMP_FLAGS } else { DUMP_FLAGS | DUMP_NON_BLOCK };
    (command::binlog_dump(requested, flags, server_id, file.as_bytes()), u64::from(requested))
}

/// Asks for a file from `offset` on (4 for its beginning; an empty name means the oldest) without waiting for more than
/// there is. From an offset past 4 GiB it asks for the file's beginning.
pub fn look_request(server_id: u32, file: &str, offset: u64) -> Vec<u8> {
    dump_request(server_id, file, offset, false).0
}

/// Asks for the first file that holds a transaction outside `set`.
///
/// # Errors
/// When the connection fails.
pub fn locate_request(
    connection: &mut Connection,
    server_id: u32,
    set: &GtidState,
) -> Result<Vec<u8>, WireError> {
    match set {
        GtidState::Mysql(set) => {
            let mut encoded = Vec::new();
            set.encode(&mut encoded);
            // BINLOG_THROUGH_GTID
            let flags = 0x04 | DUMP_NON_BLOCK;
            Ok(command::binlog_dump_gtid(flags, server_id, b"", 4, &encoded))
        }
        GtidState::Mariadb(state) => {
            connection.query(&format!("SET @slave_connect_state = '{}'", state.position()))?;
            Ok(look_request(server_id, "", 4))
        }
    }
}

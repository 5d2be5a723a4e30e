//! The events that a binary log begins with.
//!
//! Sources: MySQL manual, "Binary log event header"; MariaDB manual, "GTID_LIST_EVENT".

use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventType, FLAGS_AT, FormatDescription, HEADER_LEN, flags,
};
use codec::gtid::GtidState;

/// Where a header has the position behind its event.
const POSITION_AT: usize = 13;

/// The format description of a file as that of a log that is finished.
pub(super) fn format_description(event: &[u8], checksum: ChecksumAlgorithm) -> Vec<u8> {
    let mut event = event.to_vec();
    event[FLAGS_AT] &= !(flags::BINLOG_IN_USE as u8);
    let end = (BINLOG_MAGIC.len() + event.len()) as u32;
    event[POSITION_AT..POSITION_AT + 4].copy_from_slice(&end.to_le_bytes());
    checksum.put(&mut event);
    event
}

/// What was executed before, in the form of the server's own files. `at` is where the event begins.
pub(super) fn gtids_before(before: &GtidState, format: &FormatDescription, at: u64) -> Vec<u8> {
    let mut body = Vec::new();
    let (event_type, flags) = match before {
        GtidState::Mysql(set) => {
            set.encode(&mut body);
            (EventType::PREVIOUS_GTIDS, flags::IGNORABLE)
        }
        GtidState::Mariadb(state) => {
            state.encode_gtid_list(&mut body);
            (EventType::MARIADB_GTID_LIST, 0)
        }
    };
    let len = HEADER_LEN + body.len() + format.checksum.len();
    let mut event = Vec::with_capacity(len);
    event.extend_from_slice(&format.timestamp.to_le_bytes());
    event.push(event_type.0);
    event.extend_from_slice(&format.server_id.to_le_bytes());
    event.extend_from_slice(&(len as u32).to_le_bytes());
    event.extend_from_slice(&((at + len as u64) as u32).to_le_bytes());
    event.extend_from_slice(&flags.to_le_bytes());
    event.extend_from_slice(&body);
    event.resize(len, 0);
    format.checksum.put(&mut event);
    event
}

//! The acknowledgement of semi-synchronous replication.
//!
//! Sources: `ReplSemiSyncSlave::slaveReply` in plugin/semisync/semisync_replica.cc (MySQL) and
//! `Repl_semi_sync_slave::slave_reply` in sql/semisync_slave.cc (MariaDB); the reading side is
//! `report_reply_packet` of the source, which also states the limits.

use super::cursor::{Cursor, MalformedPacket};
use super::frame::HEADER_BYTES;

/// First byte of an acknowledgement, and of the two bytes before each event of a semi-synchronous stream.
pub const SEMI_SYNC_MAGIC: u8 = 0xEF;

/// The longest file name in an acknowledgement, in bytes: the source reads it into a buffer of `FN_REFLEN` (512).
pub const SEMI_SYNC_FILE_BYTES_MAX: usize = 511;

/// Appends a whole packet that acknowledges everything up to `position` (in bytes) of `file`.
///
/// Its sequence number is 0: the source starts a new exchange for each answer. `file` is the bare name as the source
/// sent it in its ROTATE event, without a terminator.
///
/// # Panics
/// If `file` is longer than [`SEMI_SYNC_FILE_BYTES_MAX`]. Names come from ROTATE events that were checked before.
pub fn semi_sync_acknowledgement(out: &mut Vec<u8>, position: u64, file: &[u8]) {
    assert!(
        file.len() <= SEMI_SYNC_FILE_BYTES_MAX,
        "the file name was checked when its ROTATE event was read"
    );
    let length = (1 + 8 + file.len()) as u32;
    let [a, b, c, ..] = length.to_le_bytes();
    out.reserve(HEADER_BYTES + length as usize);
    out.extend_from_slice(&[a, b, c, 0, SEMI_SYNC_MAGIC]);
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(file);
}

/// The longest acknowledgement, in bytes: magic, position and a file name.
pub const SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX: usize = 1 + 8 + SEMI_SYNC_FILE_BYTES_MAX;

/// What a replica says that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SemiSyncAcknowledgement<'a> {
    /// End of what the replica has, an offset in `file`.
    pub position: u64,
    /// The bare name of the file, as it was sent to the replica.
    pub file: &'a [u8],
}

impl<'a> SemiSyncAcknowledgement<'a> {
    /// Reads the message that a replica sends in a semi-synchronous dump, whose packet is numbered 0.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("the magic of an acknowledgement")? != SEMI_SYNC_MAGIC {
            return Err(MalformedPacket { field: "the magic of an acknowledgement", at: 0 });
        }
        let position = cursor.u64("the position")?;
        let file = cursor.remaining();
        if file.is_empty() || file.len() > SEMI_SYNC_FILE_BYTES_MAX {
            return Err(MalformedPacket { field: "the file name", at: 9 });
        }
        Ok(Self { position, file })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_acknowledgement_is_one_packet_numbered_zero() {
        let mut out = Vec::new();
        semi_sync_acknowledgement(&mut out, 0x0000_0001_0000_0004, b"binlog.000002");
        assert_eq!(out, b"\x16\0\0\0\xEF\x04\0\0\0\x01\0\0\0binlog.000002");
    }

    #[test]
    fn an_acknowledgement_is_read_as_it_was_written() {
        let mut out = Vec::new();
        semi_sync_acknowledgement(&mut out, 1 << 40, b"binlog.000002");
        let read = SemiSyncAcknowledgement::parse(&out[HEADER_BYTES..]).unwrap();
        assert_eq!(read, SemiSyncAcknowledgement { position: 1 << 40, file: b"binlog.000002" });
        assert!(SemiSyncAcknowledgement::parse(b"\xEE\x04\0\0\0\0\0\0\0b").is_err());
        assert!(SemiSyncAcknowledgement::parse(b"\xEF\x04\0\0\0\0\0\0\0").is_err(), "no name");
        assert!(SemiSyncAcknowledgement::parse(&[0xEF; 1 + 8 + 512]).is_err(), "a name that is too long");
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = SemiSyncAcknowledgement::parse(&bytes);
        }
    }
}

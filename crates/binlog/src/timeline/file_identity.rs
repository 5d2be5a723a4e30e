//! What tells a file of a server from all others of its name.

use super::beginning;
use crate::storage::ReadAt;
use codec::event::{BINLOG_MAGIC, EventHeader, EventType, FLAGS_AT, HEADER_LEN};
use std::io;

/// Longest beginning that is read, in bytes: a set of executed GTIDs may be long.
const BEGINNING_BYTES_MAX: u64 = 16 << 20;

/// A digest of the beginning of a file, up to what was executed before it: the same in each copy of the file, and another one in a
/// file that the server, or another one, made under the same name. `None` while the file does not say that yet, before `end`.
///
/// # Errors
/// When the file cannot be read.
pub fn file_identity(file: &dyn ReadAt, end: u64) -> io::Result<Option<u64>> {
    if !beginning::is_whole(file, end)? {
        return Ok(None);
    }
    let mut digest = Digest::default();
    let mut at = BINLOG_MAGIC.len() as u64;
    loop {
        let mut head = [0; HEADER_LEN];
        if at > BEGINNING_BYTES_MAX || file.read_full_at(&mut head, at)? < HEADER_LEN {
            return Ok(Some(digest.0));
        }
        let Ok(header) = EventHeader::parse(&head) else { return Ok(None) };
        let len = header.event_size as usize;
        if len < HEADER_LEN || len as u64 > BEGINNING_BYTES_MAX {
            return Ok(None);
        }
        let mut event = vec![0; len];
        if file.read_full_at(&mut event, at)? < len {
            return Ok(None);
        }
        let is_format = header.event_type == EventType::FORMAT_DESCRIPTION;
        if is_format {
            // The mark of a file that is in use goes when the server closes the file, and the checksum stays without it
            // (`Format_description_log_event` of MySQL computes the checksum with the flag cleared).
            event[FLAGS_AT] &= !1;
        }
        digest.add(&event);
        if !is_format && header.event_type != EventType::MARIADB_START_ENCRYPTION {
            return Ok(Some(digest.0));
        }
        at += len as u64;
    }
}

/// FNV-1a, 64 bits: nobody chooses these bytes in order to deceive.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;
    use crate::storage::posix::PosixStorage;
    use crate::testing::FileBuilder;

    #[test]
    fn a_file_is_known_by_its_beginning() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let identity = |bytes: &[u8], end: usize| {
            std::fs::write(path.path(), bytes).unwrap();
            file_identity(&*PosixStorage.open_read(path.path()).unwrap(), end as u64).unwrap()
        };
        let one = FileBuilder::new().previous_gtids("").transaction(1, 9).finish();
        let longer = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).finish();
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7";
        let other = FileBuilder::new().previous_gtids(uuid).transaction(1, 9).finish();
        let known = identity(&one, one.len());
        assert!(known.is_some() && known == identity(&longer, longer.len()));
        let mut in_use = longer.clone();
        in_use[4 + FLAGS_AT] |= 1;
        assert_eq!(known, identity(&in_use, in_use.len()));
        assert_ne!(known, identity(&other, other.len()));
        assert_eq!(identity(&one, 60), None, "it does not say yet what came before it");
    }
}

//! The events with which a binary log begins, before its first transaction.

use crate::storage::ReadAt;
use codec::event::{BINLOG_MAGIC, EventHeader, EventType, HEADER_LEN};
use std::io;

/// Whether what stands before `end` holds all that a file says of itself: its format description, and what was executed
/// before it. A file without that statement has said all when the first other event is there.
///
/// # Errors
/// When the file cannot be read.
pub fn is_whole(file: &dyn ReadAt, end: u64) -> io::Result<bool> {
    let mut at = BINLOG_MAGIC.len() as u64;
    let mut head = [0; HEADER_LEN];
    while at + HEADER_LEN as u64 <= end && file.read_full_at(&mut head, at)? == HEADER_LEN {
        let Ok(header) = EventHeader::parse(&head) else { return Ok(false) };
        at += u64::from(header.event_size);
        let stands_before =
            matches!(header.event_type, EventType::FORMAT_DESCRIPTION | EventType::MARIADB_START_ENCRYPTION);
        if !stands_before {
            return Ok(at <= end);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;
    use crate::storage::posix::PosixStorage;
    use crate::testing::FileBuilder;

    #[test]
    fn a_file_has_begun_when_it_says_what_came_before_it() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let format_end = FileBuilder::new().len() as u64;
        let head_end = FileBuilder::new().previous_gtids("").len() as u64;
        let whole = FileBuilder::new().previous_gtids("").transaction(1, 9).finish();
        std::fs::write(path.path(), &whole).unwrap();
        let file = PosixStorage.open_read(path.path()).unwrap();
        for (end, expected) in
            [(0, false), (4, false), (format_end, false), (head_end - 1, false), (head_end, true)]
        {
            assert_eq!(is_whole(&*file, end).unwrap(), expected, "{end}");
        }
        std::fs::write(path.path(), FileBuilder::new().transaction(1, 9).finish()).unwrap();
        let file = PosixStorage.open_read(path.path()).unwrap();
        assert!(!is_whole(&*file, format_end).unwrap());
        assert!(is_whole(&*file, whole.len() as u64).unwrap(), "a file that does not say it");
    }
}

//! When the kernel writes a file's bytes from the page cache to the disk.
//!
//! Left alone it does so at the next sync, or half a minute later. Whoever asks for it earlier, and does not wait, spreads the
//! writing over time: the sync that follows finds little left.
//!
//! Source of the facts: sync_file_range(2). `SYNC_FILE_RANGE_WRITE` begins to write the range's dirty pages that are not on
//! their way yet. It makes nothing durable, writes no metadata, and takes no error away from the sync that follows: the
//! kernel tells of a write that failed where somebody waits for one.

use std::fs::File;
use std::ops::Range;

/// Asks the kernel to begin to write these bytes of a file to the disk, in pages that lie wholly or partly in the range. It
/// waits only where the disk has more to do than its queue takes. False when it did not begin: the file system has no page
/// cache, or something in between does not let the call through. Nothing is lost then, and the next sync has more to do.
pub fn begin_writeback(file: &File, bytes: Range<u64>) -> bool {
    imp::begin_writeback(file, bytes)
}

#[cfg(target_os = "linux")]
mod imp {
    use super::{File, Range};
    use std::os::fd::AsRawFd;

    #[expect(unsafe_code, reason = "a call of the kernel that no crate wraps")]
    pub(super) fn begin_writeback(file: &File, bytes: Range<u64>) -> bool {
        let len = bytes.end.saturating_sub(bytes.start);
        let (Ok(from), Ok(len)) = (libc::off64_t::try_from(bytes.start), libc::off64_t::try_from(len)) else {
            return false;
        };
        // To the kernel a length of nothing is everything up to the end of the file.
        // SAFETY: the descriptor is open while `file` lives, and the call touches no memory of ours.
        len == 0
            || unsafe { libc::sync_file_range(file.as_raw_fd(), from, len, libc::SYNC_FILE_RANGE_WRITE) } == 0
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use super::{File, Range};

    pub(super) fn begin_writeback(_: &File, _: Range<u64>) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_takes_it_and_keeps_its_bytes() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 40_000]).unwrap();
        for bytes in [0..16_384, 16_384..40_000, 100..100, 0..1 << 40] {
            assert!(begin_writeback(&file, bytes));
        }
        assert_eq!(file.metadata().unwrap().len(), 40_000, "it makes a file no longer");
        file.sync_data().unwrap();
    }

    #[test]
    fn what_cannot_be_begun_is_said() {
        let (socket, _other) = UnixStream::pair().unwrap();
        assert!(!begin_writeback(&File::from(std::os::fd::OwnedFd::from(socket)), 0..4096));
        let file = tempfile::tempfile().unwrap();
        assert!(!begin_writeback(&file, 0..u64::MAX));
    }
}

//! What can be wrong with an event.

use crate::BadBinlogName;
use thiserror::Error;

/// What is wrong with the bytes of an event. The fault is always on the side that produced the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EventError {
    /// Fewer bytes than the fixed part of this event needs.
    #[error("{what} needs at least {needed} bytes and has {actual}")]
    TooShort {
        /// What was being read.
        what: &'static str,
        /// Bytes that its fixed part takes.
        needed: usize,
        /// Bytes that there were.
        actual: usize,
    },
    /// The header's own length cannot be right.
    #[error("an event header says {0} bytes, less than the header itself")]
    ImpossibleLength(u32),
    /// The stored checksum is not that of the bytes.
    #[error("event checksum is {stored:#010x} but its bytes give {computed:#010x}")]
    BadChecksum {
        /// The four bytes at the event's end.
        stored: u32,
        /// CRC32 of everything before them.
        computed: u32,
    },
    /// A checksum algorithm that does not exist in any released server.
    #[error("unknown checksum algorithm {0}; this build knows NONE (0) and CRC32 (1)")]
    UnknownChecksumAlgorithm(u8),
    /// A field holds what the format does not allow.
    #[error("{0}")]
    Malformed(&'static str),
    /// It names a file that can be no binary log.
    #[error(transparent)]
    FileName(#[from] BadBinlogName),
}

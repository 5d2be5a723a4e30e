//! An event of a file as it is looked at, and what becomes of it.

use codec::event::EventHeader;
use codec::gtid::MariadbGtid;

/// An event as a choice looks at it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) header: EventHeader,
    /// Its beginning, without its checksum: as much of it as the choice wants to see.
    pub(crate) bytes: &'a [u8],
    /// Bare name of its file.
    pub(crate) file: &'a str,
    /// Where it begins in the file.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is sent.
    Send,
    /// It is left out, and nothing says so.
    Omit,
    /// It is left out with its transaction; a heartbeat says so before the next event that is sent.
    Skip,
    /// The dump stops before it.
    End,
    /// The dump waits before it, until this moment, in microseconds since 1970.
    Wait(i64),
}

/// What follows an event, sent or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct After {
    /// MariaDB: where the reader is, now that what it has has passed, as a GTID_LIST says it.
    pub(crate) reached: Option<Vec<MariadbGtid>>,
    /// MariaDB: where the dump ends, for the reader has what it wanted.
    pub(crate) until: Option<Vec<MariadbGtid>>,
}

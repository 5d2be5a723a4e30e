//! What one file tells of its writer.

use super::super::scan::FileScan;
use codec::event::{EventType, FormatDescription};
use codec::gtid::Uuid;

/// The writer of a file, as far as the file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) format: FormatDescription,
    /// MySQL: servers under whose UUIDs transactions were committed here first.
    pub(super) committed: Vec<Uuid>,
    /// Its last event, and the `server_id` in that one: the server ends a file with an event of its own.
    pub(super) end: (Option<EventType>, u32),
}

impl Writer {
    pub(super) fn of(scan: &FileScan) -> Option<Writer> {
        Some(Writer {
            format: scan.format.clone()?,
            committed: scan.committed_here.clone(),
            end: (scan.last_event, scan.last_server_id),
        })
    }
}

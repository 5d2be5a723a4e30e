//! Up to where everything is held: the boundaries of the stream as places in the log.

use super::Sink;
use binlog::Position;
use binlog::scan::Known;
use codec::event::BINLOG_MAGIC;
use config::FsyncMode;

impl Sink<'_> {
    /// False when the cursor has begun a file that the log has not.
    pub(super) fn is_in_file_of_log(&self) -> bool {
        let written = self.timeline.log.written();
        written.is_some_and(|written| {
            self.cursor.position().is_none_or(|position| *position.file == *written.position().file)
        })
    }

    /// The last boundary as an offset in its file, the log's where [`is_in_file_of_log`](Self::is_in_file_of_log).
    pub(super) fn boundary(&self) -> u64 {
        // Without a boundary there is no file of the log either, and nothing behind its magic.
        self.cursor.boundary().map_or(BINLOG_MAGIC.len() as u64, |boundary| boundary.offset)
    }

    /// What a start need not check again once a sync has covered it: everything to the last boundary, all of which is written.
    pub(super) fn known(&self) -> Known {
        debug_assert!(self.batch.is_empty() && self.gtids.is_all_syncing());
        Known {
            offset: self.boundary(),
            tail_start: self.cursor.tail_start(),
            last_timestamp: self.timeline.last_timestamp,
            gtids: self.timeline.gtids_in_file.clone(),
        }
    }

    /// The last boundary that is written. The stream may have begun another file, or may stand before it.
    pub(super) fn held_to(&self) -> Option<Position> {
        let offset = self.boundary_in_log()?;
        Some(Position { file: self.timeline.log.written()?.position().file.clone(), offset })
    }

    /// The same as an offset in the log's file.
    pub(super) fn boundary_in_log(&self) -> Option<u64> {
        let written = self.timeline.log.written()?;
        let boundary = match self.cursor.left().filter(|_| !self.is_in_file_of_log()) {
            Some(left) => left.boundary,
            None => self.boundary(),
        };
        debug_assert!(boundary <= written.position().offset, "a boundary at {boundary} is not written");
        Some(boundary)
    }

    /// Takes back what readers may have where the log has failed, until it is opened again.
    pub(crate) fn withdraw_if_failed(&mut self) {
        if self.timeline.log.has_failed() {
            self.readable.withdraw();
        }
    }

    /// Lets readers have what is safe by now. What only the journal has must stand in the file before.
    pub(super) fn publish_readable(&mut self) {
        let is_safe = match self.options.fsync_mode {
            FsyncMode::WriteThenAcknowledge => true,
            FsyncMode::SyncThenAcknowledge => !self.timeline.log.is_unsynced(),
        };
        if is_safe && let Some(boundary) = self.boundary_in_log() {
            self.readable.until(boundary, |end| self.timeline.has_begun(end));
        }
    }
}

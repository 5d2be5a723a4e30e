//! The newest timeline, open for appending, and what is known of it.

use binlog::Position;
use binlog::scan::TAIL_BYTES_MAX;
use binlog::timeline::Timeline;
use binlog::timeline::beginning;
use binlog::timeline::gaps::{Gap, Gaps};
use binlog::writer::published::Published;
use binlog::writer::{LogError, LogWriter};
use codec::event::{BINLOG_MAGIC, FormatDescription};
use codec::gtid::GtidState;
use status::{Missing, RecordedGap};
use std::path::{Path, PathBuf};

/// The newest timeline, open for appending.
#[derive(Debug)]
pub struct OpenTimeline {
    /// Folder name.
    pub name: String,
    /// Content of its `timeline.toml`.
    pub info: Timeline,
    /// The end of its files.
    pub log: LogWriter,
    /// Format description of the live file, once it has one.
    pub format: Option<FormatDescription>,
    /// What the timeline's first file began with on the source when it was looked at last; counts until the file arrives.
    pub expected: Option<FormatDescription>,
    /// GTIDs of all transactions that are durable, and of those before the timeline's first file by the source's word.
    pub gtids: GtidState,
    /// Those of them that the live file does not count to what came before it, though it follows on the source.
    pub unspoken: GtidState,
    /// Of [`OpenTimeline::gtids`], the transactions in the live file; see [`Known::gtids`](binlog::scan::Known::gtids).
    pub gtids_in_file: GtidState,
    /// GTIDs on older timelines that belong to the same history; see [`Timeline::shared_before`].
    pub shared_before: GtidState,
    /// What no timeline of the history holds.
    pub gaps: Gaps,
    /// Where the live file's tail begins, with which a session makes sure that the source's history is ours.
    pub tail_start: u64,
    /// Time of the newest event, seconds since 1970; 0 when unknown.
    pub last_timestamp: u32,
}

impl OpenTimeline {
    /// End of the durable bytes. Between sessions that is a boundary.
    pub fn end(&self) -> Option<Position> {
        self.log.durable().map(|durable| durable.position().clone())
    }

    /// Where the copy ends as readers are shown it: behind the magic of the live file, where nothing can be read, until the file
    /// says what came before it. A reader that found less would be told that what it needs was purged.
    #[cold]
    pub(crate) fn shown_end(&self, published: &Published) -> Option<Position> {
        let end = self.end()?;
        let is_shown = published.live().is_some_and(|live| {
            live.timeline == self.folder() && live.file == end.file && live.end() <= end.offset
        });
        if is_shown || self.has_begun(end.offset) {
            return Some(end);
        }
        Some(Position { offset: BINLOG_MAGIC.len() as u64, ..end })
    }

    /// Whether the live file says what came before it, before `end`. Where it cannot be read that is looked at again.
    #[cold]
    pub fn has_begun(&self, end: u64) -> bool {
        let Some(live) = self.log.files().last() else { return false };
        self.log.open_read(live).and_then(|file| beginning::is_whole(&*file, end)).unwrap_or(false)
    }

    /// GTIDs of the whole history that the copy holds up to here, on this timeline and the older ones that it continues.
    ///
    /// Those of this timeline alone would say too little: it begins with the file that holds the first transaction which
    /// the older ones lack, so until that file has arrived, what is known to be acknowledged is known from them.
    pub fn history(&self) -> GtidState {
        let mut history = self.shared_before.clone();
        // Of two kinds of server only the newer one is a history that a successor could continue.
        if history.union_with(&self.gtids).is_err() {
            history.clone_from(&self.gtids);
        }
        history
    }

    /// Of those, what a timeline holds, or was executed before the copy began: what is shown as durable.
    pub fn stored(&self) -> GtidState {
        self.gaps.stored(self.history())
    }

    /// What no timeline of the history holds, as it is shown.
    pub fn missing(&self) -> Missing {
        missing(&self.gaps)
    }

    /// The bytes at the live file's end that the source must have too; empty when they are too many.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tail(&self) -> Result<Vec<u8>, LogError> {
        let end = self.end().map_or(0, |end| end.offset);
        if end.saturating_sub(self.tail_start) > TAIL_BYTES_MAX {
            return Ok(Vec::new());
        }
        self.log.read_live(self.tail_start)
    }

    /// Whether nothing has arrived yet by which the source's file could be known.
    pub(crate) fn is_untold(&self) -> bool {
        self.log.files().len() <= 1 && self.format.is_none()
    }

    /// The format description that the live file must have on the source, where that is known.
    pub(crate) fn expected_format(&self) -> Option<FormatDescription> {
        self.format.clone().or_else(|| self.expected.clone().filter(|_| self.is_untold()))
    }

    /// The file before the live one, when that has no transaction yet.
    pub(crate) fn before_untold(&self) -> Option<PathBuf> {
        self.end().filter(|_| self.tail_start <= BINLOG_MAGIC.len() as u64)?;
        let files = self.log.files();
        Some(self.folder().join(&files[files.len().checked_sub(2)?]))
    }

    /// Folder of the timeline's files.
    pub fn folder(&self) -> &Path {
        self.log.folder()
    }

    /// After a session: drops the beginning of a transaction that was not received to its end.
    ///
    /// # Errors
    /// When the log has failed; it must then be opened again from disk.
    pub(crate) fn cut_to_boundary(&mut self, boundary: u64) -> Result<(), LogError> {
        self.log.cut_to(boundary)
    }
}

/// Gaps as they are shown.
pub fn missing(gaps: &Gaps) -> Missing {
    let shown = |gap: &Gap| RecordedGap {
        timeline: gap.timeline.clone(),
        began_at: gap.began_at.clone(),
        after: gap.after.clone(),
        first_file: gap.first_file.clone(),
        missing: gap.missing.to_line(),
    };
    Missing { gtids: gaps.missing(), gaps: gaps.open.iter().map(shown).collect() }
}

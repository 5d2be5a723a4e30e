//! How far readers may read: the last boundary that is as safe as the operator asked for.

use binlog::Position;
use binlog::writer::published::{Live, Published};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What readers are told.
pub(super) struct Readable {
    published: Arc<Published>,
    /// What is published as the live file; taken once a file, so that no reader is ever waited for.
    live: Option<Arc<Live>>,
    /// A file that has begun, until something of it may be read. A reader that found it empty could not begin with it.
    begun: Option<(PathBuf, Arc<str>)>,
    /// The boundary that the sync in the background will cover.
    syncing: Option<u64>,
}

impl Readable {
    /// For a session that begins at the end of a timeline.
    pub(super) fn new(published: Arc<Published>, timeline: &Path, end: Option<&Position>) -> Readable {
        let is_of_timeline = |live: &Arc<Live>| live.timeline == timeline;
        let live = published.live().filter(|live| end.is_some_and(|end| end.file == live.file));
        // An older timeline is served until this one has something, and its files have the same names.
        let live = live.filter(is_of_timeline);
        let begun = end.filter(|_| live.is_none()).map(|end| (timeline.to_owned(), end.file.clone()));
        Readable { live, begun, published, syncing: None }
    }

    /// Another file has begun.
    pub(super) fn file_begins(&mut self, timeline: &Path, end: Option<&Position>) {
        self.begun = end.map(|end| (timeline.to_owned(), end.file.clone()));
        (self.live, self.syncing) = (None, None);
    }

    /// A sync in the background covers everything before `boundary`.
    pub(super) fn syncing(&mut self, boundary: Option<u64>) {
        self.syncing = boundary;
    }

    /// That sync has ended.
    pub(super) fn synced(&mut self, has_begun: impl FnOnce(u64) -> bool) {
        if let Some(boundary) = self.syncing.take() {
            self.until(boundary, has_begun);
        }
    }

    /// Everything before `boundary` may be read. `has_begun` says whether a file that has begun can be read up to there.
    pub(super) fn until(&mut self, boundary: u64, has_begun: impl FnOnce(u64) -> bool) {
        if let Some(live) = &self.live {
            self.published.advance(live, boundary);
        } else if let Some((timeline, file)) = self.begun.take_if(|_| has_begun(boundary)) {
            self.published.is_at(&timeline, Some(&Position { file, offset: boundary }));
            self.live = self.published.live();
        }
    }

    /// The log has failed: what a sync should have written may be gone from the disk, and the page cache gives it to nobody but
    /// by chance.
    pub(super) fn withdraw(&mut self) {
        self.published.withdraw();
        (self.live, self.begun, self.syncing) = (None, None, None);
    }
}

//! What changes at most a few times a session.

use super::facts::SourceFacts;
use super::past::LastError;
use super::semi_sync::SemiSyncStatus;
use super::semi_sync_book::SemiSyncBook;
use super::state::{DiskHang, SourceState};

/// State and facts under one lock, so that no reader sees the facts of one session with the state of another.
pub(super) struct Session {
    pub(super) state: SourceState,
    pub(super) facts: SourceFacts,
    pub(super) last_error: Option<LastError>,
    pub(super) semi_sync: SemiSyncBook,
    /// Written by the thread that watches the disk, and by nobody else.
    pub(super) disk_hang: Option<DiskHang>,
}

impl Session {
    /// The state that counts: while the disk hangs, what the receiver said last does not.
    pub(super) fn state(&self) -> SourceState {
        self.disk_hang.clone().map_or_else(|| self.state.clone(), SourceState::DiskHangs)
    }

    /// What is known, as it is while the disk hangs or does not.
    pub(super) fn facts(&self) -> SourceFacts {
        let mut facts = self.facts.clone();
        if self.disk_hang.is_some() && facts.semi_sync.active {
            let reason = "the source waits for acknowledgements, but the disk does not answer".to_owned();
            facts.semi_sync = SemiSyncStatus { active: false, reason };
        }
        facts
    }
}

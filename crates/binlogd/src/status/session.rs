//! What changes at most a few times a session.

use super::facts::SourceFacts;
use super::past::LastError;
use super::semi_sync::SemiSyncStatus;
use super::semi_sync_book::SemiSyncBook;
use super::state::{DiskHang, SourceState, Stuck};

/// State and facts under one lock, so that no reader sees the facts of one session with the state of another.
pub(super) struct Session {
    pub(super) state: SourceState,
    pub(super) facts: SourceFacts,
    pub(super) last_error: Option<LastError>,
    pub(super) semi_sync: SemiSyncBook,
    /// Written by the thread that watches the disk, and by nobody else.
    pub(super) disk_hang: Option<DiskHang>,
    /// Written by the thread that watches the receiving ones, and by nobody else.
    pub(super) stuck: Option<Stuck>,
}

impl Session {
    /// The state that counts: while the disk hangs or the receiver is stuck, what the receiver said last does not.
    pub(super) fn state(&self) -> SourceState {
        match (&self.disk_hang, &self.stuck) {
            (Some(hang), _) => SourceState::DiskHangs(hang.clone()),
            (None, Some(stuck)) => SourceState::Stuck(stuck.clone()),
            (None, None) => self.state.clone(),
        }
    }

    /// What is known, as it is while acknowledgements come or do not.
    pub(super) fn facts(&self) -> SourceFacts {
        let mut facts = self.facts.clone();
        let why = match (&self.disk_hang, &self.stuck) {
            (Some(_), _) => "the disk does not answer",
            (None, Some(_)) => "the receiving thread is stuck",
            (None, None) => return facts,
        };
        if facts.semi_sync.active {
            let reason = format!("the source waits for acknowledgements, but {why}");
            facts.semi_sync = SemiSyncStatus { active: false, reason };
        }
        facts
    }
}

//! How far the GTIDs of a session have come: arrived, covered by a sync, acknowledged.

use crate::attempt::open_timeline::OpenTimeline;
use crate::sink::acknowledge::OWED_MAX;
use binlog::Position;
use binlog::writer::LogWriter;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use status::SourceMonitor;
use std::collections::VecDeque;
use std::sync::Arc;

/// The GTIDs that are on their way. A stream of one source cannot mix the two kinds of GTID, so sets of both kinds are not
/// reckoned with here; if it did, the bytes would still be right.
pub(super) struct GtidProgress {
    /// What was executed before the file, by its own word, when that came since the last sync began.
    before: Option<GtidState>,
    /// GTIDs committed since the last sync began.
    unsynced: GtidState,
    /// GTIDs that the sync in the background will cover.
    syncing: GtidState,
    /// Among them is what a file counts to what came before it.
    syncing_says_before: bool,
    /// GTIDs committed since the source last asked for an acknowledgement.
    unflagged: GtidState,
    /// GTIDs that the acknowledgement which is owed will cover.
    flagged: GtidState,
    /// Where a part of what is owed may be paid before the rest: what each request will cover, with its place.
    later: VecDeque<(Position, GtidState)>,
    /// What was held when the session began, until its first acknowledgement, which covers all earlier positions.
    held: Option<Arc<GtidState>>,
}

impl GtidProgress {
    /// For a session that begins with `held`.
    pub(super) fn new(kind: ServerKind, held: Arc<GtidState>) -> GtidProgress {
        GtidProgress {
            before: None,
            unsynced: GtidState::empty(kind),
            syncing: GtidState::empty(kind),
            syncing_says_before: false,
            unflagged: GtidState::empty(kind),
            flagged: GtidState::empty(kind),
            later: VecDeque::new(),
            held: Some(held),
        }
    }

    /// A transaction has arrived to its end, with semi-sync in force or without.
    pub(super) fn arrived(&mut self, id: TransactionId, semi_sync: bool) {
        let _ = self.unsynced.insert(id);
        if semi_sync {
            let _ = self.unflagged.insert(id);
        }
    }

    /// A file has said what came before it, while `held` was durable.
    pub(super) fn said_before(&mut self, before: GtidState, held: &GtidState) {
        // Most often it is just what is held, and then nothing of it is new.
        self.before = Some(before).filter(|before| before != held);
    }

    /// What was committed until now belongs to the sync that begins.
    pub(super) fn written_is_syncing(&mut self, timeline: &mut OpenTimeline) {
        if let Some(before) = self.before.take() {
            let _ = self.syncing.union_with(&before);
            self.syncing_says_before = true;
        }
        if !self.unsynced.is_empty() {
            let _ = self.syncing.append(&self.unsynced);
            let _ = timeline.gtids_in_file.append(&self.unsynced);
            self.unsynced.clear();
        }
    }

    /// What the last sync covered is durable.
    pub(super) fn synced_is_durable(&mut self, timeline: &mut OpenTimeline, monitor: &SourceMonitor) {
        if self.syncing.is_empty() {
            return;
        }
        let _ = timeline.gtids.append(&self.syncing);
        let never_held = timeline.gaps.never_held();
        if std::mem::take(&mut self.syncing_says_before) && !never_held.is_empty() {
            // What a file counts to what came before it was not all copied.
            let stored = self.syncing.subtract(never_held);
            monitor.publish_gtids(|gtids| gtids.durable.append(&stored));
        } else {
            monitor.publish_gtids(|gtids| gtids.durable.append(&self.syncing));
        }
        self.syncing.clear();
    }

    /// True when all that has arrived belongs to a sync.
    pub(super) fn is_all_syncing(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// The source asks for an acknowledgement of all that has arrived.
    pub(super) fn are_wanted(&mut self) {
        let _ = self.flagged.append(&self.unflagged);
        self.unflagged.clear();
    }

    /// The same, where earlier requests may be paid before this one, which is for `at`.
    pub(super) fn are_wanted_at(&mut self, at: &Position) {
        let wanted = std::mem::replace(&mut self.unflagged, GtidState::empty(self.flagged.kind()));
        let is_full = self.later.len() >= OWED_MAX;
        match self.later.back_mut().filter(|_| is_full) {
            Some((last, gtids)) => {
                last.clone_from(at);
                let _ = gtids.append(&wanted);
            }
            None => self.later.push_back((at.clone(), wanted)),
        }
    }

    /// One that was lost is acknowledged by itself.
    pub(super) fn is_wanted(&mut self, id: TransactionId) {
        let _ = self.flagged.insert(id);
    }

    /// What was wanted up to `at` is acknowledged.
    pub(super) fn are_acknowledged(&mut self, at: &Position, log: &LogWriter, monitor: &SourceMonitor) {
        while self.later.front().is_some_and(|(wanted, _)| log.is_covered(wanted, at)) {
            if let Some((_, gtids)) = self.later.pop_front() {
                let _ = self.flagged.append(&gtids);
            }
        }
        let held = self.held.take();
        monitor.publish_gtids(|gtids| {
            if let Some(held) = held {
                gtids.acknowledged.replace(held);
            }
            gtids.acknowledged.append(&self.flagged);
        });
        self.flagged.clear();
    }
}

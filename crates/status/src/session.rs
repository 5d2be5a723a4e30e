//! What changes at most a few times a session.

use super::events::{Events, Level};
use super::facts::SourceFacts;
use super::past::{LastError, count};
use super::semi_sync::SemiSyncStatus;
use super::state::{DiskHang, SourceState, StopCause, Stuck};
use super::units;
use crate::semi_sync::book::SemiSyncBook;
use codec::gtid::GtidState;
use std::time::Instant;

/// State and facts under one lock, so that no reader sees the facts of one session with the state of another.
pub(crate) struct Session {
    pub(crate) state: SourceState,
    /// Since when a server to receive from is looked for, where one is.
    pub(crate) without_since: Instant,
    pub(crate) facts: SourceFacts,
    pub(crate) last_error: Option<LastError>,
    pub(crate) semi_sync: SemiSyncBook,
    /// Written by the thread that watches the disk, and by nobody else.
    pub(crate) disk_hang: Option<DiskHang>,
    /// Written by the thread that watches the receiving ones, and by nobody else.
    pub(crate) stuck: Option<Stuck>,
    /// The last attempt found the disk full.
    pub(crate) disk_was_full: bool,
    pub(crate) events: Events,
    /// The quorum's, at the last sample.
    pub(crate) epoch: Option<u64>,
}

impl Session {
    /// The state that counts: while the disk hangs or the receiver is stuck, what the receiver said last does not.
    pub(crate) fn state(&self) -> SourceState {
        match (&self.disk_hang, &self.stuck) {
            (Some(hang), _) => SourceState::DiskHangs(hang.clone()),
            (None, Some(stuck)) => SourceState::Stuck(stuck.clone()),
            (None, None) => self.state.clone(),
        }
    }

    /// What is known, as it is while acknowledgements come or do not.
    pub(crate) fn facts(&self) -> SourceFacts {
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

    /// Changes what is known of semi-sync. What that means to an operator becomes an event.
    pub(crate) fn change_semi_sync(&mut self, change: impl FnOnce(&mut Session)) {
        let (was_active, since) = (self.facts.semi_sync.active, self.semi_sync.unacknowledged_since());
        change(self);
        let SemiSyncStatus { active, reason } = &self.facts.semi_sync;
        match (was_active, active) {
            (false, true) => {
                self.events.note(Level::Ok, "semi_sync", format!("semi-sync is in force: {reason}"))
            }
            // When a session ends the state says why.
            (true, false) if self.state.is_session() => {
                let text = format!("semi-sync is not in force any more: {reason}");
                self.events.note(Level::Warning, "semi_sync", text);
            }
            _ => {}
        }
        let now = self.semi_sync.unacknowledged_since();
        if now.is_some() && now != since {
            let text = "the source told clients of commits without an acknowledgement";
            self.events.note(Level::Critical, "commits", text);
        }
    }

    /// The state has changed.
    pub(crate) fn note_state(&mut self) {
        let (level, text) = match &self.state {
            // They come before one of those below.
            SourceState::Starting | SourceState::Recovering | SourceState::Connecting { .. } => return,
            SourceState::Receiving => {
                let host = self.facts.host.as_deref().unwrap_or_default();
                (Level::Ok, format!("receiving from {host}"))
            }
            SourceState::Withholding => (Level::Critical, "acknowledgements are withheld".to_owned()),
            SourceState::WaitingForReplicas => {
                (Level::Critical, "acknowledgements wait for receivers further down".to_owned())
            }
            SourceState::BackingOff { error, .. } => (Level::Critical, format!("not receiving: {error}")),
            SourceState::BeginningFromArchive { what } => (Level::Notice, what.clone()),
            SourceState::WaitingForArchive { error } => (Level::Critical, format!("not receiving: {error}")),
            SourceState::WaitingForSpace { error } => (Level::Critical, format!("the disk is full: {error}")),
            SourceState::DiskHangs(hang) => {
                (Level::Critical, format!("the disk does not answer: {}", hang.operation))
            }
            SourceState::Stuck(stuck) => (Level::Critical, stuck.what.clone()),
            // As wanted, and what comes next is told by itself.
            SourceState::Stopped { by: StopCause::End, .. } => return,
            SourceState::Stopped { reason, .. } => (Level::Critical, format!("stopped: {reason}")),
        };
        self.events.note(level, "state", text);
    }

    /// Changes what is known of the source. What that means to an operator becomes an event.
    pub(crate) fn change_facts(&mut self, change: impl FnOnce(&mut SourceFacts)) {
        let before = Seen::of(&self.facts);
        change(&mut self.facts);
        let now = Seen::of(&self.facts);
        if let (Some(old), Some(new)) = (&before.timeline, &now.timeline)
            && old != new
        {
            self.events.note(Level::Notice, "timeline", format!("the timeline {new} follows {old}"));
        }
        if now.lacked > before.lacked {
            let lacked = self.facts.source_lacked.as_ref().map(GtidState::to_line).unwrap_or_default();
            let text = format!("the source lacks transactions that the copy holds: {lacked}");
            self.events.note(Level::Critical, "fork", text);
        }
        if now.regained && !before.regained {
            self.events.note(Level::Ok, "fork", "the source has again what it lacked");
        }
        if now.twice > before.twice {
            self.events.note(
                Level::Critical,
                "fork",
                format!("the source gave {} twice", units::counted(now.twice, "GTID")),
            );
        }
        if now.gaps > before.gaps {
            self.events.note(
                Level::Warning,
                "gap",
                "the copy has a gap: transactions that were never copied",
            );
        }
    }
}

/// What of the facts becomes an event when it changes.
struct Seen {
    timeline: Option<String>,
    lacked: u64,
    regained: bool,
    twice: u64,
    gaps: usize,
}

impl Seen {
    fn of(facts: &SourceFacts) -> Seen {
        Seen {
            timeline: facts.timeline.clone(),
            lacked: facts.source_lacked.as_ref().map_or(0, count),
            regained: facts.regained.is_some(),
            twice: facts.given_twice.as_ref().map_or(0, |(count, _)| *count),
            gaps: facts.missing.gaps.len(),
        }
    }
}

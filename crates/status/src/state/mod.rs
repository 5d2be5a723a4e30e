//! What the receiver of a source is doing, and how far it is with it.

pub(crate) mod name;
pub(crate) mod pulse;

use super::facts::SourceFacts;
use crate::quorum::QuorumStatus;
use crate::semi_sync::ack_replicas::AckReplicasStatus;
use crate::state::name::StateName;
use crate::units::time::human_time;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Instant;

/// Who stopped a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StopCause {
    /// The daemon, which ends or takes up another configuration.
    End,
    /// Somebody, by a statement or on the page.
    Operator,
    /// An error that does not end by itself.
    Fault,
}

/// What the receiver of a source is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// The thread has not begun.
    Starting,
    /// The live file is being checked, and cut at its last boundary if needed.
    Recovering,
    /// A connection is being made and the session negotiated.
    Connecting {
        /// `host:port` tried.
        host: String,
    },
    /// Connected, and the stream is being stored. The only healthy state.
    Receiving,
    /// Connected, and the stream is being stored, but nothing is acknowledged: the source lacks what the copy holds.
    Withholding,
    /// Connected, and the stream is being stored, but acknowledgements are held: too few receivers further down have confirmed
    /// within `ack_timeout`.
    WaitingForReplicas,
    /// Waiting before the next attempt to connect.
    BackingOff {
        /// When the next attempt begins.
        until: Timestamp,
        /// What ended the last attempt.
        error: String,
    },
    /// Nothing is on this disk, and the archive is asked where to go on, or files are fetched from it.
    BeginningFromArchive {
        /// What is done, in words.
        what: String,
    },
    /// Nothing is on this disk, and what the archive has cannot be told or fetched: nothing is begun before that is tried again, and
    /// works.
    WaitingForArchive {
        /// Why, and what to do.
        error: String,
    },
    /// The disk is full. Nothing is acknowledged; goes on by itself when there is space.
    WaitingForSpace {
        /// The folder and the operating system's words.
        error: String,
    },
    /// An operation of the disk is under way for too long. Nothing is acknowledged; what was received before is not lost by
    /// it. Shown in place of whatever the receiver was doing: it cannot say it itself. See [`SourceMonitor::set_disk_hang`](super::SourceMonitor::set_disk_hang).
    DiskHangs(DiskHang),
    /// The receiving thread does not come round, and no known wait explains it. Nothing is acknowledged; a restart of binlogd
    /// helps, and the watchdog of systemd sees to one. Shown in place of whatever the receiver was doing.
    Stuck(Stuck),
    /// Ended for good: nothing happens until an operator acts or the daemon starts again.
    Stopped {
        /// Why, and what to do.
        reason: String,
        /// Who.
        by: StopCause,
    },
}

/// An operation of the disk that is under way for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskHang {
    /// Which one, in words.
    pub operation: String,
    /// When it was seen first.
    pub since: Instant,
}

/// A receiving thread that does not come round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Which thread, for how long, and what it was doing, in words.
    pub what: String,
    /// It has lasted for so long that only a restart is expected to help.
    pub is_for_good: bool,
}

impl SourceState {
    /// Ended for good by an error.
    pub fn stopped(reason: String) -> SourceState {
        SourceState::Stopped { reason, by: StopCause::Fault }
    }

    /// Ended because an operator wants it.
    pub fn stopped_by_operator(reason: String) -> SourceState {
        SourceState::Stopped { reason, by: StopCause::Operator }
    }

    /// Ended with the daemon, or for another configuration.
    pub fn ended() -> SourceState {
        let reason = "binlogd stops, or takes up another configuration".to_owned();
        SourceState::Stopped { reason, by: StopCause::End }
    }

    /// The state in a word or two, as status, metrics and `/healthz` show it.
    pub fn name(&self) -> StateName {
        match self {
            SourceState::Starting => StateName::Starting,
            SourceState::Recovering => StateName::Recovering,
            SourceState::Connecting { .. } => StateName::Connecting,
            SourceState::Receiving => StateName::Receiving,
            SourceState::Withholding => StateName::Withholding,
            SourceState::WaitingForReplicas => StateName::WaitingForReplicas,
            SourceState::BackingOff { .. } => StateName::BackingOff,
            SourceState::BeginningFromArchive { .. } => StateName::BeginningFromArchive,
            SourceState::WaitingForArchive { .. } => StateName::WaitingForArchive,
            SourceState::Stuck(_) => StateName::Stuck,
            SourceState::WaitingForSpace { .. } => StateName::WaitingForSpace,
            SourceState::DiskHangs(_) => StateName::DiskHangs,
            SourceState::Stopped { .. } => StateName::Stopped,
        }
    }

    /// Who stopped the receiver; `None` while it is not stopped.
    pub(super) fn stopped_by(&self) -> Option<StopCause> {
        match self {
            SourceState::Stopped { by, .. } => Some(*by),
            _ => None,
        }
    }

    /// Whether a session lasts: the stream is being stored, whatever becomes of acknowledgements.
    pub fn is_session(&self) -> bool {
        matches!(self, SourceState::Receiving | SourceState::Withholding | SourceState::WaitingForReplicas)
    }

    /// Whether a server to receive from is looked for.
    pub(crate) fn seeks_source(&self) -> bool {
        matches!(self, SourceState::Connecting { .. } | SourceState::BackingOff { .. })
    }

    /// What the state is about; see [`SourceStatus::state_detail`](super::SourceStatus::state_detail).
    pub(crate) fn detail(
        &self,
        facts: &SourceFacts,
        recovery: Option<RecoveryStatus>,
        replicas: Option<AckReplicasStatus>,
        quorum: Option<&QuorumStatus>,
    ) -> Option<String> {
        match self {
            SourceState::Starting => None,
            SourceState::Recovering => recovery.map(|recovery| recovery.to_string()),
            SourceState::Connecting { host } => Some(format!("to {host}")),
            SourceState::Receiving => facts.connected_since.map(|since| format!("since {since}")),
            SourceState::Withholding => Some(format!(
                "{}; binlogd rescue hands over what is lacking, binlogd forks records what is decided",
                facts.lost_in_words()
            )),
            SourceState::WaitingForReplicas => replicas.map(|replicas| match quorum {
                Some(quorum) => quorum.waits(replicas.confirmed),
                None => format!(
                    "{} of {} receivers have confirmed what the source waits for (ack_after_replicas); its commits wait",
                    replicas.confirmed, replicas.wanted
                ),
            }),
            SourceState::BackingOff { until, error } => {
                Some(format!("{error}; next attempt at {}", human_time(*until)))
            }
            SourceState::BeginningFromArchive { what } => Some(what.clone()),
            SourceState::WaitingForArchive { error } | SourceState::WaitingForSpace { error } => {
                Some(error.clone())
            }
            SourceState::DiskHangs(hang) => Some(format!(
                "{} has been under way for {} s; nothing is acknowledged until it ends",
                hang.operation,
                hang.since.elapsed().as_secs()
            )),
            SourceState::Stuck(stuck) => Some(stuck.what.clone()),
            SourceState::Stopped { reason, .. } => Some(reason.clone()),
        }
    }
}

/// How far the check of the live file is that a start begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryStatus {
    /// Bytes of the file that need no check or have been checked.
    pub checked_bytes: u64,
    /// Bytes of the file.
    pub of_bytes: u64,
}

impl fmt::Display for RecoveryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checked {} of {} MiB of the newest file", self.checked_bytes >> 20, self.of_bytes >> 20)
    }
}

//! What a session is given, what it tells, and why it ends.

pub(crate) mod attached;
pub mod cursor;
pub(crate) mod left_behind;
pub(crate) mod left_file;
pub mod receive;
pub mod refusal;
pub(crate) mod unasked;
pub(crate) mod unproven;

use crate::decide::fork_watch::ForkWatch;
use crate::session::refusal::Refusal;
use crate::sink::downstream::ReplicaDemand;
use binlog::writer::LogError;
use binlog::writer::published::Published;
use codec::dump_stream::FrameError;
use codec::packet::ErrPacket;
use config::FsyncMode;
use source::clock::Clock;
use source::link::{End, Link};
use source::stop::Interruption;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use wire::WireError;

/// What a session needs to know of the configuration.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// When an acknowledgement may be sent.
    pub fsync_mode: FsyncMode,
    /// Longest time that written bytes stay unsynced.
    pub fsync_interval: Duration,
    /// Silence after which the connection counts as lost.
    pub net_read_timeout: Duration,
    /// How far readers may read.
    pub published: Arc<Published>,
    /// Who sends.
    pub sender: Sender,
}

/// Who sends what a session receives. It decides whether anything can be acknowledged.
#[derive(Debug, Clone)]
pub enum Sender {
    /// The source, or the binlogd that stands in its place. What it asks for is acknowledged.
    Source {
        /// Whom to tell of transactions that a fork took from the source once; `None` where none did.
        forks: Option<Arc<ForkWatch>>,
        /// Which receivers further down an acknowledgement waits for; `None` for none.
        replicas: Option<ReplicaDemand>,
        /// It is a timeline of a binlogd that is written no more there.
        is_ended: bool,
    },
    /// A peer, which completes the copy and is no source: no semi-sync is understood, nothing is acknowledged, and that nothing
    /// more comes does not mean that all was received.
    Peer {
        /// When the session ends although more arrives.
        until: Instant,
    },
}

impl ReceiveOptions {
    /// Whom to tell of transactions that a fork took from the source once.
    pub(super) fn forks(&self) -> Option<&Arc<ForkWatch>> {
        match &self.sender {
            Sender::Source { forks, .. } => forks.as_ref(),
            Sender::Peer { .. } => None,
        }
    }

    /// Which receivers further down an acknowledgement waits for.
    pub(super) fn replicas(&self) -> Option<&ReplicaDemand> {
        match &self.sender {
            Sender::Source { replicas, .. } => replicas.as_ref(),
            Sender::Peer { .. } => None,
        }
    }

    /// How long the session may still last; `None` where nothing but the source ends it.
    pub(super) fn left(&self) -> Option<Duration> {
        match self.sender {
            Sender::Source { .. } => None,
            Sender::Peer { until } => Some(until.saturating_duration_since(self.clock.now())),
        }
    }
}

/// Why a session ended.
#[derive(Debug, Error)]
pub enum SessionError {
    /// What arrived cannot be stored.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What arrived is no binlog dump.
    #[error("the source's stream cannot be understood: {0}")]
    Frame(#[from] FrameError),
    /// The source ended the dump and said why.
    #[error("the source ended the dump: {} (error {}, SQLSTATE {})", .0.message, .0.code, .0.sqlstate)]
    Source(ErrPacket),
    /// The source ended the dump in good order, as at its shutdown.
    #[error("the source ended the dump")]
    EndOfDump,
    /// The connection was closed.
    #[error("the source closed the connection")]
    Closed,
    /// The source asked for an acknowledgement at no place of its log.
    #[error("the source asks for an acknowledgement before it has named the file of its log that it sends")]
    Unplaced,
    /// The source went on to a file of which nobody knows yet whether it follows.
    #[error("the source cannot be asked whether {file} follows what the copy holds: {error}")]
    Unasked {
        /// The file.
        file: String,
        /// Why.
        error: WireError,
    },
    /// A look at the source has found that its log is not what arrives.
    #[error("what arrives is not the source's present log: {0}")]
    LeftBehind(String),
    /// Another host of the list is the source now.
    #[error("the source is read-only, and clients can write to {host}, which has everything: a switch-over")]
    SwitchedOver {
        /// Its number in the list.
        to: usize,
        /// Its name.
        host: String,
    },
    /// The quorum has gone on to another epoch.
    #[error("{0}")]
    Epoch(String),
    /// Nothing arrived for too long, not even a heartbeat.
    #[error("nothing arrived from the source for {0:?} (net_read_timeout), not even a heartbeat")]
    Silent(Duration),
    /// It was to last no longer.
    #[error("the time for it was over before everything had arrived")]
    TimeIsOver,
    /// The network failed.
    #[error("the connection to the source failed: {0}")]
    Network(io::Error),
    /// The source lacks what the copy holds, or gave its GTIDs to others, and the operator wants to decide.
    #[error("{0}")]
    Forked(String),
    /// What is to be acknowledged now was held for long: the disk here or receivers further down took so long, or it was withheld.
    #[error(
        "acknowledgements were held for {0:.1?}, and the source may have begun its logs anew meanwhile: a new session compares \
         the place before the source is told"
    )]
    HeldLong(Duration),
    /// What a node of a quorum must not forget cannot be written down.
    #[error("the quorum: {0}")]
    Quorum(String),
    /// The disk failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<Interruption> for SessionError {
    fn from(why: Interruption) -> SessionError {
        match why {
            Interruption::LeftBehind(why) => SessionError::LeftBehind(why),
            Interruption::SwitchedOver { to, host } => SessionError::SwitchedOver { to, host },
            Interruption::Epoch(why) => SessionError::Epoch(why),
        }
    }
}

impl SessionError {
    /// True when the log is worthless in memory and must be opened again from disk.
    pub(crate) fn log_failed(&self) -> bool {
        matches!(self, SessionError::Log(error) if !matches!(error, LogError::FileExists(_)))
    }
}

/// How a session has begun: what becomes of acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// The source did not take the offer of semi-sync, or had none: it asks for none.
    WithoutSemiSync,
    /// What the source asks for is acknowledged.
    Acknowledging,
    /// The source asks, and is told nothing for now but what is handed back.
    Withholding,
}

/// What a session tells and asks outside its own stream.
pub struct Outside<'a> {
    /// Is called when the first event has come.
    pub on_stream: &'a mut dyn FnMut(Begun),
    /// Asks the source what it has at the end of what is held, over a connection of its own.
    pub link: &'a mut dyn FnMut(&End<'_>) -> Result<Link, WireError>,
}

//! Why an arriving event is not admitted, and whose fault that is.

use binlog::Position;
use codec::event::{EventError, EventType};
use std::sync::Arc;
use thiserror::Error;

/// The source's fault, or that of what is between it and us. Nothing of the event is stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PeerError {
    /// An event's bytes are not what its checksum says, or a field is impossible.
    #[error("the source sent a {event_type} event at {at} that is not sound: {error}")]
    Event {
        /// Its type.
        event_type: EventType,
        /// Where it would have been stored.
        at: Position,
        /// What is wrong.
        error: EventError,
    },
    /// Bytes are missing or doubled between two events.
    #[error(
        "after {at} the source sent an event that ends at {stated}, but it would end at {actual}: bytes are missing"
    )]
    Discontinuity {
        /// End of the event before.
        at: Position,
        /// The event's own word, modulo 2^32.
        stated: u32,
        /// Where it would end.
        actual: u64,
    },
    /// A heartbeat names another place than the one that was reached.
    #[error(
        "the source's heartbeat stands at {heartbeat}, but its stream has only reached {at}: bytes are missing"
    )]
    HeartbeatElsewhere {
        /// Where the stream stands.
        at: Position,
        /// Where the source believes to be.
        heartbeat: Position,
    },
    /// The stream does not start where it was asked to.
    #[error("asked for {asked}, but the source starts at {sent}")]
    StartsElsewhere {
        /// The request.
        asked: Position,
        /// The answer.
        sent: Position,
    },
    /// An event came where the protocol has none.
    #[error("the source sent a {0} event before it named a file")]
    NoFile(EventType),
}

impl PeerError {
    /// True when the bytes themselves were wrong, as opposed to their order.
    pub(crate) fn is_checksum_failure(&self) -> bool {
        matches!(self, PeerError::Event { error: EventError::BadChecksum { .. }, .. })
    }
}

/// The file at which we resume is no longer the one that we hold: the source began its logs anew.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{file} of the source is not the file of that name in the copy: the source's logs were reset or replaced"
)]
pub struct OtherFile {
    /// The name.
    pub file: Arc<str>,
}

/// The source has the file at which we resume, but not with the bytes that we hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the source's {at} is not what the copy holds there (it holds the file up to {held}): the source was put back to an \
     earlier state, or has lost the end of its log"
)]
pub struct OtherHistory {
    /// The event that differs, or the end of what the source has.
    pub at: Position,
    /// End of what the copy holds of the file, in bytes.
    pub held: u64,
}

/// The source has gone on to a file that does not follow what the copy holds: its logs were reset behind its dump.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the source went from {after} to {file}, but its own log does not go on so: its logs were reset or replaced meanwhile"
)]
pub struct NotNext {
    /// End of what the copy holds.
    pub after: Position,
    /// The file that came next.
    pub file: String,
}

/// Why an event is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// See [`PeerError`]. In a box, so that the answer to each event is small.
    #[error(transparent)]
    Peer(Box<PeerError>),
    /// See [`OtherFile`].
    #[error(transparent)]
    OtherFile(#[from] OtherFile),
    /// See [`OtherHistory`]. In a box, as [`Refusal::Peer`].
    #[error(transparent)]
    OtherHistory(Box<OtherHistory>),
    /// See [`NotNext`]. In a box, as [`Refusal::Peer`].
    #[error(transparent)]
    NotNext(Box<NotNext>),
}

impl From<NotNext> for Refusal {
    fn from(found: NotNext) -> Refusal {
        Refusal::NotNext(Box::new(found))
    }
}

impl From<OtherHistory> for Refusal {
    fn from(found: OtherHistory) -> Refusal {
        Refusal::OtherHistory(Box::new(found))
    }
}

impl From<PeerError> for Refusal {
    fn from(error: PeerError) -> Refusal {
        Refusal::Peer(Box::new(error))
    }
}

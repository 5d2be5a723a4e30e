//! How a binary log file can be unsound.

use codec::event::{EventError, EventType};
use std::fmt;

/// What is wrong at a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Offset in bytes of the event (or of the magic) that is not sound.
    pub at: u64,
    /// What about it.
    pub kind: DamageKind,
}

/// The ways in which a file can be unsound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DamageKind {
    /// The file is shorter than the magic.
    NoMagic,
    /// The first four bytes are not the magic.
    BadMagic,
    /// The file ends inside an event, as after a crash in the middle of a write.
    Truncated {
        /// Bytes that the event says it has, 0 when not even its header is whole.
        event_size: u32,
        /// Bytes that are there.
        available: u64,
    },
    /// A field or the checksum is wrong.
    Event(EventType, EventError),
    /// The event's own position is not where it stands.
    Position {
        /// Where the event ends, modulo 2^32.
        actual: u32,
        /// What it says.
        stated: u32,
    },
    /// The first event is not a format description.
    NoFormatDescription(EventType),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DamageKind::NoMagic | DamageKind::BadMagic => write!(f, "{}", self.kind),
            kind => write!(f, "at {}: {kind}", self.at),
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamageKind::NoMagic => write!(f, "the file ends before its 4-byte magic"),
            DamageKind::BadMagic => write!(f, "the first 4 bytes are not those of a binary log"),
            DamageKind::Truncated { event_size: 0, available } => {
                write!(f, "{available} bytes left, less than an event header")
            }
            DamageKind::Truncated { event_size, available } => {
                write!(f, "an event of {event_size} bytes is cut after {available}")
            }
            DamageKind::Event(event_type, error) => write!(f, "{event_type} event: {error}"),
            DamageKind::Position { actual, stated } => {
                write!(f, "the event ends at {actual} but says {stated}")
            }
            DamageKind::NoFormatDescription(event_type) => {
                write!(f, "the first event is {event_type}, not FORMAT_DESCRIPTION")
            }
        }
    }
}

//! Which events a binary log may hold here, beyond what their lengths and checksums say.
//!
//! The receiver asks before it stores an event, and the [walk](crate::scan) over a file asks when it reads the event back:
//! recovery would cut off at the next start what the receiver let through.

use codec::event::{EventError, EventType, HEADER_LEN, Rotate};
use codec::gtid::{GtidSet, GtidState, MariadbGtidState};

/// The longest PREVIOUS_GTIDS or GTID_LIST event, in bytes: four million intervals. It is read whole, into memory.
pub(crate) const GTID_STATE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The answer to a longer one.
pub(crate) const GTIDS_TOO_LONG: EventError =
    EventError::Malformed("a GTID set of more than 64 MiB is not supported");

/// The events that must be read whole, up to a limit of their own; see [`check_length`].
pub fn states_gtids(event_type: EventType) -> bool {
    matches!(event_type, EventType::PREVIOUS_GTIDS | EventType::MARIADB_GTID_LIST)
}

/// Checks the fields on which the walk relies in an event that is not a GTID event. The receiver makes the same check
/// before it stores an event: recovery would cut off at the next start what it let through.
///
/// # Errors
/// When such a field cannot be read.
pub fn check_body(event_type: EventType, event: &[u8]) -> Result<(), EventError> {
    match event_type {
        EventType::ROTATE => Rotate::parse(event).map(drop),
        other if states_gtids(other) => {
            gtids_before(other, event.get(HEADER_LEN..).unwrap_or_default()).map(drop)
        }
        _ => Ok(()),
    }
}

/// Checks that an event of `len` bytes, without its checksum, can be read as far as its type needs it.
///
/// # Errors
/// When it states GTIDs and is too long to be read whole.
pub fn check_length(event_type: EventType, len: usize) -> Result<(), EventError> {
    if states_gtids(event_type) && len > GTID_STATE_BYTES_MAX { Err(GTIDS_TOO_LONG) } else { Ok(()) }
}

/// The GTID state that a file begins with, from the body of its PREVIOUS_GTIDS or GTID_LIST event.
///
/// # Errors
/// When the body cannot be decoded.
pub fn gtids_before(event_type: EventType, body: &[u8]) -> Result<GtidState, EventError> {
    if event_type == EventType::PREVIOUS_GTIDS {
        return GtidSet::decode(body)
            .map(GtidState::Mysql)
            .map_err(|_| EventError::Malformed("the GTID set of a PREVIOUS_GTIDS event cannot be decoded"));
    }
    MariadbGtidState::decode_gtid_list(body)
        .map(GtidState::Mariadb)
        .map_err(|_| EventError::Malformed("the list of a GTID_LIST event cannot be decoded"))
}

//! The event that opens a transaction, in each of its forms.

use super::error::EventError;
use super::fields::{need, packed_integer, u32_at, u64_at};
use super::header::{EventHeader, HEADER_LEN};
use super::types::EventType;
use crate::ServerKind;
use crate::gtid::{Gtid, MariadbGtid, Tag, TransactionId, Uuid, decode_gtid_tagged_event};

/// MariaDB's `FL_STANDALONE`: no COMMIT or XID follows; the transaction is the one statement after this event.
pub const MARIADB_STANDALONE: u8 = 1;

/// GTID (33), ANONYMOUS_GTID (34), GTID_TAGGED (42) or MariaDB's GTID (162).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GtidEvent {
    /// The transaction's identifier; `None` for an anonymous transaction.
    pub id: Option<TransactionId>,
    /// Length in bytes of the whole transaction, this event and checksums included; MySQL 8.0.2 and later.
    pub transaction_length: Option<u64>,
    /// MariaDB: see [`MARIADB_STANDALONE`]; always false for MySQL.
    pub standalone: bool,
    /// Whose form it has. In MariaDB's this event stands for the BEGIN.
    pub kind: ServerKind,
}

impl GtidEvent {
    /// True for the types that [`GtidEvent::parse`] reads.
    pub fn is_gtid(event_type: EventType) -> bool {
        matches!(
            event_type,
            EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED | EventType::MARIADB_GTID
        )
    }

    /// Reads a whole event without its checksum.
    ///
    /// # Errors
    /// When it is cut short or a field is out of its range.
    pub fn parse(header: &EventHeader, event: &[u8]) -> Result<GtidEvent, EventError> {
        match header.event_type {
            EventType::MARIADB_GTID => parse_mariadb(header, event),
            EventType::GTID_TAGGED => parse_tagged(event),
            _ => parse_mysql(header, event),
        }
    }

    /// When the transaction was committed on the source of this log, in microseconds since 1970
    /// (`immediate_commit_timestamp`); `None` where the event does not say so, as MariaDB's and those of MySQL before 8.0.1.
    pub fn commit_time(header: &EventHeader, event: &[u8]) -> Option<i64> {
        let body = event.get(HEADER_LEN..)?;
        let micros = match header.event_type {
            EventType::GTID_TAGGED => decode_gtid_tagged_event(body).ok()?.immediate_commit_timestamp,
            EventType::GTID | EventType::ANONYMOUS_GTID => {
                let clock = body.get(25..42)?;
                let mut bytes = [0; 8];
                bytes[..7].copy_from_slice(body.get(42..49).filter(|_| clock[0] == LOGICAL_CLOCK)?);
                u64::from_le_bytes(bytes) & ((1 << 55) - 1)
            }
            _ => return None,
        };
        i64::try_from(micros).ok().filter(|micros| *micros > 0)
    }
}

/// What begins the fields of the logical clock.
const LOGICAL_CLOCK: u8 = 2;

/// `Gtid_event` (`control_events.h`): flags 1, UUID 16, number 8, then since 5.7 a logical clock of 1 + 8 + 8 bytes, then
/// since 8.0 the commit timestamps (7 bytes, bit 55 says that a second follows) and the transaction's length.
fn parse_mysql(header: &EventHeader, event: &[u8]) -> Result<GtidEvent, EventError> {
    need("a GTID event", event, HEADER_LEN + 1 + 16 + 8)?;
    let body = &event[HEADER_LEN..];
    let id = if header.event_type == EventType::ANONYMOUS_GTID {
        None
    } else {
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&body[1..17]);
        let gno = u64_at(body, 17);
        if gno == 0 || gno >= i64::MAX as u64 {
            return Err(EventError::Malformed("a GTID event's transaction number is out of range"));
        }
        Some(TransactionId::Mysql(Gtid { uuid: Uuid::from_bytes(uuid), tag: Tag::default(), gno }))
    };
    Ok(GtidEvent {
        id,
        transaction_length: transaction_length(&body[25..]),
        standalone: false,
        kind: ServerKind::MySql,
    })
}

/// The length stands behind fields that old servers do not write, so its absence is not an error.
fn transaction_length(after_number: &[u8]) -> Option<u64> {
    let clock = after_number.get(..17)?;
    if clock[0] != LOGICAL_CLOCK {
        return None;
    }
    let timestamps = &after_number[17..];
    let immediate = timestamps.get(..7)?;
    let width = if immediate[6] & 0x80 != 0 { 14 } else { 7 };
    let mut rest = timestamps.get(width..)?;
    packed_integer(&mut rest).ok().filter(|length| *length > 0)
}

fn parse_tagged(event: &[u8]) -> Result<GtidEvent, EventError> {
    need("a GTID_TAGGED event", event, HEADER_LEN)?;
    let tagged = decode_gtid_tagged_event(&event[HEADER_LEN..])
        .map_err(|_| EventError::Malformed("a GTID_TAGGED event cannot be decoded"))?;
    Ok(GtidEvent {
        id: Some(TransactionId::Mysql(tagged.gtid)),
        transaction_length: tagged.transaction_length.filter(|length| *length > 0),
        standalone: false,
        kind: ServerKind::MySql,
    })
}

/// `Gtid_log_event` (MariaDB `sql/log_event.h`): sequence 8, domain 4, flags 1; the server id is the header's.
fn parse_mariadb(header: &EventHeader, event: &[u8]) -> Result<GtidEvent, EventError> {
    need("a MariaDB GTID event", event, HEADER_LEN + 8 + 4 + 1)?;
    let body = &event[HEADER_LEN..];
    let id = MariadbGtid { domain: u32_at(body, 8), server_id: header.server_id, sequence: u64_at(body, 0) };
    Ok(GtidEvent {
        id: Some(TransactionId::Mariadb(id)),
        transaction_length: None,
        standalone: body[12] & MARIADB_STANDALONE != 0,
        kind: ServerKind::MariaDb,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(event_type: EventType) -> EventHeader {
        EventHeader { timestamp: 0, event_type, server_id: 5, event_size: 0, log_pos: 0, flags: 0 }
    }

    #[test]
    fn a_gtid_of_mysql_8_has_the_transactions_length() {
        let mut event = vec![0u8; HEADER_LEN];
        event.push(0);
        event.extend_from_slice(&[0x11; 16]);
        event.extend_from_slice(&42u64.to_le_bytes());
        event.push(2);
        event.extend_from_slice(&[0; 16]);
        assert_eq!(GtidEvent::parse(&header(EventType::GTID), &event).unwrap().transaction_length, None);
        assert_eq!(GtidEvent::commit_time(&header(EventType::GTID), &event), None);
        event.extend_from_slice(&1_795_415_400_000_001_u64.to_le_bytes()[..7]);
        event.extend_from_slice(&[0xfc, 0x2c, 0x01]);
        let gtid = GtidEvent::parse(&header(EventType::GTID), &event).unwrap();
        assert_eq!(gtid.id.unwrap().to_string(), "11111111-1111-1111-1111-111111111111:42");
        assert_eq!(gtid.transaction_length, Some(300));
        let at = |event: &[u8]| GtidEvent::commit_time(&header(EventType::GTID), event);
        assert_eq!(at(&event), Some(1_795_415_400_000_001));
        // Another time of the first commit follows.
        event[HEADER_LEN + 48] |= 0x80;
        assert_eq!(at(&event), Some(1_795_415_400_000_001));
    }

    #[test]
    fn mariadb_takes_the_server_id_from_the_header() {
        let mut event = vec![0u8; HEADER_LEN];
        event.extend_from_slice(&100u64.to_le_bytes());
        event.extend_from_slice(&3u32.to_le_bytes());
        event.push(MARIADB_STANDALONE);
        let gtid = GtidEvent::parse(&header(EventType::MARIADB_GTID), &event).unwrap();
        assert_eq!(gtid.id.unwrap().to_string(), "3-5-100");
        assert!(gtid.standalone && gtid.kind == ServerKind::MariaDb);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            code in proptest::sample::select(vec![33u8, 34, 42, 162]),
        ) {
            let _ = GtidEvent::parse(&header(EventType(code)), &bytes);
            let _ = GtidEvent::commit_time(&header(EventType(code)), &bytes);
        }
    }
}

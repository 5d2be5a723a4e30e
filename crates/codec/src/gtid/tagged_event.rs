//! GTID_TAGGED_LOG_EVENT (type 42, MySQL 8.3 and later): the GTID of a transaction that has a tag.
//!
//! Unlike every other event it is written by MySQL's serialization library. The body is one message:
//!
//! ```text
//! format version   1
//! length           of the whole message, these first three fields included
//! last field       1 + the highest field id that a reader must know, or 0
//! fields           field id, value; in the order of the ids; optional ones left out where they repeat another
//! ```
//!
//! All of these are variable-length integers. The fields, from `Gtid_event::define_fields` in
//! `libs/mysql/binlog/event/control_events.h`:
//!
//! ```text
//! 0 flags            4 last_committed               8 transaction length
//! 1 UUID             5 sequence_number              9 version of the immediate server
//! 2 gno              6 immediate commit timestamp  10 version of the original server, optional
//! 3 tag              7 original …, optional        11 commit group ticket, optional
//! ```
//!
//! The UUID is an array of 16 variable-length integers: a byte above 127 takes two.

use super::cursor::Cursor;
use super::error::GtidError;
use super::mysql::{GNO_MAX, Gtid};
use super::set_wire::decode_tag;
use super::tag::Tag;
use super::uuid::Uuid;

const FORMAT_VERSION: u64 = 1;

/// Number of fields that this reader knows. The library numbers them from 0.
const FIELDS_KNOWN: u64 = 12;

/// The fields of a GTID_TAGGED_LOG_EVENT. Fields that the source leaves out are filled in as MySQL does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedGtidEvent {
    /// The transaction's GTID.
    pub gtid: Gtid,
    /// Bit 0: the transaction may hold changes logged as statements.
    pub flags: u8,
    /// Logical clock: `sequence_number` of the newest transaction that had committed when this one was prepared.
    pub last_committed: i64,
    /// Logical clock: number of this transaction in its binlog file, from 1.
    pub sequence_number: i64,
    /// When the transaction was committed on the source of this stream, in microseconds since 1970.
    pub immediate_commit_timestamp: u64,
    /// When it was committed where it was first executed, in microseconds since 1970.
    pub original_commit_timestamp: u64,
    /// Length of the whole transaction in bytes, this event included; `None` if the source left it out.
    pub transaction_length: Option<u64>,
    /// Version of the source of this stream, such as 90700 for 9.7.0.
    pub immediate_server_version: u32,
    /// Version of the server where the transaction was first executed.
    pub original_server_version: u32,
    /// Group of transactions that were committed together; 0 if not used.
    pub commit_group_ticket: u64,
}

/// Reads the body of a GTID_TAGGED_LOG_EVENT: the bytes after the 19-byte header, without the checksum.
///
/// Allocates nothing. Fields that a later version may add are skipped, if that version marks them as ones that may be.
///
/// # Errors
/// [`GtidError::Bytes`] for a body that ends too early or goes on after its end, an unknown format version or required
/// field, fields that are missing or out of order, and values out of range.
pub fn decode_gtid_tagged_event(body: &[u8]) -> Result<TaggedGtidEvent, GtidError> {
    let mut cursor = Cursor::new("GTID_TAGGED_LOG event", body);
    if cursor.varint()? != FORMAT_VERSION {
        return Err(
            cursor.error_at(0, "its serialization format version is unknown; a newer binlogd is needed")
        );
    }
    let at = cursor.position();
    if cursor.varint()? != body.len() as u64 {
        return Err(cursor.error_at(at, "its length differs from that of the event"));
    }
    let at = cursor.position();
    if cursor.varint()? > FIELDS_KNOWN {
        return Err(cursor.error_at(at, "it needs fields that are unknown here; a newer binlogd is needed"));
    }
    let mut fields = Fields { next: read_id(&mut cursor)?, cursor };
    let event = decode_fields(&mut fields)?;
    match fields.next {
        Some(id) if id < FIELDS_KNOWN => Err(fields.cursor.error("its fields are out of order")),
        // Fields from here on are unknown, and the message says that they may be skipped.
        _ => Ok(event),
    }
}

fn decode_fields(fields: &mut Fields<'_>) -> Result<TaggedGtidEvent, GtidError> {
    let flags = fields.required(0, |cursor| cursor.varint_as())?;
    let uuid = fields.required(1, decode_uuid)?;
    let gno = fields.required(2, decode_gno)?;
    let tag: Tag = fields.required(3, decode_tag)?;
    let last_committed = fields.required(4, |cursor| cursor.varint_signed())?;
    let sequence_number = fields.required(5, |cursor| cursor.varint_signed())?;
    let immediate_commit_timestamp = fields.required(6, |cursor| cursor.varint())?;
    let original_commit_timestamp = fields.optional(7, |cursor| cursor.varint())?;
    let transaction_length = fields.optional(8, |cursor| cursor.varint())?;
    let immediate_server_version = fields.required(9, |cursor| cursor.varint_as())?;
    let original_server_version = fields.optional(10, |cursor| cursor.varint_as())?;
    let commit_group_ticket = fields.optional(11, |cursor| cursor.varint())?;
    Ok(TaggedGtidEvent {
        gtid: Gtid { uuid, tag, gno },
        flags,
        last_committed,
        sequence_number,
        immediate_commit_timestamp,
        original_commit_timestamp: original_commit_timestamp.unwrap_or(immediate_commit_timestamp),
        transaction_length,
        immediate_server_version,
        original_server_version: original_server_version.unwrap_or(immediate_server_version),
        commit_group_ticket: commit_group_ticket.unwrap_or(0),
    })
}

fn decode_uuid(cursor: &mut Cursor<'_>) -> Result<Uuid, GtidError> {
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = cursor.varint_as()?;
    }
    Ok(Uuid::from_bytes(bytes))
}

fn decode_gno(cursor: &mut Cursor<'_>) -> Result<u64, GtidError> {
    let at = cursor.position();
    let gno = cursor.varint_signed()?;
    match u64::try_from(gno) {
        Ok(gno @ 1..=GNO_MAX) => Ok(gno),
        _ => Err(cursor.error_at(at, "its transaction number is out of range")),
    }
}

/// The fields of a message, each behind its id.
struct Fields<'a> {
    cursor: Cursor<'a>,
    /// Id of the field at the cursor, already read; `None` at the end.
    next: Option<u64>,
}

impl<'a> Fields<'a> {
    fn optional<T>(
        &mut self,
        id: u64,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, GtidError>,
    ) -> Result<Option<T>, GtidError> {
        if self.next != Some(id) {
            return Ok(None);
        }
        let value = read(&mut self.cursor)?;
        self.next = read_id(&mut self.cursor)?;
        Ok(Some(value))
    }

    fn required<T>(
        &mut self,
        id: u64,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, GtidError>,
    ) -> Result<T, GtidError> {
        self.optional(id, read)?
            .ok_or_else(|| self.cursor.error("a required field is missing or out of order"))
    }
}

fn read_id(cursor: &mut Cursor<'_>) -> Result<Option<u64>, GtidError> {
    if cursor.remaining() == 0 { Ok(None) } else { cursor.varint().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gtid::cursor::put_varint;
    use proptest::prelude::*;

    /// The fields of a small event, by id; `None` is left out.
    fn fields() -> Vec<(u64, Vec<u8>)> {
        let number = |value| {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            bytes
        };
        let uuid = (0..16).flat_map(|index| number(16 * index)).collect();
        vec![
            (0, number(1)),
            (1, uuid),
            (2, number(2 * 42)),
            (3, b"\x06tag".to_vec()),
            (4, number(2 * 6)),
            (5, number(2 * 7)),
            (6, number(1_795_245_305_066_636)),
            (8, number(319)),
            (9, number(90704)),
        ]
    }

    /// A message with these fields; its length is that of a short one, which takes one byte.
    fn message(version: u64, last_required: u64, fields: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut body = Vec::new();
        put_varint(&mut body, version);
        body.extend_from_slice(&[0, 0]);
        put_varint(&mut body, last_required);
        for (id, value) in fields {
            put_varint(&mut body, *id);
            body.extend_from_slice(value);
        }
        // The two bytes that were left free hold any length below 2^14.
        body[1] = (body.len() << 2) as u8 | 1;
        body[2] = (body.len() >> 6) as u8;
        body
    }

    fn refusal(body: &[u8]) -> &'static str {
        match decode_gtid_tagged_event(body) {
            Err(GtidError::Bytes { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_left_out_are_filled_in() {
        let event = decode_gtid_tagged_event(&message(FORMAT_VERSION, 0, &fields())).unwrap();
        assert_eq!(event.gtid.to_string(), "00102030-4050-6070-8090-a0b0c0d0e0f0:tag:42");
        assert_eq!((event.flags, event.last_committed, event.sequence_number), (1, 6, 7));
        assert_eq!(event.transaction_length, Some(319));
        assert_eq!(event.original_commit_timestamp, event.immediate_commit_timestamp);
        assert_eq!((event.immediate_server_version, event.original_server_version), (90704, 90704));
        assert_eq!(event.commit_group_ticket, 0);
    }

    #[test]
    fn fields_of_later_versions_are_skipped_if_they_may_be() {
        let mut with_more = fields();
        with_more.push((12, b"whatever".to_vec()));
        let plain = decode_gtid_tagged_event(&message(FORMAT_VERSION, 0, &fields())).unwrap();
        for last_required in [0, 3, FIELDS_KNOWN] {
            let body = message(FORMAT_VERSION, last_required, &with_more);
            assert_eq!(decode_gtid_tagged_event(&body), Ok(plain));
        }
        let body = message(FORMAT_VERSION, FIELDS_KNOWN + 1, &with_more);
        assert_eq!(refusal(&body), "it needs fields that are unknown here; a newer binlogd is needed");
    }

    #[test]
    fn refuses_what_is_malformed() {
        let body = message(FORMAT_VERSION, 0, &fields());
        assert_eq!(refusal(&body[..body.len() - 1]), "its length differs from that of the event");
        assert_eq!(refusal(&[&body[..], &[0]].concat()), "its length differs from that of the event");
        assert!(refusal(&message(2, 0, &fields())).starts_with("its serialization format version"));
        for id in [0, 1, 2, 3, 4, 5, 6, 9] {
            let without: Vec<_> = fields().into_iter().filter(|field| field.0 != id).collect();
            let problem = refusal(&message(FORMAT_VERSION, 0, &without));
            assert!(
                ["a required field is missing or out of order", "its fields are out of order"]
                    .contains(&problem)
            );
        }
        let mut twice = fields();
        twice.push((9, vec![2]));
        assert_eq!(refusal(&message(FORMAT_VERSION, 0, &twice)), "its fields are out of order");
        for (index, value, problem) in [
            (0, vec![0b01, 0b100], "a number is too large for its field"),
            (2, vec![0], "its transaction number is out of range"),
            (2, vec![2], "its transaction number is out of range"),
            (2, [vec![0xff], vec![0xfe], vec![0xff; 7]].concat(), "its transaction number is out of range"),
            (3, b"\x021".to_vec(), "a tag has a character that tags cannot have"),
        ] {
            let mut fields = fields();
            fields[index].1 = value;
            assert_eq!(refusal(&message(FORMAT_VERSION, 0, &fields)), problem, "field {index}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = decode_gtid_tagged_event(&bytes);
        }

        #[test]
        fn damage_is_answered(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
            let mut body = message(FORMAT_VERSION, 0, &fields());
            let index = at.index(body.len());
            body[index] = byte;
            let _ = decode_gtid_tagged_event(&body);
            let _ = decode_gtid_tagged_event(&body[..cut.index(body.len())]);
        }
    }
}

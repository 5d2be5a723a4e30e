//! The events of a transaction as a server takes them in BINLOG statements: without checksums, unpacked.

use binlog::forks::fingerprint::unpacked::packed_events;
use binlog::forks::transactions::StoredTransaction;
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription};

/// Offset of the length in an event header.
const EVENT_SIZE_AT: usize = 9;

/// The most that a compressed transaction may unpack to, in bytes: a server refuses packets above 1 GiB, and a payload that
/// unpacks to more is damaged or made to hurt.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// One event, with a length that is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rescue) struct Event {
    pub(in crate::rescue) header: EventHeader,
    pub(in crate::rescue) bytes: Vec<u8>,
}

/// The events of a transaction, those of a TRANSACTION_PAYLOAD in its place.
pub(in crate::rescue) fn unpacked(transaction: &StoredTransaction) -> Result<Vec<Event>, String> {
    let mut events = Vec::with_capacity(transaction.events.len());
    for stored in &transaction.events {
        if stored.header.event_type == EventType::TRANSACTION_PAYLOAD {
            unpack(&stored.bytes, &mut events)?;
        } else {
            events.push(with_own_length(stored.header, stored.bytes.clone()));
        }
    }
    Ok(events)
}

/// A format description that says that events have no checksums. Its own stays, as the servers want it.
pub fn format_without_checksums(event: &[u8]) -> Vec<u8> {
    let mut event = event.to_vec();
    let body = event.len() - 4;
    event[body - 1] = 0;
    // The checksum is computed with the in-use bit cleared; a file that is still written has it set.
    event[17] &= !1;
    ChecksumAlgorithm::Crc32.put(&mut event);
    debug_assert!(
        FormatDescription::parse(&event).is_ok_and(|format| format.checksum == ChecksumAlgorithm::None)
    );
    event
}

fn with_own_length(mut header: EventHeader, mut bytes: Vec<u8>) -> Event {
    header.event_size = bytes.len() as u32;
    bytes[EVENT_SIZE_AT..EVENT_SIZE_AT + 4].copy_from_slice(&header.event_size.to_le_bytes());
    Event { header, bytes }
}

fn unpack(event: &[u8], into: &mut Vec<Event>) -> Result<(), String> {
    let mut bytes = 0;
    packed_events(event, |header, event| {
        bytes += event.len() as u64;
        if bytes > UNPACKED_BYTES_MAX {
            return Err("a compressed transaction unpacks to more than 1 GiB".to_owned());
        }
        into.push(Event { header: *header, bytes: event.to_vec() });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::forks::transactions::StoredEvent;
    use codec::event::HEADER_LEN;
    use std::io::{Read, repeat};

    fn inner(code: u8, body: &[u8]) -> Vec<u8> {
        let mut event = vec![0; HEADER_LEN];
        event[4] = code;
        event[9..13].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_le_bytes());
        event.extend_from_slice(body);
        event
    }

    fn transaction(payload: &[u8]) -> StoredTransaction {
        let bytes = inner(40, &[&[2, 1, 0, 0][..], payload].concat());
        let header = EventHeader::parse(&bytes).unwrap();
        StoredTransaction { id: None, at: 4, end: 100, events: vec![StoredEvent { header, bytes }] }
    }

    #[test]
    fn a_compressed_transaction_is_unpacked() {
        let events = [inner(19, b"map"), inner(30, b"rows"), inner(16, &[0; 8])];
        let packed = zstd::encode_all(&events.concat()[..], 3).unwrap();
        let unpacked = unpacked(&transaction(&packed)).unwrap();
        assert_eq!(unpacked.iter().map(|event| event.bytes.clone()).collect::<Vec<_>>(), events);
        for damaged in [&packed[..packed.len() - 1], b"no zstd", &[]] {
            let result = super::unpacked(&transaction(damaged));
            assert!(result.is_err() || damaged.is_empty(), "{result:?}");
        }
        let cut = zstd::encode_all(&events.concat()[..42], 3).unwrap();
        assert!(super::unpacked(&transaction(&cut)).unwrap_err().contains("cut short"));
    }

    /// 1 GiB of zeros is some 100 KiB packed. Each of these events could be one of a server.
    #[test]
    fn a_bomb_is_refused() {
        let len = (UNPACKED_BYTES_MAX / 4) as usize;
        let mut head = inner(30, b"");
        head[9..13].copy_from_slice(&((HEADER_LEN + len) as u32).to_le_bytes());
        let event = || head.chain(repeat(0).take(len as u64));
        let bomb = zstd::encode_all(event().chain(event()).chain(event()).chain(event()), 1).unwrap();
        let error = unpacked(&transaction(&bomb)).unwrap_err();
        assert!(error.contains("more than 1 GiB"), "{error}");
    }

    #[test]
    fn a_length_counts_no_checksum_any_more() {
        let mut bytes = inner(30, b"rows");
        bytes[9] += 4;
        let header = EventHeader::parse(&bytes).unwrap();
        let stored =
            StoredTransaction { id: None, at: 4, end: 100, events: vec![StoredEvent { header, bytes }] };
        let event = &unpacked(&stored).unwrap()[0];
        assert_eq!(event.bytes, inner(30, b"rows"));
        assert_eq!(EventHeader::parse(&event.bytes).unwrap(), event.header);
    }
}

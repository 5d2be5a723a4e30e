//! The events of a transaction as a server takes them in BINLOG statements: without checksums, unpacked.

use binlog::transactions::StoredTransaction;
use codec::event::{
    ChecksumAlgorithm, EventHeader, EventType, FormatDescription, HEADER_LEN, PayloadCompression,
    TransactionPayload,
};
use std::io::Read;

/// Offset of the length in an event header.
const EVENT_SIZE_AT: usize = 9;

/// The most that a compressed transaction may unpack to, in bytes: a server refuses packets above 1 GiB, and a payload that
/// unpacks to more is damaged or made to hurt.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// One event, with a length that is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) header: EventHeader,
    pub(super) bytes: Vec<u8>,
}

/// The events of a transaction, those of a TRANSACTION_PAYLOAD in its place.
pub(super) fn unpacked(transaction: &StoredTransaction) -> Result<Vec<Event>, String> {
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
pub(super) fn format_without_checksums(event: &[u8]) -> Vec<u8> {
    let mut event = event.to_vec();
    let body = event.len() - 4;
    event[body - 1] = 0;
    // The checksum is computed with the in-use bit cleared; a file that is still written has it set.
    event[17] &= !1;
    let checksum = crc32fast::hash(&event[..body]);
    event[body..].copy_from_slice(&checksum.to_le_bytes());
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
    let payload = TransactionPayload::parse(event).map_err(|error| error.to_string())?;
    let unpacked = match payload.compression {
        PayloadCompression::None => payload.payload.to_vec(),
        PayloadCompression::Zstd => decompress(payload.payload)?,
    };
    let mut rest = &unpacked[..];
    while !rest.is_empty() {
        let header = EventHeader::parse(rest).map_err(|error| error.to_string())?;
        let (bytes, after) = rest
            .split_at_checked(header.event_size as usize)
            .filter(|(bytes, _)| bytes.len() >= HEADER_LEN)
            .ok_or("an event inside a compressed transaction is cut short")?;
        into.push(Event { header, bytes: bytes.to_vec() });
        rest = after;
    }
    Ok(())
}

/// Allocates as the data comes: the stated length is only a claim.
fn decompress(payload: &[u8]) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(payload)
        .map_err(|error| format!("a compressed transaction cannot be unpacked: {error}"))?;
    decoder
        .take(UNPACKED_BYTES_MAX + 1)
        .read_to_end(&mut unpacked)
        .map_err(|error| format!("a compressed transaction cannot be unpacked: {error}"))?;
    if unpacked.len() as u64 > UNPACKED_BYTES_MAX {
        return Err("a compressed transaction unpacks to more than 1 GiB".to_owned());
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::transactions::StoredEvent;

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

    /// 1 GiB of zeros is some 100 KiB packed.
    #[test]
    fn a_bomb_is_refused() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(UNPACKED_BYTES_MAX + 10), 1).unwrap();
        assert!(decompress(&bomb).unwrap_err().contains("more than 1 GiB"));
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

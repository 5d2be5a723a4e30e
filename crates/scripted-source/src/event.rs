//! The bytes of each event, as MySQL 9.7 writes them.
//!
//! Source of the layouts: MySQL Source Code Documentation, "Binary Log Event"; compared with the files of a 9.7 server.

use codec::event::EventType;

/// Post-header lengths of MySQL 9.7 for the types 1 to 42.
const POST_HEADER_LENS: [u8; 42] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10, 10, 10, 42,
    42, 0, 18, 52, 0, 10, 40, 0, 0,
];

/// Length of the server version in a format description, padded with zeros.
const SERVER_VERSION_LEN: usize = 50;

/// The table that all rows belong to: `bench.t (id BIGINT, payload LONGBLOB)`.
const TABLE_ID: u64 = 100;

/// Bytes of a WRITE_ROWS event beside the payload: header 19, post-header 10, columns 2, null bits 1, id 8, length 4,
/// checksum 4.
pub const WRITE_ROWS_OVERHEAD: usize = 48;

/// The fields of an event header that its writer chooses.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Seconds since 1970.
    pub timestamp: u32,
    /// Kind of event.
    pub event_type: EventType,
    /// `server_id` of the writer.
    pub server_id: u32,
    /// See [`codec::event::flags`].
    pub flags: u16,
}

/// Appends a whole event: header, `body`, and its CRC32 if `checksum` says so. `log_pos` is computed from the event's
/// length by the caller's function, since most positions are its end.
pub fn append(
    out: &mut Vec<u8>,
    head: Head,
    log_pos: impl FnOnce(usize) -> u32,
    body: &[u8],
    checksum: bool,
) {
    let begin = out.len();
    let size = 19 + body.len() + if checksum { 4 } else { 0 };
    out.reserve(size);
    out.extend_from_slice(&head.timestamp.to_le_bytes());
    out.push(head.event_type.0);
    out.extend_from_slice(&head.server_id.to_le_bytes());
    out.extend_from_slice(&(size as u32).to_le_bytes());
    out.extend_from_slice(&log_pos(size).to_le_bytes());
    out.extend_from_slice(&head.flags.to_le_bytes());
    out.extend_from_slice(body);
    if checksum {
        let crc = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// FORMAT_DESCRIPTION. `version` is cut at 49 bytes.
pub fn format_description(version: &str, created: u32, checksum: bool) -> Vec<u8> {
    let mut body = 4u16.to_le_bytes().to_vec();
    let mut padded = [0u8; SERVER_VERSION_LEN];
    let len = version.len().min(SERVER_VERSION_LEN - 1);
    padded[..len].copy_from_slice(&version.as_bytes()[..len]);
    body.extend_from_slice(&padded);
    body.extend_from_slice(&created.to_le_bytes());
    body.push(19);
    body.extend_from_slice(&POST_HEADER_LENS);
    body.push(u8::from(checksum));
    if !checksum {
        // The format description always has room for a checksum.
        body.extend_from_slice(&[0; 4]);
    }
    body
}

/// ROTATE, real or artificial.
pub fn rotate(position: u64, file: &str) -> Vec<u8> {
    let mut body = position.to_le_bytes().to_vec();
    body.extend_from_slice(file.as_bytes());
    body
}

/// GTID or ANONYMOUS_GTID (`uuid` all zero, `gno` 0). `rest_len` is the length in bytes of all later events of the
/// transaction, checksums included; `microseconds` its time since 1970.
pub fn gtid(
    uuid: &[u8; 16],
    gno: u64,
    sequence: u64,
    rest_len: u64,
    microseconds: u64,
    checksum: bool,
) -> Vec<u8> {
    const LOGICAL_CLOCK: u8 = 2;
    const SERVER_VERSION: u32 = 90_700;
    let mut body = vec![0u8]; // Flags: no statement-based events.
    body.extend_from_slice(uuid);
    body.extend_from_slice(&gno.to_le_bytes());
    body.push(LOGICAL_CLOCK);
    body.extend_from_slice(&sequence.saturating_sub(1).to_le_bytes());
    body.extend_from_slice(&sequence.to_le_bytes());
    body.extend_from_slice(&microseconds.to_le_bytes()[..7]);
    let fixed = 19 + body.len() + 4 + if checksum { 4 } else { 0 };
    body.extend_from_slice(&transaction_length(fixed as u64 + rest_len));
    body.extend_from_slice(&SERVER_VERSION.to_le_bytes());
    body
}

/// The transaction's length as a length-encoded integer that counts itself too.
fn transaction_length(without_itself: u64) -> Vec<u8> {
    [1, 3, 4, 9]
        .into_iter()
        .map(|width| (width, length_encoded(without_itself + width as u64)))
        .find_map(|(width, bytes)| (bytes.len() == width).then_some(bytes))
        .unwrap_or_else(|| length_encoded(without_itself))
}

/// A length-encoded integer.
fn length_encoded(value: u64) -> Vec<u8> {
    match value {
        0..251 => vec![value as u8],
        251..0x1_0000 => [&[252], &value.to_le_bytes()[..2]].concat(),
        0x1_0000..0x100_0000 => [&[253], &value.to_le_bytes()[..3]].concat(),
        _ => [&[254], &value.to_le_bytes()[..]].concat(),
    }
}

/// QUERY without status variables, in the schema `bench`.
pub fn query(statement: &str) -> Vec<u8> {
    let mut body = 8u32.to_le_bytes().to_vec(); // Thread.
    body.extend_from_slice(&[0; 4]); // Duration.
    body.push(5);
    body.extend_from_slice(&[0; 4]); // Error code, length of status variables.
    body.extend_from_slice(b"bench\0");
    body.extend_from_slice(statement.as_bytes());
    body
}

/// TABLE_MAP of the one table.
pub fn table_map() -> Vec<u8> {
    const LONGLONG: u8 = 8;
    const BLOB: u8 = 252;
    let mut body = TABLE_ID.to_le_bytes()[..6].to_vec();
    body.extend_from_slice(&[1, 0]);
    body.extend_from_slice(b"\x05bench\0\x01t\0");
    // Two columns; one byte of metadata: the blob's length takes four bytes; the blob may be NULL.
    body.extend_from_slice(&[2, LONGLONG, BLOB, 1, 4, 2]);
    body
}

/// WRITE_ROWS with one row, whose payload has `payload_len` bytes that depend on `id`.
pub fn write_rows(id: u64, payload_len: usize) -> Vec<u8> {
    const STATEMENT_END: u8 = 1;
    let mut body = Vec::with_capacity(payload_len + WRITE_ROWS_OVERHEAD);
    body.extend_from_slice(&TABLE_ID.to_le_bytes()[..6]);
    body.extend_from_slice(&[STATEMENT_END, 0, 2, 0]);
    body.extend_from_slice(&[2, 0xff, 0]);
    body.extend_from_slice(&id.to_le_bytes());
    body.extend_from_slice(&(payload_len as u32).to_le_bytes());
    let seed = id.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    let begin = body.len();
    body.extend_from_slice(&seed.repeat(payload_len.div_ceil(seed.len())));
    body.truncate(begin + payload_len);
    body
}

/// XID: the commit of a transaction.
pub fn xid(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// TRANSACTION_PAYLOAD: fields of type, length, value, all length-encoded integers, then the payload
/// (`Transaction_payload_event` in libs/mysql/binlog/event/control_events.h).
pub fn transaction_payload(compressed: &[u8], uncompressed_len: u64) -> Vec<u8> {
    const END_OF_FIELDS: u8 = 0;
    const PAYLOAD_SIZE: u8 = 1;
    const COMPRESSION_TYPE: u8 = 2;
    const UNCOMPRESSED_SIZE: u8 = 3;
    const ZSTD: u64 = 0;
    let mut body = Vec::with_capacity(compressed.len() + 32);
    for (field, value) in [
        (PAYLOAD_SIZE, compressed.len() as u64),
        (COMPRESSION_TYPE, ZSTD),
        (UNCOMPRESSED_SIZE, uncompressed_len),
    ] {
        let value = length_encoded(value);
        body.extend_from_slice(&[field, value.len() as u8]);
        body.extend_from_slice(&value);
    }
    body.push(END_OF_FIELDS);
    body.extend_from_slice(compressed);
    body
}

/// HEARTBEAT in its newer form (`Heartbeat_event_v2`): fields of type, length, value.
pub fn heartbeat_v2(file: &str, position: u64) -> Vec<u8> {
    let mut body = vec![1, file.len() as u8];
    body.extend_from_slice(file.as_bytes());
    body.extend_from_slice(&[2, 9, 254]);
    body.extend_from_slice(&position.to_le_bytes());
    body.push(0);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transactions_length_counts_its_own_encoding() {
        assert_eq!(transaction_length(249), [250]);
        assert_eq!(transaction_length(250), [252, 253, 0]);
        assert_eq!(transaction_length(0xffff - 3), [252, 0xff, 0xff]);
        assert_eq!(transaction_length(0xffff), [253, 3, 0, 1]);
        assert_eq!(transaction_length(0x1_0000_0000)[0], 254);
    }
}

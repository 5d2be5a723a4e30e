//! Compressed events: those of a packed transaction, and those that MariaDB has packed one by one.

use codec::event::{EventHeader, HEADER_LEN, PayloadCompression, TransactionPayload};
use std::io::Read;

/// The most that one event may be when it is unpacked, in bytes: a server makes none longer.
pub const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// The events inside a packed transaction (a TRANSACTION_PAYLOAD event), one after another as they are unpacked.
///
/// # Errors
/// In words: when the transaction cannot be unpacked, or an event in it is above 1 GiB; and what `take` says.
pub fn packed_events(
    event: &[u8],
    take: impl FnMut(&EventHeader, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let payload = TransactionPayload::parse(event).map_err(|error| error.to_string())?;
    match payload.compression {
        PayloadCompression::None => each_event(payload.payload, take),
        PayloadCompression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(payload.payload);
            each_event(decoder.map_err(|error| error.to_string())?, take)
        }
    }
}

fn each_event(
    mut events: impl Read,
    mut take: impl FnMut(&EventHeader, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let broken = |error: std::io::Error| format!("a compressed transaction cannot be unpacked: {error}");
    loop {
        let mut event = Vec::new();
        (&mut events).take(HEADER_LEN as u64).read_to_end(&mut event).map_err(broken)?;
        if event.is_empty() {
            return Ok(());
        }
        let header = EventHeader::parse(&event).map_err(|error| error.to_string())?;
        let body = u64::from(header.event_size) - HEADER_LEN as u64;
        if body > UNPACKED_BYTES_MAX {
            return Err("an event above 1 GiB inside a compressed transaction".to_owned());
        }
        let read = (&mut events).take(body).read_to_end(&mut event).map_err(broken)?;
        if read as u64 != body {
            return Err("an event inside a compressed transaction is cut short".to_owned());
        }
        take(&header, &event)?;
    }
}

/// What MariaDB's `log_bin_compress` has packed (`binlog_buf_compress`, sql/log_event.cc): a byte 0x80 with the algorithm (0 is
/// zlib) in bits 4 to 6 and the number of bytes of the length in bits 0 to 2, the length, the compressed bytes. At most
/// `bytes_max` bytes are unpacked, the beginning.
///
/// # Errors
/// When it is packed in another way, or damaged.
pub fn mariadb_unpacked(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    const CUT: &str = "a compressed event is cut short";
    let (first, rest) = packed.split_first().ok_or(CUT)?;
    if first & 0xf0 != 0x80 {
        return Err("an event is compressed in a way that is not known".to_owned());
    }
    let stream = rest.get(usize::from(first & 7)..).ok_or(CUT)?;
    let mut unpacked = Vec::new();
    let read = flate2::read::ZlibDecoder::new(stream).take(bytes_max).read_to_end(&mut unpacked);
    read.map_err(|error| format!("a compressed event cannot be unpacked: {error}"))?;
    Ok(unpacked)
}

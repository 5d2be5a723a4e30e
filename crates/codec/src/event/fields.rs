//! Fields of events: little-endian integers, and those whose length stands in their first byte.

use super::error::EventError;

/// Reads four little-endian bytes; the caller has checked the length.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads eight little-endian bytes; the caller has checked the length.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(raw)
}

/// Fails unless `bytes` holds at least `needed` bytes.
pub(super) fn need(what: &'static str, bytes: &[u8], needed: usize) -> Result<(), EventError> {
    if bytes.len() < needed {
        return Err(EventError::TooShort { what, needed, actual: bytes.len() });
    }
    Ok(())
}

/// The protocol's length-encoded integer (`net_field_length_ull`), taken off the front.
pub(crate) fn packed_integer(bytes: &mut &[u8]) -> Result<u64, EventError> {
    let short = EventError::Malformed("a length-encoded integer is cut short");
    let (&first, rest) = bytes.split_first().ok_or(short.clone())?;
    let width = match first {
        0..=250 => {
            *bytes = rest;
            return Ok(u64::from(first));
        }
        252 => 2,
        253 => 3,
        254 => 8,
        _ => return Err(EventError::Malformed("a length-encoded integer starts with a reserved byte")),
    };
    if rest.len() < width {
        return Err(short);
    }
    let mut raw = [0u8; 8];
    raw[..width].copy_from_slice(&rest[..width]);
    *bytes = &rest[width..];
    Ok(u64::from_le_bytes(raw))
}

/// Bytes with their length before them, a length-encoded integer; taken off the front. `None` when they are cut short.
pub(crate) fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(packed_integer(rest).ok()?).ok()?;
    let (own, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(own)
}

/// A big-endian number of up to eight bytes.
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A little-endian number of up to eight bytes.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Whether a bit of a column bitmap is set; those behind its end are not.
pub(crate) fn is_set(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte & 1 << (at % 8) != 0)
}

//! Events made by a script, so that the fuzzer reaches what stands behind the checks of length, position and checksum.
//!
//! One event of a script:
//!
//! ```text
//! fixes       1 byte, see the constants
//! header      19 bytes, only with RAW_HEADER
//! type        1 byte
//! length      1 byte
//! body        as many bytes
//! padding     1 byte, only with PADDED: this many times 512 bytes of `x` after the body
//! ```

use crate::input::Input;
use codec::event::{HEADER_LEN, flags};

/// The header's length is that of the event.
pub const SIZE: u8 = 0x01;
/// The header's position is the one at which the event ends.
pub const POSITION: u8 = 0x02;
/// A right CRC32 ends the event.
pub const CHECKSUM: u8 = 0x04;
/// The flag of events that stand in no file.
pub const ARTIFICIAL: u8 = 0x08;
/// The target decides: the event comes in parts, or the like.
pub const SPECIAL: u8 = 0x10;
/// The body is followed by padding.
pub const PADDED: u8 = 0x20;
/// The header is in the script; what the other bits make right is made right in it.
pub const RAW_HEADER: u8 = 0x80;

/// An event of a script.
#[derive(Debug)]
pub struct ScriptedEvent {
    /// Header, body and, if the script wants one, a checksum.
    pub bytes: Vec<u8>,
    /// Whether [`SPECIAL`] was set.
    pub special: bool,
    /// Whether the event ends with a checksum that is right.
    pub checksum: bool,
}

/// Takes the next event off the script; it would start at `start`.
pub fn next_event(input: &mut Input<'_>, start: u64) -> ScriptedEvent {
    let fixes = input.u8();
    let mut event = vec![0u8; HEADER_LEN];
    if fixes & RAW_HEADER != 0 {
        let raw = input.bytes(HEADER_LEN);
        event[..raw.len()].copy_from_slice(raw);
    } else {
        event[0] = 1;
        event[5] = 1;
    }
    event[4] = input.u8();
    let len = input.u8();
    event.extend_from_slice(input.bytes(usize::from(len)));
    if fixes & PADDED != 0 {
        event.resize(event.len() + usize::from(input.u8()) * 512, b'x');
    }
    let size = event.len() + if fixes & CHECKSUM != 0 { 4 } else { 0 };
    if fixes & SIZE != 0 {
        event[9..13].copy_from_slice(&(size as u32).to_le_bytes());
    }
    if fixes & POSITION != 0 {
        event[13..17].copy_from_slice(&((start + size as u64) as u32).to_le_bytes());
    }
    if fixes & ARTIFICIAL != 0 {
        event[17] |= flags::ARTIFICIAL as u8;
    }
    if fixes & CHECKSUM != 0 {
        let crc = crc32fast::hash(&event);
        event.extend_from_slice(&crc.to_le_bytes());
    }
    ScriptedEvent { bytes: event, special: fixes & SPECIAL != 0, checksum: fixes & CHECKSUM != 0 }
}

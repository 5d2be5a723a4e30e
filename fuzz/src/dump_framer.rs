//! The framer of a binlog dump over arbitrary packets, cut into arbitrary reads.
//!
//! ```text
//! flags        1 byte: bit 0 semi-sync was negotiated, bit 1 a buffer larger than the smallest, the others: see `HUGE`
//! reads        4 times 2 bytes: sizes of successive reads of the piecewise run, used in turn
//! packets      until the end, see `packet`
//! ```
//!
//! Held true: no panic; every step consumes something, and no more than there is; no event is longer than it announced;
//! and however the stream is cut into reads, the same events and the same end come out.

use crate::input::Input;
use codec::dump_stream::{BUFFER_LEN_MIN, DumpFramer, Frame, FrameError, PACKET_PAYLOAD_MAX};
use codec::event::{EventHeader, HEADER_LEN, PEEK_BYTES_MAX};
use codec::packet::ErrPacket;

/// With exactly these upper six bits of the flags an event may be larger than a packet. Such an input takes a thousand
/// times as long as others, so the fuzzer should not find it by flipping one bit.
pub const HUGE: u8 = 0xa4;

/// Longest stream in bytes; an event that begins before it may end behind it.
const STREAM_BYTES_MAX: usize = 512 * 1024;

/// Feeds one stream in two ways and compares.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.u8();
    let semi_sync = flags & 1 != 0;
    let capacity = if flags & 2 != 0 { BUFFER_LEN_MIN + 100_000 } else { BUFFER_LEN_MIN };
    let reads = [(); 4].map(|()| usize::from(input.u16()).max(1));
    let mut stream = Vec::new();
    let mut sequence = 1;
    let huge = flags & !3 == HUGE;
    while !input.is_empty() && stream.len() < STREAM_BYTES_MAX {
        packet(&mut input, semi_sync, huge, &mut sequence, &mut stream);
    }
    let _ = DumpFramer::detect_semi_sync(&stream);
    let whole = unpack(&stream, semi_sync, capacity, &[usize::MAX]);
    // Single bytes of a huge stream would take minutes and show nothing that those of a small one do not.
    let least = stream.len() / 4096 + 1;
    let piecewise = unpack(&stream, semi_sync, capacity, &reads.map(|read| read.max(least)));
    assert_eq!(whole, piecewise);
}

/// Appends one packet, or bytes that are none. Low 3 bits of the first byte: the kind.
fn packet(input: &mut Input<'_>, semi_sync: bool, huge: bool, sequence: &mut u8, stream: &mut Vec<u8>) {
    let op = input.u8();
    let prefix = if semi_sync { 3 } else { 1 };
    match op & 7 {
        0 => {
            let len = input.u8();
            stream.extend_from_slice(input.bytes(usize::from(len)));
        }
        1 | 2 => event(input, op, HEADER_LEN + usize::from(input.clone().u16()), semi_sync, sequence, stream),
        3 => event(input, op, HEADER_LEN + 8 * usize::from(input.clone().u16()), semi_sync, sequence, stream),
        4 if huge => {
            // Around the limit of one packet or of two.
            let packets = if op & 0x80 != 0 { 2 } else { 1 };
            let around = i16::from(input.u8() as i8);
            let size = (PACKET_PAYLOAD_MAX * packets - prefix).saturating_add_signed(isize::from(around));
            event(input, op, size, semi_sync, sequence, stream);
        }
        4 | 5 => {
            let mut payload = vec![0xff];
            let len = usize::from(input.u8());
            payload.extend_from_slice(input.bytes(len));
            let padding = if op & 0x08 != 0 { usize::from(input.u16()) * 4 } else { 0 };
            payload.resize(payload.len() + padding, b'e');
            split(&payload, sequence, stream);
        }
        6 => {
            let mut payload = vec![0xfe];
            let len = usize::from(input.u8() & 0x0f);
            payload.extend_from_slice(input.bytes(len));
            split(&payload, sequence, stream);
        }
        _ => {
            // A packet header with nothing behind it that was meant for it.
            stream.extend_from_slice(input.bytes(3));
            stream.push(if op & 0x08 != 0 { input.u8() } else { *sequence });
        }
    }
}

/// Appends an event. Bits of `op`: 0x08 it asks for an acknowledgement, 0x10 its length is not what it says, 0x20 its
/// packet's sequence number is wrong, 0x40 its first bytes are in the input.
fn event(
    input: &mut Input<'_>,
    op: u8,
    size: usize,
    semi_sync: bool,
    sequence: &mut u8,
    stream: &mut Vec<u8>,
) {
    if op & 7 != 4 {
        input.u16(); // The size, which was looked at before.
    }
    let flagged = op & 0x08 != 0;
    let mut payload = vec![0];
    if semi_sync {
        payload.extend_from_slice(&[0xef, u8::from(flagged)]);
    }
    let start = payload.len();
    payload.extend((0..size).map(|at| (at % 251) as u8));
    if op & 0x40 != 0 {
        let first = input.bytes(size.min(32));
        payload[start..start + first.len()].copy_from_slice(first);
    }
    let stated = if op & 0x10 != 0 { (size as u32) ^ input.u32() } else { size as u32 };
    payload[start + 9..start + 13].copy_from_slice(&stated.to_le_bytes());
    if op & 0x20 != 0 {
        *sequence = input.u8();
    }
    split(&payload, sequence, stream);
    if flagged && semi_sync {
        *sequence = 1;
    }
}

fn split(payload: &[u8], sequence: &mut u8, stream: &mut Vec<u8>) {
    let mut rest = payload;
    loop {
        let (packet, next) = rest.split_at(rest.len().min(PACKET_PAYLOAD_MAX));
        stream.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        stream.push(*sequence);
        *sequence = sequence.wrapping_add(1);
        stream.extend_from_slice(packet);
        rest = next;
        if packet.len() < PACKET_PAYLOAD_MAX {
            return;
        }
    }
}

/// An event as it came out, whole or as far as the stream goes.
#[derive(Debug, PartialEq)]
struct Taken {
    wants_acknowledgement: bool,
    announced: u64,
    len: u64,
    crc: u32,
}

#[derive(Debug, PartialEq)]
enum End {
    /// The framer waits for more.
    Hungry,
    GoodOrder,
    Source(ErrPacket),
    Refused(FrameError),
}

fn unpack(stream: &[u8], semi_sync: bool, capacity: usize, reads: &[usize]) -> (Vec<Taken>, End) {
    let mut framer = DumpFramer::new(semi_sync);
    let mut buffer = vec![0; capacity];
    let (mut start, mut end, mut fed) = (0, 0, 0);
    let mut taken: Vec<Taken> = Vec::new();
    for read in reads.iter().cycle() {
        loop {
            let (consumed, frame) = match framer.next(&buffer[start..end], capacity) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => return (taken, End::Refused(error)),
            };
            assert!(consumed > 0, "the framer stands still");
            assert!(consumed <= end - start, "{consumed} bytes consumed of {}", end - start);
            match frame {
                Frame::End => return (taken, End::GoodOrder),
                Frame::SourceError(error) => return (taken, End::Source(*error)),
                Frame::EmptyPacket => {
                    let last = taken.last().expect("an event that it ends");
                    assert_eq!(last.len, last.announced, "an empty packet in the middle of an event");
                }
                Frame::Event { .. } | Frame::Part { .. } => take(&mut taken, &frame),
            }
            start += consumed;
        }
        if fed == stream.len() {
            break;
        }
        buffer.copy_within(start..end, 0);
        (start, end) = (0, end - start);
        let len = (*read).min(capacity - end).min(stream.len() - fed);
        assert!(len > 0, "the buffer is full and the framer wants more");
        buffer[end..end + len].copy_from_slice(&stream[fed..fed + len]);
        (end, fed) = (end + len, fed + len);
    }
    (taken, End::Hungry)
}

fn take(taken: &mut Vec<Taken>, frame: &Frame<'_>) {
    if let Some(before) = taken.last()
        && !matches!(frame, Frame::Part { offset: 1.., .. })
    {
        assert_eq!(before.len, before.announced, "an event begins before the one before it is whole");
    }
    match *frame {
        Frame::Event { wants_acknowledgement, bytes } => {
            let announced = u64::from(EventHeader::parse(bytes).expect("a sound header").event_size);
            assert_eq!(announced, bytes.len() as u64);
            taken.push(Taken {
                wants_acknowledgement,
                announced,
                len: announced,
                crc: crc32fast::hash(bytes),
            });
        }
        Frame::Part { wants_acknowledgement, offset: 0, event_size, bytes } => {
            assert!(bytes.len() >= PEEK_BYTES_MAX);
            assert_eq!(EventHeader::parse(bytes).expect("a sound header").event_size, event_size);
            let (announced, len) = (u64::from(event_size), bytes.len() as u64);
            assert!(len <= announced);
            taken.push(Taken { wants_acknowledgement, announced, len, crc: crc32fast::hash(bytes) });
        }
        Frame::Part { wants_acknowledgement, offset, event_size, bytes } => {
            let last = taken.last_mut().expect("a first part before this one");
            assert_eq!(
                (last.wants_acknowledgement, last.announced),
                (wants_acknowledgement, u64::from(event_size))
            );
            assert_eq!(last.len, offset);
            let mut hasher = crc32fast::Hasher::new_with_initial_len(last.crc, last.len);
            hasher.update(bytes);
            last.crc = hasher.finalize();
            assert!(!bytes.is_empty(), "a caller knows the last part by its end, so none may follow it");
            last.len += bytes.len() as u64;
            assert!(last.len <= last.announced, "an event is longer than announced");
        }
        Frame::End | Frame::SourceError(_) | Frame::EmptyPacket => unreachable!("not an event"),
    }
}

//! The packets of a binlog dump, cut into events.
//!
//! After COM_BINLOG_DUMP the source sends one event a logical packet: a status byte (0), with semi-sync two more bytes
//! (`EF flags`), then the event. A logical packet of 0xFFFFFF bytes or more is split into several, of which only the
//! first carries the status and semi-sync bytes. This framer works on the caller's receive buffer and copies nothing.
//!
//! Sources: MySQL Source Code Documentation, "MySQL Packets" and "COM_BINLOG_DUMP"; `plugin/semisync/semisync.h`
//! (`ReplSemiSyncBase::kPacketMagicNum`, `kPacketFlagSync`).

use crate::event::{EventError, EventHeader, HEADER_LEN, PEEK_BYTES_MAX};
use crate::packet;
use crate::packet::ErrPacket;
use thiserror::Error;

/// Largest payload of one packet; exactly this much means that another packet continues it.
pub const PACKET_PAYLOAD_MAX: usize = 0xff_ffff;

/// Smallest receive buffer that [`DumpFramer`] works with: the beginning of an event must fit with its packet header.
pub const BUFFER_LEN_MIN: usize = PEEK_BYTES_MAX + PREFIX_LEN_MAX + HEADER_LEN;

const PACKET_HEADER_LEN: usize = 4;
/// Packet header, status byte, semi-sync bytes.
const PREFIX_LEN_MAX: usize = PACKET_HEADER_LEN + 1 + 2;
const SEMI_SYNC_MAGIC: u8 = 0xef;
const SEMI_SYNC_WANTS_ACKNOWLEDGEMENT: u8 = 0x01;

/// What one step of framing found. Offsets are into the buffer that was given.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An event that is whole in the buffer.
    Event {
        /// The source asks for an acknowledgement of this event's end.
        wants_acknowledgement: bool,
        /// Header, body and checksum.
        bytes: &'a [u8],
    },
    /// The next bytes of an event that is larger than the buffer.
    Part {
        /// Set in every part: the source asks for an acknowledgement of the event's end.
        wants_acknowledgement: bool,
        /// Bytes of the event that earlier parts held; 0 in the first, which has at least [`PEEK_BYTES_MAX`] bytes.
        offset: u64,
        /// Length of the whole event.
        event_size: u32,
        /// The part, never empty. It is the last one when it reaches `event_size`.
        bytes: &'a [u8],
    },
    /// The empty packet that ends an event whose payload is an exact multiple of [`PACKET_PAYLOAD_MAX`]. The event's last
    /// part came before; this is nothing of it.
    EmptyPacket,
    /// The source ended the dump in good order (an EOF packet).
    End,
    /// The source ended the dump with an error.
    SourceError(Box<ErrPacket>),
}

/// The peer's fault: bytes that cannot be a binlog dump.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A packet was lost, repeated or never was one.
    #[error("packet sequence number is {actual}, expected {expected}: the stream is out of step")]
    Sequence {
        /// What the protocol asks for here.
        expected: u8,
        /// What arrived.
        actual: u8,
    },
    /// The first byte of a packet is neither OK, ERR nor EOF.
    #[error("a packet of the binlog dump starts with status {0:#04x}; only 0x00, 0xfe and 0xff are known")]
    Status(u8),
    /// Semi-sync was negotiated but the magic byte is missing.
    #[error("semi-sync was negotiated but a packet carries {0:#04x} where 0xef belongs")]
    SemiSyncMagic(u8),
    /// Packet and event disagree about the event's length.
    #[error("an event says {event_size} bytes but its packet holds {packet}")]
    Length {
        /// From the event header.
        event_size: u64,
        /// From the packet header or headers.
        packet: u64,
    },
    /// A packet too short for what it must hold.
    #[error("a packet of {0} bytes is too short for a binary-log event")]
    Short(usize),
    /// The event header cannot be right.
    #[error(transparent)]
    Event(#[from] EventError),
}

/// An event that is being taken in parts.
#[derive(Debug, Clone, Copy)]
struct Partial {
    wants_acknowledgement: bool,
    event_size: u32,
    /// Event bytes given out so far.
    offset: u64,
    /// Payload bytes left in the current packet.
    packet_left: usize,
    /// The current packet is full, so another one continues it even if nothing is left of the event.
    continued: bool,
}

/// Cuts the byte stream of a dump into [`Frame`]s.
#[derive(Debug, Clone)]
pub struct DumpFramer {
    semi_sync: bool,
    expected_sequence: u8,
    /// The packet before asked for an acknowledgement; the source then starts its numbering again at 1.
    after_flagged: bool,
    partial: Option<Partial>,
}

impl DumpFramer {
    /// For a dump whose first packet has sequence number 1. `semi_sync` says whether packets carry the two semi-sync
    /// bytes; [`DumpFramer::detect_semi_sync`] finds out.
    pub fn new(semi_sync: bool) -> DumpFramer {
        DumpFramer { semi_sync, expected_sequence: 1, after_flagged: false, partial: None }
    }

    /// Decides from the first packet whether semi-sync is in force; `None` until enough has arrived.
    ///
    /// The first event is always an artificial ROTATE, whose timestamp is 0, so a 0xEF after the status byte can be
    /// nothing but the semi-sync magic. In later packets it could be a timestamp's low byte.
    pub fn detect_semi_sync(buffer: &[u8]) -> Option<bool> {
        let status = *buffer.get(PACKET_HEADER_LEN)?;
        if status != 0 {
            return Some(false);
        }
        Some(*buffer.get(PACKET_HEADER_LEN + 1)? == SEMI_SYNC_MAGIC)
    }

    /// Takes the next frame off the front of `buffer`, which is all that has arrived and not been consumed. Returns the
    /// number of bytes consumed, or `None` when more must arrive first. `capacity` is the size of the caller's buffer
    /// (at least [`BUFFER_LEN_MIN`]): what cannot fit there is given out in parts.
    ///
    /// # Errors
    /// When the bytes cannot be a binlog dump. The framer must not be used after that.
    pub fn next<'a>(
        &mut self,
        buffer: &'a [u8],
        capacity: usize,
    ) -> Result<Option<(usize, Frame<'a>)>, FrameError> {
        debug_assert!(capacity >= BUFFER_LEN_MIN);
        if self.partial.is_some() {
            return self.next_part(buffer);
        }
        let Some(head) = buffer.first_chunk::<PACKET_HEADER_LEN>() else { return Ok(None) };
        let payload_len = payload_len(head);
        let whole = PACKET_HEADER_LEN + payload_len;
        let too_large = whole > capacity || payload_len == PACKET_PAYLOAD_MAX;
        if buffer.len() < whole && !(too_large && buffer.len() >= BUFFER_LEN_MIN) {
            return Ok(None);
        }
        self.check_sequence(head[3])?;
        let payload = &buffer[PACKET_HEADER_LEN..whole.min(buffer.len())];
        match payload.first() {
            None => return Err(FrameError::Short(0)),
            Some(0) => {}
            Some(&packet::ERR) => {
                let error = ErrPacket::parse(payload).map_err(|_| FrameError::Short(payload.len()))?;
                return Ok(Some((PACKET_HEADER_LEN + payload.len(), Frame::SourceError(error.into()))));
            }
            Some(&packet::EOF) if payload_len < 9 => return Ok(Some((whole, Frame::End))),
            Some(other) => return Err(FrameError::Status(*other)),
        }
        let (wants_acknowledgement, event) = self.strip_prefix(payload)?;
        let header = EventHeader::parse(event)?;
        let in_packet = payload_len - (payload.len() - event.len());
        if too_large {
            return self.first_part(
                buffer,
                event,
                header.event_size,
                in_packet,
                wants_acknowledgement,
                payload_len,
            );
        }
        if header.event_size as usize != in_packet {
            return Err(FrameError::Length {
                event_size: u64::from(header.event_size),
                packet: in_packet as u64,
            });
        }
        self.after_flagged = wants_acknowledgement;
        Ok(Some((whole, Frame::Event { wants_acknowledgement, bytes: event })))
    }

    fn check_sequence(&mut self, actual: u8) -> Result<(), FrameError> {
        let expected = self.expected_sequence;
        if actual != expected && !(self.after_flagged && actual == 1) {
            return Err(FrameError::Sequence { expected, actual });
        }
        self.expected_sequence = actual.wrapping_add(1);
        Ok(())
    }

    /// Takes the status byte and the semi-sync bytes off a first packet.
    fn strip_prefix<'a>(&self, payload: &'a [u8]) -> Result<(bool, &'a [u8]), FrameError> {
        if !self.semi_sync {
            return Ok((false, &payload[1..]));
        }
        match payload {
            [_, SEMI_SYNC_MAGIC, flags, event @ ..] => {
                Ok((flags & SEMI_SYNC_WANTS_ACKNOWLEDGEMENT != 0, event))
            }
            [_, other, ..] => Err(FrameError::SemiSyncMagic(*other)),
            _ => Err(FrameError::Short(payload.len())),
        }
    }

    fn first_part<'a>(
        &mut self,
        buffer: &'a [u8],
        event: &'a [u8],
        event_size: u32,
        in_packet: usize,
        wants_acknowledgement: bool,
        payload_len: usize,
    ) -> Result<Option<(usize, Frame<'a>)>, FrameError> {
        let continued = payload_len == PACKET_PAYLOAD_MAX;
        let fits =
            if continued { event_size as usize >= in_packet } else { event_size as usize == in_packet };
        if !fits {
            return Err(FrameError::Length { event_size: u64::from(event_size), packet: in_packet as u64 });
        }
        self.partial = Some(Partial {
            wants_acknowledgement,
            event_size,
            offset: event.len() as u64,
            packet_left: in_packet - event.len(),
            continued,
        });
        self.finish_partial_if_done();
        Ok(Some((
            buffer.len().min(PACKET_HEADER_LEN + payload_len),
            Frame::Part { wants_acknowledgement, offset: 0, event_size, bytes: event },
        )))
    }

    fn next_part<'a>(&mut self, buffer: &'a [u8]) -> Result<Option<(usize, Frame<'a>)>, FrameError> {
        let Some(mut partial) = self.partial else { return Ok(None) };
        let mut consumed = 0;
        if partial.packet_left == 0 {
            let Some(head) = buffer.first_chunk::<PACKET_HEADER_LEN>() else { return Ok(None) };
            let missing = u64::from(partial.event_size) - partial.offset;
            if missing > 0 && buffer.len() == PACKET_HEADER_LEN {
                return Ok(None);
            }
            self.check_sequence(head[3])?;
            let len = payload_len(head);
            let expected = missing.min(PACKET_PAYLOAD_MAX as u64);
            if len as u64 != expected {
                return Err(FrameError::Length {
                    event_size: u64::from(partial.event_size),
                    packet: partial.offset + len as u64,
                });
            }
            partial.packet_left = len;
            partial.continued = len == PACKET_PAYLOAD_MAX;
            consumed = PACKET_HEADER_LEN;
        }
        if consumed > 0 && partial.packet_left == 0 {
            self.partial = Some(partial);
            self.finish_partial_if_done();
            return Ok(Some((consumed, Frame::EmptyPacket)));
        }
        let available = &buffer[consumed..];
        let bytes = &available[..available.len().min(partial.packet_left)];
        if bytes.is_empty() {
            return Ok(None);
        }
        let (offset, event_size) = (partial.offset, partial.event_size);
        partial.offset += bytes.len() as u64;
        partial.packet_left -= bytes.len();
        self.partial = Some(partial);
        self.finish_partial_if_done();
        let wants_acknowledgement = partial.wants_acknowledgement;
        Ok(Some((consumed + bytes.len(), Frame::Part { wants_acknowledgement, offset, event_size, bytes })))
    }

    fn finish_partial_if_done(&mut self) {
        let Some(partial) = self.partial else { return };
        if partial.packet_left == 0 && !partial.continued {
            self.after_flagged = partial.wants_acknowledgement;
            self.partial = None;
        }
    }
}

fn payload_len(head: &[u8; PACKET_HEADER_LEN]) -> usize {
    usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CAPACITY: usize = 256 * 1024;

    /// An event of `size` bytes with a recognisable body.
    fn event(size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        bytes[9..13].copy_from_slice(&(size as u32).to_le_bytes());
        bytes
    }

    /// Packs events as a source does; `flagged` are the indexes that ask for an acknowledgement.
    fn pack(events: &[Vec<u8>], semi_sync: bool, flagged: &[usize]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut sequence = 1u8;
        for (index, event) in events.iter().enumerate() {
            let mut payload = vec![0u8];
            if semi_sync {
                payload.extend_from_slice(&[0xef, u8::from(flagged.contains(&index))]);
            }
            payload.extend_from_slice(event);
            let mut rest = &payload[..];
            loop {
                let len = rest.len().min(PACKET_PAYLOAD_MAX);
                out.extend_from_slice(&(len as u32).to_le_bytes()[..3]);
                out.push(sequence);
                sequence = sequence.wrapping_add(1);
                out.extend_from_slice(&rest[..len]);
                rest = &rest[len..];
                if len < PACKET_PAYLOAD_MAX {
                    break;
                }
            }
            if semi_sync && flagged.contains(&index) {
                sequence = 1;
            }
        }
        out
    }

    /// Feeds `stream` through a buffer of `CAPACITY` bytes, at most `step` bytes a read, and puts the events together.
    fn unpack(stream: &[u8], semi_sync: bool, step: usize) -> Result<Vec<(bool, Vec<u8>)>, FrameError> {
        let mut framer = DumpFramer::new(semi_sync);
        let (mut buffer, mut fed, mut events) = (Vec::new(), 0, Vec::new());
        loop {
            while let Some((consumed, frame)) = framer.next(&buffer, CAPACITY)? {
                match frame {
                    Frame::Event { wants_acknowledgement, bytes } => {
                        events.push((wants_acknowledgement, bytes.to_vec()));
                    }
                    Frame::Part { wants_acknowledgement, offset: 0, bytes, .. } => {
                        assert!(bytes.len() >= PEEK_BYTES_MAX);
                        events.push((wants_acknowledgement, bytes.to_vec()));
                    }
                    Frame::Part { offset, event_size, bytes, .. } => {
                        let last = events.last_mut().unwrap();
                        assert_eq!(last.1.len() as u64, offset);
                        // The caller knows the last part by its end, so nothing may follow it.
                        assert!(!bytes.is_empty() && offset < u64::from(event_size));
                        last.1.extend_from_slice(bytes);
                    }
                    Frame::EmptyPacket => {}
                    Frame::End | Frame::SourceError(_) => return Ok(events),
                }
                buffer.drain(..consumed);
            }
            if fed == stream.len() {
                return Ok(events);
            }
            let room = (CAPACITY - buffer.len()).min(step).min(stream.len() - fed);
            assert!(room > 0, "the framer neither consumes nor has room");
            buffer.extend_from_slice(&stream[fed..fed + room]);
            fed += room;
        }
    }

    #[test]
    fn events_of_every_size_come_out_as_they_went_in() {
        // Around the packet limit: an exact multiple of 0xffffff ends with an empty packet.
        for extra in [0i64, 1, -1, -3, -4, 100] {
            for semi_sync in [false, true] {
                let prefix = if semi_sync { 3 } else { 1 };
                let big = (PACKET_PAYLOAD_MAX as i64 - prefix + extra) as usize;
                let events =
                    vec![event(30), event(big), event(CAPACITY), event(19), event(2 * big + 5), event(40)];
                let stream = pack(&events, semi_sync, &[1, 5]);
                let out = unpack(&stream, semi_sync, 150_001).unwrap();
                assert_eq!(out.len(), events.len());
                for (index, (flagged, bytes)) in out.iter().enumerate() {
                    assert!(*bytes == events[index], "event {index}, extra {extra}, semi-sync {semi_sync}");
                    assert_eq!(*flagged, semi_sync && [1, 5].contains(&index));
                }
            }
        }
    }

    #[test]
    fn a_magic_byte_in_a_timestamp_is_not_semi_sync() {
        let mut first = event(30);
        first[0..4].fill(0);
        assert_eq!(DumpFramer::detect_semi_sync(&pack(&[first.clone()], false, &[])), Some(false));
        assert_eq!(DumpFramer::detect_semi_sync(&pack(&[first.clone()], true, &[])), Some(true));
        assert_eq!(DumpFramer::detect_semi_sync(&[0, 0, 0, 1]), None);
        let mut later = event(30);
        later[0] = 0xef;
        let out = unpack(&pack(&[first, later.clone()], false, &[]), false, 10).unwrap();
        assert_eq!(out[1], (false, later));
    }

    #[test]
    fn an_error_packet_is_read() {
        let mut payload = vec![0xff, 0xd4, 0x04];
        payload.extend_from_slice(b"#HY000Could not\nfind first log");
        let mut stream = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        stream.push(1);
        stream.extend_from_slice(&payload);
        let (_, frame) = DumpFramer::new(true).next(&stream, CAPACITY).unwrap().unwrap();
        let Frame::SourceError(error) = frame else { panic!("{frame:?}") };
        assert_eq!((error.code, error.message.as_str()), (1236, "Could not find first log"));
    }

    #[test]
    fn an_error_packet_larger_than_the_buffer_consumes_no_more_than_there_is() {
        let mut stream = vec![0xfe, 0xff, 0xff, 1, 0xff, 0xd4, 0x04];
        stream.resize(BUFFER_LEN_MIN, b'e');
        let (consumed, frame) = DumpFramer::new(true).next(&stream, BUFFER_LEN_MIN).unwrap().unwrap();
        assert_eq!(consumed, stream.len());
        assert!(matches!(frame, Frame::SourceError(_)));
    }

    #[test]
    fn a_lost_packet_is_seen() {
        let stream = pack(&[event(30), event(31), event(32)], false, &[]);
        let without_second = [&stream[..35], &stream[35 + 36..]].concat();
        assert_eq!(
            unpack(&without_second, false, 1000),
            Err(FrameError::Sequence { expected: 2, actual: 3 })
        );
    }

    #[test]
    fn a_length_that_disagrees_with_its_packet_is_refused() {
        let mut lying = event(30);
        lying[9] = 29;
        assert!(matches!(unpack(&pack(&[lying], false, &[]), false, 99), Err(FrameError::Length { .. })));
        let mut lying = event(PACKET_PAYLOAD_MAX + 100);
        lying[9..13].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(unpack(&pack(&[lying], false, &[]), false, 9999), Err(FrameError::Length { .. })));
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_gives_the_same_events(
            sizes in proptest::collection::vec(19usize..3000, 1..20),
            step in 1usize..4000,
            semi_sync: bool,
            flags in proptest::collection::vec(any::<bool>(), 20),
        ) {
            let events: Vec<Vec<u8>> = sizes.into_iter().map(event).collect();
            let flagged: Vec<usize> = (0..events.len()).filter(|i| flags[*i]).collect();
            let out = unpack(&pack(&events, semi_sync, &flagged), semi_sync, step).unwrap();
            prop_assert_eq!(out.iter().map(|(_, e)| e.clone()).collect::<Vec<_>>(), events);
        }

        #[test]
        fn no_bytes_make_it_panic_or_stand_still(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            semi_sync: bool,
        ) {
            let _ = unpack(&bytes, semi_sync, 64);
        }
    }
}

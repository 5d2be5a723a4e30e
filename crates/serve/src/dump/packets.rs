//! Packet headers around events.
//!
//! An event's packet begins with a zero byte, and for a reader that acknowledges with two more (`0xEF`, and whether an
//! acknowledgement is asked for). An event of 16 MiB or more goes on in further packets, so that none need be in memory
//! whole: MySQL Source Code Documentation, "MySQL Packets".

use codec::packet::{EOF, ERR, ErrPacket, HEADER_BYTES, OK, PAYLOAD_BYTES_MAX, SEMI_SYNC_MAGIC};
use std::io;

/// Bytes that one event has before it at most: the header of its packet, the status byte, and those of semi-sync.
const OVERHEAD_BYTES: usize = HEADER_BYTES + 3;

/// `SERVER_STATUS_AUTOCOMMIT`, as each server says at the end of a dump.
const STATUS_AUTOCOMMIT: u16 = 2;

/// Where the packets of a dump go.
pub trait PacketOut {
    /// Writes bytes that are framed already, all of them.
    ///
    /// # Errors
    /// When the reader is gone, or takes nothing for too long.
    fn write(&mut self, framed: &[u8]) -> io::Result<()>;

    /// Whether the dump is to end: the reader was killed, or has closed its connection.
    fn is_cancelled(&self) -> bool;
}

/// The packets that are ready to be written.
#[derive(Debug)]
pub(crate) struct Packets {
    /// Number of the next packet.
    sequence: u8,
    semi_sync: bool,
    ready: Vec<u8>,
    /// Bytes of the event that was begun and are still to come.
    event_left: u64,
    /// Of those, how many the packet that was begun takes.
    packet_left: usize,
    /// The packet that was begun is a full one, so that another one follows it.
    is_full: bool,
    /// After this event the server begins to count anew, because the reader answers it.
    restart_sequence: bool,
    /// Of each transaction that was sent, or of a later one, an acknowledgement was asked for; what was not sent the reader had.
    is_all_asked_for: bool,
}

impl Packets {
    /// For the answer to a command, which had number 0.
    pub(crate) fn new(semi_sync: bool) -> Packets {
        Packets {
            sequence: 1,
            semi_sync,
            ready: Vec::new(),
            event_left: 0,
            packet_left: 0,
            is_full: false,
            restart_sequence: false,
            is_all_asked_for: true,
        }
    }

    /// Begins an event of `len` bytes. `acknowledge` asks a reader that does so for an acknowledgement of it.
    pub(crate) fn begin(&mut self, len: u64, acknowledge: bool) {
        debug_assert_eq!(self.event_left, 0, "an event was begun inside another one");
        let prefix: &[u8] = match (self.semi_sync, acknowledge) {
            (false, _) => &[OK],
            (true, false) => &[OK, SEMI_SYNC_MAGIC, 0],
            (true, true) => &[OK, SEMI_SYNC_MAGIC, 1],
        };
        self.event_left = len + prefix.len() as u64;
        self.restart_sequence = self.semi_sync && acknowledge;
        self.begin_packet();
        self.push(prefix);
    }

    /// Begins an event of the log, as [`Packets::begin`]: one that `carries` a transaction, or a part of one.
    pub(crate) fn begin_of_log(&mut self, len: u64, acknowledge: bool, carries: bool) {
        self.is_all_asked_for = acknowledge || self.is_all_asked_for && !carries;
        self.begin(len, acknowledge);
    }

    /// Whether the reader has everything that is not sent to it, by its own word.
    pub(crate) fn has_what_is_not_sent(&mut self, has: bool) {
        self.is_all_asked_for = has;
    }

    /// Whether the reader has everything, when it has answered what it was asked for.
    pub(crate) fn is_all_asked_for(&self) -> bool {
        self.is_all_asked_for
    }

    /// Takes the next bytes of the event that was begun.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            debug_assert!(self.packet_left > 0, "bytes behind the end of an event");
            let (now, later) = bytes.split_at(bytes.len().min(self.packet_left));
            self.ready.extend_from_slice(now);
            self.packet_left -= now.len();
            self.event_left -= now.len() as u64;
            bytes = later;
            if self.packet_left == 0 && self.is_full {
                self.begin_packet();
            }
            if now.is_empty() {
                return;
            }
        }
        if self.event_left == 0 && std::mem::take(&mut self.restart_sequence) {
            self.sequence = 1;
        }
    }

    /// How many bytes of the event that was begun are still to come.
    pub(crate) fn event_left(&self) -> u64 {
        self.event_left
    }

    /// A whole event.
    pub(crate) fn event(&mut self, event: &[u8]) {
        self.begin(event.len() as u64, false);
        self.push(event);
    }

    /// The log has come to its end, and the reader did not want to wait.
    pub(crate) fn eof(&mut self) {
        let status = STATUS_AUTOCOMMIT.to_le_bytes();
        self.message(&[EOF, 0, 0, status[0], status[1]]);
    }

    /// The dump ends with an error. Inside an event nothing can be told: then it is false, and only the end of the connection
    /// keeps the reader from waiting for the rest.
    #[must_use]
    pub(crate) fn error(&mut self, error: &ErrPacket) -> bool {
        let is_told = self.event_left == 0;
        if is_told {
            let mut message = vec![ERR];
            message.extend_from_slice(&error.code.to_le_bytes());
            message.push(b'#');
            message.extend_from_slice(error.sqlstate.as_bytes());
            message.extend_from_slice(error.message.as_bytes());
            self.message(&message);
        }
        is_told
    }

    fn message(&mut self, message: &[u8]) {
        self.sequence = codec::packet::append_message(&mut self.ready, self.sequence, message);
    }

    fn begin_packet(&mut self) {
        let len = usize::try_from(self.event_left).unwrap_or(usize::MAX).min(PAYLOAD_BYTES_MAX);
        let [a, b, c, ..] = (len as u32).to_le_bytes();
        self.ready.extend_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
        self.packet_left = len;
        self.is_full = len == PAYLOAD_BYTES_MAX;
    }

    /// Makes room for `bytes` of so many events.
    pub(crate) fn reserve(&mut self, bytes: usize, events: usize) {
        self.ready.reserve(bytes + events * OVERHEAD_BYTES);
    }

    /// Writes everything that is ready. Returns how many bytes that were.
    ///
    /// # Errors
    /// As [`PacketOut::write`].
    pub(crate) fn flush(&mut self, out: &mut dyn PacketOut) -> io::Result<usize> {
        let written = self.ready.len();
        if written > 0 {
            out.write(&self.ready)?;
            self.ready.clear();
        }
        Ok(written)
    }

    /// Gives back memory beyond `bytes_max`, before a long wait.
    pub(crate) fn shrink(&mut self, bytes_max: usize) {
        if self.ready.is_empty() && self.ready.capacity() > bytes_max {
            self.ready = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::packet::append_message;

    fn framed(semi_sync: bool, acknowledge: bool, event: &[u8], piece: usize) -> (Vec<u8>, u8) {
        let mut packets = Packets::new(semi_sync);
        packets.begin(event.len() as u64, acknowledge);
        event.chunks(piece).for_each(|part| packets.push(part));
        assert_eq!(packets.event_left(), 0);
        (packets.ready, packets.sequence)
    }

    #[test]
    fn large_events_are_cut_as_a_server_cuts_them_in_whatever_pieces_they_come() {
        let max = PAYLOAD_BYTES_MAX;
        for len in [19, max - 2, max - 1, max, max + 1, 2 * max - 1, 2 * max + 7] {
            let event: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut expected = Vec::new();
            let next = append_message(&mut expected, 1, &[&[OK][..], &event].concat());
            for piece in [1 << 18, 3_000_017, usize::MAX] {
                let (ready, sequence) = framed(false, false, &event, piece);
                assert!(ready == expected && sequence == next, "{len} bytes in pieces of {piece}");
            }
        }
    }

    #[test]
    fn readers_that_acknowledge_get_two_bytes_more() {
        assert_eq!(framed(true, false, b"event", 9), (b"\x08\0\0\x01\0\xef\0event".to_vec(), 2));
        assert_eq!(framed(true, true, b"event", 9), (b"\x08\0\0\x01\0\xef\x01event".to_vec(), 1));
    }

    #[test]
    fn the_end_of_a_dump_is_what_a_server_sends() {
        let mut packets = Packets::new(false);
        packets.eof();
        let error = ErrPacket { code: 1236, sqlstate: "HY000".into(), message: "no".into() };
        assert!(packets.error(&error));
        assert_eq!(packets.ready, b"\x05\0\0\x01\xfe\0\0\x02\0\x0b\0\0\x02\xff\xd4\x04#HY000no");
        packets.begin(20, false);
        packets.push(b"half");
        let before = packets.ready.len();
        assert!(!packets.error(&error) && packets.ready.len() == before, "no error inside an event");
    }
}

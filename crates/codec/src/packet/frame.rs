//! Framing: how payloads are cut into packets and put together again.
//!
//! A packet is a 3-byte little-endian payload length, a 1-byte sequence number and the payload. A payload of
//! [`PAYLOAD_BYTES_MAX`] bytes says that the message continues in the next packet, so a message whose length is an
//! exact multiple of it ends with an empty packet. The sequence number counts packets in both directions within one
//! command, starts at 0 with the command and wraps at 255.
//!
//! Source: MySQL Source Code Documentation, "MySQL Packets".

/// Length of a packet header, in bytes.
pub const HEADER_BYTES: usize = 4;

/// The longest payload of one packet, in bytes; exactly this length means "to be continued".
pub const PAYLOAD_BYTES_MAX: usize = 0xFF_FFFF;

/// The longest message accepted in answer to a command, in bytes. Event streams are not bound by it.
pub const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// What stands before every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload that follows, in bytes. Always <= [`PAYLOAD_BYTES_MAX`].
    pub length: usize,
    /// Number of this packet within its command.
    pub sequence: u8,
}

impl Header {
    /// Reads a header; every four bytes are one.
    pub fn parse([a, b, c, sequence]: [u8; HEADER_BYTES]) -> Self {
        Self { length: u32::from_le_bytes([a, b, c, 0]) as usize, sequence }
    }

    /// Whether the message goes on in the next packet.
    pub fn continues(self) -> bool {
        self.length == PAYLOAD_BYTES_MAX
    }
}

/// Appends a message to `out` as one packet or several, the first numbered `sequence`.
///
/// Returns the number that the next packet of this command must carry.
pub fn append_message(out: &mut Vec<u8>, mut sequence: u8, message: &[u8]) -> u8 {
    let mut rest = message;
    loop {
        let (payload, tail) = rest.split_at(rest.len().min(PAYLOAD_BYTES_MAX));
        append_packet(out, sequence, payload);
        sequence = sequence.wrapping_add(1);
        if payload.len() < PAYLOAD_BYTES_MAX {
            return sequence;
        }
        rest = tail;
    }
}

/// Appends one packet. `payload` is at most [`PAYLOAD_BYTES_MAX`] bytes long.
fn append_packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    let [a, b, c, ..] = (payload.len() as u32).to_le_bytes();
    out.extend_from_slice(&[a, b, c, sequence]);
    out.extend_from_slice(payload);
}

/// The peer broke the framing rules; the connection cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A packet was lost, or the peer speaks another protocol.
    #[error("packet number {found} came where number {expected} belongs")]
    OutOfSequence {
        /// The number that belongs here.
        expected: u8,
        /// The number that the peer sent.
        found: u8,
    },
    /// The message is longer than the limit given to [`Assembler::new`].
    #[error("the message is longer than the {limit} bytes accepted here")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// How far [`Assembler::feed`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes taken from the front of the input.
    pub consumed: usize,
    /// Whether the message is now complete.
    pub complete: bool,
}

/// Puts a message together from bytes that arrive in any pieces.
///
/// Memory grows with the bytes that have arrived, never with a length that the peer announces.
#[derive(Debug)]
pub struct Assembler {
    limit: usize,
    expected: u8,
    message: Vec<u8>,
    header: [u8; HEADER_BYTES],
    /// Bytes of `header` that are there. Always <= HEADER_BYTES.
    header_filled: usize,
    /// Payload bytes of the current packet still to come; meaningful once the header is complete.
    missing: usize,
    complete: bool,
}

impl Assembler {
    /// An assembler for messages of up to `limit` bytes, whose first packet must carry `sequence`.
    pub fn new(limit: usize, sequence: u8) -> Self {
        Self {
            limit,
            expected: sequence,
            message: Vec::new(),
            header: [0; HEADER_BYTES],
            header_filled: 0,
            missing: 0,
            complete: false,
        }
    }

    /// Takes bytes from the front of `input` until the message is complete or the input used up.
    ///
    /// Bytes after the end of a message are not consumed. After an error the assembler is of no further use.
    pub fn feed(&mut self, input: &[u8]) -> Result<Progress, FrameError> {
        let mut rest = input;
        while !self.complete && (!rest.is_empty() || self.packet_is_whole()) {
            if self.header_filled < HEADER_BYTES {
                let taken = rest.len().min(HEADER_BYTES - self.header_filled);
                self.header[self.header_filled..][..taken].copy_from_slice(&rest[..taken]);
                self.header_filled += taken;
                rest = &rest[taken..];
                if self.header_filled == HEADER_BYTES {
                    self.begin_packet()?;
                }
                continue;
            }
            let taken = rest.len().min(self.missing);
            self.message.extend_from_slice(&rest[..taken]);
            self.missing -= taken;
            rest = &rest[taken..];
            if self.missing == 0 {
                self.complete = !Header::parse(self.header).continues();
                self.header_filled = 0;
            }
        }
        Ok(Progress { consumed: input.len() - rest.len(), complete: self.complete })
    }

    /// The sequence number that the next packet of this command must carry, whoever sends it.
    pub fn next_sequence(&self) -> u8 {
        self.expected
    }

    /// The message. Call it when [`Progress::complete`] was reported; before, it is the part that has arrived.
    pub fn into_message(self) -> Vec<u8> {
        self.message
    }

    /// True for a packet without payload whose header has just been read: it ends without further input.
    fn packet_is_whole(&self) -> bool {
        self.header_filled == HEADER_BYTES && self.missing == 0
    }

    fn begin_packet(&mut self) -> Result<(), FrameError> {
        let header = Header::parse(self.header);
        if header.sequence != self.expected {
            return Err(FrameError::OutOfSequence { expected: self.expected, found: header.sequence });
        }
        self.expected = self.expected.wrapping_add(1);
        // `message` never exceeds `limit`, so the subtraction cannot underflow.
        if header.length > self.limit - self.message.len() {
            return Err(FrameError::TooLong { limit: self.limit });
        }
        self.missing = header.length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assemble(
        bytes: &[u8],
        piece: usize,
        limit: usize,
        sequence: u8,
    ) -> Result<Option<Vec<u8>>, FrameError> {
        let mut assembler = Assembler::new(limit, sequence);
        for chunk in bytes.chunks(piece) {
            let progress = assembler.feed(chunk)?;
            if progress.complete {
                return Ok(Some(assembler.into_message()));
            }
            assert_eq!(progress.consumed, chunk.len());
        }
        Ok(None)
    }

    #[test]
    fn a_short_message_is_one_packet() {
        let mut out = Vec::new();
        assert_eq!(append_message(&mut out, 0, b"\x03SELECT 1"), 1);
        assert_eq!(out, b"\x09\x00\x00\x00\x03SELECT 1");
    }

    #[test]
    fn an_exact_multiple_ends_with_an_empty_packet() {
        let message = vec![7; PAYLOAD_BYTES_MAX];
        let mut out = Vec::new();
        assert_eq!(append_message(&mut out, 255, &message), 1);
        assert_eq!(out.len(), PAYLOAD_BYTES_MAX + 2 * HEADER_BYTES);
        assert_eq!(out[..4], [0xFF, 0xFF, 0xFF, 255]);
        assert_eq!(out[out.len() - 4..], [0, 0, 0, 0]);
        assert_eq!(assemble(&out, 1 << 20, RESPONSE_BYTES_MAX, 255), Ok(Some(message)));
    }

    #[test]
    fn a_message_of_several_packets_comes_back_whole() {
        let message: Vec<u8> = (0..PAYLOAD_BYTES_MAX * 2 + 5).map(|index| index as u8).collect();
        let mut out = Vec::new();
        assert_eq!(append_message(&mut out, 0, &message), 3);
        assert_eq!(assemble(&out, 65_537, 64 << 20, 0), Ok(Some(message)));
    }

    #[test]
    fn bytes_after_the_message_stay() {
        let mut assembler = Assembler::new(16, 0);
        let progress = assembler.feed(b"\x00\x00\x00\x00\x01\x00\x00\x01x").unwrap();
        assert_eq!(progress, Progress { consumed: 4, complete: true });
        assert_eq!(assembler.next_sequence(), 1);
    }

    #[test]
    fn an_announced_length_over_the_limit_is_refused_before_the_payload() {
        assert_eq!(assemble(&[0xFF, 0xFF, 0xFE, 0], 4, 100, 0), Err(FrameError::TooLong { limit: 100 }));
        let mut assembler = Assembler::new(RESPONSE_BYTES_MAX, 0);
        assembler.feed(&[0xFF, 0xFF, 0xFE, 0]).unwrap();
        assert_eq!(assembler.message.capacity(), 0);
    }

    #[test]
    fn a_lost_packet_is_noticed() {
        assert_eq!(
            assemble(&[0, 0, 0, 2], 4, 100, 1),
            Err(FrameError::OutOfSequence { expected: 1, found: 2 })
        );
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_message(
            message in proptest::collection::vec(any::<u8>(), 0..2000),
            piece in 1_usize..300,
            sequence: u8,
        ) {
            let mut out = Vec::new();
            append_message(&mut out, sequence, &message);
            prop_assert_eq!(assemble(&out, piece, 2000, sequence), Ok(Some(message)));
        }

        #[test]
        fn hostile_bytes_never_panic_and_never_pass_the_limit(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            piece in 1_usize..50,
            sequence: u8,
        ) {
            if let Ok(Some(message)) = assemble(&bytes, piece, 64, sequence) {
                prop_assert!(message.len() <= 64);
            }
        }
    }
}

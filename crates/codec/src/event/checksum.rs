//! The CRC32 at the end of events.

use super::error::EventError;
use super::fields::{need, u32_at};
use super::header::{FLAGS_AT, HEADER_LEN, flags};

/// Bytes that the checksum takes at the end of an event (`BINLOG_CHECKSUM_LEN`).
pub const CHECKSUM_LEN: usize = 4;

/// `binlog_checksum` of the file that an event stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    /// Events end with their body.
    None,
    /// Events end with the zlib CRC32 of all bytes before it.
    Crc32,
}

impl ChecksumAlgorithm {
    /// From the byte that a format description carries (`enum_binlog_checksum_alg`).
    ///
    /// # Errors
    /// For any code but 0 and 1.
    pub(crate) fn from_code(code: u8) -> Result<ChecksumAlgorithm, EventError> {
        match code {
            0 => Ok(ChecksumAlgorithm::None),
            1 => Ok(ChecksumAlgorithm::Crc32),
            other => Err(EventError::UnknownChecksumAlgorithm(other)),
        }
    }

    /// Bytes that this algorithm adds at the end of an event.
    pub fn len(self) -> usize {
        match self {
            ChecksumAlgorithm::None => 0,
            ChecksumAlgorithm::Crc32 => CHECKSUM_LEN,
        }
    }

    /// True when events carry no checksum.
    pub fn is_empty(self) -> bool {
        self == ChecksumAlgorithm::None
    }

    /// Checks a whole event.
    ///
    /// # Errors
    /// When the checksum is not that of the bytes, or the event is too short to hold one.
    pub fn verify(self, event: &[u8]) -> Result<(), EventError> {
        if self == ChecksumAlgorithm::None {
            return Ok(());
        }
        need("an event with a checksum", event, HEADER_LEN + CHECKSUM_LEN)?;
        let (covered, tail) = event.split_at(event.len() - CHECKSUM_LEN);
        let (stored, computed) = (u32_at(tail, 0), crc32fast::hash(covered));
        if stored != computed {
            return Err(EventError::BadChecksum { stored, computed });
        }
        Ok(())
    }

    /// Puts the checksum at the end of an event that has room for it. Without an algorithm the event stays as it is: a format
    /// description has that room even where its file has no checksums.
    pub fn put(self, event: &mut [u8]) {
        if self == ChecksumAlgorithm::Crc32 {
            let (covered, tail) = event.split_at_mut(event.len() - CHECKSUM_LEN);
            tail.copy_from_slice(&crc32fast::hash(covered).to_le_bytes());
        }
    }

    /// Checks a format description as it may stand in a source's own file.
    ///
    /// The server computes its checksum with [`flags::BINLOG_IN_USE`] cleared and sets the flag afterwards in place
    /// (`Log_event_footer::event_checksum_test`), so the flag is taken out first.
    ///
    /// # Errors
    /// As [`ChecksumAlgorithm::verify`].
    pub fn verify_format_description(self, event: &[u8]) -> Result<(), EventError> {
        if self == ChecksumAlgorithm::None || event.len() < HEADER_LEN + CHECKSUM_LEN {
            return self.verify(event);
        }
        let (covered, tail) = event.split_at(event.len() - CHECKSUM_LEN);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&covered[..FLAGS_AT]);
        hasher.update(&[covered[FLAGS_AT] & !(flags::BINLOG_IN_USE as u8)]);
        hasher.update(&covered[FLAGS_AT + 1..]);
        let (stored, computed) = (u32_at(tail, 0), hasher.finalize());
        if stored != computed {
            return Err(EventError::BadChecksum { stored, computed });
        }
        Ok(())
    }
}

/// The checksum of one event that passes by in parts, so that an event of any size needs no memory of its size.
#[derive(Debug, Clone)]
pub struct StreamChecksum {
    algorithm: ChecksumAlgorithm,
    hasher: crc32fast::Hasher,
    /// Bytes of the event that are still to come.
    remaining: u64,
    /// The stored checksum as far as it has arrived.
    stored: [u8; CHECKSUM_LEN],
}

impl StreamChecksum {
    /// For one event of `event_size` bytes, header and checksum included.
    ///
    /// # Errors
    /// When the event is too short to hold its header and checksum.
    pub fn new(algorithm: ChecksumAlgorithm, event_size: u32) -> Result<StreamChecksum, EventError> {
        let needed = HEADER_LEN + algorithm.len();
        if (event_size as usize) < needed {
            return Err(EventError::TooShort {
                what: "an event with a checksum",
                needed,
                actual: event_size as usize,
            });
        }
        Ok(StreamChecksum {
            algorithm,
            hasher: crc32fast::Hasher::new(),
            remaining: u64::from(event_size),
            stored: [0; CHECKSUM_LEN],
        })
    }

    /// Takes the next part. Bytes past the event's end are a caller's error.
    pub fn update(&mut self, part: &[u8]) {
        assert!(part.len() as u64 <= self.remaining, "a part reaches past the end of its event");
        if self.algorithm == ChecksumAlgorithm::Crc32 {
            let body_left = self.remaining.saturating_sub(CHECKSUM_LEN as u64);
            let body = usize::try_from(body_left).unwrap_or(usize::MAX).min(part.len());
            self.hasher.update(&part[..body]);
            let tail = &part[body..];
            // `remaining - body` is how much of the checksum is missing, so its filled part ends at 4 minus that.
            let missing = (self.remaining - body as u64).min(CHECKSUM_LEN as u64) as usize;
            let at = CHECKSUM_LEN - missing;
            self.stored[at..at + tail.len()].copy_from_slice(tail);
        }
        self.remaining -= part.len() as u64;
    }

    /// Bytes of the event that have not been given yet.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Compares after the last part.
    ///
    /// # Errors
    /// When the checksum is not that of the bytes.
    pub fn finish(self) -> Result<(), EventError> {
        assert_eq!(self.remaining, 0, "finish before the last part");
        if self.algorithm == ChecksumAlgorithm::None {
            return Ok(());
        }
        let (stored, computed) = (u32::from_le_bytes(self.stored), self.hasher.finalize());
        if stored != computed {
            return Err(EventError::BadChecksum { stored, computed });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event_with_checksum(body: &[u8]) -> Vec<u8> {
        let mut event = vec![0u8; 19];
        event.extend_from_slice(body);
        let size = (event.len() + 4) as u32;
        event[9..13].copy_from_slice(&size.to_le_bytes());
        let crc = crc32fast::hash(&event);
        event.extend_from_slice(&crc.to_le_bytes());
        event
    }

    #[test]
    fn one_flipped_bit_is_seen() {
        let good = event_with_checksum(b"body");
        assert_eq!(ChecksumAlgorithm::Crc32.verify(&good), Ok(()));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(ChecksumAlgorithm::Crc32.verify(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_in_use_flag_does_not_count() {
        let mut event = event_with_checksum(b"format");
        event[17] |= flags::BINLOG_IN_USE as u8;
        assert!(ChecksumAlgorithm::Crc32.verify(&event).is_err());
        assert_eq!(ChecksumAlgorithm::Crc32.verify_format_description(&event), Ok(()));
    }

    proptest! {
        #[test]
        fn parts_give_the_same_verdict_as_the_whole(
            body in proptest::collection::vec(any::<u8>(), 0..300),
            cuts in proptest::collection::vec(0usize..330, 0..8),
            flip in proptest::option::of(0usize..330),
        ) {
            let mut event = event_with_checksum(&body);
            if let Some(at) = flip {
                let at = at % event.len();
                event[at] ^= 0x10;
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % (event.len() + 1)).collect();
            cuts.sort_unstable();
            let mut stream = StreamChecksum::new(ChecksumAlgorithm::Crc32, event.len() as u32).unwrap();
            let mut at = 0;
            for cut in cuts.into_iter().chain([event.len()]) {
                stream.update(&event[at..cut]);
                at = cut;
            }
            prop_assert_eq!(stream.finish(), ChecksumAlgorithm::Crc32.verify(&event));
        }
    }
}

//! The pieces of the receive buffer that are to be written, in order.

use binlog::writer::{LogError, LogWriter};
use std::io::IoSlice;
use std::ops::Range;

/// How many pieces one write call takes.
const WRITE_PARTS_MAX: usize = 128;

/// A piece shorter than this is copied to the end of the one before it: that is quicker than a piece of its own.
const JOIN_BELOW: usize = 4096;

/// What was admitted since the last write. Kept between batches for its memory.
pub(super) struct Batch(Vec<Range<usize>>);

impl Batch {
    pub(super) fn new() -> Batch {
        Batch(Vec::with_capacity(1024))
    }

    /// Adds what stands at that place of the buffer.
    pub(super) fn push(&mut self, piece: Range<usize>) {
        self.0.push(piece);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many bytes that are.
    pub(super) fn bytes(&self) -> u64 {
        self.0.iter().map(Range::len).sum::<usize>() as u64
    }

    /// Makes it durable through the journal. False when it must be written and synced in the file instead.
    pub(super) fn commit(&self, buffer: &[u8], log: &mut LogWriter) -> Result<bool, LogError> {
        log.commit(self.0.iter().map(|piece| &buffer[piece.clone()]))
    }

    /// Appends it to the file, and says how many bytes that were.
    pub(super) fn write(&mut self, buffer: &mut [u8], log: &mut LogWriter) -> Result<u64, LogError> {
        join_small_pieces(buffer, &mut self.0);
        let mut bytes = 0;
        for pieces in self.0.chunks(WRITE_PARTS_MAX) {
            let mut parts = [IoSlice::new(&[]); WRITE_PARTS_MAX];
            for (part, piece) in parts.iter_mut().zip(pieces) {
                *part = IoSlice::new(&buffer[piece.clone()]);
                bytes += piece.len() as u64;
            }
            log.append(&mut parts[..pieces.len()])?;
        }
        Ok(bytes)
    }
}

/// Closes the gaps that packet headers leave between small pieces, so that a write has few parts. Pieces only move
/// towards the front and keep their order, so nothing is written over that is still to come.
fn join_small_pieces(buffer: &mut [u8], pieces: &mut Vec<Range<usize>>) {
    let mut kept = 0;
    for index in 1..pieces.len() {
        let piece = pieces[index].clone();
        if piece.len() < JOIN_BELOW {
            let end = pieces[kept].end;
            pieces[kept].end += piece.len();
            buffer.copy_within(piece, end);
        } else {
            kept += 1;
            pieces[kept] = piece;
        }
    }
    pieces.truncate(kept + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joined_pieces_hold_the_same_bytes(
            lens in proptest::collection::vec((0usize..9, prop_oneof![1usize..80, 4000usize..5000]), 0..40),
        ) {
            let (mut pieces, mut end) = (Vec::new(), 0);
            for (gap, len) in lens {
                pieces.push(end + gap..end + gap + len);
                end += gap + len;
            }
            let mut buffer: Vec<u8> = (0..end + 10).map(|index| (index * 31 % 251) as u8).collect();
            let (after, expected) = (buffer[end..].to_vec(), pieces.iter().flat_map(|piece| buffer[piece.clone()].to_vec()));
            let expected: Vec<u8> = expected.collect();
            join_small_pieces(&mut buffer, &mut pieces);
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| buffer[piece.clone()].to_vec()).collect();
            prop_assert_eq!(joined, expected);
            prop_assert_eq!(&buffer[end..], &after[..], "what has arrived behind the batch stays");
        }
    }
}

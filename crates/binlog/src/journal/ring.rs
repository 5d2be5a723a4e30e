//! Which blocks of the journal are in use.

use std::collections::VecDeque;

/// A record whose bytes no sync of the binary log has covered yet.
#[derive(Debug, Clone, Copy)]
struct Kept {
    sequence: u64,
    first: u32,
    /// End of its bytes in the binary log.
    end: u64,
}

/// The blocks of a journal as a ring; block 0 is not part of it. A record never wraps around the end.
///
/// The newest record is never written over, be it that no record is needed any more: it says so, and where the next one is torn
/// by a crash, only it does. The older ones would be put back, into files that may have been cut or sealed since.
#[derive(Debug)]
pub(super) struct Ring {
    /// Blocks of the journal, block 0 among them.
    blocks: u32,
    /// Where the next record goes, unless it does not fit before the end.
    head: u32,
    /// First block of the newest record; `None` when there is no record.
    newest: Option<u32>,
    /// Oldest first.
    kept: VecDeque<Kept>,
}

impl Ring {
    /// A ring of which no record is needed. `newest` has the first block of the newest one, and how many it takes.
    pub(super) fn new(blocks: u32, newest: Option<(u32, u32)>) -> Ring {
        Ring {
            blocks,
            head: newest.map_or(1, |(first, count)| first + count),
            newest: newest.map(|(first, _)| first),
            // As many as there can be, so that none of them allocates.
            kept: VecDeque::with_capacity(blocks as usize),
        }
    }

    /// First block of a free run of `count` blocks; `None` when there is none.
    pub(super) fn place(&self, count: u32) -> Option<u32> {
        // One that leaves no block on either side would leave none for the next record, which may only say that none is needed.
        let fits = |place: u32| {
            let end = place + count;
            end < self.blocks || (end == self.blocks && place > 2)
        };
        let Some(tail) = self.kept.front().map(|oldest| oldest.first).or(self.newest) else {
            return fits(self.head).then_some(self.head);
        };
        // Head and tail at the same block would mean a full ring, and are never let happen.
        if self.head < tail {
            return (self.head + count < tail).then_some(self.head);
        }
        if fits(self.head) { Some(self.head) } else { (1 + count < tail).then_some(1) }
    }

    /// A record was written there.
    pub(super) fn keep(&mut self, sequence: u64, place: u32, count: u32, end: u64) {
        self.pass(place, count);
        self.kept.push_back(Kept { sequence, first: place, end });
    }

    /// A record was written there that nobody will need.
    pub(super) fn pass(&mut self, place: u32, count: u32) {
        self.head = place + count;
        self.newest = Some(place);
    }

    /// Number of the oldest record that is needed.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.kept.front().map(|oldest| oldest.sequence)
    }

    /// Forgets the records that end at or before `end`.
    pub(super) fn release(&mut self, end: u64) {
        while self.kept.front().is_some_and(|oldest| oldest.end <= end) {
            self.kept.pop_front();
        }
    }

    /// Forgets all records.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    pub(super) fn is_half_full(&self) -> bool {
        let Some(tail) = self.kept.front().map(|oldest| oldest.first) else { return false };
        let used = if self.head > tail { self.head - tail } else { self.blocks - 1 - (tail - self.head) };
        used > self.blocks / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_ring_has_no_place_until_something_is_released() {
        let mut ring = Ring::new(8, None);
        for sequence in 0..2 {
            let place = ring.place(3).unwrap();
            ring.keep(sequence, place, 3, 100 * (sequence + 1));
        }
        assert!(ring.is_half_full());
        assert_eq!((ring.place(1), ring.place(2)), (Some(7), None));
        ring.release(99);
        assert_eq!(ring.place(2), None);
        ring.release(100);
        assert_eq!((ring.oldest(), ring.place(2), ring.place(3)), (Some(1), Some(1), None));
        assert!(!ring.is_half_full());
        ring.clear();
        assert_eq!(
            (ring.oldest(), ring.place(1), ring.place(2), ring.place(3)),
            (None, Some(7), Some(1), None)
        );
    }

    #[test]
    fn the_newest_record_stays_when_none_is_needed() {
        let ring = Ring::new(8, Some((1, 1)));
        assert_eq!((ring.place(1), ring.place(6), ring.place(7)), (Some(2), None, None));
        let ring = Ring::new(8, Some((3, 5)));
        assert_eq!((ring.place(1), ring.place(2)), (Some(1), None), "head and tail would meet");
    }

    proptest! {
        #[test]
        fn no_record_lies_over_one_that_is_needed(
            blocks in 4u32..40,
            steps in proptest::collection::vec((1u32..12, 0usize..4), 1..200),
        ) {
            let mut ring = Ring::new(blocks, None);
            let mut kept: VecDeque<(u32, u32, u64)> = VecDeque::new();
            let mut newest = None;
            let mut end = 0;
            for (count, release) in steps {
                if let Some(place) = ring.place(count) {
                    prop_assert!(place >= 1 && place + count <= blocks);
                    for (first, len) in kept.iter().map(|(first, len, _)| (*first, *len)).chain(newest) {
                        prop_assert!(place + count <= first || first + len <= place, "{place}+{count} over {first}+{len}");
                    }
                    newest = Some((place, count));
                    end += 1;
                    ring.keep(end, place, count, end);
                    kept.push_back((place, count, end));
                }
                for _ in 0..release {
                    if let Some((_, _, oldest)) = kept.pop_front() {
                        ring.release(oldest);
                    }
                }
                prop_assert_eq!(ring.oldest(), kept.front().map(|(_, _, sequence)| *sequence));
                if kept.is_empty() {
                    prop_assert!(ring.place(1).is_some(), "no room to say that no record is needed");
                }
            }
        }
    }
}

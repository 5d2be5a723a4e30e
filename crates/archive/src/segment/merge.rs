//! Which small segments of a file become one.
//!
//! A quiet source leaves a tail of a few bytes each interval, and thousands of them a file. Neighbours that are small are
//! uploaded once more as one, when there is enough for a whole segment, and at the latest when the file is finished. What is
//! large enough stays as it is: uploading everything again when a file ends would double the bytes.

use crate::chain::commit::Segment;
use crate::writer::local::SEGMENT_BYTES;
use std::ops::Range;

/// A segment with fewer plain bytes is small.
pub(crate) const SMALL_BYTES: u64 = SEGMENT_BYTES / 2;

/// The next neighbours to be made one, by their places. `is_whole` says that nothing will come behind the last.
pub(crate) fn next_merge(segments: &[Segment], is_whole: bool) -> Option<Range<usize>> {
    let mut run = 0..0;
    let mut len = 0;
    for (place, segment) in segments.iter().enumerate() {
        if segment.len() >= SMALL_BYTES {
            // Nothing more comes between it and what is before it.
            if run.len() > 1 {
                return Some(run);
            }
            (run, len) = (place + 1..place + 1, 0);
            continue;
        }
        run.end = place + 1;
        len += segment.len();
        if len >= SEGMENT_BYTES {
            return Some(run);
        }
    }
    (is_whole && run.len() > 1).then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(lens: &[u64]) -> Vec<Segment> {
        let mut from = 0;
        let one = |len: &u64| {
            let segment = Segment {
                from,
                to: from + len,
                sha256: String::new(),
                object: String::new(),
                stored: 0,
                stored_sha256: String::new(),
                keys: Vec::new(),
            };
            from += len;
            segment
        };
        lens.iter().map(one).collect()
    }

    #[test]
    fn only_neighbours_that_are_small_become_one() {
        const BIG: u64 = SMALL_BYTES;
        const SMALL: u64 = SMALL_BYTES - 1;
        for (lens, growing, whole) in [
            (&[][..], None, None),
            (&[1], None, None),
            (&[1, 1], None, Some(0..2)),
            (&[BIG, 1, 1], None, Some(1..3)),
            (&[1, 1, BIG], Some(0..2), Some(0..2)),
            (&[BIG, 1, BIG, 1], None, None),
            (&[SMALL, SMALL, SMALL], Some(0..3), Some(0..3)),
            (&[BIG, SMALL, SMALL, 2, SMALL], Some(1..4), Some(1..4)),
        ] {
            let segments = segments(lens);
            assert_eq!(next_merge(&segments, false), growing, "{lens:?}, growing");
            assert_eq!(next_merge(&segments, true), whole, "{lens:?}, whole");
        }
    }

    /// However many tails there are, each byte goes up twice at most.
    #[test]
    fn what_was_merged_is_not_merged_again_while_the_file_grows() {
        let mut now = Vec::new();
        let mut again = 0;
        for tail in 0..10_000 {
            now.push(10_000 + tail % 7);
            if let Some(range) = next_merge(&segments(&now), false) {
                let len = now.splice(range.clone(), []).sum::<u64>();
                again += len;
                now.insert(range.start, len);
            }
        }
        let all: u64 = now.iter().sum();
        assert!(again <= all && now.len() < 500, "{again} of {all} went up again, {} segments", now.len());
    }
}

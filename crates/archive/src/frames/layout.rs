//! Which part of a segment is compressed, and which is stored as it is.

use std::ops::Range;

/// The decision is made for so many bytes at a time. Frames below this are not worth their beginnings: each one knows nothing of
/// the bytes before it.
pub(super) const UNIT_BYTES: usize = 64 << 10;

/// From this share on, a unit counts as compressed already. What is left of it (the GTID event before each payload, mostly) is
/// not worth running zstd over all of it.
const COMPRESSED_SHARE: (usize, usize) = (7, 8);

/// What becomes of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Compressed here.
    Compress,
    /// Stored as it is.
    Raw,
}

/// The parts of `len` bytes, one after another, no two neighbours of one kind. `compressed` are ranges in order and apart from
/// each other, as [`Walker`](crate::segment::runs::Walker) gives them.
///
/// Units are the same whatever stands in them, and each gets one kind. So a short run of either kind goes with what is around it,
/// and no frame is shorter than a unit but the only one.
pub(super) fn parts(len: usize, compressed: &[Range<usize>]) -> Vec<(Range<usize>, Kind)> {
    let mut parts: Vec<(Range<usize>, Kind)> = Vec::new();
    let mut ranges = compressed;
    // The last unit has what is over, up to nearly two.
    let units = (len / UNIT_BYTES).max(1);
    for unit in 0..units {
        let end = if unit + 1 == units { len } else { (unit + 1) * UNIT_BYTES };
        let unit = unit * UNIT_BYTES..end;
        while ranges.first().is_some_and(|range| range.end <= unit.start) {
            ranges = &ranges[1..];
        }
        let kind = kind(&unit, ranges);
        match parts.last_mut() {
            Some((last, of)) if *of == kind => last.end = unit.end,
            _ => parts.push((unit, kind)),
        }
    }
    parts
}

fn kind(unit: &Range<usize>, ranges: &[Range<usize>]) -> Kind {
    let within = |range: &Range<usize>| range.end.min(unit.end).saturating_sub(range.start.max(unit.start));
    let compressed: usize = ranges.iter().take_while(|range| range.start < unit.end).map(within).sum();
    let (part, whole) = COMPRESSED_SHARE;
    // A unit of nothing has nothing to compress either way.
    if compressed > 0 && compressed * whole >= unit.len() * part { Kind::Raw } else { Kind::Compress }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what these tests are about")]
mod tests {
    use super::*;

    const U: usize = UNIT_BYTES;

    #[test]
    fn short_runs_go_with_their_neighbours() {
        assert_eq!(parts(3 * U, &[]), [(0..3 * U, Kind::Compress)]);
        assert_eq!(parts(3 * U + 5, &[U..U + 1000]), [(0..3 * U + 5, Kind::Compress)]);
        // Small transactions, each behind its GTID.
        let payloads: Vec<_> = (0..300).map(|at| at * 1100 + 80..(at + 1) * 1100).collect();
        assert_eq!(parts(330_000, &payloads), [(0..330_000, Kind::Raw)]);
        // Too much between them.
        let payloads: Vec<_> = (0..300).map(|at| at * 1100 + 300..(at + 1) * 1100).collect();
        assert_eq!(parts(330_000, &payloads), [(0..330_000, Kind::Compress)]);
    }

    #[test]
    fn long_runs_stand_alone() {
        let expected =
            [(0..2 * U, Kind::Compress), (2 * U..9 * U, Kind::Raw), (9 * U..12 * U + 7, Kind::Compress)];
        assert_eq!(parts(12 * U + 7, &[2 * U - 5..9 * U + 5]), expected);
    }

    #[test]
    fn a_short_segment_has_one_part() {
        assert_eq!(parts(0, &[]), [(0..0, Kind::Compress)]);
        assert_eq!(parts(100, &[10..100]), [(0..100, Kind::Raw)]);
        assert_eq!(parts(2 * U - 1, &[0..U]), [(0..2 * U - 1, Kind::Compress)]);
    }
}

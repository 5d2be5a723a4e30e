//! Numbers of one UUID and tag: a sorted list of intervals and the algebra on it.

/// Lists up to this long are merged one interval at a time, in place and without allocation; longer ones in one pass over
/// both. Small, so that the cost of the first way stays proportional to the list that is merged into.
const MERGE_IN_PLACE_MAX: usize = 8;

/// A range of numbers, both ends included. `start <= end`, and `end < u64::MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// Sorted intervals of which no two overlap or touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IntervalList(Vec<Interval>);

impl IntervalList {
    /// Takes intervals in any order, overlapping or not.
    pub(super) fn from_unsorted(mut intervals: Vec<Interval>) -> IntervalList {
        intervals.sort_unstable_by_key(|interval| interval.start);
        intervals.dedup_by(|next, kept| {
            let touches = next.start <= kept.end + 1;
            if touches {
                kept.end = kept.end.max(next.end);
            }
            touches
        });
        IntervalList(intervals)
    }

    pub(super) fn as_slice(&self) -> &[Interval] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Empties the list and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many numbers the list holds; stops at `u64::MAX`.
    pub(super) fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum: u64, interval| sum.saturating_add(interval.end - interval.start + 1))
    }

    /// Whether every number of `part` is in the list.
    pub(super) fn covers(&self, part: Interval) -> bool {
        let index = self.0.partition_point(|interval| interval.end < part.start);
        self.0.get(index).is_some_and(|interval| interval.start <= part.start && part.end <= interval.end)
    }

    /// Adds an interval. Returns whether any of its numbers is new.
    pub(super) fn insert(&mut self, new: Interval) -> bool {
        // Nearly every call of a running stream continues the last interval.
        if let Some(last) = self.0.last_mut()
            && last.start <= new.start
            && new.start <= last.end + 1
        {
            let grows = new.end > last.end;
            last.end = last.end.max(new.end);
            return grows;
        }
        let first = self.0.partition_point(|interval| interval.end + 1 < new.start);
        let after = first + self.0[first..].partition_point(|interval| interval.start <= new.end + 1);
        match self.0[first..after] {
            [] => self.0.insert(first, new),
            [one] if one.start <= new.start && new.end <= one.end => return false,
            [low, ..] => {
                let high = self.0[after - 1];
                self.0[first] = Interval { start: low.start.min(new.start), end: high.end.max(new.end) };
                self.0.drain(first + 1..after);
            }
        }
        true
    }

    /// Adds every number of `other`.
    pub(super) fn merge(&mut self, other: &IntervalList) {
        if other.0.len() <= MERGE_IN_PLACE_MAX {
            for interval in &other.0 {
                self.insert(*interval);
            }
        } else {
            let mut both = std::mem::take(&mut self.0);
            both.extend_from_slice(&other.0);
            *self = IntervalList::from_unsorted(both);
        }
    }

    /// The numbers that are here and not in `other`.
    pub(super) fn subtract(&self, other: &IntervalList) -> IntervalList {
        let mut left = Vec::new();
        let mut cuts = other.0.as_slice();
        for interval in &self.0 {
            let mut start = interval.start;
            while let [cut, later @ ..] = cuts
                && cut.start <= interval.end
            {
                if start < cut.start {
                    left.push(Interval { start, end: cut.start - 1 });
                }
                start = start.max(cut.end + 1);
                if cut.end > interval.end {
                    // It may cut the next interval too.
                    break;
                }
                cuts = later;
            }
            if start <= interval.end {
                left.push(Interval { start, end: interval.end });
            }
        }
        IntervalList(left)
    }

    /// The numbers that are in both.
    pub(super) fn intersect(&self, other: &IntervalList) -> IntervalList {
        let mut common = Vec::new();
        let (mut left, mut right) = (self.0.as_slice(), other.0.as_slice());
        while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
            let (start, end) = (a.start.max(b.start), a.end.min(b.end));
            if start <= end {
                common.push(Interval { start, end });
            }
            if a.end <= b.end {
                left = left_rest;
            } else {
                right = right_rest;
            }
        }
        IntervalList(common)
    }
}

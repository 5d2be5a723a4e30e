//! MySQL's set of GTIDs: what `@@gtid_executed` holds.

use super::intervals::{Interval, IntervalList};
use super::mysql::{GNO_MAX, Gtid};
use super::tag::Tag;
use super::uuid::Uuid;
use std::{cmp::Ordering, fmt, ops::RangeInclusive};

/// Sets of up to this many names are added name by name, in place, into the memory that [`GtidSet::clear`] kept; larger
/// ones in one pass over both. A batch of a stream holds one or two.
const ADD_IN_PLACE_MAX: usize = 8;

/// A set of MySQL GTIDs: for each UUID and tag, sorted intervals of transaction numbers.
///
/// Numbers outside `1..=`[`GNO_MAX`] belong to no set: every method treats them as absent. That makes the methods total,
/// so that a number from a peer can be handed over as it is.
///
/// The text form is described at its `FromStr` and `Display`, the wire form at [`GtidSet::encode`].
#[derive(Clone, Default)]
pub struct GtidSet {
    /// Sorted by UUID and tag, each pair once, none without intervals.
    entries: Vec<Entry>,
    /// Emptied lists whose memory the next new entries take over; see [`GtidSet::clear`].
    spare: Vec<IntervalList>,
}

/// The numbers of one UUID and tag.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) uuid: Uuid,
    pub(super) tag: Tag,
    pub(super) intervals: IntervalList,
}

impl Entry {
    /// The order of entries in a set, in its text and in its wire form.
    pub(super) fn order(&self, uuid: &Uuid, tag: &Tag) -> Ordering {
        self.uuid.cmp(uuid).then_with(|| self.tag.cmp(tag))
    }
}

impl GtidSet {
    /// The empty set. Allocates nothing.
    pub const fn new() -> GtidSet {
        GtidSet { entries: Vec::new(), spare: Vec::new() }
    }

    /// A set of entries that are sorted, unique and not empty.
    pub(super) fn from_entries(entries: Vec<Entry>) -> GtidSet {
        debug_assert!(entries.is_sorted_by(|a, b| a.order(&b.uuid, &b.tag).is_lt()));
        debug_assert!(entries.iter().all(|entry| !entry.intervals.is_empty()));
        GtidSet { entries, spare: Vec::new() }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether the set holds no GTID.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of GTIDs in the set; `u64::MAX` if there are more.
    pub fn len(&self) -> u64 {
        self.entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.intervals.count()))
    }

    /// Empties the set and keeps its memory, so that filling it again with as many UUIDs does not allocate.
    pub fn clear(&mut self) {
        for mut entry in self.entries.drain(..) {
            entry.intervals.clear();
            self.spare.push(entry.intervals);
        }
    }

    /// The intervals in the order of the text form: UUID, tag, and a range of numbers with both ends included.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, Tag, RangeInclusive<u64>)> {
        self.entries.iter().flat_map(|entry| {
            entry.intervals.as_slice().iter().map(|part| (entry.uuid, entry.tag, part.start..=part.end))
        })
    }

    /// Whether `gtid` is in the set.
    pub fn contains(&self, gtid: &Gtid) -> bool {
        self.intervals_of(&gtid.uuid, &gtid.tag)
            .is_some_and(|intervals| intervals.covers(Interval { start: gtid.gno, end: gtid.gno }))
    }

    /// Whether every GTID of `other` is in this set (MySQL's `GTID_SUBSET(other, self)`).
    pub fn contains_set(&self, other: &GtidSet) -> bool {
        other.entries.iter().all(|entry| {
            self.intervals_of(&entry.uuid, &entry.tag).is_some_and(|intervals| {
                entry.intervals.as_slice().iter().all(|part| intervals.covers(*part))
            })
        })
    }

    /// Adds a GTID. Returns whether it was not there before.
    ///
    /// Continuing the last interval of a known UUID and tag, as nearly every transaction of a stream does, allocates
    /// nothing.
    pub fn insert(&mut self, gtid: Gtid) -> bool {
        self.insert_interval(gtid.uuid, gtid.tag, gtid.gno, gtid.gno)
    }

    /// Adds the numbers `start..=end` of a UUID and tag. Returns whether any was not there before.
    pub fn insert_interval(&mut self, uuid: Uuid, tag: Tag, start: u64, end: u64) -> bool {
        let part = Interval { start: start.max(1), end: end.min(GNO_MAX) };
        part.start <= part.end && self.intervals_of_mut(uuid, tag).insert(part)
    }

    /// Adds every GTID of `other`. Allocates nothing where `other` only continues intervals of this set, nor where a few
    /// names come into a set that held as many before it was cleared.
    pub fn union_with(&mut self, other: &GtidSet) {
        if other.entries.len() <= ADD_IN_PLACE_MAX
            || other.entries.iter().all(|entry| self.find(&entry.uuid, &entry.tag).is_ok())
        {
            for entry in &other.entries {
                self.intervals_of_mut(entry.uuid, entry.tag).merge(&entry.intervals);
            }
            return;
        }
        // New names are sorted in together; inserting one by one would move the later entries for each.
        let mut joined = std::mem::take(&mut self.entries);
        joined.extend_from_slice(&other.entries);
        joined.sort_by(|a, b| a.order(&b.uuid, &b.tag));
        joined.dedup_by(|next, kept| {
            let same = kept.order(&next.uuid, &next.tag).is_eq();
            if same {
                kept.intervals.merge(&next.intervals);
            }
            same
        });
        self.entries = joined;
    }

    /// The GTIDs of this set that are not in `other` (MySQL's `GTID_SUBTRACT(self, other)`).
    pub fn subtract(&self, other: &GtidSet) -> GtidSet {
        self.filter_map_entries(|entry| match other.intervals_of(&entry.uuid, &entry.tag) {
            Some(intervals) => entry.intervals.subtract(intervals),
            None => entry.intervals.clone(),
        })
    }

    /// The GTIDs that are in both sets.
    pub fn intersect(&self, other: &GtidSet) -> GtidSet {
        self.filter_map_entries(|entry| match other.intervals_of(&entry.uuid, &entry.tag) {
            Some(intervals) => entry.intervals.intersect(intervals),
            None => IntervalList::default(),
        })
    }

    fn filter_map_entries(&self, map: impl Fn(&Entry) -> IntervalList) -> GtidSet {
        let entries = self.entries.iter().map(|entry| Entry { intervals: map(entry), ..entry.clone_name() });
        GtidSet::from_entries(entries.filter(|entry| !entry.intervals.is_empty()).collect())
    }

    fn find(&self, uuid: &Uuid, tag: &Tag) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.order(uuid, tag))
    }

    fn intervals_of(&self, uuid: &Uuid, tag: &Tag) -> Option<&IntervalList> {
        self.find(uuid, tag).ok().map(|index| &self.entries[index].intervals)
    }

    /// The intervals of a UUID and tag, as a new empty entry if there is none. The caller fills it.
    fn intervals_of_mut(&mut self, uuid: Uuid, tag: Tag) -> &mut IntervalList {
        let index = self.find(&uuid, &tag).unwrap_or_else(|index| {
            let intervals = self.spare.pop().unwrap_or_default();
            self.entries.insert(index, Entry { uuid, tag, intervals });
            index
        });
        &mut self.entries[index].intervals
    }
}

impl Entry {
    /// The same UUID and tag without intervals.
    fn clone_name(&self) -> Entry {
        Entry { uuid: self.uuid, tag: self.tag, intervals: IntervalList::default() }
    }
}

/// Equality is that of the GTIDs held.
impl PartialEq for GtidSet {
    fn eq(&self, other: &GtidSet) -> bool {
        self.entries == other.entries
    }
}

impl Eq for GtidSet {}

impl fmt::Debug for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GtidSet({})", self.to_line())
    }
}

impl Extend<Gtid> for GtidSet {
    fn extend<I: IntoIterator<Item = Gtid>>(&mut self, gtids: I) {
        for gtid in gtids {
            self.insert(gtid);
        }
    }
}

impl FromIterator<Gtid> for GtidSet {
    fn from_iter<I: IntoIterator<Item = Gtid>>(gtids: I) -> GtidSet {
        let mut set = GtidSet::new();
        set.extend(gtids);
        set
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Few names and small numbers, so that random sets meet, touch and overlap often.
    pub(crate) fn any_gtid() -> impl Strategy<Value = Gtid> {
        let uuid = prop::sample::select(vec![[0; 16], [1; 16], [0xff; 16]]).prop_map(Uuid::from_bytes);
        let tag = prop::sample::select(vec!["", "a", "tag_1"]).prop_map(|text| text.parse().unwrap());
        (uuid, tag, 1..40u64).prop_map(|(uuid, tag, gno)| Gtid { uuid, tag, gno })
    }

    pub(crate) fn any_model() -> impl Strategy<Value = BTreeSet<Gtid>> {
        prop::collection::btree_set(any_gtid(), 0..150)
    }

    fn members(set: &GtidSet) -> BTreeSet<Gtid> {
        set.iter().flat_map(|(uuid, tag, gnos)| gnos.map(move |gno| Gtid { uuid, tag, gno })).collect()
    }

    fn build(model: &BTreeSet<Gtid>) -> GtidSet {
        model.iter().copied().collect()
    }

    /// The invariants of the fields, which equality and the binary searches rely on.
    fn check(set: &GtidSet) {
        assert!(set.entries.is_sorted_by(|a, b| a.order(&b.uuid, &b.tag).is_lt()));
        for entry in &set.entries {
            let parts = entry.intervals.as_slice();
            assert!(!parts.is_empty());
            assert!(
                parts.iter().all(|part| 1 <= part.start && part.start <= part.end && part.end <= GNO_MAX)
            );
            assert!(parts.is_sorted_by(|a, b| a.end + 1 < b.start));
        }
    }

    proptest! {
        #[test]
        fn insertion_in_any_order(gtids in prop::collection::vec(any_gtid(), 0..200)) {
            let (mut set, mut model) = (GtidSet::new(), BTreeSet::new());
            for gtid in gtids {
                prop_assert_eq!(set.contains(&gtid), model.contains(&gtid));
                prop_assert_eq!(set.insert(gtid), model.insert(gtid));
                prop_assert!(set.contains(&gtid));
                check(&set);
            }
            prop_assert_eq!(set.len(), model.len() as u64);
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert_eq!(members(&set), model);
        }

        #[test]
        fn intervals_in_any_order(parts in prop::collection::vec((any_gtid(), 0..20u64), 0..60)) {
            let (mut set, mut model) = (GtidSet::new(), BTreeSet::new());
            for (first, more) in parts {
                let before = model.len();
                model.extend((first.gno..=first.gno + more).map(|gno| Gtid { gno, ..first }));
                let grew = set.insert_interval(first.uuid, first.tag, first.gno, first.gno + more);
                prop_assert_eq!(grew, model.len() > before);
                check(&set);
            }
            prop_assert_eq!(members(&set), model);
        }

        #[test]
        fn algebra(left in any_model(), right in any_model()) {
            let (a, b) = (build(&left), build(&right));
            let mut union = a.clone();
            union.union_with(&b);
            let (difference, common) = (a.subtract(&b), a.intersect(&b));
            for set in [&union, &difference, &common] {
                check(set);
            }
            prop_assert_eq!(members(&union), &left | &right);
            prop_assert_eq!(members(&difference), &left - &right);
            prop_assert_eq!(members(&common), &left & &right);
            prop_assert_eq!(a.contains_set(&b), right.is_subset(&left));
            prop_assert!(a.contains_set(&difference) && a.contains_set(&common) && union.contains_set(&a));
            prop_assert_eq!(a == b, left == right);
        }

        #[test]
        fn long_lists_merge_like_short_ones(left in prop::collection::btree_set(1..400u64, 0..150),
                                            right in prop::collection::btree_set(1..400u64, 0..150)) {
            let gtid = |gno: &u64| Gtid { uuid: Uuid::default(), tag: Tag::EMPTY, gno: *gno };
            let mut union: GtidSet = left.iter().map(gtid).collect();
            union.union_with(&right.iter().map(gtid).collect());
            check(&union);
            prop_assert_eq!(members(&union), left.union(&right).map(gtid).collect());
        }

        #[test]
        fn clearing_leaves_an_ordinary_set(left in any_model(), right in any_model()) {
            let mut set = build(&left);
            set.clear();
            prop_assert!(set.is_empty());
            prop_assert_eq!(&set, &GtidSet::new());
            set.extend(right.iter().copied());
            check(&set);
            prop_assert_eq!(members(&set), right);
        }
    }

    #[test]
    fn numbers_out_of_range_are_absent() {
        let (uuid, tag) = (Uuid::default(), Tag::EMPTY);
        let mut set = GtidSet::new();
        assert!(!set.insert(Gtid { uuid, tag, gno: 0 }));
        assert!(!set.insert(Gtid { uuid, tag, gno: GNO_MAX + 1 }));
        assert!(!set.insert_interval(uuid, tag, 5, 4));
        assert!(set.is_empty(), "an entry without intervals would not equal the empty set");
        assert!(set.insert_interval(uuid, tag, 0, u64::MAX));
        assert_eq!(set.len(), GNO_MAX);
        assert!(!set.contains(&Gtid { uuid, tag, gno: 0 }));
        assert!(!set.contains(&Gtid { uuid, tag, gno: u64::MAX }));
        for byte in 1..=3 {
            set.insert_interval(Uuid::from_bytes([byte; 16]), tag, 1, GNO_MAX);
        }
        assert_eq!(set.len(), u64::MAX, "the count saturates");
        check(&set);
    }
}

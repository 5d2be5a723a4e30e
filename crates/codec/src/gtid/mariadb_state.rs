//! MariaDB's binlog state: how far each server has written in each domain.

use super::cursor::Cursor;
use super::error::GtidError;
use super::mariadb::MariadbGtid;
use std::{fmt, str::FromStr};

/// The body of GTID_LIST_EVENT begins with a count, whose upper four bits are flags.
const COUNT_MASK: u32 = (1 << 28) - 1;
const ENTRY_BYTES: usize = 16;

/// An empty list is padded with this many bytes (`Gtid_list_log_event::get_data_size` in `sql/log_event.h`).
const EMPTY_LIST_PADDING: usize = 2;

/// Up to this many GTIDs are added one by one, in place and without allocation; more are sorted in once.
const INSERT_IN_PLACE_MAX: usize = 8;

/// For each domain, the newest sequence number of each server, and which server wrote last: what
/// `@@gtid_binlog_state` holds.
///
/// "Newest" is the one recorded last, as in the server (`rpl_binlog_state::update_element` in `sql/rpl_gtid.cc`). It is also
/// the greatest, unless somebody wrote a lower number while `gtid_strict_mode` was off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MariadbGtidState {
    /// Sorted by domain and server id, each pair once.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    gtid: MariadbGtid,
    /// Whether this server wrote last in its domain. True for exactly one entry of each domain.
    last: bool,
}

impl Entry {
    fn key(&self) -> (u32, u32) {
        (self.gtid.domain, self.gtid.server_id)
    }
}

impl MariadbGtidState {
    /// The empty state. Allocates nothing.
    pub const fn new() -> MariadbGtidState {
        MariadbGtidState { entries: Vec::new() }
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Empties the state and keeps its memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Records that `gtid` is the newest of its domain. Allocates nothing for a known domain and server.
    pub fn insert(&mut self, gtid: MariadbGtid) {
        match self.find(&gtid) {
            Ok(index) if self.entries[index].last => self.entries[index].gtid = gtid,
            found => {
                for entry in self.domain_mut(gtid.domain) {
                    entry.last = false;
                }
                let new = Entry { gtid, last: true };
                match found {
                    Ok(index) => self.entries[index] = new,
                    Err(index) => self.entries.insert(index, new),
                }
            }
        }
    }

    /// Whether the same server is recorded in the same domain with this sequence number or a greater one.
    ///
    /// That is what the server itself compares. It is exact while sequence numbers grow. A state that was read from a
    /// position (one GTID a domain) knows only one server of each domain, so it contains nothing of the others.
    pub fn contains(&self, gtid: &MariadbGtid) -> bool {
        self.find(gtid).is_ok_and(|index| gtid.sequence <= self.entries[index].gtid.sequence)
    }

    /// Whether every GTID recorded in `other` is contained here.
    pub fn contains_state(&self, other: &MariadbGtidState) -> bool {
        other.entries.iter().all(|entry| self.contains(&entry.gtid))
    }

    /// Adds what a later part of the same stream recorded: the same as inserting its GTIDs after these, lower sequence
    /// numbers included. Allocates nothing where `later` is short and names known servers.
    pub fn append(&mut self, later: &MariadbGtidState) {
        self.add(later, |_, _| true);
    }

    /// Adds what `other`, of whatever origin, records beyond this state. Of each domain, the last GTID of `other` becomes
    /// the last one here, unless it was contained already.
    pub fn union_with(&mut self, other: &MariadbGtidState) {
        self.add(other, |state, gtid| !state.contains(gtid));
    }

    fn add(&mut self, other: &MariadbGtidState, wanted: impl Fn(&MariadbGtidState, &MariadbGtid) -> bool) {
        if other.entries.len() <= INSERT_IN_PLACE_MAX {
            for gtid in other.list() {
                if wanted(self, &gtid) {
                    self.insert(gtid);
                }
            }
        } else {
            let new = other.list().filter(|gtid| wanted(self, gtid));
            *self = MariadbGtidState::from_list(self.list().chain(new));
        }
    }

    /// The GTIDs recorded here that `other` does not contain: for each, `other` lacks the transactions of that server
    /// after the number that it records, or all of them.
    ///
    /// There is no exact difference as for MySQL: the numbers of one server are not contiguous, so that the count of the
    /// missing transactions cannot be told.
    pub fn subtract(&self, other: &MariadbGtidState) -> MariadbGtidState {
        MariadbGtidState::from_list(self.list().filter(|gtid| !other.contains(gtid)))
    }

    /// Every recorded GTID, by domain and server id, except that the last one of each domain comes at its end. A server
    /// writes them so in GTID_LIST_EVENT and `@@gtid_binlog_state`; inserting in this order gives the same state.
    pub fn list(&self) -> impl Iterator<Item = MariadbGtid> {
        self.entries.chunk_by(|a, b| a.gtid.domain == b.gtid.domain).flat_map(|domain| {
            let others = domain.iter().filter(|entry| !entry.last);
            others.chain(domain.iter().filter(|entry| entry.last)).map(|entry| entry.gtid)
        })
    }

    /// The last GTID of each domain, by domain: what a replica asks to continue from, as in `@@gtid_binlog_pos`.
    pub fn positions(&self) -> impl Iterator<Item = MariadbGtid> {
        self.entries.iter().filter(|entry| entry.last).map(|entry| entry.gtid)
    }

    /// The text of [`positions`](Self::positions), for `@slave_connect_state` and `gtid_slave_pos`: `0-1-100,1-2-5`.
    pub fn position(&self) -> String {
        self.to_string()
    }

    /// The text of [`list`](Self::list), as `@@gtid_binlog_state` prints it.
    pub fn binlog_state(&self) -> String {
        let parts: Vec<String> = self.list().map(|gtid| gtid.to_string()).collect();
        parts.join(",")
    }

    /// Reads the body of a GTID_LIST_EVENT (type 163) without its checksum.
    ///
    /// The flags beside the count say what a replica shall do with the list and do not change it. Allocates at most a
    /// few times the length of `body`. Source: MariaDB manual, "GTID_LIST_EVENT"; `Gtid_list_log_event` in
    /// `sql/log_event.cc`.
    ///
    /// # Errors
    /// [`GtidError::Bytes`] if the length does not fit the count.
    pub fn decode_gtid_list(body: &[u8]) -> Result<MariadbGtidState, GtidError> {
        let mut cursor = Cursor::new("GTID_LIST event", body);
        let count = (cursor.u32()? & COUNT_MASK) as usize;
        if count > cursor.remaining() / ENTRY_BYTES {
            return Err(cursor.error_at(0, "it counts more GTIDs than it has bytes for"));
        }
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(MariadbGtid {
                domain: cursor.u32()?,
                server_id: cursor.u32()?,
                sequence: cursor.u64()?,
            });
        }
        if count == 0 {
            cursor.bytes(cursor.remaining().min(EMPTY_LIST_PADDING))?;
        }
        cursor.finish()?;
        Ok(MariadbGtidState::from_list(list))
    }

    /// Appends the body of a GTID_LIST_EVENT without flags, as a server begins its binlog files with.
    pub fn encode_gtid_list(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for gtid in self.list() {
            out.extend_from_slice(&gtid.domain.to_le_bytes());
            out.extend_from_slice(&gtid.server_id.to_le_bytes());
            out.extend_from_slice(&gtid.sequence.to_le_bytes());
        }
        if self.is_empty() {
            out.extend_from_slice(&[0; EMPTY_LIST_PADDING]);
        }
    }

    /// The state after recording these GTIDs in this order, in one sort whatever their order and number.
    fn from_list(list: impl IntoIterator<Item = MariadbGtid>) -> MariadbGtidState {
        let mut numbered: Vec<(usize, Entry)> =
            list.into_iter().map(|gtid| Entry { gtid, last: false }).enumerate().collect();
        numbered.sort_by_key(|(_, entry)| entry.key());
        numbered.dedup_by(|next, kept| {
            let same = next.1.key() == kept.1.key();
            if same {
                *kept = *next;
            }
            same
        });
        for domain in numbered.chunk_by_mut(|a, b| a.1.gtid.domain == b.1.gtid.domain) {
            if let Some((_, entry)) = domain.iter_mut().max_by_key(|(number, _)| *number) {
                entry.last = true;
            }
        }
        MariadbGtidState { entries: numbered.into_iter().map(|(_, entry)| entry).collect() }
    }

    fn find(&self, gtid: &MariadbGtid) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&(gtid.domain, gtid.server_id), Entry::key)
    }

    fn domain_mut(&mut self, domain: u32) -> &mut [Entry] {
        let start = self.entries.partition_point(|entry| entry.gtid.domain < domain);
        let length = self.entries[start..].partition_point(|entry| entry.gtid.domain == domain);
        &mut self.entries[start..start + length]
    }
}

impl fmt::Display for MariadbGtidState {
    /// The position: the last GTID of each domain.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, gtid) in self.positions().enumerate() {
            write!(f, "{}{gtid}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for MariadbGtidState {
    type Err = GtidError;

    /// Reads a position (`0-1-100,1-2-5`) or a whole state (`0-1-99,0-2-100,1-2-5`), with white space around each GTID.
    /// Of GTIDs of one domain, the one given last is the last of the domain.
    fn from_str(text: &str) -> Result<MariadbGtidState, GtidError> {
        if text.trim_ascii().is_empty() {
            return Ok(MariadbGtidState::new());
        }
        let list: Result<Vec<MariadbGtid>, GtidError> =
            text.split(',').map(|part| part.trim_ascii().parse()).collect();
        Ok(MariadbGtidState::from_list(list?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn any_gtid() -> impl Strategy<Value = MariadbGtid> {
        (0..3u32, 1..5u32, 0..20u64).prop_map(|(domain, server_id, sequence)| MariadbGtid {
            domain,
            server_id,
            sequence,
        })
    }

    fn any_list() -> impl Strategy<Value = Vec<MariadbGtid>> {
        prop::collection::vec(any_gtid(), 0..30)
    }

    fn build(list: &[MariadbGtid]) -> MariadbGtidState {
        let mut state = MariadbGtidState::new();
        for gtid in list {
            state.insert(*gtid);
            check(&state);
        }
        state
    }

    /// The invariants of the field.
    fn check(state: &MariadbGtidState) {
        assert!(state.entries.is_sorted_by(|a, b| a.key() < b.key()));
        for domain in state.entries.chunk_by(|a, b| a.gtid.domain == b.gtid.domain) {
            assert_eq!(domain.iter().filter(|entry| entry.last).count(), 1);
        }
    }

    #[test]
    fn reads_positions_and_states() {
        for (text, position, state) in [
            ("", "", ""),
            (" \n", "", ""),
            ("0-1-100", "0-1-100", "0-1-100"),
            ("1-2-5, 0-1-100", "0-1-100,1-2-5", "0-1-100,1-2-5"),
            ("0-5-5,0-98-3,0-1-900", "0-1-900", "0-5-5,0-98-3,0-1-900"),
            ("0-1-7,0-2-8,0-1-9", "0-1-9", "0-2-8,0-1-9"),
        ] {
            let read: MariadbGtidState = text.parse().unwrap();
            assert_eq!((read.position(), read.binlog_state()), (position.into(), state.into()), "{text}");
        }
        for refused in ["0-1", "0-1-2,", ",", "0-1-2;0-1-3", "0-1-2 0-1-3"] {
            assert!(refused.parse::<MariadbGtidState>().is_err(), "{refused}");
        }
    }

    #[test]
    fn the_newest_is_the_one_recorded_last() {
        let mut state: MariadbGtidState = "0-1-100".parse().unwrap();
        state.insert("0-1-50".parse().unwrap());
        assert_eq!(state.position(), "0-1-50", "as the server does without gtid_strict_mode");
    }

    #[test]
    fn containment_is_by_domain_and_server() {
        let state: MariadbGtidState = "0-1-100,0-2-130,5-1-7".parse().unwrap();
        for (gtid, expected) in [
            ("0-1-100", true),
            ("0-1-1", true),
            ("0-1-101", false),
            ("0-3-1", false),
            ("5-1-8", false),
            ("6-1-1", false),
        ] {
            assert_eq!(state.contains(&gtid.parse().unwrap()), expected, "{gtid}");
        }
    }

    #[test]
    fn refuses_lists_whose_length_does_not_fit() {
        let entry = [0; ENTRY_BYTES];
        for bytes in [
            &[][..],
            &[0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0],
            &[1, 0, 0, 0],
            &[&[1, 0, 0, 0], &entry[..15]].concat(),
            &[&[1, 0, 0, 0], &entry[..], &[0]].concat(),
            &[&[0xff, 0xff, 0xff, 0x0f], &entry[..]].concat(),
        ] {
            assert!(MariadbGtidState::decode_gtid_list(bytes).is_err(), "{bytes:?}");
        }
        for bytes in [&[0, 0, 0, 0][..], &[0, 0, 0, 0x30, 0, 0], &[&[1, 0, 0, 0xf0], &entry[..]].concat()] {
            assert!(MariadbGtidState::decode_gtid_list(bytes).is_ok(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn follows_a_stream(list in any_list()) {
            let state = build(&list);
            let newest: BTreeMap<_, _> = list.iter().map(|gtid| ((gtid.domain, gtid.server_id), *gtid)).collect();
            let last: BTreeMap<_, _> = list.iter().map(|gtid| (gtid.domain, *gtid)).collect();
            let mut recorded: Vec<_> = state.list().collect();
            recorded.sort();
            prop_assert_eq!(recorded, newest.into_values().collect::<Vec<_>>());
            prop_assert_eq!(state.positions().collect::<Vec<_>>(), last.into_values().collect::<Vec<_>>());
            prop_assert_eq!(&MariadbGtidState::from_list(list), &state);
        }

        #[test]
        fn round_trips(list in any_list()) {
            let state = build(&list);
            let mut body = Vec::new();
            state.encode_gtid_list(&mut body);
            prop_assert_eq!(&MariadbGtidState::decode_gtid_list(&body).unwrap(), &state);
            prop_assert_eq!(&state.binlog_state().parse::<MariadbGtidState>().unwrap(), &state);
            prop_assert!(state.contains_state(&state.position().parse().unwrap()));
        }

        #[test]
        fn algebra(left in any_list(), right in any_list()) {
            let (a, b) = (build(&left), build(&right));
            let mut union = a.clone();
            union.union_with(&b);
            check(&union);
            prop_assert!(union.contains_state(&a) && union.contains_state(&b));
            for gtid in union.list() {
                prop_assert!(a.contains(&gtid) || b.contains(&gtid));
            }
            let missing = a.subtract(&b);
            check(&missing);
            prop_assert_eq!(missing.is_empty(), b.contains_state(&a));
            for gtid in a.list() {
                prop_assert_eq!(missing.contains(&gtid), !b.contains(&gtid));
            }
        }

        #[test]
        fn many_are_added_like_few(left in any_list(), right in any_list()) {
            let mut one_by_one = build(&left);
            for gtid in build(&right).list() {
                if !one_by_one.contains(&gtid) {
                    one_by_one.insert(gtid);
                }
            }
            let mut union = build(&left);
            union.union_with(&build(&right));
            prop_assert_eq!(union, one_by_one);

            let mut appended = build(&left);
            appended.append(&build(&right));
            prop_assert_eq!(appended, build(&[left, right].concat()));
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "[0-9,\\- ]{0,40}") {
            let _ = MariadbGtidState::decode_gtid_list(&bytes);
            let _ = text.parse::<MariadbGtidState>();
        }
    }
}

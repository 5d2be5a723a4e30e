//! MariaDB's binlog state: how far each server has written in each domain.

use super::{GtidError, MariadbGtid, cursor::Cursor};
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

    /// Adds what `other` records beyond this state. Of each domain, the last GTID of `other` becomes the last one here,
    /// unless it was contained already.
    pub fn union_with(&mut self, other: &MariadbGtidState) {
        if other.entries.len() <= INSERT_IN_PLACE_MAX {
            for gtid in other.list() {
                if !self.contains(&gtid) {
                    self.insert(gtid);
                }
            }
        } else {
            let new = other.list().filter(|gtid| !self.contains(gtid));
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

    /// Every recorded GTID, by domain and server id, the last one of each domain at its end. This is the order of
    /// GTID_LIST_EVENT and of `@@gtid_binlog_state`; inserting in this order gives the same state.
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

//! A transaction of the copy as it is held against another one with its GTID: the same again, handed back or replicated, or
//! another one, because a server lost its tail and gave the number anew.

use super::fingerprint::{Fingerprint, Fingerprinter, Verdict};
use codec::event::EventHeader;

/// What a transaction does. Two that are [the same](Content::is_same) leave the same data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// `None` where an event could not be understood.
    fingerprint: Option<Fingerprint>,
    /// When it was committed first, in microseconds since 1970, on whichever server; MySQL 8 and later. Replication keeps it.
    committed: Option<u64>,
}

impl Content {
    /// Whether both are the same transaction, or do the same.
    pub fn is_same(&self, other: &Content) -> bool {
        if self.committed.is_some() && self.committed == other.committed {
            return true;
        }
        match (&self.fingerprint, &other.fingerprint) {
            (Some(ours), Some(theirs)) => ours.compare(theirs) != Verdict::Different,
            _ => false,
        }
    }
}

/// What is known of a transaction beside its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// What it does.
    pub content: Content,
    /// Seconds since 1970 at which it was committed first, or begun, as far as the log tells.
    pub timestamp: u32,
    /// What it changes: `schema.table` of its rows, the beginning of its statements; not more than a few.
    pub changes: Vec<String>,
    /// In words, why it cannot be compared, if an event could not be understood.
    pub error: Option<String>,
}

/// Reads the content of one transaction, event by event.
#[derive(Debug)]
pub(crate) struct ContentReader {
    fingerprinter: Fingerprinter,
    error: Option<String>,
}

impl Default for ContentReader {
    fn default() -> ContentReader {
        ContentReader { fingerprinter: Fingerprinter::new(), error: None }
    }
}

impl ContentReader {
    /// Takes the next event of the transaction, without its checksum.
    pub(crate) fn event(&mut self, header: &EventHeader, event: &[u8]) {
        if self.error.is_none() {
            self.error = self.fingerprinter.event(header, event).err();
        }
    }

    /// What was read, after the last event of the transaction. One that cannot be understood is the same as no other, unless
    /// the time of its first commit says so.
    pub(crate) fn finish(self) -> Read {
        let seen = self.fingerprinter.finish();
        let timestamp = seen.committed.map_or(seen.began, |at| (at / 1_000_000) as u32);
        let fingerprint = self.error.is_none().then_some(seen.fingerprint);
        let content = Content { fingerprint, committed: seen.committed };
        Read { content, timestamp, changes: seen.changes, error: self.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::event::HEADER_LEN;

    fn event(code: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN];
        bytes[0] = 100;
        bytes[4] = code;
        bytes[9..13].copy_from_slice(&((HEADER_LEN + body.len()) as u32).to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn map(id: u8) -> Vec<u8> {
        event(19, &[&[id, 0, 0, 0, 0, 0, 1, 0][..], b"\x01d\0\x01t\0", &[2, 3, 15, 2, 80, 0, 0]].concat())
    }

    fn rows(id: u8, images: &[u8]) -> Vec<u8> {
        event(30, &[&[id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 0xff][..], images].concat())
    }

    fn gtid(stamps: &[u64]) -> Vec<u8> {
        let stamps: Vec<u8> = stamps.iter().flat_map(|stamp| stamp.to_le_bytes()[..7].to_vec()).collect();
        event(33, &[&[0; 25][..], &[2], &[0; 16], &stamps, &[60]].concat())
    }

    fn read(events: &[Vec<u8>]) -> Read {
        let mut reader = ContentReader::default();
        events.iter().for_each(|event| reader.event(&EventHeader::parse(event).unwrap(), event));
        reader.finish()
    }

    #[test]
    fn the_same_is_told_from_another_one() {
        let first = read(&[map(7), rows(7, b"onetwo")]);
        assert_eq!(first.changes, ["d.t"]);
        assert!(first.content.is_same(&read(&[map(9), rows(9, b"one"), map(9), rows(9, b"two")]).content));
        assert!(!first.content.is_same(&read(&[map(9), rows(9, b"onetwi")]).content));
        let unreadable = read(&[rows(7, b"x")]);
        assert!(
            unreadable.error.is_some() && !unreadable.content.is_same(&unreadable.content),
            "nobody knows"
        );
    }

    #[test]
    fn the_first_commit_is_known_wherever_it_is_written() {
        const AT: u64 = 1_700_000_000_000_001;
        let one = read(&[gtid(&[AT]), map(7), rows(7, b"partly")]);
        assert_eq!(one.timestamp, 1_700_000_000);
        let replicated = read(&[gtid(&[(AT + 9) | 1 << 55, AT]), map(7), rows(7, b"in another form")]);
        assert!(one.content.is_same(&replicated.content));
        assert!(!one.content.is_same(&read(&[gtid(&[AT + 1]), map(7), rows(7, b"else")]).content));
    }
}

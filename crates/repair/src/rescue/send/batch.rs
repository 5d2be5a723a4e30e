//! Several transactions in one packet.

use crate::rescue::plan::lacked::Lacked;

/// So many transactions go in one packet at most.
const TRANSACTIONS_MAX: usize = 128;

/// Collects transactions as long as they fit.
#[derive(Debug)]
pub(in crate::rescue) struct Batch {
    bytes_max: usize,
    packet: Packet,
}

/// Statements parted by semicolons.
#[derive(Debug, Default)]
pub(in crate::rescue) struct Packet {
    pub(in crate::rescue) statements: Vec<u8>,
    /// How many they are.
    pub(in crate::rescue) count: usize,
    pub(in crate::rescue) transactions: Vec<Lacked>,
    /// How many statements there are up to the end of each transaction.
    pub(in crate::rescue) ends: Vec<usize>,
}

impl Batch {
    /// An empty one for packets of so many bytes.
    pub(in crate::rescue) fn new(bytes_max: usize) -> Batch {
        Batch { bytes_max, packet: Packet::default() }
    }

    /// Takes a transaction whole, or nothing of it: when it does not fit, or when one of its statements cannot be parted from
    /// the next by a semicolon for sure.
    pub(in crate::rescue) fn take(&mut self, lacked: &Lacked, statements: &[Vec<u8>]) -> bool {
        // Room for what ends the packet.
        const END_BYTES: usize = 64;
        let bytes: usize = statements.iter().map(|statement| statement.len() + 1).sum();
        let fits = self.packet.statements.len() + bytes + END_BYTES <= self.bytes_max;
        if self.packet.transactions.len() == TRANSACTIONS_MAX
            || !fits
            || !statements.iter().all(|statement| ends_by_semicolon(statement))
        {
            return false;
        }
        for statement in statements {
            self.packet.push(statement);
        }
        self.packet.transactions.push(lacked.clone());
        self.packet.ends.push(self.packet.count);
        true
    }

    /// The packet, with a statement that ends it; `None` when nothing was taken. The next one begins empty.
    pub(in crate::rescue) fn finish(&mut self, end: Option<&[u8]>) -> Option<Packet> {
        let mut packet = std::mem::take(&mut self.packet);
        if packet.transactions.is_empty() {
            return None;
        }
        if let Some(end) = end {
            packet.push(end);
        }
        Some(packet)
    }
}

impl Packet {
    /// The server logs a statement up to its semicolon, so nothing else may stand between the two.
    fn push(&mut self, statement: &[u8]) {
        if self.count > 0 {
            self.statements.push(b';');
        }
        self.statements.extend_from_slice(statement);
        self.count += 1;
    }
}

/// Whether a server that reads this statement, a semicolon and another statement takes it for this one alone. What holds a
/// semicolon is left out, also where it stands in quotes, and what may end in a comment. No character set that a session can
/// have uses these bytes as a part of another character.
fn ends_by_semicolon(statement: &[u8]) -> bool {
    !statement.trim_ascii().is_empty()
        && !statement.iter().any(|byte| matches!(byte, b';' | b'#' | 0))
        && !statement.windows(2).any(|pair| pair == b"--" || pair == b"/*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacked(number: u64) -> Lacked {
        let id = format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}");
        Lacked {
            id: id.parse::<codec::gtid::Gtid>().unwrap().into(),
            timeline: "0001-a".into(),
            path: "b.000001".into(),
            at: 4,
            end: 100,
            timestamp: 0,
            changes: Vec::new(),
        }
    }

    fn statements(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn transactions_are_joined_whole_and_in_order() {
        let (one, two) = (lacked(1), lacked(2));
        let mut batch = Batch::new(200);
        assert!(batch.finish(None).is_none());
        assert!(batch.take(&one, &statements(&["BEGIN", "COMMIT"])));
        assert!(batch.take(&two, &statements(&["DROP TABLE t"])));
        let long = "x".repeat(150);
        assert!(!batch.take(&two, &statements(&["BEGIN", &long])), "not half of it either");
        let packet = batch.finish(Some(b"SET a = 1")).unwrap();
        assert_eq!(packet.statements, b"BEGIN;COMMIT;DROP TABLE t;SET a = 1");
        assert_eq!((packet.count, packet.ends), (4, vec![2, 3]));
        assert!(batch.take(&one, &statements(&["BEGIN"])), "the next one begins empty");
        assert_eq!(batch.finish(None).unwrap().count, 1);
    }

    #[test]
    fn a_packet_has_a_limit_of_transactions() {
        let one = lacked(1);
        let mut batch = Batch::new(1 << 20);
        let taken = (0..1000).take_while(|_| batch.take(&one, &statements(&["BEGIN"]))).count();
        assert_eq!(taken, TRANSACTIONS_MAX);
    }

    #[test]
    fn what_a_semicolon_may_not_end_goes_alone() {
        for text in ["", "  ", "INSERT INTO t VALUES (';')", "DROP TABLE t -- gone", "DROP TABLE t # gone"] {
            assert!(!ends_by_semicolon(text.as_bytes()), "{text:?}");
        }
        assert!(!ends_by_semicolon(b"SELECT 1 /* a") && !ends_by_semicolon(b"a\0b"));
        assert!(ends_by_semicolon(b"BINLOG 'AbC+/12=='"));
        assert!(ends_by_semicolon("INSERT INTO t VALUES ('café \\'' - x')".as_bytes()));
    }
}

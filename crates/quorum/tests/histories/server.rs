//! A server: a log that others copy, and may lose its end.

use codec::ServerKind;
use codec::gtid::{Gtid, GtidState, Tag, Uuid};

/// A transaction. A server that lost the end of its log gives the same numbers to other transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction {
    pub server: usize,
    pub number: u64,
    /// What tells it from all others.
    pub content: u32,
}

/// A transaction in the log of one server, and the file that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub transaction: Transaction,
    pub file: u32,
}

/// A place in a server's log: behind so many entries, in that file.
pub type Place = (u32, usize);

#[derive(Debug, Clone, Default)]
pub struct Server {
    pub is_alive: bool,
    pub is_writable: bool,
    /// Counts up with each start, each of which begins a file.
    pub starts: u32,
    pub log: Vec<Entry>,
    /// A promotion gives it what it lacks: it replicates from nobody else.
    pub is_fed: bool,
}

/// UUID of a server by its number.
pub fn server_uuid(server: usize) -> Uuid {
    Uuid::from_bytes([100 + server as u8; 16])
}

/// The GTIDs of transactions.
pub fn gtids<'a>(transactions: impl IntoIterator<Item = &'a Transaction>) -> GtidState {
    let mut state = GtidState::empty(ServerKind::MySql);
    for one in transactions {
        let gtid =
            Gtid::new(server_uuid(one.server), Tag::default(), one.number).expect("a number from 1 on");
        state.insert(gtid.into()).expect("a GTID of MySQL");
    }
    state
}

impl Server {
    pub fn has(&self, transaction: &Transaction) -> bool {
        self.log.iter().any(|entry| entry.transaction == *transaction)
    }

    /// Whether it has another transaction under the same GTID.
    pub fn has_other(&self, transaction: &Transaction) -> bool {
        self.log.iter().map(|entry| &entry.transaction).any(|has| {
            (has.server, has.number) == (transaction.server, transaction.number)
                && has.content != transaction.content
        })
    }

    /// One of its own, or of another server, at the end of its log.
    pub fn append(&mut self, transaction: Transaction) {
        self.log.push(Entry { transaction, file: self.starts });
    }

    /// The number that its next transaction of its own gets.
    pub fn next_number(&self, server: usize) -> u64 {
        let own = self.log.iter().filter(|entry| entry.transaction.server == server);
        own.map(|entry| entry.transaction.number).max().unwrap_or(0) + 1
    }

    pub fn place(log: &[Entry]) -> Place {
        (log.last().map_or(0, |entry| entry.file), log.len())
    }
}

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

impl Transaction {
    /// All that its GTID says.
    pub fn gtid(&self) -> (usize, u64) {
        (self.server, self.number)
    }
}

/// A transaction in the log of one server, and the file that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub transaction: Transaction,
    pub file: u32,
    /// What tells the file from all others of its name.
    pub identity: u32,
}

/// A place in a server's log: behind so many entries, in that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    pub file: u32,
    pub identity: u32,
    pub entries: usize,
}

#[derive(Debug, Clone, Default)]
pub struct Server {
    pub is_alive: bool,
    pub is_writable: bool,
    /// Counts up with each start, each of which begins a file.
    pub starts: u32,
    /// Name of the file that is written.
    pub file: u32,
    pub log: Vec<Entry>,
    /// A promotion gives it what it lacks: it replicates from nobody else.
    pub is_fed: bool,
}

/// UUID of a server by its number.
fn server_uuid(server: usize) -> Uuid {
    Uuid::from_bytes([100 + server as u8; 16])
}

/// Its name as a source.
pub fn server_name(server: usize) -> String {
    format!("server {server}")
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

pub fn transactions(log: &[Entry]) -> impl Iterator<Item = &Transaction> {
    log.iter().map(|entry| &entry.transaction)
}

impl Server {
    /// One that runs, and has nothing.
    pub fn empty(starts: u32, file: u32) -> Server {
        Server { is_alive: true, starts, file, ..Server::default() }
    }

    pub fn has(&self, transaction: &Transaction) -> bool {
        transactions(&self.log).any(|has| has == transaction)
    }

    /// Whether it has another transaction under the same GTID.
    pub fn has_other(&self, transaction: &Transaction) -> bool {
        transactions(&self.log).any(|has| has.gtid() == transaction.gtid() && has != transaction)
    }

    /// One of its own, or of another server, at the end of its log.
    pub fn append(&mut self, transaction: Transaction) {
        self.log.push(Entry { transaction, file: self.file, identity: self.starts });
    }

    /// The number that its next transaction of its own gets.
    pub fn next_number(&self, server: usize) -> u64 {
        let own = transactions(&self.log).filter(|one| one.server == server);
        own.map(|one| one.number).max().unwrap_or(0) + 1
    }

    /// Stops, and has only so much of its log left. Lost whole, a file's name is given once more.
    pub fn crash(&mut self, left: usize) {
        self.is_alive = false;
        if left < self.log.len() {
            self.log.truncate(left);
            self.file = self.log.last().map_or(0, |entry| entry.file);
        }
    }

    pub fn start(&mut self) {
        self.is_alive = true;
        self.starts += 1;
        self.file += 1;
    }

    /// The end of its log.
    pub fn end(&self) -> Place {
        place_of(self.log.last(), self.log.len())
    }
}

/// Behind so many entries, of which this is the last.
pub fn place_of(last: Option<&Entry>, entries: usize) -> Place {
    last.map_or(Place::default(), |last| Place { file: last.file, identity: last.identity, entries })
}

//! What the source says, and what it does wrong.

use crate::log::SourceLog;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::sync::Arc;

/// What the connections to a source answer from.
pub trait Server {
    /// Its binary log.
    fn log(&self) -> &SourceLog;

    /// Whether it asks for acknowledgements.
    fn semi_sync(&self) -> SemiSync;

    /// How often its log has become another one.
    fn generation(&self) -> u64;

    /// A variable, where its value is not what follows from the log.
    fn variable(&self, _name: &str) -> Option<&str> {
        None
    }

    /// What it answers to a statement, where that is not what any server would.
    fn answer(&self, _sql: &str) -> Option<&Answer> {
        None
    }

    /// Whether the greeting offers TLS.
    fn offers_tls(&self) -> bool {
        false
    }

    /// A dump begins that is no short look: gives what goes wrong in it.
    fn begin_dump(&mut self) -> Vec<Fault> {
        Vec::new()
    }
}

/// The source's side of semi-sync.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SemiSync {
    /// Switched on; packets carry the semi-sync bytes if the replica offers it.
    #[default]
    Enabled,
    /// The variables say that it is on, but packets do not carry the bytes: it was switched off in between.
    Refused,
    /// Installed and switched off.
    Disabled,
    /// No plugin.
    Absent,
    /// No plugin, and yet the packets of a dump carry the semi-sync bytes, which nobody has offered to understand.
    Unasked,
}

/// What is answered to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An error packet with this number and text.
    Refused(u16, String),
    /// One column of rows.
    Lines(Vec<String>),
}

/// Everything that a source follows.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Its binary log. More can be appended while it runs.
    pub log: SourceLog,
    /// Whether it asks for acknowledgements.
    pub semi_sync: SemiSync,
    /// What goes wrong on the wire. The log itself stays right.
    pub faults: Vec<Fault>,
    /// Values of variables by name, where they shall not be the log's own.
    pub variables: HashMap<String, String>,
    /// What is answered to statements that begin so, in capitals as they are sent.
    pub answers: Vec<(String, Answer)>,
    /// Dumps that were asked for, short looks that ask not to wait left out.
    pub dumps: usize,
    /// How often [`log`](Script::log) was replaced.
    pub generation: u64,
    /// Its certificate and key. Then it speaks TLS, and refuses who does not ask for it.
    pub tls: Option<Arc<ServerConfig>>,
}

impl Script {
    /// A source with semi-sync that has `log`.
    pub fn new(log: SourceLog) -> Script {
        Script { log, ..Script::default() }
    }

    /// Adds a fault to the dump number `dump` (the first is 0; short looks that ask not to wait do not count), at the
    /// event number `event` (the format description is 0) of `file`.
    #[must_use]
    pub fn fault(mut self, dump: usize, file: &str, event: usize, kind: FaultKind) -> Script {
        self.faults.push(Fault { dump, file: file.to_owned(), event, kind });
        self
    }
}

impl Server for Script {
    fn log(&self) -> &SourceLog {
        &self.log
    }

    fn semi_sync(&self) -> SemiSync {
        self.semi_sync
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    fn answer(&self, sql: &str) -> Option<&Answer> {
        self.answers.iter().find(|(begin, _)| sql.starts_with(begin)).map(|(_, answer)| answer)
    }

    fn offers_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn begin_dump(&mut self) -> Vec<Fault> {
        self.dumps += 1;
        self.faults.extract_if(.., |fault| fault.dump + 1 == self.dumps).collect()
    }
}

/// One thing that goes wrong, once.
#[derive(Debug, Clone)]
pub struct Fault {
    /// In which dump, counted from 0.
    pub dump: usize,
    /// In which file.
    pub file: String,
    /// At which event of the file, counted from 0.
    pub event: usize,
    /// What.
    pub kind: FaultKind,
}

/// What can go wrong at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// One bit of it is wrong.
    BadChecksum,
    /// Its header says this many bytes.
    EventLength(u32),
    /// It is not sent; the stream goes on behind it.
    Missing,
    /// It is sent twice.
    Twice,
    /// The connection is closed after this many bytes of its packet.
    CloseAfter(usize),
    /// Its packet's sequence number is one too high.
    PacketLost,
    /// An acknowledgement is wanted here, wherever that is in a transaction.
    Flag,
    /// An artificial event that wants an acknowledgement comes before it. At the event 0 of the file without a name it
    /// comes before the first file is named.
    FlaggedArtificial,
    /// A heartbeat that names this position comes before it.
    Heartbeat(u64),
    /// An error packet comes in its place and ends the dump.
    Error(u16, String),
    /// Nothing more is sent, not even heartbeats, and the connection stays open.
    Silence,
    /// These bytes, which need not be packets, come in its place; then the connection is closed.
    Raw(Vec<u8>),
    /// These payloads come in its place, each in a packet of its own with the right number, the last one again and again
    /// until `packets` were sent; then the connection is closed. None may be longer than a packet holds.
    Flood {
        /// What the packets hold.
        payloads: Vec<Vec<u8>>,
        /// How many packets.
        packets: usize,
    },
}

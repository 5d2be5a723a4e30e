//! A ledger of what clients were told: writers that insert numbered rows and remember each one whose commit the server
//! confirmed. Held against the copy, it shows whether anything was lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use binlog::journal::{JOURNAL_FILE, Journal};
use binlog::scan::{FileScan, scan_file};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::files::binlog_files;
use wire::{ConnectOptions, Connection, TlsMode, WireError};

use crate::common::daemon::Daemon;
use crate::common::{Server, connect_options};
use codec::event::{BINLOG_MAGIC, EventHeader};

/// Longest that one statement may take, including the time in which binlogd is down.
const STATEMENT_MAX: Duration = Duration::from_secs(60);

/// The large transactions: so many rows of so many bytes, and a pause after each, for the sake of the disk.
const BULK_ROWS: usize = 8;
const BULK_ROW_LEN: usize = 60_000;
const BULK_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two attempts to reach a source that is away.
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

/// Stands before each number in the rows, so that the rows can be found in the bytes of a binary log.
const TOKEN: &[u8] = b"ledger-";
const DIGITS: usize = 8;

/// Makes the table. Before semi-sync is switched on: later it would wait for binlogd.
pub fn create_table(server: &Server) {
    server.sql(
        "CREATE DATABASE ledger; CREATE TABLE ledger.entry (id INT PRIMARY KEY, note VARCHAR(4000)) ENGINE=InnoDB; \
         CREATE TABLE ledger.bulk (id INT, note MEDIUMTEXT) ENGINE=InnoDB",
    );
}

/// How the writers go about it.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Pause after each small transaction.
    pub pause: Duration,
    /// Pause after each large one.
    pub bulk_pause: Duration,
    /// A writer whose statement failed connects again and goes on, because the source is killed and comes back. Without it
    /// a failure ends the writer, and [`Ledger::finish`] fails.
    pub endures: bool,
    /// The first number, above those of another ledger on the same server.
    pub first: u64,
}

impl Default for Manner {
    fn default() -> Self {
        Self { pause: Duration::ZERO, bulk_pause: BULK_PAUSE, endures: false, first: 0 }
    }
}

/// Writers at work. They stop when it is dropped or finished.
pub struct Ledger {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    committed: Mutex<BTreeSet<u64>>,
    stop: AtomicBool,
    errors: Mutex<Vec<String>>,
    manner: Manner,
}

impl Ledger {
    /// Starts that many writers, each on a connection of its own. One of them makes large transactions of many events, so
    /// that binlogd is often in the middle of one.
    pub fn start(server: &Server, writers: usize) -> Self {
        Self::start_in(server, writers, Manner::default())
    }

    /// As [`Ledger::start`], in that manner.
    pub fn start_in(server: &Server, writers: usize, manner: Manner) -> Self {
        let shared = Arc::new(Shared { manner, next: AtomicU64::new(manner.first), ..Shared::default() });
        let start = |writer| {
            let options = connect_options(server, "root", "", TlsMode::Preferred);
            let connection = connect(&options).expect("a connection for a writer");
            let shared = shared.clone();
            std::thread::spawn(move || shared.write(&options, connection, writer == 0))
        };
        let writers = (0..writers).map(start).collect();
        Self { shared, writers }
    }

    /// The ids whose commit was confirmed to a client until now.
    pub fn committed(&self) -> BTreeSet<u64> {
        self.shared.committed.lock().expect("no writer panics").clone()
    }

    /// Lets the writers end their statements, and returns every id whose commit was confirmed.
    ///
    /// Fails when a statement failed, unless the writers endure that: a server that is never touched confirms each.
    #[track_caller]
    pub fn finish(mut self) -> BTreeSet<u64> {
        self.stop();
        let errors = self.errors();
        assert!(errors.is_empty(), "{errors:#?}");
        self.committed()
    }

    /// After the server has ended: waits until every writer has noticed, and returns every id whose commit was confirmed.
    pub fn of_a_dead_server(mut self) -> BTreeSet<u64> {
        self.stop();
        self.committed()
    }

    /// Waits until that many commits were confirmed, and for none of them longer than a statement may take.
    #[track_caller]
    pub fn wait_for(&self, commits: usize) {
        while self.committed().len() < commits {
            self.wait_progress(&self.committed());
        }
    }

    /// Waits until another commit was confirmed after `committed`.
    #[track_caller]
    pub fn wait_progress(&self, committed: &BTreeSet<u64>) {
        let deadline = Instant::now() + STATEMENT_MAX;
        while self.committed().len() <= committed.len() {
            assert!(Instant::now() < deadline, "no commit is confirmed any more: {:#?}", self.errors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until no commit has been confirmed for `quiet`, and returns all that were.
    #[track_caller]
    pub fn wait_standstill(&self, quiet: Duration) -> BTreeSet<u64> {
        let deadline = Instant::now() + STATEMENT_MAX;
        let mut committed = self.committed();
        let mut since = Instant::now();
        while since.elapsed() < quiet {
            assert!(Instant::now() < deadline, "commits are still confirmed");
            std::thread::sleep(Duration::from_millis(20));
            let now = self.committed();
            if now.len() != committed.len() {
                (committed, since) = (now, Instant::now());
            }
        }
        committed
    }

    /// Statements that failed.
    pub fn errors(&self) -> Vec<String> {
        self.shared.errors.lock().expect("no writer panics").clone()
    }

    fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for writer in self.writers.drain(..) {
            let _ = writer.join();
        }
    }
}

impl Drop for Ledger {
    /// Does not wait: after a failed test a writer may hang in the server, which ends with the test.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
    }
}

impl Shared {
    fn write(&self, options: &ConnectOptions, mut connection: Connection, large: bool) {
        while !self.stop.load(Ordering::Acquire) {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let result =
                if large { enter_with_bulk(&mut connection, id) } else { enter(&mut connection, id) };
            match result {
                Ok(()) => {
                    self.committed.lock().expect("no writer panics").insert(id);
                    std::thread::sleep(if large { self.manner.bulk_pause } else { self.manner.pause });
                }
                // Nobody knows whether it was committed, so it does not count, and its number is not used again.
                Err(_) if self.manner.endures => match self.reconnect(options) {
                    Some(new) => connection = new,
                    None => return,
                },
                Err(error) => {
                    self.errors.lock().expect("no writer panics").push(format!("entry {id}: {error}"));
                    return;
                }
            }
        }
    }

    /// Tries until it succeeds or the writers shall stop.
    fn reconnect(&self, options: &ConnectOptions) -> Option<Connection> {
        while !self.stop.load(Ordering::Acquire) {
            if let Ok(connection) = connect(options) {
                return Some(connection);
            }
            std::thread::sleep(RECONNECT_PAUSE);
        }
        None
    }
}

fn connect(options: &ConnectOptions) -> Result<Connection, WireError> {
    let mut connection = Connection::connect(options)?;
    connection.set_timeout(STATEMENT_MAX);
    Ok(connection)
}

/// Inserts one row. Outside a transaction it is committed when this returns.
fn enter(connection: &mut Connection, id: u64) -> Result<(), WireError> {
    let padding = if id.is_multiple_of(16) { id * id % 3_500 } else { id % 60 };
    // The token is put together by the server: MariaDB writes the statement's text into the binary log too.
    let note = format!("CONCAT('ledger', '-{id:0DIGITS$}-', REPEAT('x', {padding}))");
    connection.query(&format!("INSERT INTO ledger.entry VALUES ({id}, {note})")).map(drop)
}

/// Inserts the same row in a transaction of [`BULK_ROWS`] large events.
fn enter_with_bulk(connection: &mut Connection, id: u64) -> Result<(), WireError> {
    let row = format!("({id}, REPEAT('x', {BULK_ROW_LEN}))");
    connection.query("BEGIN")?;
    connection.query(&format!("INSERT INTO ledger.bulk VALUES {}", vec![row; BULK_ROWS].join(", ")))?;
    enter(connection, id)?;
    connection.query("COMMIT").map(drop)
}

/// What the binary logs in a folder of the copy hold, as they stand on disk.
#[derive(Debug, Default)]
pub struct CopiedEntries {
    /// Ids in transactions that are there to their end: only up to the last boundary of each file.
    pub ids: BTreeSet<u64>,
    /// Ids that occur more than once.
    pub twice: BTreeSet<u64>,
    /// The walk over the last file.
    pub live: Option<FileScan>,
    /// Length of the last file in bytes.
    pub live_len: u64,
}

impl CopiedEntries {
    /// Everything in the ledger must be in the copy, and nothing twice.
    #[track_caller]
    pub fn assert_holds(&self, committed: &BTreeSet<u64>, daemon: &Daemon, when: &str) {
        let missing: Vec<_> = committed.difference(&self.ids).collect();
        assert!(
            missing.is_empty(),
            "{when}: LOST, acknowledged but not in the copy: {missing:?}\n{}",
            daemon.log()
        );
        assert!(self.twice.is_empty(), "{when}: more than once in the copy: {:?}", self.twice);
    }
}

/// Reads every binary log in a timeline's folder.
#[track_caller]
pub fn copied_entries(folder: &Path) -> CopiedEntries {
    let mut found = CopiedEntries::default();
    for name in binlog_files(&PosixStorage, folder).expect("the timeline's folder") {
        let path = folder.join(name);
        let bytes = std::fs::read(&path).expect("a file of the copy");
        let file = std::fs::File::open(&path).expect("a file of the copy");
        let scan = scan_file(&file, bytes.len() as u64, |_| {}).expect("a file that can be read");
        for id in ids_in(&bytes[..usize::try_from(scan.boundary).expect("a file in memory")]) {
            if !found.ids.insert(id) {
                found.twice.insert(id);
            }
        }
        found.live_len = bytes.len() as u64;
        found.live = Some(scan);
    }
    found
}

/// As [`copied_entries`], with what only the journal holds: what a start would find now. Nothing of it is touched.
#[track_caller]
pub fn entries_left(timeline: &Path) -> CopiedEntries {
    let source = timeline.parent().expect("the source's folder");
    let copy = tempfile::tempdir().expect("a temporary folder");
    let copied_timeline = copy.path().join(timeline.file_name().expect("a name"));
    std::fs::create_dir(&copied_timeline).expect("a folder");
    // Before the files: what leaves the journal of a running binlogd stands in a file by then.
    if source.join(JOURNAL_FILE).exists() {
        std::fs::copy(source.join(JOURNAL_FILE), copy.path().join(JOURNAL_FILE)).expect("a copy");
    }
    let entries = std::fs::read_dir(timeline).expect("the timeline").flatten();
    // Folders hold what is derived from the files.
    for file in entries.filter(|entry| !entry.path().is_dir()) {
        match std::fs::copy(file.path(), copied_timeline.join(file.file_name())) {
            // A running binlogd writes its index under another name first.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.expect("a copy")),
        }
    }
    let mut remarks = Vec::new();
    let journal = Journal::open(&PosixStorage, copy.path(), jiff::Timestamp::now(), &mut remarks);
    let journal = journal.expect("a journal that can be read");
    // Shown where the test fails: why something was not put back.
    println!("a journal stands there: {}; {remarks:?}", journal.is_some());
    copied_entries(&copied_timeline)
}

/// The numbers that follow [`TOKEN`] in the events of a sound file. A row event holds the row's values as they are; the
/// large ones hold only filling.
fn ids_in(file: &[u8]) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut rest = &file[BINLOG_MAGIC.len().min(file.len())..];
    while let Ok(header) = EventHeader::parse(rest) {
        let (event, after) = rest.split_at(header.event_size as usize);
        if event.len() < BULK_ROW_LEN {
            ids.extend(event.windows(TOKEN.len() + DIGITS + 1).filter_map(id));
        }
        rest = after;
    }
    ids
}

fn id(window: &[u8]) -> Option<u64> {
    let digits = window.strip_prefix(TOKEN)?.strip_suffix(b"-")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

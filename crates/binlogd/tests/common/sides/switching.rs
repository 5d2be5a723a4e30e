//! A planned switch-over among servers under load, as an operator or a tool does it, and clients that go along.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::pair::{demote, promote, replicate, wait_replicated};
use super::semi_sync::SemiSync;
use crate::common::{Server, connect_options, ledger};
use codec::ServerKind;
use wire::{ConnectOptions, Connection, TlsMode, WireError};

/// The source's: far longer than a switch-over on a busy machine, and than what is promised.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest time for a statement of a client.
const STATEMENT_MAX: Duration = Duration::from_secs(60);

/// Pause of a client that a read-only server has sent away.
const AGAIN: Duration = Duration::from_millis(2);

/// Pause of a client between two commits.
const PAUSE: Duration = Duration::from_millis(1);

const CLIENTS: usize = 4;

/// `count` servers of one name: the first is the source, the others its replicas. Each has the table and the clients' account.
pub fn servers(name: &str, count: usize) -> Vec<Server> {
    let options: &[&str] = if name.starts_with("mysql") { &[] } else { &["--log-slave-updates=1"] };
    let servers: Vec<Server> = (0..count).map(|_| Server::start(name, options)).collect();
    ledger::create_table(&servers[0]);
    // None that may write in spite of read_only, as root may.
    servers[0].sql("CREATE USER clerk@'%' IDENTIFIED BY 'secret'; GRANT INSERT ON ledger.* TO clerk@'%'");
    for replica in &servers[1..] {
        replicate(replica, &servers[0]);
        wait_replicated(replica, &servers[0]);
    }
    servers
}

/// Clients that insert numbered rows one after the other into whichever server lets them.
pub struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    servers: Vec<ConnectOptions>,
    /// The number of the server to write to; and how often that was changed.
    target: AtomicUsize,
    changes: AtomicU64,
    next: AtomicU64,
    told: Mutex<BTreeSet<u64>>,
    /// How long the first commit of each client took after the last change.
    first: Mutex<Vec<Duration>>,
    stop: AtomicBool,
}

impl Clients {
    pub fn start(servers: &[Server]) -> Clients {
        let options = |server| connect_options(server, "clerk", "secret", TlsMode::Preferred);
        let shared = Arc::new(Shared {
            servers: servers.iter().map(options).collect(),
            target: AtomicUsize::new(0),
            changes: AtomicU64::new(1),
            next: AtomicU64::new(1),
            told: Mutex::default(),
            first: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let start = |_| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.write())
        };
        let threads = (0..CLIENTS).map(start).collect();
        let clients = Clients { shared, threads };
        clients.first_commits();
        clients
    }

    /// From now on they try that server.
    pub fn go_to(&self, server: usize) {
        self.shared.target.store(server, Ordering::SeqCst);
        self.shared.first.lock().expect("no client panics").clear();
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits until each client was told of a commit since the last change, and returns how long the longest of these took.
    #[track_caller]
    pub fn first_commits(&self) -> Duration {
        let deadline = Instant::now() + STATEMENT_MAX;
        loop {
            let first = self.shared.first.lock().expect("no client panics").clone();
            if first.len() >= CLIENTS {
                return first.into_iter().max().expect("some clients");
            }
            assert!(Instant::now() < deadline, "{} of {CLIENTS} clients were told of a commit", first.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Every row whose commit a client was told of.
    #[track_caller]
    pub fn finish(mut self) -> BTreeSet<u64> {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client");
        }
        self.shared.told.lock().expect("no client panics").clone()
    }
}

impl Drop for Clients {
    /// Does not wait: after a failed test a client may hang in its server, which ends with the test.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn write(&self) {
        let mut connections: Vec<Option<Connection>> = self.servers.iter().map(|_| None).collect();
        let mut since = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let change = self.changes.load(Ordering::SeqCst);
            let target = self.target.load(Ordering::SeqCst);
            let id = self.next.fetch_add(1, Ordering::SeqCst);
            let began = Instant::now();
            match insert(&self.servers[target], &mut connections[target], id) {
                Ok(()) => {
                    let took = began.elapsed();
                    self.told.lock().expect("no client panics").insert(id);
                    if since != change {
                        let mut first = self.first.lock().expect("no client panics");
                        // Of a change that is over by now it says nothing.
                        if self.changes.load(Ordering::SeqCst) == change {
                            first.push(took);
                        }
                        since = change;
                    }
                    std::thread::sleep(PAUSE);
                }
                // Read-only: the row was not inserted.
                Err(WireError::Server { .. }) => std::thread::sleep(AGAIN),
                Err(_) => {
                    connections[target] = None;
                    std::thread::sleep(AGAIN);
                }
            }
        }
    }
}

fn insert(options: &ConnectOptions, connection: &mut Option<Connection>, id: u64) -> Result<(), WireError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(Connection::connect(options)?),
    };
    connection.set_timeout(STATEMENT_MAX);
    // The token is put together by the server: MariaDB writes the statement's text into the binary log too.
    let row = format!("({id}, CONCAT('ledger', '-{id:08}-'))");
    connection.query(&format!("INSERT INTO ledger.entry VALUES {row}")).map(drop)
}

/// The source becomes read-only, the next server of the list becomes the source, and all others its replicas. Returns how long
/// the first commit of a client took there, of which each began as soon as the server let it. Semi-sync is in force on the
/// source all the time, each commit is acknowledged, and nothing that only the new source was told of is acknowledged to the old one.
#[track_caller]
pub fn switch_over(servers: &[Server], from: usize, to: usize, clients: &Clients) -> Duration {
    let (old, new) = (&servers[from], &servers[to]);
    let before = SemiSync::of(old);
    demote(old);
    let counters = before.counters();
    assert!(counters.on && counters.no_tx == 0, "{counters:?}");
    wait_replicated(new, old);
    if servers.len() > 2 {
        new.sql("FLUSH BINARY LOGS"); // As the page has it, so that the new timeline begins with a small file.
    }
    // On a replica its applier would wait for acknowledgements.
    let semi_sync = SemiSync::enable(new, TIMEOUT);
    clients.go_to(to);
    promote(new);
    let took = clients.first_commits();
    let on_new = semi_sync.counters();
    assert!(
        on_new.on && on_new.no_tx == 0,
        "each commit was acknowledged: {on_new:?}, the first after {took:?}"
    );
    assert_eq!(before.counters().yes_tx, counters.yes_tx, "the old source is acknowledged nothing more");
    before.set_enabled(false);
    for (number, replica) in servers.iter().enumerate().filter(|(number, _)| *number != to) {
        if number != from {
            replica.sql(if replica.kind() == ServerKind::MariaDb { "STOP SLAVE" } else { "STOP REPLICA" });
        }
        replicate(replica, new);
    }
    took
}

/// Clients can write to it.
pub fn become_source(server: &Server) {
    server.sql(match server.kind() {
        ServerKind::MariaDb => "SET GLOBAL read_only = 0",
        ServerKind::MySql => "SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0",
    });
}

/// The middle and the longest of the times, for people.
pub fn in_words(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    format!(
        "{} switch-overs: p50 {:?}, max {:?}",
        times.len(),
        times[times.len() / 2],
        times[times.len() - 1]
    )
}

/// How many switch-overs a test makes: `BINLOGD_SWITCH_ROUNDS`, or `usual`.
pub fn rounds(usual: usize) -> usize {
    std::env::var("BINLOGD_SWITCH_ROUNDS").ok().map_or(usual, |text| text.parse().expect("a number"))
}

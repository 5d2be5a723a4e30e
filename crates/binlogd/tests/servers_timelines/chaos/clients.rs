//! Clients that write to every server that lets them, all the time, and note which server told them of which commit, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Server, connect_options};
use wire::{ConnectOptions, Connection, TlsMode, WireError};

/// So long a client waits for its commit, and then connects anew: of that commit nobody is told.
const STATEMENT_MAX: Duration = Duration::from_secs(10);
const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Pause after a commit: a round has some hundreds of them, and a new server soon applies those of an era.
const PAUSE: Duration = Duration::from_millis(40);
/// Pause of a client that was sent away, because the server is read-only, or not there.
const AGAIN: Duration = Duration::from_millis(30);
const CLIENTS_EACH: usize = 2;

/// A commit that a client was told of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) id: u64,
    /// Number of the server.
    pub(super) server: usize,
    /// When its statement was sent.
    pub(super) began: Instant,
    /// When the answer came.
    pub(super) at: Instant,
}

/// The clients; some for each server.
pub(super) struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    servers: Mutex<Vec<ConnectOptions>>,
    next: AtomicU64,
    told: Mutex<Vec<Told>>,
    stop: AtomicBool,
}

/// As an account that cannot write in spite of `read_only`.
fn login(server: &Server) -> ConnectOptions {
    ConnectOptions {
        connect_timeout: CONNECT_MAX,
        ..connect_options(server, "clerk", "secret", TlsMode::Preferred)
    }
}

impl Clients {
    pub(super) fn start(servers: &[Server]) -> Clients {
        let shared = Arc::new(Shared {
            servers: Mutex::new(servers.iter().map(login).collect()),
            next: AtomicU64::new(1),
            told: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let start = |number| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.write(number))
        };
        let threads = (0..servers.len() * CLIENTS_EACH).map(|client| start(client / CLIENTS_EACH)).collect();
        Clients { shared, threads }
    }

    /// Another server has taken the place of one.
    pub(super) fn replace(&self, number: usize, server: &Server) {
        self.shared.servers.lock().unwrap_or_else(PoisonError::into_inner)[number] = login(server);
    }

    pub(super) fn told(&self) -> Vec<Told> {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the statements end.
    pub(super) fn finish(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            thread.join().expect("a client");
        }
    }
}

impl Drop for Clients {
    /// Does not wait: after a failed test a client may hang in its server, which ends with the test.
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
    }
}

impl Shared {
    fn write(&self, server: usize) {
        let mut connection = None;
        while !self.stop.load(Ordering::Acquire) {
            let options = self.servers.lock().unwrap_or_else(PoisonError::into_inner)[server].clone();
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            match insert(&options, &mut connection, id) {
                Ok(()) => {
                    let told = Told { id, server, began, at: Instant::now() };
                    self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
                    std::thread::sleep(PAUSE);
                }
                // Read-only: the row was not inserted.
                Err(WireError::Server { .. }) => std::thread::sleep(AGAIN),
                Err(_) => {
                    connection = None;
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

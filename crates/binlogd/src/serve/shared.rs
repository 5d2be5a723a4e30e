//! What all connections of readers share: the sources, the rules, and who is there.

use super::failed_logins::FailedLogins;
use super::readers::Readers;
use super::users::Users;
use crate::config::ServeConfig;
use crate::status::{ServeStatus, Serving, SourceMonitor};
use codec::packet::{ErrPacket, reply};
use log::published::Published;
use log::storage::Storage;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use wire::ServerTls;

/// A source, as readers are served.
#[derive(Clone)]
pub(crate) struct Source {
    /// `<data_dir>/<source>`.
    pub(crate) folder: PathBuf,
    /// The disk.
    pub(crate) storage: Arc<dyn Storage>,
    /// How far readers may read.
    pub(crate) published: Arc<Published>,
    /// What is known of the source.
    pub(crate) monitor: Arc<SourceMonitor>,
    /// The account by which it is received.
    pub(crate) user: String,
}

/// What a reload can change.
pub(super) struct Rules {
    pub(super) config: ServeConfig,
    pub(super) users: Users,
    pub(super) tls: Option<ServerTls>,
}

/// What all connections share.
pub(crate) struct Shared {
    rules: RwLock<Arc<Rules>>,
    sources: RwLock<BTreeMap<String, Source>>,
    /// Who is connected.
    pub(crate) readers: Arc<Readers>,
    pub(super) failed_logins: FailedLogins,
    next_id: AtomicU32,
    /// Connections, with those that have not logged in.
    connections: AtomicUsize,
    /// The address listened on.
    address: SocketAddr,
    /// When serving began.
    pub(super) since: Instant,
}

impl Shared {
    /// For a port that is listened on from now on.
    pub(super) fn new(rules: Arc<Rules>, address: SocketAddr) -> Shared {
        Shared {
            rules: RwLock::new(rules),
            sources: RwLock::default(),
            readers: Arc::default(),
            failed_logins: FailedLogins::default(),
            next_id: AtomicU32::new(1),
            connections: AtomicUsize::new(0),
            address,
            since: Instant::now(),
        }
    }

    /// A connection has come: it counts as long as the value lives. The second value is the number of connections with it.
    pub(super) fn count(self: &Arc<Shared>) -> (Counted, usize) {
        let count = self.connections.fetch_add(1, Relaxed) + 1;
        (Counted(self.clone()), count)
    }

    /// How many connections there are, with those that have not logged in.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// A number for a connection; never 0.
    pub(super) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Relaxed).max(1)
    }

    /// Other rules, for connections from now on.
    pub(super) fn set_rules(&self, rules: Arc<Rules>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Ends all connections.
    pub(super) fn end_all(&self) {
        for reader in self.readers.list() {
            reader.kill();
        }
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The source of this name, if it is received.
    pub(crate) fn source(&self, name: &str) -> Option<Source> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A source is received from now on, or again; its readers come back.
    pub(crate) fn add_source(&self, name: &str, source: Source) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), source);
        self.end_readers_of(name);
    }

    /// A source is not received any more.
    pub(crate) fn remove_source(&self, name: &str) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.end_readers_of(name);
    }

    fn end_readers_of(&self, name: &str) {
        for reader in self.readers.list().into_iter().filter(|reader| reader.source == name) {
            reader.kill();
        }
    }
}

/// One that counts as long as this value lives.
pub(super) struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

impl Serving for Shared {
    fn status(&self) -> ServeStatus {
        let readers = self.readers.list();
        ServeStatus {
            address: self.address.to_string(),
            readers: readers.iter().map(|reader| reader.status()).collect(),
        }
    }
}

/// Tells a client why it is not let in, as a server does before its greeting.
pub(super) fn refuse(mut socket: &TcpStream, code: u16, sqlstate: &str, message: &str) {
    let error = ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() };
    let mut bytes = Vec::new();
    reply::err_before_greeting(&mut bytes, &error);
    // An empty buffer of a new socket takes so few bytes at once; and who does not listen is not waited for.
    let _ = socket.set_nonblocking(true);
    let _ = socket.write_all(&bytes);
}

//! What all connections of readers share: the sources, the rules, and who is there.

use super::certificate::Shown;
use super::readers::{Doing, Readers};
use super::refusals::{Reason, Refusals};
use super::strangers::Strangers;
use super::users::Users;
use crate::history::file_sizes::AllSizes;
use crate::retention::{InSlot, Purger};
use binlog::purge::needs::Need;
use binlog::storage::Storage;
use binlog::writer::published::Published;
use codec::packet::{ErrPacket, printable, reply};
use config::ServeConfig;
use jiff::Timestamp;
use quorum::Node;
use status::{ServeCounters, ServeStatus, Serving, SlotStatus, SourceMonitor};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use wire::FailedLogins;

/// How long readers of a source that is given up may take to hear why.
const FAREWELL_MAX: Duration = Duration::from_secs(1);
/// Longer names of accounts are cut where they are shown.
const USER_BYTES_SHOWN: usize = 80;
/// Pause between two looks whether they have.
const FAREWELL_LOOK: Duration = Duration::from_millis(5);

/// What starts and stops the receiving of one source. Each says by what, as `STOP REPLICA of 'user'@'host'`.
pub trait ReceiverSwitch: Send + Sync {
    /// Ends the session at a boundary; none begins until [`start`](Self::start) or a restart of binlogd. `again` says what
    /// starts it. False when the session has not ended in time: it will.
    fn stop(&self, by: &str, again: &str) -> bool;

    /// Receives again. False when the receiver has ended for a reason that this does not change.
    fn start(&self, by: &str) -> bool;
}

/// A source, as readers are served.
#[derive(Clone)]
pub struct Source {
    /// `<data_dir>/<source>`.
    pub folder: PathBuf,
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// How far readers may read.
    pub published: Arc<Published>,
    /// What is known of the source.
    pub monitor: Arc<SourceMonitor>,
    /// The account by which it is received.
    pub user: String,
    /// What deletes its files.
    pub purger: Arc<Purger>,
    /// What starts and stops receiving.
    pub switch: Arc<dyn ReceiverSwitch>,
    /// This binlogd as a node of the source's quorum; `None` where it has none.
    pub quorum: Option<Arc<Node>>,
    /// `server_uuid` that is shown in the place of the source's own: a server that has the source's does not read from it.
    pub uuid: Option<String>,
}

/// What a reload can change.
pub(crate) struct Rules {
    pub(crate) config: ServeConfig,
    pub(crate) users: Users,
    /// What is shown to clients that encrypt.
    pub(crate) tls: Option<Shown>,
}

/// What all connections share.
pub struct Shared {
    rules: RwLock<Arc<Rules>>,
    sources: RwLock<BTreeMap<String, Source>>,
    /// Who is connected.
    pub readers: Arc<Readers>,
    pub(crate) failed_logins: FailedLogins,
    /// Who has not logged in.
    pub(crate) strangers: Strangers,
    pub(crate) refusals: Refusals,
    next_id: AtomicU32,
    /// Connections that came.
    accepted: AtomicU64,
    /// Connections that there are, with those that have not logged in.
    connections: AtomicUsize,
    /// Connections for which there are descriptors.
    room: AtomicU32,
    sizes: Mutex<Arc<AllSizes>>,
    /// The address listened on.
    address: SocketAddr,
    /// When serving began.
    pub(crate) since: Instant,
}

impl Shared {
    /// For a port that is listened on from now on.
    pub(crate) fn new(rules: Arc<Rules>, address: SocketAddr, room: u32) -> Shared {
        Shared {
            rules: RwLock::new(rules),
            sources: RwLock::default(),
            readers: Arc::default(),
            failed_logins: FailedLogins::default(),
            strangers: Strangers::default(),
            refusals: Refusals::default(),
            next_id: AtomicU32::new(1),
            accepted: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            room: AtomicU32::new(room),
            sizes: Mutex::default(),
            address,
            since: Instant::now(),
        }
    }

    /// The address listened on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A connection has come: it counts as long as the value lives. The second value is the number of connections with it.
    pub(crate) fn count(self: &Arc<Shared>) -> (Counted, usize) {
        self.accepted.fetch_add(1, Relaxed);
        let count = self.connections.fetch_add(1, Relaxed) + 1;
        (Counted(self.clone()), count)
    }

    /// How many connections there are, with those that have not logged in.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// How many readers there may be: what is configured, or as many as there are descriptors for.
    pub(crate) fn readers_max(&self, rules: &Rules) -> u32 {
        rules.config.max_connections.min(self.room.load(Relaxed))
    }

    /// From now on there are descriptors for so many readers. Who is too many ends.
    pub fn set_room(&self, room: u32) {
        self.room.store(room, Relaxed);
        self.readers.keep(room as usize);
    }

    /// How much is in the files, as of the last look.
    pub(crate) fn sizes(&self) -> Arc<AllSizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_sizes(&self, sizes: AllSizes) {
        *self.sizes.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(sizes);
    }

    /// A number for a connection; never 0.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Relaxed).max(1)
    }

    /// Other rules, for connections from now on.
    pub(crate) fn set_rules(&self, rules: Arc<Rules>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// Ends the dumps of which the configuration now says that they stop elsewhere, or have another delay: their readers come back.
    pub(crate) fn end_what_is_bound_otherwise(&self) {
        let rules = self.rules();
        for reader in self.readers.list() {
            let shown = reader.shown();
            let is_other = rules.users.bounds_of(&reader.user) != shown.bounds.configured;
            if matches!(shown.doing, Doing::Dump { .. }) && is_other {
                tracing::info!(
                    reader = reader.id,
                    user = reader.user,
                    "its dump ends: where it stops, or its delay, has changed"
                );
                reader.kill();
            }
        }
    }

    /// Ends all connections.
    pub(crate) fn end_all(&self) {
        self.strangers.end_all();
        for reader in self.readers.list() {
            reader.kill();
        }
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The source of this name, if it is received.
    pub fn source(&self, name: &str) -> Option<Source> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// A source is received from now on, or again; its readers come back.
    pub fn add_source(&self, name: &str, source: Source) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), source);
        self.end_readers_of(name);
    }

    /// A source is about to be received no more: who reads its binary logs is told so.
    pub fn dismiss_readers_of(&self, name: &str) {
        for reader in self.readers.list().into_iter().filter(|reader| reader.source == name) {
            reader.dismiss();
        }
    }

    /// These sources are not received any more. Their readers end; those that can be told why are waited for a moment.
    pub fn remove_sources(&self, names: &[String]) {
        self.sources.write().unwrap_or_else(PoisonError::into_inner).retain(|name, _| !names.contains(name));
        let theirs = || self.readers.list().into_iter().filter(|reader| names.contains(&reader.source));
        let reads = |reader: &super::readers::Reader| matches!(reader.shown().doing, Doing::Dump { .. });
        let deadline = Instant::now() + FAREWELL_MAX;
        while theirs().any(|reader| reads(&reader)) && Instant::now() < deadline {
            std::thread::sleep(FAREWELL_LOOK);
        }
        theirs().for_each(|reader| reader.kill());
    }

    /// Ends a reader of that source; says whom, or nothing when there is none of that number.
    pub fn end_reader(&self, source: &str, id: u32) -> Option<String> {
        let reader = self.readers.find(id).filter(|reader| reader.source == source)?;
        reader.kill();
        Some(format!("{} from {}", printable(reader.user.as_bytes(), USER_BYTES_SHOWN), reader.address))
    }

    fn all_slots(&self) -> Vec<SlotStatus> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.values().flat_map(|source| source.purger.slots()).collect()
    }

    fn end_readers_of(&self, name: &str) {
        for reader in self.readers.list().into_iter().filter(|reader| reader.source == name) {
            reader.kill();
        }
    }
}

/// One that counts as long as this value lives.
pub(crate) struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

impl crate::retention::Readers for Shared {
    fn needs(&self, source: &str) -> Vec<Need> {
        self.readers
            .list()
            .iter()
            .filter(|reader| reader.source == source)
            .filter_map(|reader| reader.need())
            .collect()
    }

    fn in_slots(&self, source: &str) -> Vec<InSlot> {
        // Of one that was told to end another connection may have taken the slot.
        let reads = |reader: &&Arc<super::readers::Reader>| {
            reader.source == source && !reader.is_killed() && reader.need().is_some()
        };
        self.readers.list().iter().filter(reads).filter_map(|reader| reader.in_slot()).collect()
    }
}

impl Serving for Shared {
    fn status(&self, now: Timestamp) -> ServeStatus {
        let (readers, rules, sizes) = (self.readers.list(), self.rules(), self.sizes());
        let refused = self.refusals.counts();
        ServeStatus {
            address: self.address.to_string(),
            connections: self.connections() as u64,
            max_connections: self.readers_max(&rules),
            tls: rules.tls.as_ref().map(|tls| tls.origin().to_owned()),
            tls_certificate_expires: rules.tls.as_ref().and_then(Shown::expires),
            require_tls: rules.config.require_tls,
            counters: ServeCounters {
                accepted: self.accepted.load(Relaxed),
                failed_logins: refused.get(Reason::Login.word()).copied().unwrap_or(0),
                refused,
                sent_bytes: self.readers.bytes_sent(),
            },
            readers: readers
                .iter()
                .map(|reader| reader.status(sizes.get(&reader.source).map(|sizes| &**sizes), now))
                .collect(),
            slots: self.all_slots(),
        }
    }
}

/// Tells a client why it is not let in, as a server does before its greeting.
pub(crate) fn refuse(mut socket: &TcpStream, code: u16, sqlstate: &str, message: &str) {
    let error = ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() };
    let mut bytes = Vec::new();
    reply::err_before_greeting(&mut bytes, &error);
    // An empty buffer of a new socket takes so few bytes at once; and who does not listen is not waited for.
    let _ = socket.set_nonblocking(true);
    let _ = socket.write_all(&bytes);
}

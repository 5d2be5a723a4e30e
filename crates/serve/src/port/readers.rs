//! Who is connected: what is known of each reader, and how its connection is ended from outside.

use crate::dump::progress::{ReaderProgress, Rest};
use crate::history::file_sizes::{FileSizes, behind};
use crate::retention::InSlot;
use binlog::purge::needs::{Need, NeedFrom};
use binlog::writer::published::Published;
use config::Bounds;
use jiff::Timestamp;
use status::ReaderStatus;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wire::Closer;

/// What a replica has said of itself by COM_REGISTER_SLAVE. Nothing of it is verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its `server_id`.
    pub server_id: u32,
    /// `report_host`, and if that is empty nothing.
    pub host: String,
    /// `report_port`.
    pub port: u16,
}

/// What a connection does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It waits for a statement.
    Idle,
    /// It answers one.
    Statement,
    /// It sends a dump, asked for by file and position or by GTID.
    Dump {
        /// By COM_BINLOG_DUMP_GTID.
        by_gtids: bool,
    },
}

impl Doing {
    /// As SHOW PROCESSLIST names it.
    pub fn command(self) -> &'static str {
        match self {
            Doing::Idle => "Sleep",
            Doing::Statement => "Query",
            Doing::Dump { by_gtids: false } => "Binlog Dump",
            Doing::Dump { by_gtids: true } => "Binlog Dump GTID",
        }
    }
}

/// One connection, from its login to its end.
#[derive(Debug)]
pub struct Reader {
    /// Number of the connection, as `CONNECTION_ID()` says.
    pub id: u32,
    /// The account.
    pub user: String,
    /// Where it comes from.
    pub address: SocketAddr,
    /// The source that it reads.
    pub source: String,
    /// The client program, by its own word; empty when it did not say.
    pub program: String,
    /// When it logged in.
    pub since: Instant,
    /// How far its dump is.
    pub progress: ReaderProgress,
    state: Mutex<State>,
    killed: AtomicBool,
    closer: Closer,
    published: Arc<Published>,
}

#[derive(Debug)]
struct State {
    doing: Doing,
    /// Since when it does so.
    since: Instant,
    registration: Option<Registration>,
    /// `@replica_uuid`, once a dump has begun.
    uuid: String,
    /// Name of its slot; empty when it has none.
    slot: String,
    /// Who it is to its slot.
    slot_reader: String,
    /// Of its dump.
    bounds: DumpBounds,
}

/// What holds a dump back although the log goes on, as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpBounds {
    /// What the configuration said of the account when the dump began.
    pub configured: Bounds,
    /// Where it stops, in words; empty for nowhere.
    pub stop: String,
    /// How old transactions are that are sent.
    pub delay: Duration,
}

/// A connection as it is shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What it does now.
    pub doing: Doing,
    /// Since when.
    pub since: Instant,
    /// What a replica has said of itself.
    pub registration: Option<Registration>,
    /// Its UUID; empty when it has said none.
    pub uuid: String,
    /// Of its dump.
    pub bounds: DumpBounds,
}

impl Reader {
    /// The connection begins or ends something.
    pub fn does(&self, doing: Doing) {
        let mut state = self.state();
        (state.doing, state.since) = (doing, Instant::now());
    }

    /// The replica has said who it is.
    pub(crate) fn registers(&self, registration: Registration) {
        self.state().registration = Some(registration);
    }

    /// The replica's UUID.
    pub fn has_uuid(&self, uuid: &str) {
        uuid.clone_into(&mut self.state().uuid);
    }

    /// The slot that it has, and who it is to the slot, over connections.
    pub(crate) fn has_slot(&self, slot: &str, reader: &str) {
        let mut state = self.state();
        slot.clone_into(&mut state.slot);
        reader.clone_into(&mut state.slot_reader);
    }

    /// Its slot, and who it is to that one, while it reads by it.
    fn reads_by_slot(&self) -> Option<(String, String)> {
        let state = self.state();
        let reads = matches!(state.doing, Doing::Dump { .. }) && !state.slot.is_empty() && !self.is_killed();
        reads.then(|| (state.slot.clone(), state.slot_reader.clone()))
    }

    /// Its dump is held back by these.
    pub(crate) fn is_bound(&self, bounds: DumpBounds) {
        self.state().bounds = bounds;
    }

    /// What is to be shown of it.
    pub fn shown(&self) -> Shown {
        let state = self.state();
        Shown {
            doing: state.doing,
            since: state.since,
            registration: state.registration.clone(),
            uuid: state.uuid.clone(),
            bounds: state.bounds.clone(),
        }
    }

    /// What it needs of the files of its source, if it reads now.
    pub fn need(&self) -> Option<Need> {
        if !matches!(self.shown().doing, Doing::Dump { .. }) {
            return None;
        }
        let who = format!("reader {} ({} from {}) ", self.id, self.user, self.address);
        Some(match self.progress.place() {
            None => Need { who: who + "is about to begin", from: NeedFrom::Everything },
            Some((timeline, at)) => {
                // What a semi-sync reader has not confirmed it may ask for again; that lies in the file before at most.
                let confirmed = self.progress.asked.confirmed();
                let before = usize::from(confirmed.is_some_and(|confirmed| confirmed.file != at.file));
                let file = at.file.to_string();
                Need { who: format!("{who}reads {file}"), from: NeedFrom::Place { timeline, file, before } }
            }
        })
    }

    /// Its slot and its place, if it has both.
    pub(crate) fn in_slot(&self) -> Option<InSlot> {
        let state = self.state();
        let (slot, reader) = (state.slot.clone(), state.slot_reader.clone());
        drop(state);
        let (timeline, position) = self.progress.place().filter(|_| !slot.is_empty())?;
        Some(InSlot { slot, reader, timeline, position, event_time: self.progress.event_time() })
    }

    /// The same for the status, at `now`. `files` knows how much is between two files of its source.
    pub fn status(&self, files: Option<&FileSizes>, now: Timestamp) -> ReaderStatus {
        let shown = self.shown();
        let position = self.progress.position();
        let dumps = matches!(shown.doing, Doing::Dump { .. });
        let live = self.published.live().filter(|_| dumps);
        let behind = position.as_ref().zip(live).and_then(|(at, live)| behind(at, &live, files));
        let (delay, rest) = (shown.bounds.delay.as_secs(), self.progress.rest());
        let behind_seconds = match behind {
            _ if !dumps => None,
            Some(0) => Some(0),
            // It is where it is meant to be.
            _ if matches!(rest, Rest::Stopped | Rest::Delayed) => Some(0),
            // A source whose clock is ahead of ours counts as not behind.
            _ => self.progress.event_time().map(|time| {
                u64::try_from(now.as_second() - i64::from(time)).unwrap_or(0).saturating_sub(delay)
            }),
        };
        ReaderStatus {
            id: self.id,
            source: self.source.clone(),
            user: self.user.clone(),
            address: self.address.to_string(),
            program: self.program.clone(),
            connected_seconds: self.since.elapsed().as_secs(),
            command: shown.doing.command().to_owned(),
            server_id: shown.registration.map(|registration| registration.server_id),
            uuid: shown.uuid,
            position,
            caught_up: dumps && self.progress.is_waiting(),
            behind_bytes: behind,
            behind_seconds,
            sent_bytes: self.progress.bytes_sent(),
            semi_sync: self.progress.asked.is_in_use(),
            confirmed: self.progress.asked.confirmed(),
            stop: Some(shown.bounds.stop).filter(|stop| dumps && !stop.is_empty()),
            stop_not_here: Some(self.progress.not_here()).filter(|not_here| dumps && !not_here.is_empty()),
            stopped: dumps && rest == Rest::Stopped,
            delay_seconds: if dumps { delay } else { 0 },
        }
    }

    /// Whether it is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    /// Ends it: its thread notices when it next reads or writes, and wakes up if it sleeps.
    pub fn kill(&self) {
        self.killed.store(true, Relaxed);
        self.closer.close();
        self.published.wake_all();
    }

    /// Its socket, to be asked whether the client is still there.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.closer.as_fd()
    }

    /// Its source is given up: its dump, if it has one, ends between two packets, and says so.
    pub(crate) fn dismiss(&self) {
        self.progress.dismiss();
        self.published.wake_all();
    }

    /// Nothing more is read from it: whoever reads sees the end.
    pub(crate) fn stop_listening(&self) {
        self.closer.stop_reading();
    }

    /// What is published of its source.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All connections of readers.
#[derive(Debug, Default)]
pub struct Readers(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    connected: BTreeMap<u32, Arc<Reader>>,
    /// What was sent to those that are gone, in bytes.
    sent_to_gone: u64,
}

/// What a login has told.
#[derive(Debug)]
pub struct Arrival {
    /// Number of the connection.
    pub id: u32,
    /// The account.
    pub user: String,
    /// Where it comes from.
    pub address: SocketAddr,
    /// The source that it reads.
    pub source: String,
    /// The client program, by its own word.
    pub program: String,
    /// What ends it.
    pub closer: Closer,
    /// What it may sleep on.
    pub published: Arc<Published>,
}

impl Readers {
    /// A connection has logged in. It is shown until what this gives is dropped; `None` when `max` are here already.
    pub fn arrived(self: &Arc<Readers>, arrival: Arrival, max: usize) -> Option<Present> {
        let Arrival { id, user, address, source, program, closer, published } = arrival;
        let now = Instant::now();
        let reader = Arc::new(Reader {
            id,
            user,
            address,
            source,
            program,
            since: now,
            progress: ReaderProgress::default(),
            state: Mutex::new(State {
                doing: Doing::Idle,
                since: now,
                registration: None,
                uuid: String::new(),
                slot: String::new(),
                bounds: DumpBounds::default(),
                slot_reader: String::new(),
            }),
            killed: AtomicBool::new(false),
            closer,
            published,
        });
        let mut all = self.all();
        if all.connected.len() >= max {
            return None;
        }
        all.connected.insert(id, reader.clone());
        drop(all);
        Some(Present { readers: self.clone(), reader })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all().connected.len()
    }

    /// Bytes sent in dumps, to all that there are and were.
    pub(crate) fn bytes_sent(&self) -> u64 {
        let all = self.all();
        all.connected.values().map(|reader| reader.progress.bytes_sent()).sum::<u64>() + all.sent_to_gone
    }

    /// Ends those that are more than `max`, the newest ones.
    pub fn keep(&self, max: usize) {
        for reader in self.list().into_iter().skip(max) {
            reader.kill();
        }
    }

    /// All of them, in the order of their numbers.
    pub fn list(&self) -> Vec<Arc<Reader>> {
        self.all().connected.values().cloned().collect()
    }

    /// The connection with this number.
    pub fn find(&self, id: u32) -> Option<Arc<Reader>> {
        self.all().connected.get(&id).cloned()
    }

    /// A replica that comes back ends its old connection, which may hang in a network that is gone: as a server does, by UUID.
    pub(crate) fn displace(&self, newcomer: &Reader, uuid: &str) {
        for other in self.list() {
            let is_older = other.id != newcomer.id && other.source == newcomer.source;
            if is_older && other.shown().uuid == uuid && matches!(other.shown().doing, Doing::Dump { .. }) {
                tracing::info!(
                    reader = other.id,
                    address = %other.address,
                    "a replica with the same UUID ({uuid}) has come from {}; the older connection ends",
                    newcomer.address
                );
                other.kill();
            }
        }
    }

    /// Who reads the same source by this slot, and is another connection than the newcomer. The same reader, come back with another
    /// UUID or with none, ends its old connection.
    pub fn in_the_way(&self, newcomer: &Reader, slot: &str, reader: &str) -> Option<Arc<Reader>> {
        let others = self.list().into_iter();
        for other in others.filter(|other| other.id != newcomer.id && other.source == newcomer.source) {
            let Some((its_slot, its_reader)) = other.reads_by_slot() else { continue };
            if its_slot != slot {
                continue;
            }
            if its_reader != reader {
                return Some(other);
            }
            tracing::info!(
                reader = other.id,
                address = %other.address,
                "{reader} has come again for slot {slot}, from {}; the older connection ends",
                newcomer.address
            );
            other.kill();
        }
        None
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is shown as long as this value lives.
#[derive(Debug)]
pub struct Present {
    readers: Arc<Readers>,
    /// What is shown.
    pub reader: Arc<Reader>,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut all = self.readers.all();
        all.connected.remove(&self.reader.id);
        all.sent_to_gone += self.reader.progress.bytes_sent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn arrival(id: u32, source: &str) -> (Arrival, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let arrival = Arrival {
            id,
            user: "reader".to_owned(),
            address: ([127, 0, 0, 1], 1).into(),
            source: source.to_owned(),
            program: String::new(),
            closer: ours.into(),
            published: Arc::default(),
        };
        (arrival, theirs)
    }

    #[test]
    fn a_replica_that_comes_back_ends_its_old_dump_and_nobody_elses() {
        let readers = Arc::new(Readers::default());
        let come = |id, source: &str, uuid: &str, dumps: bool| {
            let (arrival, theirs) = arrival(id, source);
            let present = readers.arrived(arrival, 5).unwrap();
            present.reader.has_uuid(uuid);
            if dumps {
                present.reader.does(Doing::Dump { by_gtids: true });
            }
            (present, theirs)
        };
        let (old, mut its_end) = come(1, "a", "u", true);
        let others = [come(2, "a", "v", true), come(3, "b", "u", true), come(4, "a", "u", false)];
        let (new, _theirs) = come(5, "a", "u", true);
        readers.displace(&new.reader, "u");
        assert!(old.reader.is_killed() && !new.reader.is_killed());
        assert!(others.iter().all(|(other, _)| !other.reader.is_killed()));
        assert_eq!(its_end.read(&mut [0]).unwrap(), 0, "its socket is shut down");
        let (one_more, _theirs) = arrival(6, "a");
        assert!(readers.arrived(one_more, 5).is_none(), "there is no room for it");
        old.reader.progress.sent(4, 100);
        others[0].0.reader.progress.sent(4, 10);
        drop(old);
        assert_eq!((readers.count(), readers.bytes_sent()), (4, 110), "what was sent stays counted");
        readers.keep(3);
        assert!(new.reader.is_killed() && !others.iter().any(|(other, _)| other.reader.is_killed()));
        assert_eq!(readers.list().iter().map(|reader| reader.id).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }

    #[test]
    fn a_slot_has_one_reader() {
        let readers = Arc::new(Readers::default());
        let come = |id, source: &str, slot: &str, who: &str, dumps: bool| {
            let (arrival, theirs) = arrival(id, source);
            let present = readers.arrived(arrival, 9).unwrap();
            present.reader.has_slot(slot, who);
            if dumps {
                present.reader.does(Doing::Dump { by_gtids: true });
            }
            (present, theirs)
        };
        let (first, _first) = come(1, "a", "s", "server_id 2", true);
        let others = [
            come(2, "a", "t", "server_id 3", true),
            come(3, "b", "s", "server_id 3", true),
            come(4, "a", "s", "server_id 3", false),
        ];
        let (new, _new) = come(5, "a", "", "", false);
        let in_the_way = |who| readers.in_the_way(&new.reader, "s", who).map(|other| other.id);
        assert_eq!(in_the_way("server_id 3"), Some(1));
        assert!(!first.reader.is_killed());
        assert_eq!(in_the_way("server_id 2"), None, "it has come back itself");
        assert!(first.reader.is_killed() && others.iter().all(|(other, _)| !other.reader.is_killed()));
        assert_eq!(in_the_way("server_id 3"), None, "nobody reads by it any more");
    }
}

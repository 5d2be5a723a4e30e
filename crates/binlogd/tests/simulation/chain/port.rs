//! The port of a simulated binlogd for its readers: the product's answers, places and dumps, over a pipe instead of a socket.
//!
//! The commands of a session are told apart here, as `serve/port/session.rs` does; what stands behind each is the product's.

use crate::chain::turns::{FOR_EVER, Turns};
use crate::disk::Disk;
use crate::receiver::{FOLDER, SOURCE};
use crate::world::BEGINNING;
use binlog::scan::scan_file;
use binlog::storage::Storage;
use binlog::testing::Random;
use binlog::timeline::Timeline;
use binlog::timeline::described::{Descriptions, describe};
use binlog::writer::published::Published;
use codec::ServerKind;
use codec::packet::{ErrPacket, HEADER_BYTES, OkPacket, Request, SemiSyncAcknowledgement, reply};
use config::{Bounds, Privileges};
use receive::Upstream;
use serve::answer::{
    self, Answer, Client, ColumnKind, Facts, LogFile, Replica, SemiSync, SessionLine, SessionState,
};
use serve::dump::dump_request;
use serve::dump::packets::PacketOut;
use serve::dump::progress::ReaderProgress;
use serve::dump::{Served, Waits, dump};
use serve::history::History;
use serve::sql::{Dialect, parse};
use status::SourceMonitor;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use wire::{AcceptOptions, Accepted, Accounts, ByteStream, Method, Methods, Verifiers, accept_over};

/// Limits by the clock of the machine, which simulated time knows nothing of.
const REAL_TIME_MAX: Duration = Duration::from_secs(3600);

/// The password of everybody.
pub const PASSWORD: &str = "simulated";

/// Longest statement, in bytes.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// A port. The process behind it comes and goes.
pub struct Port {
    turns: Arc<Turns>,
    process: Mutex<Option<Serving>>,
    /// The disk of the process, or of the last one.
    pub disk: Mutex<Disk>,
    /// What it cannot tell.
    pub doubts: Arc<Mutex<Doubts>>,
}

/// What a port cannot tell of what it has.
#[derive(Default)]
pub enum Doubts {
    #[default]
    None,
    /// An older timeline cannot be read now and then, and an archive has not answered.
    NowAndThen(Random),
    /// An archive does not answer.
    SilentArchive,
}

/// A process that serves.
#[derive(Clone)]
pub struct Serving {
    pub disk: Disk,
    pub published: Arc<Published>,
    pub monitor: Arc<SourceMonitor>,
    /// It is no more.
    pub is_over: Arc<AtomicBool>,
    /// Tells its receiving thread that a reader has confirmed something.
    pub nudge: Arc<dyn Fn() + Send + Sync>,
    /// See [`Port::doubts`].
    doubts: Arc<Mutex<Doubts>>,
}

impl Serving {
    /// Serves what `upstream` publishes, over `disk`.
    pub fn of(upstream: &Upstream, disk: Disk, nudge: Arc<dyn Fn() + Send + Sync>) -> Serving {
        let (published, monitor) = (upstream.published.clone(), upstream.monitor.clone());
        Serving { disk, published, monitor, is_over: Arc::default(), nudge, doubts: Arc::default() }
    }
}

impl Port {
    pub fn new(turns: Arc<Turns>, disk: Disk) -> Arc<Port> {
        Arc::new(Port { turns, process: Mutex::new(None), disk: Mutex::new(disk), doubts: Arc::default() })
    }

    /// A process serves from now on.
    pub fn open(&self, process: Serving) {
        *self.disk.lock().unwrap() = process.disk.clone();
        *self.process.lock().unwrap() = Some(Serving { doubts: self.doubts.clone(), ..process });
    }

    /// The process has ended, and all its connections with it.
    pub fn close(&self) {
        if let Some(process) = self.process.lock().unwrap().take() {
            process.is_over.store(true, SeqCst);
        }
        self.turns.stir();
    }

    pub fn disk(&self) -> Disk {
        self.disk.lock().unwrap().clone()
    }

    pub fn process(&self) -> Option<Serving> {
        self.process.lock().unwrap().clone()
    }

    /// Connects; `None` where nobody answers, or nothing can be read yet.
    pub fn connect(&self) -> Option<Pipe> {
        let process = self.process()?;
        let identity = identity(&process)?;
        let pipe = Pipe { ends: Arc::default(), turns: self.turns.clone(), is_over: process.is_over.clone() };
        let (theirs, turns) = (pipe.clone(), self.turns.clone());
        // Nobody asks how it ended: the client sees that.
        self.turns.spawn("session", move || {
            let _ = serve(&process, identity, &theirs, &turns);
            theirs.ends().server_is_gone = true;
            turns.stir();
        });
        Some(pipe)
    }
}

/// A connection, from both ends.
#[derive(Clone)]
pub struct Pipe {
    ends: Arc<Mutex<Ends>>,
    turns: Arc<Turns>,
    is_over: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
pub struct Ends {
    pub to_client: VecDeque<u8>,
    pub to_server: VecDeque<u8>,
    pub client_is_gone: bool,
    pub server_is_gone: bool,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pipe")
    }
}

impl Pipe {
    pub fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap()
    }

    /// The connection is cut, or the process at the other end is no more.
    pub fn is_closed(&self) -> bool {
        let ends = self.ends();
        ends.client_is_gone || ends.server_is_gone || self.is_over.load(SeqCst)
    }
}

/// The server's end.
#[derive(Debug)]
struct ServerEnd {
    pipe: Pipe,
    /// Says readable whenever it is asked.
    poll: File,
}

impl Read for ServerEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            {
                let mut ends = self.pipe.ends();
                let len = ends.to_server.len().min(buffer.len());
                if len > 0 {
                    for (place, byte) in buffer.iter_mut().zip(ends.to_server.drain(..len)) {
                        *place = byte;
                    }
                    return Ok(len);
                }
            }
            if self.pipe.is_closed() {
                return Ok(0);
            }
            self.pipe.turns.wait_until(FOR_EVER);
        }
    }
}

impl Write for ServerEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pipe.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.pipe.ends().to_client.extend(bytes);
        self.pipe.turns.stir();
        self.pipe.turns.pass();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for ServerEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

impl ByteStream for ServerEnd {
    fn set_read_timeout(&mut self, _: Duration) {}
}

/// Everybody who knows the password.
struct Anybody(Verifiers);

impl Accounts for Anybody {
    fn find(&self, _: &str, _: IpAddr) -> Option<Verifiers> {
        Some(self.0)
    }

    fn methods(&self) -> Vec<Methods> {
        vec![self.0.methods()]
    }
}

/// What the port presents, as `serve/port/facts.rs` says it.
#[derive(Clone)]
struct Identity {
    version: String,
    uuid: String,
    server_id: u32,
}

fn identity(process: &Serving) -> Option<Identity> {
    let live = process.published.live()?;
    let timeline = Timeline::read(&process.disk, &live.timeline).ok()?;
    let mut head = [0; 4 + 19];
    process.disk.open_read(&live.timeline.join(&*live.file)).ok()?.read_full_at(&mut head, 0).ok()?;
    let server_id = u32::from_le_bytes(head[4 + 5..4 + 9].try_into().unwrap());
    Some(Identity { version: timeline.server_version, uuid: timeline.server_uuid, server_id })
}

/// Serves a connection to its end.
fn serve(process: &Serving, identity: Identity, pipe: &Pipe, turns: &Arc<Turns>) -> io::Result<()> {
    let poll = File::open("/dev/null")?;
    let end = Box::new(ServerEnd { pipe: pipe.clone(), poll });
    let options = AcceptOptions {
        version: identity.version.clone(),
        kind: ServerKind::MySql,
        connection_id: 1,
        default_method: Method::Native,
        databases: answer::DATABASES,
        tls: None,
        require_tls: false,
        login_timeout: REAL_TIME_MAX,
        write_timeout: REAL_TIME_MAX,
    };
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3307);
    let accounts = Anybody(Verifiers::from_password(&PASSWORD.into()));
    let accepted = accept_over(end, address, &options, &accounts).map_err(io::Error::other)?;
    let capabilities = accepted.client().capabilities;
    let client = Client {
        connection_id: 1,
        user: accepted.client().user.clone(),
        host: "127.0.0.1".to_owned(),
        account_host: "%".to_owned(),
        privileges: Privileges::READ,
        tls: None,
    };
    let dialect = Dialect::new(ServerKind::MySql, &identity.version);
    let state = SessionState::default();
    let mut session = Session { process, identity, accepted, state, client, pipe, turns };
    while let Some(message) =
        session.accepted.receive(REAL_TIME_MAX, STATEMENT_BYTES_MAX + 1).map_err(io::Error::other)?
    {
        let request = Request::parse(&message, capabilities).expect("binlogd speaks the protocol");
        let mut bytes = Vec::new();
        match request {
            Request::Quit => return Ok(()),
            Request::Query(text) => {
                let statement = parse(text, session.state.dialect(dialect));
                let said = match statement {
                    Ok(statement) => answer::answer(
                        &statement,
                        &mut session.state,
                        &session.client,
                        &Present { process, identity: &session.identity },
                    ),
                    Err(error) => Answer::Error(error.packet()),
                };
                append_answer(&mut bytes, &said);
            }
            Request::Ping | Request::RegisterReplica(_) => {
                reply::ok(&mut bytes, 1, &ok());
            }
            Request::BinlogDump(_) | Request::BinlogDumpGtid(_) => return session.dump(&request),
            other => panic!("no binlogd asks for {other:?}"),
        }
        session.accepted.send(&bytes)?;
    }
    Ok(())
}

fn ok() -> OkPacket {
    OkPacket { affected_rows: 0, last_insert_id: 0, status: reply::STATUS_AUTOCOMMIT, warnings: 0 }
}

fn append_answer(bytes: &mut Vec<u8>, said: &Answer) {
    match said {
        Answer::Done | Answer::Warned(_) | Answer::Act(_) => reply::ok(bytes, 1, &ok()),
        Answer::Error(error) => reply::err(bytes, 1, error),
        Answer::Rows(rows) => {
            let kind = |kind| match kind {
                ColumnKind::Text => reply::ColumnKind::Text,
                ColumnKind::Integer => reply::ColumnKind::Integer,
                ColumnKind::Unsigned => reply::ColumnKind::Unsigned,
            };
            let columns: Vec<_> = rows
                .columns
                .iter()
                .map(|column| reply::Column { name: &column.title, kind: kind(column.kind) })
                .collect();
            reply::result_set(bytes, 1, &columns, &rows.rows, reply::STATUS_AUTOCOMMIT)
        }
    };
}

struct Session<'a> {
    process: &'a Serving,
    identity: Identity,
    accepted: Accepted,
    state: SessionState,
    client: Client,
    pipe: &'a Pipe,
    turns: &'a Arc<Turns>,
}

impl Session<'_> {
    fn dump(&mut self, command: &Request<'_>) -> io::Result<()> {
        let request = dump_request::of(command, &self.state, ServerKind::MySql, &Bounds::default());
        let request = match request {
            Ok(request) => request,
            Err(error) => return self.refuse(&error),
        };
        let progress = Arc::new(ReaderProgress::default());
        if request.semi_sync {
            let uuid = dump_request::replica_uuid(&self.state);
            progress.receiver_is(&dump_request::receiver(&uuid, command));
        }
        let hearing = Hearing {
            pipe: self.pipe.clone(),
            turns: self.turns.clone(),
            progress: progress.clone(),
            process: self.process.clone(),
        };
        let turns = self.turns.clone();
        let served = Served {
            folder: Disk::path(FOLDER),
            storage: Arc::new(self.process.disk.clone()),
            published: self.process.published.clone(),
            monitor: Some(self.process.monitor.clone()),
            wall_time: Arc::new(move || BEGINNING + turns.now()),
            waits: Arc::new(hearing.clone()),
        };
        let mut out = Out { accepted: &mut self.accepted, hearing };
        let ended = dump(&served, &request, &mut out, &progress);
        tracing::debug!("a dump of {SOURCE} has ended: {ended:?}");
        Ok(())
    }

    fn refuse(&mut self, error: &ErrPacket) -> io::Result<()> {
        let mut bytes = Vec::new();
        reply::err(&mut bytes, 1, error);
        self.accepted.send(&bytes)
    }
}

/// Hears what the reader of a dump acknowledges, whenever the dump waits or sends.
#[derive(Clone)]
struct Hearing {
    pipe: Pipe,
    turns: Arc<Turns>,
    progress: Arc<ReaderProgress>,
    process: Serving,
}

impl Hearing {
    fn hear(&self) {
        loop {
            let message: Vec<u8> = {
                let mut ends = self.pipe.ends();
                let head: Vec<u8> = ends.to_server.iter().take(HEADER_BYTES).copied().collect();
                let [a, b, c, _] = head[..] else { return };
                let end = HEADER_BYTES + u32::from_le_bytes([a, b, c, 0]) as usize;
                if ends.to_server.len() < end {
                    return;
                }
                ends.to_server.drain(..end).skip(HEADER_BYTES).collect()
            };
            let answer = SemiSyncAcknowledgement::parse(&message).expect("an acknowledgement");
            let heard = self.progress.hears(&answer, &self.process.published);
            heard.expect("what binlogd acknowledges it was asked for");
            (self.process.nudge)();
            self.turns.stir();
        }
    }
}

impl Waits for Hearing {
    fn for_news(&self, published: &Published, seen: u32, timeout: Duration) {
        let end = self.turns.now() + timeout;
        self.hear();
        while published.news() == seen && self.turns.now() < end && !self.pipe.is_closed() {
            self.turns.wait_until(end);
            self.hear();
        }
    }

    fn pause(&self, pause: Duration) {
        let end = self.turns.now() + pause;
        while self.turns.now() < end && !self.pipe.is_closed() {
            self.turns.wait_until(end);
        }
    }
}

struct Out<'a> {
    accepted: &'a mut Accepted,
    hearing: Hearing,
}

impl PacketOut for Out<'_> {
    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.hearing.hear();
        self.accepted.send(framed)
    }

    fn is_cancelled(&self) -> bool {
        self.hearing.hear();
        self.hearing.pipe.is_closed()
    }
}

/// What a session is told.
struct Present<'a> {
    process: &'a Serving,
    identity: &'a Identity,
}

impl Present<'_> {
    fn described(&self) -> Option<Descriptions> {
        let live = self.process.published.live()?;
        let mut found = describe(&self.process.disk, &Disk::path(FOLDER), &live).ok()?;
        let mut doubts = self.process.doubts.lock().unwrap();
        let random = match &mut *doubts {
            Doubts::None => return Some(found),
            Doubts::NowAndThen(random) => random,
            Doubts::SilentArchive => {
                found.is_past_known = false;
                return Some(found);
            }
        };
        found.is_past_known = !random.one_in(4);
        let at = random.below(found.timelines.len() as u64) as usize;
        if at != found.live && random.one_in(2) {
            let of = &mut found.timelines[at];
            (of.extent, of.unreadable) = (None, Some(format!("simulated {}", random.next())));
            of.info.take_if(|_| random.one_in(2));
        }
        Some(found)
    }
}

impl Facts for Present<'_> {
    fn kind(&self) -> ServerKind {
        ServerKind::MySql
    }

    fn version(&self) -> String {
        self.identity.version.clone()
    }

    fn server_id(&self) -> u32 {
        self.identity.server_id
    }

    fn server_uuid(&self) -> Option<String> {
        Some(self.identity.uuid.clone())
    }

    fn source_variable(&self, name: &str) -> Option<String> {
        let settings = self.process.monitor.settings();
        settings.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone())
    }

    fn hostname(&self) -> String {
        "simulated".to_owned()
    }

    fn port(&self) -> u16 {
        3307
    }

    fn max_allowed_packet(&self) -> u64 {
        STATEMENT_BYTES_MAX as u64
    }

    fn wait_timeout(&self) -> Duration {
        REAL_TIME_MAX
    }

    fn net_write_timeout(&self) -> Duration {
        REAL_TIME_MAX
    }

    fn connections_max(&self) -> u32 {
        10
    }

    fn requires_tls(&self) -> bool {
        false
    }

    fn now(&self) -> i64 {
        BEGINNING.as_microsecond()
    }

    fn random(&self) -> [u8; 16] {
        [7; 16]
    }

    fn uptime_seconds(&self) -> u64 {
        1
    }

    fn binary_logs(&self) -> Vec<LogFile> {
        Vec::new()
    }

    fn gtid_executed(&self) -> String {
        self.process.monitor.gtids().durable.to_line()
    }

    fn gtid_purged(&self) -> String {
        let disk = &self.process.disk;
        let Some(live) = self.process.published.live() else { return String::new() };
        let Ok(history) = History::read(disk, &Disk::path(FOLDER), &live) else { return String::new() };
        let first = history.files().next().and_then(|file| disk.open_read(&history.path(file)).ok());
        let scanned = first.and_then(|file| scan_file(&*file, u64::MAX, |_| {}).ok());
        scanned.and_then(|scan| scan.gtids_before).map(|before| before.to_line()).unwrap_or_default()
    }

    fn gtid_binlog_state(&self) -> String {
        String::new()
    }

    fn timelines(&self) -> String {
        self.described().map(|described| described.extents()).unwrap_or_default()
    }

    fn history(&self) -> String {
        self.described().map(|described| described.to_text().unwrap()).unwrap_or_default()
    }

    fn gtid_position(&self, _: &str, _: u64) -> Option<String> {
        None
    }

    fn replicas(&self) -> Vec<Replica> {
        Vec::new()
    }

    fn sessions(&self) -> Vec<SessionLine> {
        Vec::new()
    }

    fn upstream(&self) -> answer::Upstream {
        answer::Upstream::default()
    }

    fn semi_sync(&self) -> SemiSync {
        SemiSync { enabled: true, ..SemiSync::default() }
    }
}

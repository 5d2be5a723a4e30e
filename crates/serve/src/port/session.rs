//! One connection of a reader: login, then one command after the other.

use super::facts::{Identity, Present};
use super::limits::{IDLE_LONGEST, IDLE_MAX, WRITE_LONGEST, WRITE_MAX, give_way};
use super::login::{LetIn, let_in};
use super::nodes::{self, Answered};
use super::readers::{Doing, DumpBounds, Present as PresentReader, Reader, Registration};
use super::shared::{Rules, Shared, Source};
use crate::answer;
use crate::answer::purge;
use crate::answer::{Action, Answer, Client, Column, ColumnKind, Rows, SessionState};
use crate::dump::answers::Answers;
use crate::dump::dump_log::say_how_it_ended;
use crate::dump::dump_request;
use crate::dump::packets::PacketOut;
use crate::dump::request::DumpRequest;
use crate::dump::{RealTime, Served, dump};
use crate::events::{EventRow, ListError, Listing, Wanted};
use crate::sql::{Dialect, SqlError, Statement, Statements};
use binlog::purge::plan::Wanted as Purge;
use codec::gtid::Uuid;
use codec::packet::{ErrPacket, OkPacket, Request, capability, printable, reply};
use jiff::Timestamp;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use wire::{Accepted, ClientError};

/// Rows of a listing are sent together up to so many bytes.
const ROWS_BYTES: usize = 64 << 10;

/// Longest name or host that a replica is shown with, in bytes.
const SHOWN_BYTES_MAX: usize = 255;

/// Serves a connection to its end.
pub(crate) fn run(shared: &Arc<Shared>, rules: &Rules, socket: TcpStream, address: SocketAddr, id: u32) {
    let port = socket.local_addr().map_or(0, |address| address.port());
    let Some(LetIn { accepted, name, source, identity, present }) =
        let_in(shared, rules, socket, address, id)
    else {
        return;
    };
    let of_client = accepted.client().clone();
    let user = of_client.user.clone();
    tracing::debug!(reader = id, %address, user, source = name, program = present.reader.program, "a reader has logged in");
    let client = Client {
        connection_id: id,
        user,
        host: address.ip().to_string(),
        account_host: "%".to_owned(),
        privileges: rules.users.privileges_of(&of_client.user),
        tls: accepted.tls_version().map(str::to_owned).zip(accepted.tls_cipher()),
    };
    let dialect = Dialect::new(identity.kind, &identity.version);
    let mut state = SessionState::default();
    state.set_login_collation(of_client.character_set.into());
    state.use_database(of_client.database.as_deref());
    let mut session = Session {
        shared,
        name,
        source,
        identity,
        port,
        statement_bytes_max: rules.config.max_statement_bytes as usize,
        client,
        dialect,
        state,
        several: of_client.capabilities & capability::MULTI_STATEMENTS != 0,
        capabilities: of_client.capabilities,
        present,
        accepted,
    };
    // What ends a connection is the client's affair: it says so on its side.
    if let Err(error) = session.serve() {
        tracing::debug!(reader = id, %address, "the connection of a reader has ended: {error}");
    }
}

struct Session<'a> {
    shared: &'a Arc<Shared>,
    name: String,
    source: Source,
    identity: Identity,
    port: u16,
    statement_bytes_max: usize,
    client: Client,
    dialect: Dialect,
    state: SessionState,
    /// Several statements may stand in one packet.
    several: bool,
    capabilities: u32,
    present: PresentReader,
    accepted: Accepted,
}

impl Session<'_> {
    fn serve(&mut self) -> Result<(), ClientError> {
        loop {
            let idle_max = self.state.wait_timeout().map_or(IDLE_MAX, |wanted| wanted.min(IDLE_LONGEST));
            let Some(message) = self.accepted.receive(idle_max, self.statement_bytes_max + 1)? else {
                return Ok(());
            };
            if self.reader().is_killed() {
                return Ok(());
            }
            self.reader().does(Doing::Statement);
            let write_max =
                self.state.net_write_timeout().map_or(WRITE_MAX, |wanted| wanted.min(WRITE_LONGEST));
            self.accepted.set_write_timeout(write_max);
            let goes_on =
                self.command(&message).map_err(|reason| ClientError::Io { during: "answering", reason })?;
            self.reader().does(Doing::Idle);
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn reader(&self) -> &Reader {
        &self.present.reader
    }

    /// Does what one command asks for; false when the connection is to end.
    fn command(&mut self, message: &[u8]) -> io::Result<bool> {
        let request = match Request::parse(message, self.capabilities) {
            Ok(request) => request,
            Err(error) => {
                self.send_error(&server_error(
                    1835,
                    "HY000",
                    &format!("Malformed communication packet: {error}"),
                ))?;
                return Ok(false);
            }
        };
        match request {
            Request::Quit => return Ok(false),
            Request::NoAnswer => {}
            Request::Ping => self.send_ok()?,
            Request::Query(text) => self.query(text)?,
            Request::InitDb(name) => {
                let statement = Statement::Use(printable(name, SHOWN_BYTES_MAX));
                let answer = self.answer(&statement);
                self.send_answer(1, &answer, false)?;
            }
            Request::FieldList => self.send_error(&server_error(1046, "3D000", "No database selected"))?,
            Request::Statistics => {
                let text = format!(
                    "Uptime: {}  Threads: {}  binlogd {}",
                    self.shared.since.elapsed().as_secs(),
                    self.shared.readers.list().len(),
                    env!("CARGO_PKG_VERSION")
                );
                let mut bytes = Vec::new();
                codec::packet::append_message(&mut bytes, 1, text.as_bytes());
                self.send(&bytes)?;
            }
            Request::ProcessKill(id) => self.query(format!("KILL {id}").as_bytes())?,
            Request::SetOption(option) => {
                self.several = option == 0;
                let mut bytes = Vec::new();
                reply::eof(&mut bytes, 1, self.state.server_status());
                self.send(&bytes)?;
            }
            Request::ResetConnection => {
                self.state = SessionState::default();
                self.send_ok()?;
            }
            Request::ChangeUser(_) => {
                let text = "binlogd does not change the user of a session: connect again as the other user";
                self.send_error(&server_error(1235, "42000", text))?;
                return Ok(false);
            }
            Request::RegisterReplica(replica) => {
                self.reader().registers(Registration {
                    server_id: replica.server_id,
                    host: printable(replica.host, SHOWN_BYTES_MAX),
                    port: replica.port,
                });
                self.send_ok()?;
            }
            Request::BinlogDump(_) | Request::BinlogDumpGtid(_) => return self.dump(&request),
            Request::Unknown(number) => {
                let text = format!(
                    "binlogd does not know command {number}; it knows those of replicas, of log readers, and statements as \
                     text. Switch prepared statements of the server off in the client"
                );
                self.send_error(&server_error(1047, "08S01", &text))?;
            }
        }
        Ok(true)
    }

    /// Answers what another node of the quorum asks for.
    fn node(&mut self, asked: &[u8]) -> io::Result<()> {
        match nodes::answer(asked, &self.source, &self.name, &self.client) {
            Answered::With(answer) => self.send_answer(1, &answer, false).map(drop),
            Answered::Listens(node) => {
                let published = self.source.published.clone();
                nodes::tell(&node, &published, &mut self.accepted, &self.present.reader)
            }
        }
    }

    /// Answers the statements of one packet, each as it is carried out: what a client asks for many times is never kept whole.
    fn query(&mut self, text: &[u8]) -> io::Result<()> {
        if let Some(asked) = nodes::asked(text) {
            return self.node(asked);
        }
        if !self.several {
            let answer = match crate::sql::parse(text, self.state.dialect(self.dialect)) {
                Ok(statement) => self.answer(&statement),
                Err(error) => self.not_understood(&error),
            };
            return self.send_answer(1, &answer, false).map(drop);
        }
        // The dialect of a later one is that of the packet: no client changes it within one.
        let mut statements = Statements::new(text, self.state.dialect(self.dialect));
        let mut sequence = 1;
        let mut is_answered = false;
        while let Some(statement) = statements.next() {
            if self.reader().is_killed() || self.accepted.is_gone() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let answer = match statement {
                Ok(statement) => self.answer(&statement),
                Err(error) => self.not_understood(&error),
            };
            let goes_on = !matches!(answer, Answer::Error(_)) && statements.has_more();
            is_answered = true;
            match self.send_answer(sequence, &answer, goes_on)? {
                Some(next) if goes_on => sequence = next,
                _ => break,
            }
        }
        if !is_answered {
            let answer = self.not_understood(&SqlError::Empty);
            self.send_answer(sequence, &answer, false)?;
        }
        Ok(())
    }

    fn not_understood(&mut self, error: &SqlError) -> Answer {
        let packet = error.packet();
        self.state.remember(&packet);
        Answer::Error(packet)
    }

    fn answer(&mut self, statement: &Statement) -> Answer {
        let facts = Present {
            shared: self.shared,
            source: &self.source,
            name: &self.name,
            identity: &self.identity,
            port: self.port,
        };
        match answer::answer(statement, &mut self.state, &self.client, &facts) {
            // Its rows are sent as they are read.
            Answer::Act(action @ Action::BinlogEvents { .. }) => Answer::Act(action),
            Answer::Act(action) => {
                let answer = self.act(action);
                match &answer {
                    Answer::Error(error) => self.state.remember(error),
                    Answer::Warned(warning) => self.state.warn(warning),
                    _ => {}
                }
                answer
            }
            other => other,
        }
    }

    fn act(&self, action: Action) -> Answer {
        match action {
            Action::Kill { connection_id, query_only } => match self.shared.readers.find(connection_id) {
                // What is sent cannot be ended without the connection.
                Some(reader) if !query_only || reader.shown().doing != Doing::Idle => {
                    reader.kill();
                    Answer::Done
                }
                Some(_) => Answer::Done,
                None => {
                    Answer::Error(server_error(1094, "HY000", &format!("Unknown thread id: {connection_id}")))
                }
            },
            Action::BinlogEvents { .. } => Answer::Done, // See `list_events`.
            Action::PurgeTo(file) => self.purge(&Purge::To(file)),
            Action::PurgeBefore(moment) => match Timestamp::from_microsecond(moment) {
                Ok(moment) => self.purge(&Purge::Before(moment)),
                // No clock knows it: nothing is that old.
                Err(_) => Answer::Done,
            },
            Action::StopReplica if self.stop_receiving() => Answer::Done,
            // ER_STOP_REPLICA_IO_THREAD_TIMEOUT.
            Action::StopReplica => Answer::Error(server_error(
                1876,
                "HY000",
                "STOP REPLICA command execution is incomplete: IO thread got the stop signal, thread is busy, IO thread will stop \
                 once the current task is complete.",
            )),
            Action::StartReplica if self.start_receiving() => Answer::Done,
            // ER_REPLICA_CONFIGURATION.
            Action::StartReplica => Answer::Error(server_error(
                1201,
                "HY000",
                "The receiver has ended for a reason that START REPLICA does not change; SHOW REPLICA STATUS names it. Put it \
                 right, then reload (SIGHUP) or restart binlogd",
            )),
        }
    }

    fn stop_receiving(&self) -> bool {
        self.source
            .switch
            .stop(&format!("STOP REPLICA of {}", self.account()), "START REPLICA receives again")
    }

    fn start_receiving(&self) -> bool {
        self.source.switch.start(&format!("START REPLICA of {}", self.account()))
    }

    /// As the log and the status name who gave a statement.
    fn account(&self) -> String {
        format!("'{}'@'{}'", printable(self.client.user.as_bytes(), SHOWN_BYTES_MAX), self.client.host)
    }

    fn purge(&self, wanted: &Purge) -> Answer {
        let why = format!("PURGE BINARY LOGS of {}", self.account());
        let purged = self.source.purger.purge(wanted, &why, Timestamp::now());
        purge::answer(purged, &self.name, self.identity.kind)
    }

    /// Sends the answer to one statement; gives the number of the packet that follows, or `None` after an error, behind which no
    /// other answer comes.
    pub(super) fn send_answer(
        &mut self,
        sequence: u8,
        answer: &Answer,
        more_follow: bool,
    ) -> io::Result<Option<u8>> {
        let more = if more_follow { reply::STATUS_MORE_RESULTS } else { 0 };
        let status = self.state.server_status() | more;
        let mut bytes = Vec::new();
        let next = match answer {
            Answer::Act(Action::BinlogEvents { file, from, end, limit }) => {
                let wanted = Wanted { file, from: *from, end: *end, limit: *limit };
                return self.list_events(sequence, wanted, status);
            }
            Answer::Done | Answer::Act(_) => reply::ok(&mut bytes, sequence, &ok(status)),
            Answer::Warned(_) => reply::ok(&mut bytes, sequence, &OkPacket { warnings: 1, ..ok(status) }),
            Answer::Rows(rows) => write_rows(&mut bytes, sequence, rows, status),
            Answer::Error(error) => reply::err(&mut bytes, sequence, error),
        };
        self.send(&bytes)?;
        Ok(Some(next).filter(|_| !matches!(answer, Answer::Error(_))))
    }

    /// Sends the rows of SHOW BINLOG EVENTS as they are read.
    fn list_events(&mut self, mut sequence: u8, wanted: Wanted<'_>, status: u16) -> io::Result<Option<u8>> {
        let (source, identity) = (self.source.clone(), self.identity.clone());
        let reader = self.present.reader.clone();
        let mut bytes = Vec::new();
        let columns = answer::binlog_event_columns();
        let file = wanted.file.to_owned();
        let listing = Listing::open(&source, identity.kind, &identity.version, wanted);
        let ended = listing.and_then(|mut listing| {
            sequence = reply::columns(&mut bytes, sequence, &as_sent(&columns), status);
            listing.each(&mut |row: Option<&EventRow<'_>>| {
                let is_gone = || reader.is_killed() || self.accepted.is_gone();
                let Some(row) = row else {
                    return if is_gone() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) };
                };
                let numbers = [row.at.to_string(), row.server_id.to_string(), row.end.to_string()];
                let [at, server_id, end] = numbers.each_ref().map(String::as_bytes);
                let values = [file.as_bytes(), at, row.event_type.as_bytes(), server_id, end, row.info];
                sequence = reply::row(&mut bytes, sequence, values.map(Some));
                if bytes.len() < ROWS_BYTES {
                    return Ok(());
                }
                if is_gone() {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                self.accepted.send(&bytes)?;
                bytes.clear();
                Ok(())
            })
        });
        let error = match ended {
            Ok(()) => None,
            Err(ListError::Client(error)) => return Err(error),
            Err(ListError::Refused(why)) => Some(why),
            Err(ListError::File(error)) => {
                tracing::error!(source = self.name, file, "SHOW BINLOG EVENTS cannot read the copy: {error}");
                Some("Wrong offset or I/O error".to_owned())
            }
        };
        let next = match error {
            None => Some(reply::eof(&mut bytes, sequence, status)),
            Some(why) => {
                let message = format!("Error when executing command SHOW BINLOG EVENTS: {why}");
                let packet = server_error(1220, "HY000", &message);
                self.state.remember(&packet);
                reply::err(&mut bytes, sequence, &packet);
                None
            }
        };
        self.send(&bytes)?;
        Ok(next)
    }

    /// Sends a dump. False when the connection ends with it, as it does at a source after every dump that was begun, also one
    /// that was refused (MySQL's `com_binlog_dump`): readers wait for that end.
    fn dump(&mut self, request: &Request<'_>) -> io::Result<bool> {
        if let Err(error) = answer::may_dump(self.client.privileges, self.identity.kind) {
            self.send_error(&error)?;
            return Ok(true);
        }
        let command = request;
        // As they are now: who is held back by the configuration comes back when that changes.
        let configured = self.shared.rules().users.bounds_of(&self.client.user);
        let request = match dump_request::of(command, &self.state, self.identity.kind, &configured) {
            Ok(request) => DumpRequest { reader: self.in_log(command), ..request },
            Err(error) => {
                self.send_error(&error)?;
                return Ok(true);
            }
        };
        let uuid = dump_request::replica_uuid(&self.state);
        let reader = self.present.reader.clone();
        reader.has_uuid(&uuid);
        if !uuid.is_empty() {
            self.shared.readers.displace(&reader, &uuid);
        }
        // Of two that come for one slot at the same time the second one sees the first.
        let begins = self.source.purger.reader_begins();
        if let Err(refused) = self.take_slot(&reader, &uuid, dump_request::server_id(command)) {
            drop(begins);
            self.send_error(&refused)?;
            return Ok(false);
        }
        let stop = request.stop.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        reader.is_bound(DumpBounds { configured, stop, delay: request.delay });
        reader.does(Doing::Dump { by_gtids: dump_request::is_by_gtids(&request) });
        drop(begins);
        tracing::info!(
            reader = reader.id,
            address = %reader.address,
            user = reader.user,
            program = reader.program,
            source = self.name,
            timeline = request.timeline,
            "a reader reads from {}",
            dump_request::in_words(&request)
        );
        let served = Served {
            folder: self.source.folder.clone(),
            storage: self.source.storage.clone(),
            published: self.source.published.clone(),
            monitor: Some(self.source.monitor.clone()),
            wall_time: Arc::new(jiff::Timestamp::now),
            waits: Arc::new(RealTime),
        };
        let answers = match request.semi_sync {
            true => {
                let receiver = dump_request::receiver(&uuid, command);
                Some(Answers::begin(&mut self.accepted, &reader, &receiver)?)
            }
            // Its acknowledgements may be what a commit waits for; of the others none is.
            false => {
                give_way();
                None
            }
        };
        let mut out = Out { accepted: &mut self.accepted, reader: &reader };
        let ended = dump(&served, &request, &mut out, &reader.progress);
        drop(answers);
        self.leave_slot(&reader);
        say_how_it_ended(&reader, ended);
        Ok(false)
    }

    /// The reader, as lines name it that are not about its connection.
    fn in_log(&self, command: &Request<'_>) -> String {
        let server_id = dump_request::server_id(command);
        format!("reader {}, {} with server_id {server_id}", self.client.connection_id, self.account())
    }

    /// The user's slot, or, where that is wanted, one of the replica's UUID.
    ///
    /// # Errors
    /// When another reader reads by the slot, in words for the one that has come: each of the two would move it past what the other
    /// one has not read.
    fn take_slot(&self, reader: &Reader, uuid: &str, server_id: u32) -> Result<(), ErrPacket> {
        let rules = self.shared.rules();
        let of_uuid = uuid.parse::<Uuid>().ok().filter(|_| rules.config.slots).map(|uuid| uuid.to_string());
        let of_user = rules.users.slot_of(&self.client.user).filter(|_| server_id != 0);
        let (slot, who) = match (of_user, of_uuid) {
            // A log reader may make up another UUID at each connection.
            (Some(slot), _) => (slot.to_owned(), format!("server_id {server_id}")),
            (None, Some(uuid)) => (uuid.clone(), uuid),
            (None, None) => return Ok(()),
        };
        if let Some(other) = self.shared.readers.in_the_way(reader, &slot, &who) {
            let message = format!(
                "slot {slot} is in use by connection {} from {}; give each reader a [[serve.user]] with a slot of its own",
                other.id, other.address
            );
            tracing::warn!(source = self.name, address = %reader.address, "a reader ({who}) is refused: {message}");
            return Err(dump_request::fatal(&message));
        }
        match self.source.purger.owner_of(&slot) {
            Some(owner) if owner != who => tracing::warn!(
                source = self.name,
                address = %reader.address,
                "slot {slot} is of {owner}, and stays where that one was: the place of this reader ({who}) is not remembered. If \
                 {owner} will not come back: binlogd slots --drop {slot}"
            ),
            _ => {}
        }
        reader.has_slot(&slot, &who);
        Ok(())
    }

    /// Writes down how far the reader came. While it was here that was done now and then.
    fn leave_slot(&self, reader: &Reader) {
        let Some(place) = reader.in_slot() else { return };
        if let Err(error) = self.source.purger.remember(&place, Timestamp::now()) {
            tracing::warn!(
                source = self.name,
                slot = place.slot,
                "the place of a reader cannot be written down: {error}"
            );
        }
    }

    fn send_ok(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        reply::ok(&mut bytes, 1, &ok(self.state.server_status()));
        self.send(&bytes)
    }

    fn send_error(&mut self, error: &ErrPacket) -> io::Result<()> {
        let mut bytes = Vec::new();
        reply::err(&mut bytes, 1, error);
        self.send(&bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.accepted.send(bytes)
    }
}

/// Where the packets of a dump go.
struct Out<'a> {
    accepted: &'a mut Accepted,
    reader: &'a Reader,
}

impl PacketOut for Out<'_> {
    fn write(&mut self, framed: &[u8]) -> io::Result<()> {
        self.accepted.send(framed)
    }

    fn is_cancelled(&self) -> bool {
        self.reader.is_killed() || self.reader.progress.is_dismissed() || self.accepted.is_gone()
    }
}

fn ok(status: u16) -> OkPacket {
    OkPacket { affected_rows: 0, last_insert_id: 0, status, warnings: 0 }
}

fn server_error(code: u16, sqlstate: &str, message: &str) -> ErrPacket {
    ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}

fn write_rows(bytes: &mut Vec<u8>, sequence: u8, rows: &Rows, status: u16) -> u8 {
    reply::result_set(bytes, sequence, &as_sent(&rows.columns), &rows.rows, status)
}

fn as_sent(columns: &[Column]) -> Vec<reply::Column<'_>> {
    columns
        .iter()
        .map(|column| reply::Column {
            name: &column.title,
            kind: match column.kind {
                ColumnKind::Text => reply::ColumnKind::Text,
                ColumnKind::Integer => reply::ColumnKind::Integer,
                ColumnKind::Unsigned => reply::ColumnKind::Unsigned,
            },
        })
        .collect()
}

//! One connection of a reader: login, then one command after the other.

use super::answer::{self, Action, Answer, Client, ColumnKind, Rows, SessionState};
use super::dump::{Served, dump};
use super::dump_log::say_how_it_ended;
use super::dump_request;
use super::facts::{Identity, Present};
use super::limits::{IDLE_LONGEST, IDLE_MAX, WRITE_LONGEST, WRITE_MAX};
use super::login::{LetIn, let_in};
use super::packets::PacketOut;
use super::readers::{Doing, Present as PresentReader, Reader, Registration};
use super::shared::{Rules, Shared, Source};
use super::sql::{Dialect, SqlError, Statement, Statements};
use codec::packet::{ErrPacket, OkPacket, Request, capability, printable, reply};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use wire::{Accepted, ClientError};

/// Longest name or host that a replica is shown with, in bytes.
const SHOWN_BYTES_MAX: usize = 255;

/// Serves a connection to its end.
pub(super) fn run(shared: &Arc<Shared>, rules: &Rules, socket: TcpStream, address: SocketAddr, id: u32) {
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
        may_replicate: true,
        may_administer: false,
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

    /// Answers the statements of one packet, each as it is carried out: what a client asks for many times is never kept whole.
    fn query(&mut self, text: &[u8]) -> io::Result<()> {
        if !self.several {
            let answer = match super::sql::parse(text, self.state.dialect(self.dialect)) {
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
            sequence = self.send_answer(sequence, &answer, goes_on)?;
            is_answered = true;
            if !goes_on {
                break;
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
            Answer::Act(action) => self.act(action),
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
            Action::BinlogEvents { .. } => {
                not_yet("SHOW BINLOG EVENTS is not answered yet: mysqlbinlog reads the events")
            }
            Action::PurgeTo(_) | Action::PurgeBefore(_) => not_yet(
                "binlogd does not purge binary logs: remove whole timelines of which nothing is needed",
            ),
            Action::StartReplica | Action::StopReplica => not_yet(
                "receiving is started and stopped with binlogd itself, or by its configuration and SIGHUP",
            ),
        }
    }

    /// Sends the answer to one statement; gives the number of the packet that follows.
    fn send_answer(&mut self, sequence: u8, answer: &Answer, more_follow: bool) -> io::Result<u8> {
        let more = if more_follow { reply::STATUS_MORE_RESULTS } else { 0 };
        let status = self.state.server_status() | more;
        let mut bytes = Vec::new();
        let next = match answer {
            Answer::Done | Answer::Act(_) => reply::ok(&mut bytes, sequence, &ok(status)),
            Answer::Rows(rows) => write_rows(&mut bytes, sequence, rows, status),
            Answer::Error(error) => reply::err(&mut bytes, sequence, error),
        };
        self.send(&bytes)?;
        Ok(next)
    }

    /// Sends a dump. False when the connection ends with it, as it does at a source after every dump that was begun, also one
    /// that was refused (MySQL's `com_binlog_dump`): readers wait for that end.
    fn dump(&mut self, request: &Request<'_>) -> io::Result<bool> {
        let request = match dump_request::of(request, &self.state, self.identity.kind) {
            Ok(request) => request,
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
        reader.does(Doing::Dump { by_gtids: dump_request::is_by_gtids(&request) });
        tracing::info!(
            reader = reader.id,
            address = %reader.address,
            user = reader.user,
            program = reader.program,
            source = self.name,
            "a reader reads from {}",
            dump_request::in_words(&request)
        );
        let served = Served {
            folder: self.source.folder.clone(),
            storage: self.source.storage.clone(),
            published: self.source.published.clone(),
            monitor: Some(self.source.monitor.clone()),
        };
        let mut out = Out { accepted: &mut self.accepted, reader: &reader };
        let ended = dump(&served, &request, &mut out, &reader.progress);
        say_how_it_ended(&reader, ended);
        Ok(false)
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
        self.reader.is_killed() || self.accepted.is_gone()
    }
}

fn ok(status: u16) -> OkPacket {
    OkPacket { affected_rows: 0, last_insert_id: 0, status, warnings: 0 }
}

fn not_yet(sentence: &str) -> Answer {
    Answer::Error(server_error(1235, "42000", sentence))
}

fn server_error(code: u16, sqlstate: &str, message: &str) -> ErrPacket {
    ErrPacket { code, sqlstate: sqlstate.to_owned(), message: message.to_owned() }
}

fn write_rows(bytes: &mut Vec<u8>, sequence: u8, rows: &Rows, status: u16) -> u8 {
    let columns: Vec<reply::Column<'_>> = rows
        .columns
        .iter()
        .map(|column| reply::Column {
            name: &column.title,
            kind: match column.kind {
                ColumnKind::Text => reply::ColumnKind::Text,
                ColumnKind::Integer => reply::ColumnKind::Integer,
                ColumnKind::Unsigned => reply::ColumnKind::Unsigned,
            },
        })
        .collect();
    reply::result_set(bytes, sequence, &columns, &rows.rows, status)
}

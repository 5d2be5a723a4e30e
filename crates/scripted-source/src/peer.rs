//! One connection to a source, without I/O: bytes of the client in, bytes for the client out.
//!
//! No socket, no thread and no clock: who has them gives bytes to [`Peer::take`], asks [`Peer::step`] for events, and
//! sends [`Peer::packets`].

use crate::log::{Place, SourceLog};
use crate::packets::Packets;
use crate::script::{Answer, SemiSync, Server};
use crate::stream::{DumpRequest, State, Stream};
use codec::packet::{
    Assembler, RESPONSE_BYTES_MAX, Request, SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX, SemiSyncAcknowledgement,
};
use std::time::Duration;

/// What a client has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A query, which is answered.
    Query(String),
    /// It asks for a dump, which begins.
    Dump {
        /// A short look, which asks not to wait for more than there is.
        is_short: bool,
        /// What the place where it begins acknowledges, as a source takes it.
        implied: Option<Place>,
    },
    /// An acknowledgement.
    Acknowledged(Place),
}

impl Heard {
    /// The place up to which it acknowledges, in so many words or by asking for what follows.
    pub fn acknowledges(self) -> Option<Place> {
        match self {
            Heard::Acknowledged(place) => Some(place),
            Heard::Dump { implied, .. } => implied,
            Heard::Query(_) => None,
        }
    }
}

/// What no client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the client said {}", self.0)
    }
}

impl std::error::Error for Malformed {}

impl From<Malformed> for std::io::Error {
    fn from(malformed: Malformed) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, malformed)
    }
}

/// Bytes of a client that are not understood yet.
#[derive(Debug, Default)]
pub struct Inbox(pub Vec<u8>);

impl Inbox {
    /// Takes the first message off, once it is whole.
    fn message(&mut self, sequence: u8, limit: usize) -> Result<Option<Vec<u8>>, Malformed> {
        let mut assembler = Assembler::new(limit, sequence);
        let progress = assembler.feed(&self.0).map_err(|_| Malformed("what is no packet"))?;
        if !progress.complete {
            return Ok(None);
        }
        self.0.drain(..progress.consumed);
        Ok(Some(assembler.into_message()))
    }

    /// Takes the first acknowledgement off, once it is whole.
    ///
    /// # Errors
    /// When something else stands there.
    pub fn acknowledgement(&mut self) -> Result<Option<Place>, Malformed> {
        let Some(message) = self.message(0, SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX)? else { return Ok(None) };
        let SemiSyncAcknowledgement { position, file } =
            SemiSyncAcknowledgement::parse(&message).map_err(|_| Malformed("what is no acknowledgement"))?;
        Ok(Some(Place { file: String::from_utf8_lossy(file).into_owned(), position }))
    }
}

/// One connection to a source.
#[derive(Debug)]
pub struct Peer {
    /// What the client is to be sent. Whoever sends it clears it.
    pub packets: Packets,
    /// What the client has sent. A thread that reads acknowledgements on its own takes it along.
    pub inbox: Inbox,
    /// Number of the packet with the login: behind the greeting, or behind a request for TLS.
    login_sequence: u8,
    is_let_in: bool,
    has_quit: bool,
    introduction: Introduction,
    /// [`Server::generation`] when the connection was made.
    generation: u64,
    stream: Option<Stream>,
    /// Acknowledgements of logs that were reset since they were sent. A real server does not see that, and takes them for
    /// acknowledgements of its new ones.
    pub stale: Vec<Place>,
}

impl Peer {
    /// A new connection: the server greets.
    pub fn new(server: &impl Server) -> Peer {
        let mut packets = Packets::default();
        packets.greeting(&server.log().options().server_version, server.offers_tls());
        Peer {
            packets,
            inbox: Inbox::default(),
            login_sequence: 1,
            is_let_in: false,
            has_quit: false,
            introduction: Introduction::default(),
            generation: server.generation(),
            stream: None,
            stale: Vec::new(),
        }
    }

    /// The client has asked for TLS and has it; its login follows.
    pub fn is_encrypted_now(&mut self) {
        self.login_sequence = 2;
    }

    /// Takes bytes of the client, answers, and gives what was said.
    ///
    /// # Errors
    /// When no client says such a thing.
    pub fn take(&mut self, bytes: &[u8], server: &mut impl Server) -> Result<Vec<Heard>, Malformed> {
        self.inbox.0.extend_from_slice(bytes);
        let mut heard = Vec::new();
        while self.stream.is_none()
            && let Some(message) = self.inbox.message(self.next_sequence(), RESPONSE_BYTES_MAX)?
        {
            heard.extend(self.answer(&message, server)?);
        }
        if let Some(stream) = &self.stream {
            while let Some(place) = self.inbox.acknowledgement()? {
                match stream.counts(&place.file) {
                    true => heard.push(Heard::Acknowledged(place)),
                    false => self.stale.push(place),
                }
            }
        }
        Ok(heard)
    }

    /// Frames the next event of a dump, or whatever comes in its place; false when there is nothing to say now.
    pub fn step(&mut self, log: &SourceLog) -> bool {
        self.stream.as_mut().is_some_and(|stream| stream.step(&mut self.packets, log))
    }

    /// Says, in a dump, that there is nothing newer.
    pub fn heartbeat(&mut self, log: &SourceLog) {
        if let Some(stream) = &mut self.stream {
            stream.heartbeat(&mut self.packets, log);
        }
    }

    /// The source's logs are reset; `old` is what they were. Nobody tells the client, and a dump goes on with the file
    /// that it has open.
    pub fn reset(&mut self, old: &SourceLog) {
        if let Some(stream) = &mut self.stream {
            stream.reset(old);
        }
    }

    /// The dump leaves out a file when it next goes on to another one, as from an index of binary logs that lacks it.
    pub fn skip_file(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.skips_file = true;
        }
    }

    /// A dump was asked for, which is no short look.
    pub fn is_dumping(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !stream.is_short)
    }

    /// The server closes the connection when [`packets`](Peer::packets) are sent.
    pub fn is_ended(&self) -> bool {
        self.has_quit || self.stream.as_ref().is_some_and(|stream| stream.state == State::Ended)
    }

    /// Silence after which the client wants a heartbeat.
    pub fn heartbeat_period(&self) -> Option<Duration> {
        self.introduction.heartbeat_period
    }

    /// [`Server::generation`] when the connection was made.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Number of the client's next packet.
    fn next_sequence(&self) -> u8 {
        if self.is_let_in { 0 } else { self.login_sequence }
    }

    fn answer(&mut self, message: &[u8], server: &mut impl Server) -> Result<Option<Heard>, Malformed> {
        if !std::mem::replace(&mut self.is_let_in, true) {
            self.packets.sequence = self.login_sequence + 1;
            self.packets.ok();
            return Ok(None);
        }
        self.packets.sequence = 1;
        // No login has told capabilities: they only matter to a change of the user.
        let request = match Request::parse(message, 0).map_err(|_| Malformed("half a command"))? {
            Request::Quit => {
                self.has_quit = true;
                return Ok(None);
            }
            Request::Query(sql) => {
                let sql = String::from_utf8_lossy(sql).into_owned();
                self.introduction.hear(&sql);
                answer(&mut self.packets, sql.trim(), server);
                return Ok(Some(Heard::Query(sql)));
            }
            Request::BinlogDump(asked) => asked.into(),
            Request::BinlogDumpGtid(asked) => asked.into(),
            _ => {
                self.packets.ok();
                return Ok(None);
            }
        };
        Ok(Some(self.dump(request, server)))
    }

    fn dump(&mut self, request: DumpRequest, server: &mut impl Server) -> Heard {
        let is_short = request.is_short();
        let faults = if is_short { Vec::new() } else { server.begin_dump() };
        self.packets.semi_sync = match server.semi_sync() {
            SemiSync::Enabled => self.introduction.offers_semi_sync,
            SemiSync::Unasked => true,
            SemiSync::Refused | SemiSync::Disabled | SemiSync::Absent => false,
        };
        self.packets.checksum = self.introduction.checksums && server.log().options().checksum;
        let (stream, begun) = Stream::begin(&mut self.packets, server.log(), request, faults);
        self.stream = Some(stream);
        // To a source, the place acknowledges all before it. That the logs are the same ones is for the
        // receiver to find out before; what happens since it connected it cannot know.
        let counts = self.packets.semi_sync && !is_short && self.generation == server.generation();
        let implied = begun.filter(|_| counts).and_then(|(file, position)| {
            let position = file.flagged_until(position)?;
            Some(Place { file: file.name.clone(), position })
        });
        Heard::Dump { is_short, implied }
    }
}

/// What a replica has said of itself before it asks for a dump.
#[derive(Debug, Default)]
struct Introduction {
    /// It has offered semi-sync.
    offers_semi_sync: bool,
    /// It understands checksums and wants them in events that stand in no file.
    checksums: bool,
    /// Silence after which it wants a heartbeat.
    heartbeat_period: Option<Duration>,
}

impl Introduction {
    fn hear(&mut self, sql: &str) {
        let Some(assignments) = sql.trim().strip_prefix("SET ") else { return };
        for assignment in assignments.split(',') {
            let Some((name, value)) = assignment.split_once('=') else { continue };
            match (name.trim(), value.trim().parse::<u64>()) {
                ("@master_binlog_checksum" | "@source_binlog_checksum", _) => {
                    self.checksums = !value.contains("NONE");
                }
                ("@rpl_semi_sync_slave" | "@rpl_semi_sync_replica", Ok(value)) => {
                    self.offers_semi_sync = value != 0;
                }
                ("@master_heartbeat_period" | "@source_heartbeat_period", Ok(nanoseconds)) => {
                    self.heartbeat_period =
                        Some(Duration::from_nanos(nanoseconds)).filter(|period| !period.is_zero());
                }
                _ => {}
            }
        }
    }
}

/// Answers a query: rows for what a receiver asks of its source, OK for everything else.
fn answer(packets: &mut Packets, sql: &str, server: &impl Server) {
    if let Some(answer) = server.answer(sql) {
        match answer {
            Answer::Refused(code, message) => packets.error(*code, message),
            Answer::Lines(lines) => {
                let rows: Vec<Vec<String>> = lines.iter().map(|line| vec![line.clone()]).collect();
                packets.rows(&["Value"], &rows);
            }
        }
    } else if let Some(names) = sql.strip_prefix("SELECT @@") {
        let labels: Vec<String> =
            names.split(',').map(|name| format!("@@{}", name.trim().trim_start_matches("@@"))).collect();
        let name_of = |label: &String| label.rsplit(['.', '@']).next().unwrap_or_default().to_owned();
        let values = labels.iter().map(|label| variable(&name_of(label), server).unwrap_or_default());
        let values: Vec<String> = values.collect();
        packets.rows(&labels, &[values]);
    } else if sql == "SELECT VERSION()" {
        packets.rows(&["VERSION()"], &[vec![variable("version", server).unwrap_or_default()]]);
    } else if let Some(pattern) = sql.strip_prefix("SHOW GLOBAL VARIABLES LIKE ") {
        let name = pattern.trim_matches('\'').to_owned();
        let found = variable(&name, server).map(|value| vec![name, value]);
        packets.rows(&["Variable_name", "Value"], &found.into_iter().collect::<Vec<_>>());
    } else if let Some(condition) = sql.strip_prefix("SHOW GLOBAL VARIABLES WHERE ") {
        // Every word in quotes that is a variable's name.
        let names = condition.split('\'').skip(1).step_by(2);
        let found = names.filter_map(|name| Some(vec![name.to_owned(), variable(name, server)?]));
        packets.rows(&["Variable_name", "Value"], &found.collect::<Vec<_>>());
    } else if sql == "SELECT CURRENT_USER()" {
        packets.rows(&["CURRENT_USER()"], &[vec!["any@%".to_owned()]]);
    } else if matches!(sql, "SHOW BINARY LOG STATUS" | "SHOW MASTER STATUS") {
        let end = server.log().end();
        packets.rows(&["File", "Position"], &[vec![end.file, end.position.to_string()]]);
    } else if sql.starts_with("SELECT") || sql.starts_with("SHOW") {
        packets.rows(&["Value"], &[]);
    } else {
        packets.ok();
    }
}

fn variable(name: &str, server: &impl Server) -> Option<String> {
    if let Some(value) = server.variable(name) {
        return Some(value.to_owned());
    }
    let log = server.log();
    let options = log.options();
    let on = |on: bool| Some(if on { "ON" } else { "OFF" }.to_owned());
    match name {
        "server_id" => Some(options.server_id.to_string()),
        "server_uuid" => Some(codec::gtid::Uuid::from_bytes(options.uuid).to_string()),
        "version" => Some(options.server_version.clone()),
        "log_bin" => on(true),
        "binlog_format" => Some("ROW".to_owned()),
        "gtid_mode" | "enforce_gtid_consistency" => on(options.gtids),
        "gtid_executed" => Some(log.executed()),
        "gtid_purged" => Some(log.purged()),
        "binlog_checksum" => Some(if options.checksum { "CRC32" } else { "NONE" }.to_owned()),
        "rpl_semi_sync_source_enabled" => match server.semi_sync() {
            SemiSync::Absent | SemiSync::Unasked => None,
            SemiSync::Disabled => on(false),
            SemiSync::Enabled | SemiSync::Refused => on(true),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use codec::packet::{append_message, command, semi_sync_acknowledgement};

    /// What the client of a semi-synchronous dump says, up to an acknowledgement.
    fn client(file: &str, position: u32, acknowledged: u64) -> Vec<u8> {
        let mut said = Vec::new();
        append_message(&mut said, 1, b"any login");
        append_message(&mut said, 0, &command::query("SET @rpl_semi_sync_replica = 1"));
        append_message(&mut said, 0, &command::query("SELECT @@global.server_id"));
        append_message(&mut said, 0, &command::binlog_dump(position, 0, 7, file.as_bytes()));
        semi_sync_acknowledgement(&mut said, acknowledged, file.as_bytes());
        said
    }

    #[test]
    fn bytes_are_understood_in_whatever_pieces_they_come() {
        let mut script = Script::default();
        script.log.group(2, 100);
        let end = script.log.end();
        let said = client(&end.file, 4, end.position);
        let play = |size: usize| {
            let mut script = script.clone();
            let mut peer = Peer::new(&script);
            let heard: Vec<Heard> =
                said.chunks(size).flat_map(|piece| peer.take(piece, &mut script).unwrap()).collect();
            while peer.step(&script.log) {}
            (heard, peer.packets.bytes, script.dumps)
        };
        let (heard, bytes, dumps) = play(said.len());
        assert_eq!(heard[2..], [Heard::Dump { is_short: false, implied: None }, Heard::Acknowledged(end)]);
        assert_eq!((heard.len(), dumps), (4, 1));
        let sent = &script.log.files()[0].bytes;
        assert!(bytes.ends_with(&sent[sent.len() - 31..]), "the last event is there");
        assert!((1..40).all(|size| play(size) == (heard.clone(), bytes.clone(), 1)));
    }

    #[test]
    fn a_place_behind_a_flag_is_taken_for_an_acknowledgement_unless_the_log_is_another_one() {
        let mut script = Script::default();
        script.log.group(2, 100);
        let end = script.log.end();
        script.log.transaction(100);
        let said = client(&end.file, end.position as u32, end.position);
        let mut peers = [Peer::new(&script), Peer::new(&script)];
        let implied = |peer: &mut Peer, script: &mut Script| match &peer.take(&said, script).unwrap()[2] {
            Heard::Dump { implied, .. } => implied.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(implied(&mut peers[0], &mut script), Some(end));
        script.generation += 1;
        assert_eq!(implied(&mut peers[1], &mut script), None);
    }

    #[test]
    fn a_dump_of_logs_that_were_reset_ends_with_the_file_that_was_open() {
        let mut script = Script::default();
        script.log.rotate();
        let old = script.log.end();
        let mut peer = Peer::new(&script);
        peer.take(&client(&old.file, 4, old.position), &mut script).unwrap();
        peer.reset(&std::mem::take(&mut script.log));
        peer.packets.bytes.clear();
        assert!(peer.step(&script.log) && peer.step(&script.log), "the two events of the old file");
        assert!(peer.packets.bytes.len() > 100);
        let mut acknowledge = |position, file: &str| {
            let mut said = Vec::new();
            semi_sync_acknowledgement(&mut said, position, file.as_bytes());
            peer.take(&said, &mut script).unwrap().len()
        };
        assert_eq!((acknowledge(200, &old.file), acknowledge(200, "mysql-bin.000003")), (0, 1));
        assert!(peer.step(&script.log), "there is no such file now");
        assert!(peer.is_ended() && peer.packets.bytes.ends_with(b"could not find next log"));
    }

    #[test]
    fn what_is_acknowledged_of_a_file_that_was_purged_and_reset_does_not_count() {
        let mut script = Script::default();
        let old = script.log.end();
        let mut peer = Peer::new(&script);
        peer.take(&client(&old.file, 4, old.position), &mut script).unwrap();
        script.log.rotate();
        script.log.purge(1);
        peer.reset(&std::mem::take(&mut script.log));
        let mut said = Vec::new();
        semi_sync_acknowledgement(&mut said, 200, old.file.as_bytes());
        assert_eq!(peer.take(&said, &mut script).unwrap(), [], "the new log has a file of that name");
        assert!(peer.is_ended());
    }

    #[test]
    fn what_no_client_says_is_refused() {
        let mut script = Script::default();
        let mut peer = Peer::new(&script);
        assert!(peer.take(&[1, 0, 0, 9, 0], &mut script).is_err(), "a number that is not next");
        let said = client("mysql-bin.000001", 4, 4);
        let mut peer = Peer::new(&script);
        peer.take(&said, &mut script).unwrap();
        assert!(peer.take(b"\x0a\0\0\0not the ef", &mut script).is_err(), "no acknowledgement");
    }

    #[test]
    fn the_introduction_is_heard_in_old_and_new_words() {
        let mut introduction = Introduction::default();
        introduction.hear("SET @master_heartbeat_period = 5000000000, @source_heartbeat_period = 5000000000");
        introduction.hear("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'");
        introduction.hear("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1");
        assert!(introduction.offers_semi_sync && introduction.checksums);
        assert_eq!(introduction.heartbeat_period, Some(Duration::from_secs(5)));
    }
}

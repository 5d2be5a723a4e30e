//! Greeting, queries, and the way to a dump.

use crate::script::SemiSync;
use crate::source::Shared;
use codec::packet::{Assembler, RESPONSE_BYTES_MAX, append_message};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_BINLOG_DUMP: u8 = 0x12;
const COM_BINLOG_DUMP_GTID: u8 = 0x1e;

/// LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, CONNECT_ATTRS, and length-encoded
/// authentication data.
const CAPABILITIES: u32 = 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 1 << 19 | 1 << 20 | 1 << 21;

/// What a replica has said of itself before it asks for a dump.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction {
    /// It has offered semi-sync.
    pub(crate) offers_semi_sync: bool,
    /// It understands checksums and wants them in events that stand in no file.
    pub(crate) checksums: bool,
    /// Silence after which it wants a heartbeat.
    pub(crate) heartbeat_period: Option<Duration>,
}

/// What the replica asks for.
#[derive(Debug, Clone)]
pub(crate) enum DumpFrom {
    /// COM_BINLOG_DUMP.
    Position { file: String, position: u64 },
    /// COM_BINLOG_DUMP_GTID: the encoded set.
    Gtids(Vec<u8>),
}

/// A request for a dump.
#[derive(Debug, Clone)]
pub(crate) struct DumpRequest {
    pub(crate) from: DumpFrom,
    /// BINLOG_DUMP_NON_BLOCK (1), heartbeats of the newer form (2).
    pub(crate) flags: u16,
}

/// Lets the client in and answers its queries until it asks for a dump; `None` when it goes away before.
pub(crate) fn serve(
    socket: &mut TcpStream,
    shared: &Shared,
) -> io::Result<Option<(Introduction, DumpRequest)>> {
    send(socket, 0, &greeting(&shared.log().options().server_version))?;
    if receive(socket, 1)?.is_none() {
        return Ok(None);
    }
    send(socket, 2, &ok())?;
    let mut introduction = Introduction::default();
    while let Some(message) = receive(socket, 0)? {
        let (command, body) = message.split_first().unwrap_or((&COM_QUIT, &[]));
        match *command {
            COM_QUIT => break,
            COM_QUERY => {
                let sql = String::from_utf8_lossy(body).into_owned();
                introduction.hear(&sql);
                let answer = answer(&sql, shared);
                shared.record_query(sql);
                socket.write_all(&answer)?;
            }
            COM_BINLOG_DUMP => return Ok(Some((introduction, by_position(body)?))),
            COM_BINLOG_DUMP_GTID => return Ok(Some((introduction, by_gtids(body)?))),
            _ => send(socket, 1, &ok())?,
        }
    }
    Ok(None)
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
                    self.offers_semi_sync = value != 0
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

fn by_position(body: &[u8]) -> io::Result<DumpRequest> {
    let fixed = body.first_chunk::<10>().ok_or(io::ErrorKind::InvalidData)?;
    let position = u64::from(u32::from_le_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]));
    let flags = u16::from_le_bytes([fixed[4], fixed[5]]);
    let file = String::from_utf8_lossy(&body[10..]).into_owned();
    Ok(DumpRequest { from: DumpFrom::Position { file, position }, flags })
}

/// Flags 2, server id 4, name length 4, name, position 8, set length 4, set.
fn by_gtids(body: &[u8]) -> io::Result<DumpRequest> {
    let fixed = body.first_chunk::<10>().ok_or(io::ErrorKind::InvalidData)?;
    let flags = u16::from_le_bytes([fixed[0], fixed[1]]);
    let name_len = u32::from_le_bytes([fixed[6], fixed[7], fixed[8], fixed[9]]) as usize;
    let set = body.get(10 + name_len + 8 + 4..).ok_or(io::ErrorKind::InvalidData)?;
    Ok(DumpRequest { from: DumpFrom::Gtids(set.to_vec()), flags })
}

/// Protocol::HandshakeV10 with mysql_native_password.
fn greeting(version: &str) -> Vec<u8> {
    let mut message = vec![10];
    message.extend_from_slice(version.as_bytes());
    message.extend_from_slice(b"\0\x08\0\0\0abcdefgh\0");
    message.extend_from_slice(&CAPABILITIES.to_le_bytes()[..2]);
    message.extend_from_slice(&[45, 2, 0]);
    message.extend_from_slice(&CAPABILITIES.to_le_bytes()[2..]);
    message.push(21);
    message.extend_from_slice(&[0; 10]);
    message.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    message
}

/// Packets that answer a query: rows for what a receiver asks of its source, OK for everything else.
fn answer(sql: &str, shared: &Shared) -> Vec<u8> {
    let sql = sql.trim();
    if let Some(names) = sql.strip_prefix("SELECT @@") {
        let labels: Vec<String> =
            names.split(',').map(|name| format!("@@{}", name.trim().trim_start_matches("@@"))).collect();
        let values = labels.iter().map(|label| {
            let name = label.rsplit(['.', '@']).next().unwrap_or_default();
            variable(name, shared).unwrap_or_default()
        });
        let values: Vec<String> = values.collect();
        return rows(&labels, &[values]);
    }
    if sql == "SELECT VERSION()" {
        return rows(&["VERSION()".to_owned()], &[vec![variable("version", shared).unwrap_or_default()]]);
    }
    if let Some(pattern) = sql.strip_prefix("SHOW GLOBAL VARIABLES LIKE ") {
        let name = pattern.trim_matches('\'').to_owned();
        let found: Vec<Vec<String>> =
            variable(&name, shared).map(|value| vec![name, value]).into_iter().collect();
        return rows(&["Variable_name".to_owned(), "Value".to_owned()], &found);
    }
    if sql.starts_with("SELECT") || sql.starts_with("SHOW") {
        return rows(&["Value".to_owned()], &[]);
    }
    let mut out = Vec::new();
    append_message(&mut out, 1, &ok());
    out
}

fn variable(name: &str, shared: &Shared) -> Option<String> {
    if let Some(value) = shared.variables.get(name) {
        return Some(value.clone());
    }
    let log = shared.log();
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
        "rpl_semi_sync_source_enabled" => match shared.semi_sync {
            SemiSync::Absent => None,
            SemiSync::Disabled => on(false),
            SemiSync::Enabled | SemiSync::Refused => on(true),
        },
        _ => None,
    }
}

/// A text result set: column count, definitions, EOF, rows, EOF.
fn rows(columns: &[String], rows: &[Vec<String>]) -> Vec<u8> {
    const EOF: [u8; 5] = [0xfe, 0, 0, 2, 0];
    let mut out = Vec::new();
    let mut sequence = append_message(&mut out, 1, &[columns.len() as u8]);
    for column in columns {
        let mut message = Vec::new();
        for text in ["def", "", "", "", column, ""] {
            append_text(&mut message, text);
        }
        // Length of the fixed part, character set, display length, type VAR_STRING, flags, decimals.
        message.extend_from_slice(&[12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]);
        sequence = append_message(&mut out, sequence, &message);
    }
    sequence = append_message(&mut out, sequence, &EOF);
    for row in rows {
        let mut message = Vec::new();
        for value in row {
            append_text(&mut message, value);
        }
        sequence = append_message(&mut out, sequence, &message);
    }
    append_message(&mut out, sequence, &EOF);
    out
}

/// A length-encoded string of less than 16 MiB.
fn append_text(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        length @ 0..251 => out.push(length as u8),
        length @ 251..0x1_0000 => {
            out.push(252);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        length => {
            out.push(253);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn ok() -> Vec<u8> {
    vec![0, 0, 0, 2, 0, 0, 0]
}

fn send(socket: &mut TcpStream, sequence: u8, message: &[u8]) -> io::Result<()> {
    let mut out = Vec::with_capacity(message.len() + 4);
    append_message(&mut out, sequence, message);
    socket.write_all(&out)
}

/// One message, read to its last byte and no further; `None` when the client has closed the connection.
fn receive(socket: &mut TcpStream, sequence: u8) -> io::Result<Option<Vec<u8>>> {
    let mut assembler = Assembler::new(RESPONSE_BYTES_MAX, sequence);
    let mut byte = [0];
    loop {
        if socket.read(&mut byte)? == 0 {
            return Ok(None);
        }
        let progress =
            assembler.feed(&byte).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if progress.complete {
            return Ok(Some(assembler.into_message()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_introduction_is_heard_in_old_and_new_words() {
        let mut introduction = Introduction::default();
        introduction.hear("SET @master_heartbeat_period = 5000000000, @source_heartbeat_period = 5000000000");
        introduction.hear("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'");
        introduction.hear("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1");
        assert!(introduction.offers_semi_sync && introduction.checksums);
        assert_eq!(introduction.heartbeat_period, Some(Duration::from_secs(5)));
    }

    #[test]
    fn the_codec_reads_the_greeting() {
        let handshake = codec::packet::Handshake::parse(&greeting("9.7.0")).unwrap();
        assert_eq!((handshake.server_version.as_str(), handshake.challenge.len()), ("9.7.0", 20));
        assert!(!handshake.is_mariadb());
    }
}

//! What a source says, in packets.

use crate::event::{self, Head};
use crate::log::{LogFile, LogOptions};
use codec::event::{EventType, flags};
use codec::packet::reply::{self, Column, STATUS_AUTOCOMMIT};
use codec::packet::{
    ErrPacket, Greeting, OK, OkPacket, PAYLOAD_BYTES_MAX, SEMI_SYNC_MAGIC, append_message, capability,
};

const CAPABILITIES: u32 = capability::MYSQL
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA;

/// IGNORABLE_LOG_EVENT, which replicas pass over.
const IGNORABLE: EventType = EventType(28);

/// Packets of a server, one after the other.
#[derive(Debug, Clone, Default)]
pub struct Packets {
    /// Framed, for the client.
    pub bytes: Vec<u8>,
    /// Number of the next packet.
    pub sequence: u8,
    /// Packets of events carry the semi-sync bytes.
    pub semi_sync: bool,
    /// Events that stand in no file carry a checksum.
    pub checksum: bool,
}

impl Packets {
    /// One message, in as many packets as it takes.
    pub fn message(&mut self, payload: &[u8]) {
        self.sequence = append_message(&mut self.bytes, self.sequence, payload);
    }

    /// One packet of these parts, together no longer than a packet holds. None follows a full one.
    pub(crate) fn packet(&mut self, parts: &[&[u8]]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let [a, b, c, ..] = (len as u32).to_le_bytes();
        self.bytes.extend_from_slice(&[a, b, c, self.sequence]);
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Protocol::HandshakeV10 with mysql_native_password.
    pub fn greeting(&mut self, version: &str, offers_tls: bool) {
        let greeting = Greeting {
            version,
            connection_id: 8,
            capabilities: CAPABILITIES | if offers_tls { capability::SSL } else { 0 },
            challenge: b"abcdefghijklmnopqrst",
            plugin: "mysql_native_password",
        };
        self.sequence = 0;
        self.message(&greeting.message());
    }

    /// OK.
    pub fn ok(&mut self) {
        let ok = OkPacket { affected_rows: 0, last_insert_id: 0, status: STATUS_AUTOCOMMIT, warnings: 0 };
        self.sequence = reply::ok(&mut self.bytes, self.sequence, &ok);
    }

    /// End of rows, or of a dump that does not wait.
    pub fn eof(&mut self) {
        self.sequence = reply::eof(&mut self.bytes, self.sequence, STATUS_AUTOCOMMIT);
    }

    /// An error.
    pub fn error(&mut self, code: u16, message: &str) {
        let error = ErrPacket { code, sqlstate: "HY000".to_owned(), message: message.to_owned() };
        self.sequence = reply::err(&mut self.bytes, self.sequence, &error);
    }

    /// A text result set without NULL.
    pub fn rows(&mut self, columns: &[impl AsRef<str>], rows: &[Vec<String>]) {
        let columns: Vec<Column<'_>> = columns.iter().map(|name| Column::text(name.as_ref())).collect();
        self.sequence = reply::columns(&mut self.bytes, self.sequence, &columns, STATUS_AUTOCOMMIT);
        for row in rows {
            self.sequence = reply::row(&mut self.bytes, self.sequence, row.iter().map(Some));
        }
        self.eof();
    }

    /// An event of any origin. `flagged`: an acknowledgement is wanted.
    pub fn event(&mut self, event: &[u8], flagged: bool) {
        let prefix: &[u8] = if self.semi_sync { &[OK, SEMI_SYNC_MAGIC, flagged as u8] } else { &[OK] };
        if prefix.len() + event.len() < PAYLOAD_BYTES_MAX {
            // Without a copy for `message`: benchmarks go through here.
            self.packet(&[prefix, event]);
        } else {
            self.message(&[prefix, event].concat());
        }
        if flagged && self.semi_sync {
            // The source waits for an answer, and numbers what follows it anew.
            self.sequence = 1;
        }
    }

    /// The artificial ROTATE that names the file whose events follow.
    pub fn rotate(&mut self, file: &str, position: u64, server_id: u32) {
        let head = Head { timestamp: 0, event_type: EventType::ROTATE, server_id, flags: flags::ARTIFICIAL };
        self.made_up(head, 0, &event::rotate(position, file), false);
    }

    /// An artificial event that asks for an acknowledgement.
    pub fn flagged_artificial(&mut self) {
        let head = Head { timestamp: 0, event_type: IGNORABLE, server_id: 0, flags: flags::ARTIFICIAL };
        self.made_up(head, 0, &[], true);
    }

    /// The format description of `file` for a start in the middle: with neither position nor creation time.
    pub fn format_description_again(&mut self, options: &LogOptions, file: &LogFile) {
        let Some(([a, b, c, d, ..], _)) = file.event(0) else { return };
        let timestamp = u32::from_le_bytes([*a, *b, *c, *d]);
        let event_type = EventType::FORMAT_DESCRIPTION;
        let head = Head { timestamp, event_type, server_id: options.server_id, flags: 0 };
        let body = event::format_description(&options.server_version, 0, options.checksum);
        self.made_up(head, 0, &body, false);
    }

    /// A heartbeat, in its newer form if `is_v2`.
    pub fn heartbeat(&mut self, is_v2: bool, file: &str, position: u64) {
        let event_type = if is_v2 { EventType::HEARTBEAT_V2 } else { EventType::HEARTBEAT };
        let head = Head { timestamp: 0, event_type, server_id: 1, flags: 0 };
        if is_v2 {
            self.made_up(head, 0, &event::heartbeat_v2(file, position), false);
        } else {
            self.made_up(head, position as u32, file.as_bytes(), false);
        }
    }

    /// An event that stands in no file.
    fn made_up(&mut self, head: Head, log_pos: u32, body: &[u8], flagged: bool) {
        let mut event = Vec::new();
        event::append(&mut event, head, |_| log_pos, body, self.checksum);
        self.event(&event, flagged);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codec_reads_the_greeting() {
        let mut packets = Packets::default();
        packets.greeting("9.7.0", false);
        let handshake = codec::packet::Handshake::parse(&packets.bytes[4..]).unwrap();
        assert_eq!((handshake.server_version.as_str(), handshake.challenge.len()), ("9.7.0", 20));
        assert_eq!(handshake.capabilities, CAPABILITIES);
        assert_eq!(handshake.server_kind(), codec::ServerKind::MySql);
    }
}

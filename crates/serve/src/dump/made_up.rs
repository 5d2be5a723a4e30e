//! Events that stand in no file: they are made for one reader, or changed for it.
//!
//! Sources: `Binlog_sender` in MySQL's `sql/rpl_binlog_sender.cc`, `mysql_binlog_send` in MariaDB's `sql/sql_repl.cc`; the
//! fields of the new heartbeat in `codecs/binary.cc`.

use codec::event::{ChecksumAlgorithm, EventType, FLAGS_AT, HEADER_LEN, flags};
use codec::gtid::MariadbGtid;

/// Where position and `created` stand in a format description (`LOG_POS_OFFSET`, and `ST_CREATED_OFFSET` behind the header).
const POSITION_AT: usize = 13;
const CREATED_AT: usize = HEADER_LEN + 2 + 50;

/// `Gtid_list_log_event::FLAG_UNTIL_REACHED`, in the upper bits of the count.
const UNTIL_REACHED: u32 = 1 << 28;

/// An empty list is padded with this many bytes (`Gtid_list_log_event::get_data_size` in `sql/log_event.h`).
const EMPTY_LIST_PADDING: usize = 2;

/// How a heartbeat says its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeartbeatForm {
    /// MySQL: the low 32 bits.
    V1,
    /// MySQL since 8.0.26, for readers that know it: 64 bits.
    V2,
    /// MariaDB: 32 bits, or 64 before the name where that is not enough.
    Mariadb,
}

/// The server that events are made up in the name of, and the checksum that they carry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maker {
    /// `server_id` of the server whose file is sent.
    pub(crate) server_id: u32,
    /// That of the events before: at first what the reader asked for, then that of the file.
    pub(crate) checksum: ChecksumAlgorithm,
}

impl Maker {
    fn event(self, event_type: EventType, log_pos: u32, flags: u16, body: &[&[u8]]) -> Vec<u8> {
        let len = HEADER_LEN + body.iter().map(|part| part.len()).sum::<usize>() + self.checksum.len();
        let mut event = Vec::with_capacity(len);
        event.extend_from_slice(&0u32.to_le_bytes());
        event.push(event_type.0);
        event.extend_from_slice(&self.server_id.to_le_bytes());
        event.extend_from_slice(&(len as u32).to_le_bytes());
        event.extend_from_slice(&log_pos.to_le_bytes());
        event.extend_from_slice(&flags.to_le_bytes());
        body.iter().for_each(|part| event.extend_from_slice(part));
        event.resize(len, 0);
        self.checksum.put(&mut event);
        event
    }

    /// Says which file follows, and at which position.
    pub(crate) fn rotate(self, file: &str, position: u64) -> Vec<u8> {
        self.event(EventType::ROTATE, 0, flags::ARTIFICIAL, &[&position.to_le_bytes(), file.as_bytes()])
    }

    /// Says how far the reader is, where nothing was sent.
    pub(crate) fn heartbeat(self, form: HeartbeatForm, file: &str, position: u64) -> Vec<u8> {
        let name = file.as_bytes();
        match (form, u32::try_from(position)) {
            (HeartbeatForm::V2, _) => self.heartbeat_v2(file, position),
            (HeartbeatForm::Mariadb, Err(_)) => {
                self.event(EventType::HEARTBEAT, 0, 0, &[&position.to_le_bytes(), name])
            }
            _ => self.event(EventType::HEARTBEAT, position as u32, 0, &[name]),
        }
    }

    /// Type, length and value for name and position, and an end.
    fn heartbeat_v2(self, file: &str, position: u64) -> Vec<u8> {
        let mut body = vec![1];
        packed_integer(&mut body, file.len() as u64);
        body.extend_from_slice(file.as_bytes());
        let mut value = Vec::with_capacity(9);
        packed_integer(&mut value, position);
        body.push(2);
        packed_integer(&mut body, value.len() as u64);
        body.extend_from_slice(&value);
        body.push(0);
        self.event(EventType::HEARTBEAT_V2, position as u32, 0, &[&body])
    }

    /// MariaDB: where a reader by GTID is, after what was left out for it; or that it has all that it wanted.
    pub(crate) fn gtid_list(self, list: &[MariadbGtid], until_reached: bool, position: u64) -> Vec<u8> {
        let count = list.len() as u32 | if until_reached { UNTIL_REACHED } else { 0 };
        let mut body = count.to_le_bytes().to_vec();
        for gtid in list {
            body.extend_from_slice(&gtid.domain.to_le_bytes());
            body.extend_from_slice(&gtid.server_id.to_le_bytes());
            body.extend_from_slice(&gtid.sequence.to_le_bytes());
        }
        if list.is_empty() {
            body.extend_from_slice(&[0; EMPTY_LIST_PADDING]);
        }
        self.event(EventType::MARIADB_GTID_LIST, position as u32, flags::ARTIFICIAL, &[&body])
    }
}

/// What a format description says to a reader beyond what it says in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormatChange {
    /// It is sent again before a place in the middle: its position is 0, so that the reader does not go back to it.
    pub(crate) sent_again: bool,
    /// The reader has seen the beginning of this file before: its temporary tables stay.
    pub(crate) keep_temporary_tables: bool,
}

/// The format description for a reader: never in use, and changed as asked, with its checksum.
pub(crate) fn format_description(event: &[u8], checksum: ChecksumAlgorithm, change: FormatChange) -> Vec<u8> {
    let mut event = event.to_vec();
    event[FLAGS_AT] &= !(flags::BINLOG_IN_USE as u8);
    if change.sent_again {
        event[POSITION_AT..POSITION_AT + 4].fill(0);
    }
    if change.keep_temporary_tables {
        event[CREATED_AT..CREATED_AT + 4].fill(0);
    }
    // The server computes the checksum of the file without the flag, so that it holds for an event that is not changed.
    if change.sent_again || change.keep_temporary_tables {
        checksum.put(&mut event);
    }
    event
}

/// MariaDB: how the server's own file was encrypted is no concern of a reader, but for the place that it takes.
pub(crate) fn start_encryption(event: &[u8], checksum: ChecksumAlgorithm, sent_again: bool) -> Vec<u8> {
    let mut event = event.to_vec();
    event[FLAGS_AT] |= flags::IGNORABLE as u8;
    if sent_again {
        event[POSITION_AT..POSITION_AT + 4].fill(0);
    }
    checksum.put(&mut event);
    event
}

/// The protocol's length-encoded integer (`net_store_length`).
fn packed_integer(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=250 => out.push(value as u8),
        251..=0xffff => {
            out.push(252);
            out.extend_from_slice(&value.to_le_bytes()[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(253);
            out.extend_from_slice(&value.to_le_bytes()[..3]);
        }
        _ => {
            out.push(254);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::event::{CHECKSUM_LEN, EventHeader, Heartbeat, Rotate};
    use codec::gtid::MariadbGtidState;

    const MAKER: Maker = Maker { server_id: 7, checksum: ChecksumAlgorithm::Crc32 };

    fn parts(event: &[u8]) -> (EventHeader, &[u8]) {
        MAKER.checksum.verify(event).unwrap();
        let header = EventHeader::parse(event).unwrap();
        assert_eq!((header.event_size as usize, header.timestamp, header.server_id), (event.len(), 0, 7));
        (header, &event[..event.len() - CHECKSUM_LEN])
    }

    #[test]
    fn what_is_made_up_is_understood() {
        let event = MAKER.rotate("b.000002", 1 << 33);
        let (header, body) = parts(&event);
        assert!(header.is_artificial() && header.log_pos == 0);
        assert_eq!(Rotate::parse(body).unwrap(), Rotate { position: 1 << 33, next_file: "b.000002" });
        for position in [4, 251, 70_000, 1 << 24, 5 << 32] {
            let event = MAKER.heartbeat(HeartbeatForm::V2, "b.000002", position);
            let (header, body) = parts(&event);
            let beat = Heartbeat::parse(&header, body).unwrap();
            assert_eq!(beat, Heartbeat { file: "b.000002", position, wrapped: false });
        }
        for (form, position, is_whole) in [
            (HeartbeatForm::V1, 77, false),
            (HeartbeatForm::Mariadb, 77, false),
            (HeartbeatForm::Mariadb, 5 << 32, true),
        ] {
            let event = MAKER.heartbeat(form, "b.000002", position);
            let (header, body) = parts(&event);
            let beat = Heartbeat::parse(&header, body).unwrap();
            assert_eq!(beat, Heartbeat { file: "b.000002", position, wrapped: !is_whole });
        }
        let list: Vec<MariadbGtid> = vec!["0-1-5".parse().unwrap(), "3-2-9".parse().unwrap()];
        let event = MAKER.gtid_list(&list, true, 99);
        let (header, body) = parts(&event);
        let read = MariadbGtidState::decode_gtid_list(&body[HEADER_LEN..]).unwrap();
        assert_eq!((header.log_pos, read.binlog_state()), (99, "0-1-5,3-2-9".to_owned()));
    }

    #[test]
    fn a_format_description_is_changed_and_stays_sound() {
        let file = binlog::testing::FileBuilder::created(5).finish();
        let mut event = file[4..].to_vec();
        event[FLAGS_AT] |= flags::BINLOG_IN_USE as u8;
        let as_it_is = FormatChange { sent_again: false, keep_temporary_tables: false };
        assert_eq!(format_description(&event, MAKER.checksum, as_it_is), file[4..]);
        let again = FormatChange { sent_again: true, keep_temporary_tables: true };
        let changed = format_description(&event, MAKER.checksum, again);
        MAKER.checksum.verify(&changed).unwrap();
        assert_eq!(EventHeader::parse(&changed).unwrap().log_pos, 0);
        assert_eq!(codec::event::FormatDescription::parse(&changed).unwrap().created, 0);
    }
}

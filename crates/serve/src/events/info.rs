//! The column Info of SHOW BINLOG EVENTS: what each event is about, as `pack_info` of its class writes it in `sql/log_event.cc`
//! (MySQL) and `sql/log_event_server.cc` (MariaDB). Checked against MySQL 9.7.4, 8.0.31 and 5.7.22, MariaDB 11.8.6 and 10.11.18.

use super::style::{Style, quoted};
use super::user_variable;
use binlog::forks::fingerprint::unpacked::mariadb_unpacked;
use codec::ServerKind;
use codec::event::{
    AlterPhase, EventError, EventHeader, EventType, GtidEvent, HEADER_LEN, IntVar, MariadbGtidDetails,
    PayloadCompression, PayloadHead, Query, Rand, Rotate, TableMap, UserVar, XaPrepare, flags,
};
use codec::gtid::{GtidSet, TransactionId};

/// The most of an event that is looked at, in bytes. A longer statement is shown up to there.
pub(super) const LOOKED_AT_MAX: u64 = 1 << 20;

/// What is looked at of an event whose Info has no long text, in bytes: a GTID with its tag, two names.
const SHORT_BYTES: u64 = 4096;

/// Flags of row events, as MySQL 9 names all of them (`Rows_event::enum_flag`); servers before it name the first only.
const ROW_FLAGS: [(u16, &str); 5] = [
    (1, "STMT_END_F"),
    (2, "NO_FOREIGN_KEY_CHECKS_F"),
    (4, "RELAXED_UNIQUE_CHECKS_F"),
    (8, "COMPLETE_ROWS_F"),
    (16, "USE_SQL_FOREIGN_KEY_F"),
];

/// Bits of a QUERY event's options that MariaDB names (`sql/sql_priv.h`, `OPTION_…`).
const MARIADB_OPTIONS: [(u32, &str); 6] = [
    (1 << 26, "foreign_key_checks"),
    (1 << 14, "sql_auto_is_null"),
    (1 << 27, "unique_checks"),
    (1 << 15, "check_constraint_checks"),
    (1 << 28, "@@sql_if_exists"),
    (1 << 30, "@@system_versioning_insert_history"),
];

/// From here on MariaDB says 1 of checks that are off, and nothing of sql_auto_is_null, until it says again what it always had:
/// seen in 11.8.6, neither in 10.11.18 nor in 11.8.9.
const MARIADB_OTHER_VALUES: std::ops::Range<u32> = 110_400..110_809;

/// An event, or its beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'a> {
    pub(super) header: EventHeader,
    /// As much as is in memory, without the checksum.
    pub(super) bytes: &'a [u8],
    /// How long it is without its checksum.
    pub(super) len: u64,
}

/// How much of an event of this type is looked at, in bytes.
pub(super) fn looked_at(event_type: EventType) -> u64 {
    match event_type {
        EventType::QUERY
        | EventType::MARIADB_QUERY_COMPRESSED
        | EventType::EXECUTE_LOAD_QUERY
        | EventType::ROWS_QUERY
        | EventType::MARIADB_ANNOTATE_ROWS
        | EventType::USER_VAR
        | EventType::PREVIOUS_GTIDS
        | EventType::MARIADB_GTID_LIST => LOOKED_AT_MAX,
        _ => SHORT_BYTES,
    }
}

/// The text, in whatever character set the statement has.
///
/// # Errors
/// When the event is none of its type.
pub(super) fn info(style: Style, event: &Shown<'_>) -> Result<Vec<u8>, EventError> {
    const CUT: EventError = EventError::Malformed("an event is cut short");
    let bytes = event.bytes;
    let body = bytes.get(HEADER_LEN..).ok_or(CUT)?;
    let number = |at: usize| body.get(at..at + 4).map(le).ok_or(CUT);
    let text = match event.header.event_type {
        EventType::QUERY => return query(style, event, None),
        EventType::MARIADB_QUERY_COMPRESSED => {
            let unpacked = mariadb_unpacked(Query::parse(bytes)?.text, LOOKED_AT_MAX)
                .map_err(|_| EventError::Malformed("a compressed statement cannot be unpacked"))?;
            return query(style, event, Some(&unpacked));
        }
        EventType::EXECUTE_LOAD_QUERY => return execute_load_query(event),
        EventType::FORMAT_DESCRIPTION => return format_description(body),
        EventType::PREVIOUS_GTIDS if event.len > bytes.len() as u64 => String::new(),
        EventType::PREVIOUS_GTIDS => {
            GtidSet::decode(body).map_err(|_| EventError::Malformed("GTIDs cannot be read"))?.to_string()
        }
        EventType::GTID | EventType::GTID_TAGGED | EventType::ANONYMOUS_GTID => {
            match GtidEvent::parse(&event.header, bytes)?.id {
                Some(id) => format!("SET @@SESSION.GTID_NEXT= '{id}'"),
                None => "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'".to_owned(),
            }
        }
        EventType::MARIADB_GTID => mariadb_gtid(event)?,
        EventType::MARIADB_GTID_LIST => gtid_list(body),
        EventType::MARIADB_BINLOG_CHECKPOINT => {
            let len = number(0)? as usize;
            return Ok(body.get(4..4 + len).ok_or(CUT)?.to_vec());
        }
        EventType::ROTATE => {
            let rotate = Rotate::parse(bytes)?;
            format!("{};pos={}", rotate.next_file, rotate.position)
        }
        EventType::XID => format!("COMMIT /* xid={} */", le(body.get(..8).ok_or(CUT)?)),
        EventType::INTVAR => match IntVar::parse(bytes)? {
            IntVar::LastInsertId(value) => format!("LAST_INSERT_ID={value}"),
            IntVar::InsertId(value) => format!("INSERT_ID={value}"),
        },
        EventType::RAND => {
            let Rand(first, second) = Rand::parse(bytes)?;
            format!("rand_seed1={first},rand_seed2={second}")
        }
        EventType::USER_VAR => return Ok(user_variable::shown(style, &UserVar::parse(bytes)?)),
        EventType::TABLE_MAP => {
            let names = TableMap::parse(bytes)?;
            let mut text = format!("table_id: {} (", table_id(body).ok_or(CUT)?).into_bytes();
            text.extend_from_slice(&[names.schema, b".", names.table, b")"].concat());
            return Ok(text);
        }
        event_type if event_type.is_rows() || event_type.is_compressed_rows() => {
            rows(style, body).ok_or(CUT)?
        }
        EventType::ROWS_QUERY => return Ok([b"# ", body.get(1..).ok_or(CUT)?, cut(event)].concat()),
        EventType::MARIADB_ANNOTATE_ROWS => return Ok([body, cut(event)].concat()),
        EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => {
            let block = event.len.saturating_sub(HEADER_LEN as u64 + 4);
            format!(";file_id={};block_len={block}", number(0)?)
        }
        EventType::DELETE_FILE => format!(";file_id={}", number(0)?),
        EventType::INCIDENT => return incident(body).ok_or(CUT),
        EventType::XA_PREPARE => {
            let prepare = XaPrepare::parse(bytes)?;
            match prepare.one_phase {
                true => format!("XA COMMIT {} ONE PHASE", prepare.xid),
                false => format!("XA PREPARE {}", prepare.xid),
            }
        }
        EventType::TRANSACTION_PAYLOAD => payload(&PayloadHead::parse(bytes)?),
        _ => String::new(),
    };
    Ok(text.into_bytes())
}

/// Little-endian.
fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// What stands behind a text that is longer than what is looked at.
fn cut(event: &Shown<'_>) -> &'static [u8] {
    if event.len > event.bytes.len() as u64 { "…".as_bytes() } else { b"" }
}

fn use_schema(event: &Shown<'_>, schema: &[u8]) -> Vec<u8> {
    if schema.is_empty() || event.header.flags & flags::SUPPRESS_USE != 0 {
        return Vec::new();
    }
    [b"use ".as_slice(), &quoted(schema), b"; "].concat()
}

fn query(style: Style, event: &Shown<'_>, unpacked: Option<&[u8]>) -> Result<Vec<u8>, EventError> {
    let query = Query::parse(event.bytes)?;
    let mut text = use_schema(event, query.schema);
    if style.kind == ServerKind::MariaDb {
        text.extend(mariadb_options(style, query.session.flags.unwrap_or(0)).into_bytes());
    }
    text.extend_from_slice(unpacked.unwrap_or(query.text));
    text.extend_from_slice(cut(event));
    if let (ServerKind::MySql, Some(xid)) = (style.kind, query.session.ddl_xid) {
        text.extend(format!(" /* xid={xid} */").into_bytes());
    }
    Ok(text)
}

/// MariaDB names the options that are not as they usually are.
fn mariadb_options(style: Style, options: u32) -> String {
    let is_set = |(bit, _): &&(u32, &str)| options & bit != 0;
    let is_other = MARIADB_OTHER_VALUES.contains(&style.version);
    let set: Vec<String> = MARIADB_OPTIONS
        .iter()
        .filter(is_set)
        .map(|(_, name)| match *name {
            "sql_auto_is_null" if is_other => (*name).to_owned(),
            name if name.ends_with("checks") => format!("{name}={}", u8::from(is_other)),
            name => format!("{name}=1"),
        })
        .collect();
    if set.is_empty() { String::new() } else { format!("set {}; ", set.join(", ")) }
}

/// File id 4, two places 8, how duplicates are handled 1 stand between the fixed part of a QUERY and its settings.
fn execute_load_query(event: &Shown<'_>) -> Result<Vec<u8>, EventError> {
    const CUT: EventError = EventError::Malformed("an EXECUTE_LOAD_QUERY event is cut short");
    const FIXED: usize = HEADER_LEN + 13;
    const OWN: usize = 13;
    let (fixed, rest) = event.bytes.split_at_checked(FIXED).ok_or(CUT)?;
    let (own, rest) = rest.split_at_checked(OWN).ok_or(CUT)?;
    let as_query = [fixed, rest].concat();
    let query = Query::parse(&as_query)?;
    let mut text = use_schema(event, query.schema);
    text.extend_from_slice(query.text);
    text.extend_from_slice(cut(event));
    text.extend(format!(" ;file_id={}", le(&own[..4])).into_bytes());
    Ok(text)
}

/// The version ends at its first zero.
fn format_description(body: &[u8]) -> Result<Vec<u8>, EventError> {
    const CUT: EventError = EventError::Malformed("a FORMAT_DESCRIPTION event is cut short");
    let (binlog, version) = (body.get(..2).ok_or(CUT)?, body.get(2..52).ok_or(CUT)?);
    let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = format!("Server ver: {}, Binlog ver: {}", String::from_utf8_lossy(version), le(binlog));
    Ok(text.into_bytes())
}

fn mariadb_gtid(event: &Shown<'_>) -> Result<String, EventError> {
    let details = MariadbGtidDetails::parse(event.bytes)?;
    let begins = match &details.prepared_xa {
        _ if details.standalone => String::new(),
        Some(xid) => format!("XA START {xid} "),
        None => "BEGIN ".to_owned(),
    };
    let id = match GtidEvent::parse(&event.header, event.bytes)?.id {
        Some(TransactionId::Mariadb(id)) => id.to_string(),
        _ => String::new(),
    };
    let group = details.commit_id.map_or_else(String::new, |id| format!(" cid={id}"));
    let alter = match details.alter {
        None => String::new(),
        Some(AlterPhase::Start) => " START ALTER".to_owned(),
        Some(AlterPhase::Commit(began)) => format!(" COMMIT ALTER id={began}"),
        Some(AlterPhase::Rollback(began)) => format!(" ROLLBACK ALTER id={began}"),
    };
    Ok(format!("{begins}GTID {id}{group}{alter}"))
}

/// By domain; within one in the order of the event.
fn gtid_list(body: &[u8]) -> String {
    let mut entries: Vec<&[u8]> = body.get(4..).unwrap_or_default().chunks_exact(16).collect();
    entries.sort_by_key(|entry| le(&entry[..4]));
    let shown = |entry: &&[u8]| format!("{}-{}-{}", le(&entry[..4]), le(&entry[4..8]), le(&entry[8..]));
    let list: Vec<String> = entries.iter().map(shown).collect();
    format!("[{}]", list.join(","))
}

fn table_id(body: &[u8]) -> Option<u64> {
    body.get(..6).map(le)
}

fn rows(style: Style, body: &[u8]) -> Option<String> {
    let set = le(body.get(6..8)?) as u16;
    let names_all = style.kind == ServerKind::MySql && style.version >= 90_000;
    let named = if names_all { &ROW_FLAGS[..] } else { &ROW_FLAGS[..1] };
    let names: Vec<&str> = named.iter().filter(|(bit, _)| set & bit != 0).map(|(_, name)| *name).collect();
    let flags = if names.is_empty() { String::new() } else { format!(" flags: {}", names.join(" ")) };
    Some(format!("table_id: {}{flags}", table_id(body)?))
}

/// Number 2, length 1, a message.
fn incident(body: &[u8]) -> Option<Vec<u8>> {
    let number = le(body.get(..2)?);
    let name = if number == 1 { "LOST_EVENTS" } else { "NOTHING" };
    let len = body.get(2).map_or(0, |len| usize::from(*len));
    let message = body.get(3..3 + len)?;
    let mut text = format!("#{number} ({name})").into_bytes();
    if !message.is_empty() {
        text.extend_from_slice(&[b": ", message].concat());
    }
    Some(text)
}

fn payload(head: &PayloadHead) -> String {
    let compression = match head.compression {
        PayloadCompression::Zstd => "ZSTD",
        PayloadCompression::None => "NONE",
    };
    format!("compression='{compression}', decompressed_size={} bytes", head.uncompressed_len.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MYSQL: Style = Style { kind: ServerKind::MySql, version: 90_704 };

    fn shown(event_type: EventType, body: &[u8], len: u64) -> Result<Vec<u8>, EventError> {
        let mut bytes = vec![0; HEADER_LEN];
        bytes.extend_from_slice(body);
        let header =
            EventHeader { timestamp: 0, event_type, server_id: 1, event_size: 0, log_pos: 0, flags: 0 };
        info(MYSQL, &Shown { header, bytes: &bytes, len: len.max(bytes.len() as u64) })
    }

    fn text(event_type: EventType, body: &[u8]) -> String {
        String::from_utf8(shown(event_type, body, 0).unwrap()).unwrap()
    }

    /// What no server writes in the tests.
    #[test]
    fn rare_events_are_shown() {
        assert_eq!(text(EventType::INCIDENT, &[1, 0, 0]), "#1 (LOST_EVENTS)");
        assert_eq!(text(EventType::INCIDENT, b"\x01\0\x03why"), "#1 (LOST_EVENTS): why");
        assert_eq!(text(EventType::DELETE_FILE, &[7, 0, 0, 0]), ";file_id=7");
        assert_eq!(text(EventType::APPEND_BLOCK, &[7, 0, 0, 0, 1, 2, 3]), ";file_id=7;block_len=3");
        assert_eq!(text(EventType::ANONYMOUS_GTID, &[0; 25]), "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'");
        assert_eq!(text(EventType::STOP, b""), "");
        assert_eq!(text(EventType(200), b"?"), "");
        let cut = shown(EventType::ROWS_QUERY, b"\x05INSER", 1 << 30).unwrap();
        assert_eq!(String::from_utf8(cut).unwrap(), "# INSER…");
        assert_eq!(shown(EventType::PREVIOUS_GTIDS, &[], 1 << 30), Ok(Vec::new()), "too long to be read");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            body in proptest::collection::vec(any::<u8>(), 0..120),
            code in 0..172_u8,
            mariadb: bool,
            len in 0..200_u64,
        ) {
            let kind = if mariadb { ServerKind::MariaDb } else { ServerKind::MySql };
            let mut bytes = vec![0; HEADER_LEN];
            bytes.extend_from_slice(&body);
            let header = EventHeader {
                timestamp: 0, event_type: EventType(code), server_id: 1, event_size: 0, log_pos: 0, flags: 0,
            };
            let _ = info(Style { kind, version: 110_800 }, &Shown { header, bytes: &bytes, len });
        }
    }
}

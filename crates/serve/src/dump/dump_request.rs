//! From a dump command, and what the session was told before it, to a request.

use super::request::{DumpRequest, From, MariadbStart, ReaderChecksum};
use super::stop::StopAt;
use crate::answer::SessionState;
use crate::sql::Value;
use codec::ServerKind;
use codec::gtid::{GtidSet, MariadbGtid};
use codec::packet::{DUMP_HEARTBEAT_V2_OR_ANNOTATE, DUMP_NON_BLOCKING, ErrPacket, Request, printable};
use config::{Bounds, Point};
use std::time::Duration;

/// Shortest and longest heartbeat period, as servers allow them to their replicas.
const HEARTBEAT_MIN: Duration = Duration::from_millis(1);
const HEARTBEAT_MAX: Duration = Duration::from_secs(4_294_967);
/// Longest part of a value that an error shows, in bytes.
const SHOWN_BYTES_MAX: usize = 100;
/// A UUID has 36 bytes; more of a text in its place is not kept.
const UUID_BYTES_MAX: usize = 64;

/// The request that a command makes.
///
/// # Errors
/// When it cannot be understood; in a server's words.
pub fn of(
    command: &Request<'_>,
    state: &SessionState,
    kind: ServerKind,
    bounds: &Bounds,
) -> Result<DumpRequest, ErrPacket> {
    let (from, flags, server_id) = match command {
        Request::BinlogDump(dump) => {
            let start = if kind == ServerKind::MariaDb { mariadb_start(state)? } else { None };
            let from = match start {
                Some(start) => From::Mariadb(start),
                None => From::Position { file: name(dump.file)?, offset: dump.position.into() },
            };
            (from, dump.flags, dump.server_id)
        }
        Request::BinlogDumpGtid(dump) => {
            let executed = GtidSet::decode(dump.set).map_err(|error| {
                fatal(&format!("The GTID set of the replica cannot be understood: {error}"))
            })?;
            let from = From::Gtids { executed, file: name(dump.file)?, offset: dump.position };
            (from, dump.flags, dump.server_id)
        }
        _ => return Err(fatal("this is no request for a dump")),
    };
    let flag = flags & DUMP_HEARTBEAT_V2_OR_ANNOTATE != 0;
    let is_mariadb = kind == ServerKind::MariaDb;
    Ok(DumpRequest {
        from,
        non_blocking: flags & DUMP_NON_BLOCKING != 0 || server_id == 0,
        checksum: checksum(state),
        heartbeat_period: heartbeat_period(state),
        heartbeat_v2: flag && !is_mariadb,
        annotate: flag && is_mariadb,
        capability: capability(state),
        semi_sync: is_set(state, "rpl_semi_sync_replica") || is_set(state, "rpl_semi_sync_slave"),
        stop: stops(state, kind, bounds)?,
        delay: delay(state)?.max(bounds.delay),
        reader: String::new(),
        timeline: text(state, &["binlogd_timeline"])
            .or_else(|| is_look_of_binlogd(flags, server_id, state).then(String::new)),
    })
}

/// Whether a binlogd asks that names no timeline: one of before there was a history to ask for, which takes all that it is sent
/// for the log of the server that is presented. So it is answered with that server's alone. Its looks end where the log ends, and it
/// says nothing before them but this, in both words: mysqlbinlog says `NONE`, and who has a `server_id` has a UUID.
fn is_look_of_binlogd(flags: u16, server_id: u32, state: &SessionState) -> bool {
    let says_crc32 = |name| text(state, &[name]).is_some_and(|value| value == "CRC32");
    flags & DUMP_NON_BLOCKING != 0
        && server_id != 0
        && replica_uuid(state).is_empty()
        && says_crc32("master_binlog_checksum")
        && says_crc32("source_binlog_checksum")
}

/// The points of the account and of the session: a session can stop before its account's point, never behind it.
fn stops(state: &SessionState, kind: ServerKind, bounds: &Bounds) -> Result<Vec<StopAt>, ErrPacket> {
    let mut stops = Vec::new();
    let configured = [("stop_before", &bounds.stop_before), ("stop_after", &bounds.stop_after)];
    for (key, configured) in configured {
        let is_before = key == "stop_before";
        if let Some(point) = configured {
            let wrong =
                |why: String| fatal(&format!("{key} of this account in binlogd's configuration: {why}"));
            stops.push(StopAt::of(point, is_before, kind).map_err(wrong)?);
        }
        let variable = format!("binlogd_{key}");
        let Some(text) = text(state, &[&variable]) else { continue };
        let shown = printable(text.as_bytes(), SHOWN_BYTES_MAX);
        let point: Point =
            text.parse().map_err(|error| fatal(&format!("@{variable} = '{shown}': it {error}")))?;
        stops.push(StopAt::of(&point, is_before, kind).map_err(|why| fatal(&format!("@{variable}: {why}")))?);
    }
    Ok(stops)
}

/// `@binlogd_delay`, in seconds.
fn delay(state: &SessionState) -> Result<Duration, ErrPacket> {
    let Some(text) = text(state, &["binlogd_delay"]) else { return Ok(Duration::ZERO) };
    let seconds = text.parse::<u32>().map_err(|_| {
        let shown = printable(text.as_bytes(), SHOWN_BYTES_MAX);
        fatal(&format!("@binlogd_delay = '{shown}': it must be a whole number of seconds up to 4294967295"))
    })?;
    Ok(Duration::from_secs(seconds.into()))
}

/// The UUID that a replica has set; empty for none.
pub fn replica_uuid(state: &SessionState) -> String {
    let uuid = text(state, &["replica_uuid", "slave_uuid"]).unwrap_or_default();
    printable(uuid.as_bytes(), UUID_BYTES_MAX)
}

/// Whoever reads, over connections: the UUID of a replica, or where it has none its `server_id`.
pub fn receiver(uuid: &str, command: &Request<'_>) -> String {
    let server_id = server_id(command);
    if uuid.is_empty() { format!("server_id {server_id}") } else { uuid.to_ascii_lowercase() }
}

/// The `server_id` that a dump is asked for with; 0 for a client that is no replica.
pub(crate) fn server_id(command: &Request<'_>) -> u32 {
    match command {
        Request::BinlogDump(dump) => dump.server_id,
        Request::BinlogDumpGtid(dump) => dump.server_id,
        _ => 0,
    }
}

/// Whether the reader is placed by GTID.
pub(crate) fn is_by_gtids(request: &DumpRequest) -> bool {
    !matches!(request.from, From::Position { .. })
}

/// Where the dump begins, for the log.
pub(crate) fn in_words(request: &DumpRequest) -> String {
    const BYTES_MAX: usize = 200;
    let words = match &request.from {
        From::Position { file, .. } if file.is_empty() => "the oldest file on".to_owned(),
        From::Position { file, offset } => format!("{file}:{offset} on"),
        From::Gtids { executed, .. } if executed.is_empty() => "the beginning on, by GTID".to_owned(),
        From::Gtids { executed, .. } => format!("behind GTIDs {}", executed.to_line()),
        From::Mariadb(start) if start.state.is_empty() => "the beginning on, by GTID".to_owned(),
        From::Mariadb(start) => {
            let state: Vec<String> = start.state.iter().map(ToString::to_string).collect();
            format!("behind GTIDs {}", state.join(","))
        }
    };
    let shown = printable(words.as_bytes(), BYTES_MAX);
    if shown.len() < words.len() { shown + "…" } else { shown }
}

fn mariadb_start(state: &SessionState) -> Result<Option<MariadbStart>, ErrPacket> {
    let Some(connect_state) = text(state, &["slave_connect_state"]) else { return Ok(None) };
    let until = match text(state, &["slave_until_gtid"]) {
        Some(until) => Some(gtids("slave_until_gtid", &until)?),
        None => None,
    };
    Ok(Some(MariadbStart {
        state: gtids("slave_connect_state", &connect_state)?,
        strict: is_set(state, "slave_gtid_strict_mode"),
        ignore_duplicates: is_set(state, "slave_gtid_ignore_duplicates"),
        until,
    }))
}

fn gtids(variable: &str, list: &str) -> Result<Vec<MariadbGtid>, ErrPacket> {
    list.split(',')
        .map(str::trim)
        .filter(|gtid| !gtid.is_empty())
        .map(|gtid| gtid.parse().map_err(|_| fatal(&format!("@{variable} has {gtid:?}, which is no GTID"))))
        .collect()
}

fn checksum(state: &SessionState) -> ReaderChecksum {
    match text(state, &["source_binlog_checksum", "master_binlog_checksum"]) {
        None => ReaderChecksum::Unaware,
        Some(value) if value.eq_ignore_ascii_case("NONE") => ReaderChecksum::None,
        Some(_) => ReaderChecksum::Crc32,
    }
}

fn heartbeat_period(state: &SessionState) -> Duration {
    let period = text(state, &["source_heartbeat_period", "master_heartbeat_period"]);
    let nanoseconds: u64 = period.and_then(|period| period.parse().ok()).unwrap_or(0);
    match Duration::from_nanos(nanoseconds) {
        Duration::ZERO => Duration::ZERO,
        period => period.clamp(HEARTBEAT_MIN, HEARTBEAT_MAX),
    }
}

fn capability(state: &SessionState) -> u8 {
    let capability = text(state, &["mariadb_slave_capability"]);
    capability.and_then(|capability| capability.parse().ok()).unwrap_or(0)
}

fn is_set(state: &SessionState, name: &str) -> bool {
    text(state, &[name]).is_some_and(|value| value != "0" && !value.is_empty())
}

fn text(state: &SessionState, names: &[&str]) -> Option<String> {
    state.user_variable_of(names).and_then(Value::to_text)
}

fn name(file: &[u8]) -> Result<String, ErrPacket> {
    String::from_utf8(file.to_vec())
        .map_err(|_| fatal("Could not find first log file name in binary log index file"))
}

pub(crate) fn fatal(message: &str) -> ErrPacket {
    ErrPacket { code: 1236, sqlstate: "HY000".to_owned(), message: message.to_owned() }
}

//! What a session's answers are made of, from the copy, the source's status and the readers.

use super::limits::{IDLE_MAX, WRITE_MAX};
use super::readers::Doing;
use super::shared::{Shared, Source};
use crate::answer::{Facts, LogFile, Receiving, Replica, SemiSync, SessionLine, Upstream};
use crate::dump::progress::Rest;
use crate::history::head::Head;
use crate::history::{FileId, History};
use binlog::scan::scan_file;
use binlog::storage::Storage;
use binlog::timeline::Timeline;
use binlog::timeline::described::{Descriptions, describe};
use codec::ServerKind;
use codec::event::{BINLOG_MAGIC, ChecksumAlgorithm, EventHeader, HEADER_LEN};
use codec::gtid::GtidState;
use jiff::Timestamp;
use status::{SourceState, SourceStatus, StopCause};
use std::io;
use std::time::Duration;

/// What is presented of a source: its own identity.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) kind: ServerKind,
    pub(crate) version: String,
    pub(crate) server_id: u32,
    /// `None` for MariaDB.
    pub(crate) uuid: Option<String>,
}

impl Identity {
    /// Of the server whose log is copied now; `None` before anything is.
    ///
    /// # Errors
    /// When the timeline's description or the live file cannot be read.
    pub(crate) fn of(source: &Source) -> io::Result<Option<Identity>> {
        let Some(live) = source.published.live() else { return Ok(None) };
        let timeline = Timeline::read(&*source.storage, &live.timeline)?;
        let own = || source.uuid.clone().unwrap_or(timeline.server_uuid.clone());
        let uuid = (timeline.server_kind == ServerKind::MySql).then(own);
        // The file itself says who wrote it; before its first event is there, the last connection does.
        let from_file = first_server_id(&*source.storage, &live.timeline.join(&*live.file), live.end())?;
        let server_id = from_file.or(source.monitor.facts().server_id).unwrap_or(0);
        Ok(Some(Identity { kind: timeline.server_kind, version: timeline.server_version, server_id, uuid }))
    }
}

/// The `server_id` in the first event of a file.
fn first_server_id(storage: &dyn Storage, path: &std::path::Path, end: u64) -> io::Result<Option<u32>> {
    let start = BINLOG_MAGIC.len() as u64;
    if end < start + HEADER_LEN as u64 {
        return Ok(None);
    }
    let mut header = [0; HEADER_LEN];
    storage.open_read(path)?.read_full_at(&mut header, start)?;
    Ok(EventHeader::parse(&header).ok().map(|header| header.server_id))
}

/// What one session is told. Made anew for each statement.
pub(crate) struct Present<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) source: &'a Source,
    pub(crate) name: &'a str,
    pub(crate) identity: &'a Identity,
    pub(crate) port: u16,
}

impl Present<'_> {
    fn files(&self) -> Option<History> {
        let live = self.source.published.live()?;
        let read = History::read(&*self.source.storage, &self.source.folder, &live);
        self.told(read)
    }

    /// What cannot be read is told in the log, and is missing in the answer.
    fn told<T>(&self, read: io::Result<T>) -> Option<T> {
        read.inspect_err(|error| {
            tracing::warn!(source = self.name, "the copy cannot be read for a reader: {error}");
        })
        .ok()
    }

    /// All timelines. One that cannot be read is named in the log.
    fn described(&self) -> Option<Descriptions> {
        let live = self.source.published.live()?;
        let found = self.told(describe(&*self.source.storage, &self.source.folder, &live))?;
        let unreadable = found.unreadable();
        if !unreadable.is_empty() {
            tracing::warn!(source = self.name, "another binlogd cannot have all of the copy: {unreadable}");
        }
        Some(found)
    }

    fn end_of(&self, history: &History, file: FileId) -> Option<u64> {
        let live = self.source.published.live()?;
        if history.is_of_newest(file) && *live.file == **history.name(file) {
            return Some(live.end());
        }
        self.told(self.source.storage.look(&history.path(file))).map(|found| found.len)
    }

    /// `binlog_checksum` of the file that is written now.
    fn checksum(&self) -> Option<&'static str> {
        let live = self.source.published.live()?;
        let path = live.timeline.join(&*live.file);
        // A file that has no format description yet is no complaint's cause.
        let head = Head::read(&*self.source.storage, &path, live.end()).ok()?;
        Some(match head.checksum() {
            ChecksumAlgorithm::Crc32 => "CRC32",
            _ => "NONE",
        })
    }

    fn status(&self) -> SourceStatus {
        self.source.monitor.status(Timestamp::now())
    }

    fn durable(&self) -> GtidState {
        (*self.source.monitor.gtids().durable).clone()
    }
}

/// What tools that watch replicas take for a failure: a number that is not 0. The server's own where its words tell one, else that
/// of a client that cannot connect (`CR_CONN_HOST_ERROR`), or of a log that cannot be read (`ER_MASTER_FATAL_ERROR_READING_BINLOG`).
fn error_number(receiving: Receiving, error: &str) -> u32 {
    if error.is_empty() {
        return 0;
    }
    let told = error.split_once("(error ").and_then(|(_, rest)| rest.split([',', ')']).next()?.parse().ok());
    told.unwrap_or(if receiving == Receiving::No { 1236 } else { 2003 })
}

impl Facts for Present<'_> {
    fn kind(&self) -> ServerKind {
        self.identity.kind
    }

    fn version(&self) -> String {
        self.identity.version.clone()
    }

    fn server_id(&self) -> u32 {
        self.identity.server_id
    }

    fn server_uuid(&self) -> Option<String> {
        self.identity.uuid.clone()
    }

    fn source_variable(&self, name: &str) -> Option<String> {
        // Readers decide by it how to read what they get, and the file itself says it, whatever became of the source.
        if name == "binlog_checksum"
            && let Some(checksum) = self.checksum()
        {
            return Some(checksum.to_owned());
        }
        let settings = self.source.monitor.settings();
        let said = settings.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        // Of a source that was never asked the copy tells: a replica takes nothing from a source of the other mode.
        if name == "gtid_mode"
            && said.is_none()
            && self.durable().is_empty()
            && self.source.published.live().is_some()
        {
            return Some("OFF".to_owned());
        }
        said
    }

    fn hostname(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn max_allowed_packet(&self) -> u64 {
        self.shared.rules().config.max_statement_bytes.into()
    }

    fn wait_timeout(&self) -> Duration {
        IDLE_MAX
    }

    fn net_write_timeout(&self) -> Duration {
        WRITE_MAX
    }

    fn connections_max(&self) -> u32 {
        self.shared.readers_max(&self.shared.rules())
    }

    fn requires_tls(&self) -> bool {
        self.shared.rules().config.require_tls
    }

    fn now(&self) -> i64 {
        Timestamp::now().as_microsecond()
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Without random bytes of the system an UUID is a poor one, and no more.
        let _ = getrandom::fill(&mut bytes);
        bytes
    }

    fn uptime_seconds(&self) -> u64 {
        self.shared.since.elapsed().as_secs()
    }

    fn binary_logs(&self) -> Vec<LogFile> {
        let Some(history) = self.files() else { return Vec::new() };
        history
            .listed()
            .filter_map(|file| {
                Some(LogFile { name: history.name(file).to_string(), size: self.end_of(&history, file)? })
            })
            .collect()
    }

    fn gtid_executed(&self) -> String {
        match self.durable() {
            GtidState::Mariadb(state) => state.position(),
            mysql => mysql.to_line(),
        }
    }

    fn gtid_purged(&self) -> String {
        if self.identity.kind == ServerKind::MariaDb {
            return String::new();
        }
        let Some(history) = self.files() else { return String::new() };
        let Some(first) = history.files().next() else { return String::new() };
        let before = match self.source.storage.recorded(&history.path(first)) {
            Some(recorded) => recorded.gtids_before,
            None => {
                let Some(end) = self.end_of(&history, first) else { return String::new() };
                let head = self.told(Head::read(&*self.source.storage, &history.path(first), end));
                head.and_then(|head| head.gtids_before)
            }
        };
        before.map(|before| before.to_line()).unwrap_or_default()
    }

    fn gtid_binlog_state(&self) -> String {
        match self.durable() {
            GtidState::Mariadb(state) => state.binlog_state(),
            _ => String::new(),
        }
    }

    fn timelines(&self) -> String {
        self.described().map(|described| described.extents()).unwrap_or_default()
    }

    fn history(&self) -> String {
        self.described().and_then(|described| self.told(described.to_text())).unwrap_or_default()
    }

    fn gtid_position(&self, file: &str, offset: u64) -> Option<String> {
        let history = self.files()?;
        let file = history.named(file)?;
        let end = self.end_of(&history, file)?;
        if offset > end {
            return None;
        }
        let head = self.told(Head::read(&*self.source.storage, &history.path(file), end))?;
        // The list of GTIDs behind the format description is not among what was executed before it, and yet counts.
        if offset <= BINLOG_MAGIC.len() as u64 || offset == head.format_end {
            return match head.gtids_before? {
                GtidState::Mariadb(state) => Some(state.position()),
                GtidState::Mysql(_) => None,
            };
        }
        let mut event_end = 0;
        let mut scanned = self.told(scan_file(&*head.file, offset, |at| event_end = at))?;
        if event_end != offset {
            return None; // Inside an event.
        }
        // Inside a transaction its own GTID counts: MariaDB looks at GTID events only.
        if scanned.boundary < offset
            && let Some(id) = self.told(head.gtid_behind(scanned.boundary, offset))?
        {
            scanned.gtids.insert(id).ok()?;
        }
        match scanned.gtids {
            GtidState::Mariadb(state) => Some(state.position()),
            _ => None,
        }
    }

    fn replicas(&self) -> Vec<Replica> {
        let of_source = |reader: &&std::sync::Arc<super::readers::Reader>| reader.source == self.name;
        let list = self.shared.readers.list();
        list.iter()
            .filter(of_source)
            .filter_map(|reader| {
                let shown = reader.shown();
                let registration = shown.registration?;
                Some(Replica {
                    server_id: registration.server_id,
                    host: registration.host,
                    port: registration.port,
                    uuid: shown.uuid,
                })
            })
            .collect()
    }

    /// Of this source alone: its users have no say over another one's.
    fn sessions(&self) -> Vec<SessionLine> {
        let list = self.shared.readers.list();
        list.iter()
            .filter(|reader| reader.source == self.name)
            .map(|reader| {
                let shown = reader.shown();
                let at = reader.progress.position().map(|at| format!(" at {at}")).unwrap_or_default();
                let state = match shown.doing {
                    Doing::Idle => String::new(),
                    Doing::Statement => "executing".to_owned(),
                    Doing::Dump { .. } => match reader.progress.rest() {
                        Rest::End => format!("Has sent all of the binary log, waits for more{at}"),
                        Rest::Stopped => format!("Stopped{at}, {}", shown.bounds.stop),
                        Rest::Delayed => {
                            let delay = shown.bounds.delay.as_secs();
                            format!("Waits until the next transaction is {delay} s old{at}")
                        }
                        Rest::None => format!("Sending the binary log{at}"),
                    },
                };
                SessionLine {
                    connection_id: reader.id,
                    user: reader.user.clone(),
                    host: reader.address.to_string(),
                    command: shown.doing.command().to_owned(),
                    seconds: shown.since.elapsed().as_secs(),
                    state,
                    statement: None,
                }
            })
            .collect()
    }

    fn upstream(&self) -> Upstream {
        let status = self.status();
        let (host, port) = status
            .host
            .as_deref()
            .and_then(|host| host.rsplit_once(':'))
            .map_or((String::new(), 0), |(host, port)| (host.to_owned(), port.parse().unwrap_or(0)));
        let last = status.last_error.as_ref();
        let (receiving, error) = match self.source.monitor.state() {
            // As a server, which forgets its error when it is connected again, and has none after STOP REPLICA.
            state if state.is_session() => (Receiving::Yes, String::new()),
            SourceState::Stopped { by: StopCause::Operator, .. } => (Receiving::No, String::new()),
            SourceState::Stopped { reason, .. } => (Receiving::No, reason),
            _ => (Receiving::Connecting, last.map(|error| error.message.clone()).unwrap_or_default()),
        };
        let detail = status.state_detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let positions = status.positions;
        let offset = |rung: &Option<binlog::Position>| rung.as_ref().map_or(0, |at| at.offset);
        Upstream {
            state: format!("{}{detail}", status.state),
            host,
            port,
            user: self.source.user.clone(),
            receiving,
            file: positions.received.as_ref().map(|at| at.file.to_string()).unwrap_or_default(),
            received: offset(&positions.received),
            durable: offset(&positions.durable),
            durable_gtids: status.gtid.durable,
            server_id: status.server_id.unwrap_or(0),
            server_uuid: status.server_uuid.unwrap_or_default(),
            seconds_behind: status.seconds_behind,
            error_number: error_number(receiving, &error),
            error_time: last.filter(|_| !error.is_empty()).map(|error| error.at.as_microsecond()),
            error,
            tls: status.tls,
        }
    }

    fn semi_sync(&self) -> SemiSync {
        let (monitor, list) = (&self.source.monitor, self.shared.readers.list());
        let takes_part = |reader: &&std::sync::Arc<super::readers::Reader>| {
            reader.source == self.name && reader.progress.asked.is_in_use()
        };
        let demanded = monitor.ack_replicas.demanded();
        let counters = monitor.counters.values();
        let alone = counters.acknowledged_alone;
        let is_demanded = demanded.is_some_and(|demanded| demanded.wanted > 0);
        SemiSync {
            enabled: true,
            wait_for: demanded.map_or(0, |demanded| demanded.wanted),
            timeout: demanded.map_or(Duration::ZERO, |demanded| demanded.timeout),
            clients: list.iter().filter(takes_part).count() as u64,
            waiting: monitor.ack_replicas.is_waiting().into(),
            acknowledged: if is_demanded { counters.acknowledgements.saturating_sub(alone) } else { 0 },
            not_acknowledged: alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_a_number_and_no_failure_has_none() {
        assert_eq!(error_number(Receiving::Yes, ""), 0);
        assert_eq!(
            error_number(Receiving::Connecting, "cannot connect to db1:3306: Connection refused"),
            2003
        );
        let denied = "the server denies access: no (error 1045, SQLSTATE 28000)";
        assert_eq!(error_number(Receiving::Connecting, denied), 1045);
        assert_eq!(error_number(Receiving::No, "a gap: the source has purged what follows"), 1236);
    }
}

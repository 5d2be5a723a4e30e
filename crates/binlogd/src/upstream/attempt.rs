//! One attempt: connect, find out who answers, decide, receive.

use super::Upstream;
use super::attempt_error::AttemptError;
use super::complaint::Complaint;
use super::copy::HeldCopy;
use super::cursor::Cursor;
use super::identify::{SourceIdentity, SourceSemiSync};
use super::look::{Look, look};
use super::negotiate::{Introduction, checksum_outside_files, dump_request, locate_request, look_request};
use super::plan::{From, Plan, plan};
use super::receive::{ReceiveOptions, SessionError, receive};
use super::refusal::Refusal;
use crate::config::{HostPort, OnGap};
use crate::log::Position;
use crate::log::timeline::{Reason, ServerKind, Timeline};
use crate::log::writer::LogError;
use crate::status::{GtidRungs, Ladder, LogPosition, SemiSyncStatus, SourceMonitor, SourceState};
use crate::wire::{ConnectOptions, Connection, WireError};
use codec::gtid::GtidState;
use codec::packet::ErrPacket;

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG` / `ER_SOURCE_FATAL_ERROR_READING_BINLOG`: the source cannot or will not dump.
/// One number for a dozen causes that only its text tells apart (`sql/rpl_binlog_sender.cc`, MariaDB `sql/sql_repl.cc`).
const ER_FATAL_READING_BINLOG: u16 = 1236;

/// `ER_SLAVE_SAME_ID`: MariaDB's number for a dump that another client with our server id took over
/// (`sql/share/errmsg-utf8.txt`). MySQL says the same by error 1236 and its text.
const ER_SAME_SERVER_ID: u16 = 4052;

/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: a privilege is missing.
const ER_SPECIFIC_ACCESS_DENIED: u16 = 1227;

/// One attempt with one host.
pub struct Attempt<'a> {
    /// The source it belongs to.
    pub upstream: &'a Upstream,
    /// The host to try.
    pub host: &'a HostPort,
}

impl Attempt<'_> {
    /// Connects and receives until a stop is requested (`Ok`) or something breaks.
    ///
    /// # Errors
    /// What broke.
    pub fn make(&self, copy: &mut HeldCopy) -> Result<(), AttemptError> {
        let monitor = &self.upstream.monitor;
        monitor.set_state(SourceState::Connecting { host: self.host.to_string() });
        let (connection, source) = self.connect()?;
        self.check_server_id(copy, &source)?;
        let tls = connection.tls_version().map(str::to_owned);
        monitor.update_facts(|facts| {
            facts.server_version = Some(source.version.clone());
            // MariaDB has none; the stand-in names the timeline's folder only.
            facts.server_uuid = (source.kind == ServerKind::Mysql).then(|| source.uuid.clone());
            facts.server_id = Some(source.server_id);
            facts.tls = tls;
        });
        let at = match plan(copy.holding().as_ref(), &source, &self.upstream.config.start) {
            Plan::Resume(position) => {
                self.check_continuity(copy, &source)?;
                position
            }
            Plan::Begin { reason, from, source_lacks } => {
                self.begin_timeline(copy, &source, reason, &from, &source_lacks)?;
                let holding = copy.holding().expect("a timeline was begun");
                Position::new(holding.first_file, 4)
            }
        };
        publish_copy(monitor, copy);
        self.session(connection, copy, &source, &at).map_err(|error| self.examine(copy, &source, &at, error))
    }

    /// Introduces us, asks for the binary log from `at` on, and receives.
    fn session(
        &self,
        mut connection: Connection,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
    ) -> Result<(), AttemptError> {
        let config = &self.upstream.config;
        let server_id = self.server_id(copy);
        let introduction = Introduction {
            replica: copy.identity(),
            server_id,
            heartbeat_period: config.heartbeat_period,
            semi_sync: config.semi_sync,
        };
        introduction.make(&mut connection, source).map_err(|error| self.with_privilege(error))?;
        let offered = introduction.offers_semi_sync(source);
        let (request, requested) = dump_request(server_id, &at.file, at.offset);
        let stream = connection.start_dump(&request)?;
        let timeline = copy.timeline_mut().expect("a session has a timeline");
        // Until the timeline has a file, the source's first ROTATE is what begins it.
        let asked = timeline.end().map(|_| at.clone());
        let cursor = Cursor::new(asked, requested, timeline.format.clone(), checksum_outside_files(source));
        let options = ReceiveOptions {
            clock: self.upstream.clock.clone(),
            fsync_mode: config.fsync_mode,
            fsync_interval: config.fsync_interval,
            net_read_timeout: config.net_read_timeout,
            busy_wait: config.busy_wait,
        };
        let monitor = &self.upstream.monitor;
        let mut on_stream = |semi_sync: bool| {
            let status = semi_sync_status(config.semi_sync, offered, source.semi_sync, semi_sync);
            tracing::info!(source = config.name, host = %self.host, semi_sync = status.active, "receiving from {at}");
            monitor.update_facts(|facts| facts.semi_sync = status);
            monitor.set_state(SourceState::Receiving);
        };
        let stop = &self.upstream.stop;
        Ok(receive(stream, cursor, timeline, &options, monitor, stop, &mut on_stream)?)
    }

    fn with_privilege(&self, error: WireError) -> AttemptError {
        match error {
            WireError::AccessDenied { code: ER_SPECIFIC_ACCESS_DENIED, message, .. } => {
                AttemptError::Privilege(message, self.upstream.config.user.clone())
            }
            error => error.into(),
        }
    }

    /// Finds the first file of a new timeline and makes its folder.
    fn begin_timeline(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        mut reason: Reason,
        from: &From,
        source_lacks: &GtidState,
    ) -> Result<(), AttemptError> {
        let mut missing = GtidState::empty(source.executed.flavour());
        let first_file = match self.first_file(copy, source, from) {
            Err(AttemptError::Gap { .. }) if self.upstream.config.on_gap == OnGap::Record => {
                let held = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
                (reason, missing) = (Reason::Gap, source.purged.subtract(&held));
                self.first_file(copy, source, &From::Earliest)?
            }
            other => other?,
        };
        if reason == Reason::Gap && missing.is_empty() {
            let held = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
            missing = source.purged.subtract(&held);
        }
        let info = Timeline {
            began_at: jiff::Timestamp::now().to_string(),
            reason,
            server_uuid: source.uuid.clone(),
            server_version: source.version.clone(),
            server_kind: source.kind,
            first_file,
            gtid_before: copy.holding().map(|holding| holding.gtids.to_line()).unwrap_or_default(),
            source_lacks: source_lacks.to_line(),
            missing: missing.to_line(),
            previous: String::new(), // Filled in by the copy, which knows its folders.
        };
        let (lacks, missing, first_file) =
            (info.source_lacks.clone(), info.missing.clone(), info.first_file.clone());
        copy.begin_timeline(info)?;
        // What was acknowledged belongs to the timeline before.
        self.upstream.monitor.publish_positions(&Ladder::default());
        self.upstream.monitor.publish_gtids(|gtids| *gtids = GtidRungs::default());
        let name = copy.timeline().map_or("", |timeline| timeline.name.as_str());
        let source_name = &self.upstream.config.name;
        tracing::info!(
            source = source_name,
            timeline = name,
            "a timeline begins with {first_file}: {}",
            reason.words()
        );
        if !lacks.is_empty() {
            tracing::error!(
                source = source_name,
                "the copy holds transactions that the source lacks: {lacks}"
            );
        }
        if !missing.is_empty() {
            tracing::error!(
                source = source_name,
                "the source purged transactions that were never copied: {missing}"
            );
        }
        Ok(())
    }

    /// Name of the file that `from` means on this source.
    fn first_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        from: &From,
    ) -> Result<String, AttemptError> {
        match from {
            From::File(name) => Ok(name.clone()),
            From::Earliest => Ok(self.look(copy, source, "")?.file),
            From::Latest => self.newest_file(),
            From::After(set) => {
                let (mut connection, _) = self.connect()?;
                let request = locate_request(&mut connection, self.server_id(copy), set)?;
                match self.look_with(connection, source, &request) {
                    Ok(look) => Ok(look.file),
                    Err(AttemptError::Wire(WireError::Server {
                        code: ER_FATAL_READING_BINLOG,
                        message,
                        ..
                    })) if Complaint::of(&message) == Complaint::Purged => {
                        let oldest = self.look(copy, source, "").map(|look| look.file).unwrap_or_default();
                        Err(AttemptError::Gap { needed: format!("what follows {}", set.to_line()), oldest })
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// The file that the source is writing, by whichever statement it knows.
    fn newest_file(&self) -> Result<String, AttemptError> {
        let (mut connection, _) = self.connect()?;
        let mut result = connection.query("SHOW BINARY LOG STATUS");
        if matches!(&result, Err(WireError::Server { .. })) {
            result = connection.query("SHOW MASTER STATUS"); // Before MySQL 8.2, and MariaDB.
        }
        match result {
            Ok(rows) => rows.get(0, "File").map(str::to_owned).ok_or(AttemptError::NoBinlog),
            Err(WireError::AccessDenied { message, .. }) => Err(AttemptError::Privilege(
                format!("start = \"latest\" needs REPLICATION CLIENT too ({message})"),
                self.upstream.config.user.clone(),
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn look(&self, copy: &HeldCopy, source: &SourceIdentity, file: &str) -> Result<Look, AttemptError> {
        let (connection, _) = self.connect()?;
        self.look_with(connection, source, &look_request(self.server_id(copy), file, 4))
    }

    fn look_with(
        &self,
        mut connection: Connection,
        source: &SourceIdentity,
        request: &[u8],
    ) -> Result<Look, AttemptError> {
        if source.knows_checksums {
            connection.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
        }
        let timeout = self.upstream.config.connect_timeout;
        look(connection, source, request, timeout, &self.upstream.stop).map_err(|error| match error {
            WireError::Server { code: ER_FATAL_READING_BINLOG, ref message, .. }
                if Complaint::of(message) == Complaint::NoBinlog =>
            {
                AttemptError::NoBinlog
            }
            error => self.with_privilege(error),
        })
    }

    /// Finds out what a failed session means, and begins a new timeline where that is the answer.
    fn examine(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        error: AttemptError,
    ) -> AttemptError {
        let verdict = match &error {
            AttemptError::Session(
                SessionError::Refused(Refusal::OtherFile(_)) | SessionError::Log(LogError::FileExists(_)),
            ) => Some((Reason::SourceReset, From::Earliest)),
            AttemptError::Session(SessionError::Source(complaint)) => {
                match self.examine_complaint(copy, source, at, complaint) {
                    Ok(verdict) => verdict,
                    Err(better) => return better,
                }
            }
            _ => None,
        };
        match verdict {
            Some((reason, from)) => self.begin_beside(copy, source, reason, &from),
            None => error,
        }
    }

    /// A live file that has no event yet says nothing about the source's file of that name: it may be that of another
    /// history, after a reset. So the source is asked for the end of the file before, as the copy holds it.
    fn check_continuity(&self, copy: &mut HeldCopy, source: &SourceIdentity) -> Result<(), AttemptError> {
        let Some((end, format)) = copy.before_empty()? else { return Ok(()) };
        let (connection, _) = self.connect()?;
        let request = look_request(self.server_id(copy), &end.file, end.offset);
        let (reason, from) = match self.look_with(connection, source, &request) {
            Ok(look) if look.format.is_same_file(&format) => return Ok(()),
            Ok(_) => (Reason::SourceReset, From::Earliest),
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. })) => {
                match Complaint::of(&message) {
                    Complaint::PastTheEnd => {
                        let look = self.look(copy, source, &end.file)?;
                        if look.format.is_same_file(&format) {
                            (Reason::Fork, From::File(end.file.to_string()))
                        } else {
                            (Reason::SourceReset, From::Earliest)
                        }
                    }
                    // Purged meanwhile, most likely: nothing is left to compare with.
                    _ => return Ok(()),
                }
            }
            Err(error) => return Err(error),
        };
        Err(self.begin_beside(copy, source, reason, &from))
    }

    /// Begins a timeline because the newest one does not go on.
    fn begin_beside(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        reason: Reason,
        from: &From,
    ) -> AttemptError {
        let none = GtidState::empty(source.executed.flavour());
        let lacks = match (reason, copy.holding()) {
            (Reason::Fork, Some(holding)) if source.has_gtids => holding.gtids.subtract(&source.executed),
            _ => none,
        };
        match self.begin_timeline(copy, source, reason, from, &lacks) {
            Ok(()) => AttemptError::NewTimeline(reason.words()),
            Err(error) => error,
        }
    }

    /// Tells the causes of error 1236 apart: by its text as far as that goes, then by a look at the source's logs.
    fn examine_complaint(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        complaint: &ErrPacket,
    ) -> Result<Option<(Reason, From)>, AttemptError> {
        if complaint.code == ER_SPECIFIC_ACCESS_DENIED {
            return Err(AttemptError::Privilege(
                complaint.message.clone(),
                self.upstream.config.user.clone(),
            ));
        }
        if complaint.code == ER_SAME_SERVER_ID {
            return Err(AttemptError::Evicted(complaint.message.clone()));
        }
        if complaint.code != ER_FATAL_READING_BINLOG {
            return Ok(None);
        }
        match Complaint::of(&complaint.message) {
            Complaint::NoBinlog => Err(AttemptError::NoBinlog),
            Complaint::Evicted => Err(AttemptError::Evicted(complaint.message.clone())),
            Complaint::FileNotFound | Complaint::Purged => {
                let oldest = self.look(copy, source, "")?.file;
                if number_of(&oldest) <= number_of(&at.file) {
                    return Ok(Some((Reason::SourceReset, From::Earliest)));
                }
                if self.upstream.config.on_gap == OnGap::Record {
                    return Ok(Some((Reason::Gap, From::Earliest)));
                }
                Err(AttemptError::Gap { needed: at.to_string(), oldest })
            }
            Complaint::PastTheEnd => {
                let look = self.look(copy, source, &at.file)?;
                let held = copy.timeline().and_then(|timeline| timeline.format.as_ref());
                if held.is_some_and(|held| held.is_same_file(&look.format)) {
                    return Ok(Some((Reason::Fork, From::File(at.file.to_string()))));
                }
                Ok(Some((Reason::SourceReset, From::Earliest)))
            }
            Complaint::Other => Ok(None),
        }
    }

    fn connect(&self) -> Result<(Connection, SourceIdentity), WireError> {
        let config = &self.upstream.config;
        let mut connection = self.upstream.network.connect(&ConnectOptions {
            host: self.host.host.clone(),
            port: self.host.port,
            user: config.user.clone(),
            password: config.password.clone(),
            connect_timeout: config.connect_timeout,
            tls: config.tls.clone(),
        })?;
        let source = SourceIdentity::ask(&mut connection)?;
        Ok((connection, source))
    }

    fn server_id(&self, copy: &HeldCopy) -> u32 {
        self.upstream.config.server_id.unwrap_or(copy.identity().server_id)
    }

    fn check_server_id(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<(), AttemptError> {
        let ours = self.server_id(copy);
        if ours == source.server_id { Err(AttemptError::ServerId(ours)) } else { Ok(()) }
    }
}

/// The number at the end of a binary log's name.
fn number_of(file: &str) -> u64 {
    file.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// Whether acknowledgements are sent, and why or why not.
fn semi_sync_status(
    configured: bool,
    offered: bool,
    source: SourceSemiSync,
    in_force: bool,
) -> SemiSyncStatus {
    let reason = match (configured, source, in_force) {
        (false, ..) => "switched off here: semi_sync = false",
        (true, SourceSemiSync::Absent, _) => "the source has no semi-sync plugin",
        (true, SourceSemiSync::Disabled, _) => {
            "negotiated, but switched off on the source: it asks for no acknowledgement until \
             rpl_semi_sync_source_enabled (or rpl_semi_sync_master_enabled) is ON"
        }
        (true, SourceSemiSync::Enabled, true) => "negotiated: the source waits for our acknowledgements",
        (true, SourceSemiSync::Enabled, false) => "offered, but the source did not take it",
    };
    let active = offered && in_force && source == SourceSemiSync::Enabled;
    SemiSyncStatus { active, reason: reason.to_owned() }
}

/// Shows what is held before, and without, a session.
pub(super) fn publish_copy(monitor: &SourceMonitor, copy: &HeldCopy) {
    let Some(timeline) = copy.timeline() else { return };
    let mut before = None;
    monitor.update_facts(|facts| before = facts.timeline.replace(timeline.name.clone()));
    let mut ladder = monitor.positions();
    if before.is_some_and(|before| before != timeline.name) {
        // What was acknowledged belongs to the timeline before, whose successor was begun by an attempt that failed.
        ladder = Ladder::default();
        monitor.publish_gtids(|gtids| *gtids = GtidRungs::default());
    }
    let end = timeline.end().map(|end| LogPosition::new(end.file, end.offset));
    (ladder.received, ladder.written, ladder.durable) = (end.clone(), end.clone(), end);
    monitor.publish_positions(&ladder);
    monitor.publish_gtids(|gtids| gtids.durable.clone_from(&timeline.gtids));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semi_sync_says_why() {
        let say = |configured, source, in_force| {
            semi_sync_status(configured, configured && source != SourceSemiSync::Absent, source, in_force)
        };
        assert!(say(true, SourceSemiSync::Enabled, true).active);
        assert!(!say(true, SourceSemiSync::Enabled, false).active);
        assert!(say(true, SourceSemiSync::Disabled, true).reason.contains("switched off on the source"));
        assert!(say(true, SourceSemiSync::Absent, false).reason.contains("no semi-sync plugin"));
        assert!(say(false, SourceSemiSync::Enabled, false).reason.contains("semi_sync = false"));
    }
}

//! One attempt: connect, find out who answers, decide, receive.

use super::Upstream;
use super::attached::Attached;
use super::attempt_error::AttemptError;
use super::complaint::Complaint;
use super::copy::HeldCopy;
use super::cursor::Cursor;
use super::examine::{ER_FATAL_READING_BINLOG, ER_SPECIFIC_ACCESS_DENIED};
use super::hosts::{Hosts, STANDBY_PATIENCE, Standing};
use super::identify::{SourceIdentity, SourceSemiSync};
use super::look::{Compared, Look, Ours, compare, look};
use super::negotiate::{
    Introduction, ask_for_events_as_they_are, checksum_outside_files, dump_request, locate_request,
    look_request,
};
use super::plan::{From, Plan, plan};
use super::receive::{ReceiveOptions, SessionError, receive};
use super::stop::ShutsDown;
use crate::config::{HostPort, OnGap};
use crate::log::Position;
use crate::log::timeline::{Reason, ServerKind, Timeline};
use crate::status::{GtidRungs, Ladder, LogPosition, SemiSyncStatus, SourceMonitor, SourceState};
use crate::wire::{ConnectOptions, Connection, WireError};
use codec::gtid::GtidState;
use std::os::fd::AsFd;
use std::time::Instant;

/// The first file of a new timeline.
struct FirstFile {
    name: String,
    /// GTIDs of what the source wrote and has in no file any more, as far as it says so.
    purged: GtidState,
}

/// One attempt with one host.
pub struct Attempt<'a> {
    /// The source it belongs to.
    pub upstream: &'a Upstream,
    /// The host to try.
    pub host: &'a HostPort,
    /// What is known of the list that it stands in.
    pub hosts: &'a Hosts,
    /// In place of the `server_id` that is ours.
    pub stand_in: Option<u32>,
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
        let plan = plan(copy.holding().as_ref(), &source, &self.upstream.config.start);
        self.check_standing(&source, &plan)?;
        let tls = connection.tls_version().map(str::to_owned);
        monitor.update_facts(|facts| {
            facts.server_version = Some(source.version.clone());
            // MariaDB has none; the stand-in names the timeline's folder only.
            facts.server_uuid = (source.kind == ServerKind::Mysql).then(|| source.uuid.clone());
            facts.server_id = Some(source.server_id);
            facts.tls = tls;
        });
        let at = match plan {
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
        self.publish_lacked(copy, &source)?;
        self.session(connection, copy, &source, &at).map_err(|error| self.examine(copy, &source, &at, error))
    }

    /// Says what the source lacks of what forks took from it: a loss that a crash or a failover made, until a rescue.
    fn publish_lacked(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<(), AttemptError> {
        let lacked = match source.has_gtids {
            true => Some(source.lacks(&copy.lost_gtids(source.executed.flavour())?)),
            false => None,
        };
        if let Some(lacked) = lacked.as_ref().filter(|lacked| !lacked.is_empty()) {
            tracing::error!(
                source = self.upstream.config.name,
                host = %self.host,
                "the source lacks transactions that the copy holds: {}; binlogd rescue hands them over",
                lacked.to_line()
            );
        }
        self.upstream.monitor.update_facts(|facts| facts.source_lacked = lacked);
        Ok(())
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
        {
            let _shut_down = self.ended_by_stop(&connection)?;
            introduction.make(&mut connection, source).map_err(|error| self.with_privilege(error))?;
        }
        let offered = introduction.offers_semi_sync(source);
        let timeline = copy.timeline_mut().expect("a session has a timeline");
        let tail = timeline.tail().map_err(SessionError::from)?;
        let (request, requested) = dump_request(server_id, &at.file, at.offset - tail.len() as u64);
        let stream = connection.start_dump(&request)?;
        let attached = match source.kind {
            ServerKind::Mariadb if offered => {
                Some(Attached::begin(stream.as_fd(), &*self.upstream.clock).map_err(SessionError::Network)?)
            }
            _ => None,
        };
        // Until the timeline has a file, the source's first ROTATE is what begins it.
        let asked = timeline.end().map(|_| at.clone());
        let cursor = Cursor::new(asked, requested, timeline.format.clone(), checksum_outside_files(source))
            .comparing(timeline.tail_start, tail);
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
        let received = receive(stream, cursor, timeline, &options, monitor, stop, &mut on_stream);
        if let Some(attached) = attached {
            attached.leave(&*self.upstream.clock, stop);
        }
        Ok(received?)
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
    pub(super) fn begin_timeline(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        mut reason: Reason,
        from: &From,
        source_lacks: &GtidState,
    ) -> Result<(), AttemptError> {
        let first = match self.first_file(copy, source, from) {
            Err(AttemptError::Gap { .. }) if self.upstream.config.on_gap == OnGap::Record => {
                reason = Reason::Gap;
                self.first_file(copy, source, &From::Earliest)?
            }
            other => other?,
        };
        let held = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
        // A history without GTIDs says nothing of what it lacks, unless something is known to be missing.
        let missing = if reason == Reason::Gap || (reason != Reason::First && !held.is_empty()) {
            first.purged.subtract(&held)
        } else {
            GtidState::empty(source.executed.flavour())
        };
        let info = Timeline {
            began_at: jiff::Timestamp::now().to_string(),
            reason,
            server_uuid: source.uuid.clone(),
            server_version: source.version.clone(),
            server_kind: source.kind,
            first_file: first.name,
            gtid_before: held.to_record(),
            source_lacks: source_lacks.to_record(),
            missing: missing.to_record(),
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

    /// The file that `from` means on this source.
    fn first_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        from: &From,
    ) -> Result<FirstFile, AttemptError> {
        let named = |name| FirstFile { name, purged: source.purged.clone() };
        match from {
            From::File(name) => Ok(named(name.clone())),
            From::Earliest => {
                let look = self.look(copy, source, "")?;
                let purged = look.gtids_before.unwrap_or_else(|| source.purged.clone());
                Ok(FirstFile { name: look.file, purged })
            }
            From::Latest => Ok(named(self.newest_file()?)),
            From::After(set) => {
                let (mut connection, _) = self.connect()?;
                let request = locate_request(&mut connection, self.server_id(copy), set)?;
                match self.look_with(connection, source, &request) {
                    Ok(look) => Ok(named(look.file)),
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

    pub(super) fn look(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
    ) -> Result<Look, AttemptError> {
        self.look_from(copy, source, file, 4)
    }

    /// As [`look`](Self::look), from an offset on at which the source must have an event's end.
    pub(super) fn look_from(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
        offset: u64,
    ) -> Result<Look, AttemptError> {
        let (connection, _) = self.connect()?;
        self.look_with(connection, source, &look_request(self.server_id(copy), file, offset))
    }

    fn look_with(
        &self,
        mut connection: Connection,
        source: &SourceIdentity,
        request: &[u8],
    ) -> Result<Look, AttemptError> {
        ask_for_events_as_they_are(&mut connection, source)?;
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

    /// Holds a file of the source against the copy's.
    pub(super) fn compare(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
        ours: Ours<'_>,
    ) -> Result<Compared, AttemptError> {
        let config = &self.upstream.config;
        let (mut connection, _) = self.connect()?;
        ask_for_events_as_they_are(&mut connection, source)?;
        let request = look_request(self.server_id(copy), file, 4);
        let silence = config.net_read_timeout;
        Ok(compare(connection, source, &request, ours, silence, &self.upstream.stop)?)
    }

    /// Connects and asks who answers. A request to stop ends each wait in it.
    fn connect(&self) -> Result<(Connection, SourceIdentity), WireError> {
        let config = &self.upstream.config;
        let options = ConnectOptions {
            host: self.host.host.clone(),
            port: self.host.port,
            user: config.user.clone(),
            password: config.password.clone(),
            connect_timeout: config.connect_timeout,
            tls: config.tls.clone(),
        };
        let stop = &self.upstream.stop;
        let mut shut_down = None;
        let mut connection = self.upstream.network.connect(&options, &mut |socket| {
            // Not in one assignment: the end of an earlier one would forget the newer socket too. Without descriptors left
            // the stop waits until the connection's own time is over.
            drop(shut_down.take());
            shut_down = stop.shuts_down(socket).ok();
        })?;
        let source = SourceIdentity::ask(&mut connection)?;
        Ok((connection, source))
    }

    /// As long as the answer is held, a request to stop ends a wait for the source: one that answers slowly must not hold
    /// up the end of the process.
    fn ended_by_stop(&self, connection: &Connection) -> Result<ShutsDown<'_>, WireError> {
        let stop = &self.upstream.stop;
        stop.shuts_down(connection.as_fd())
            .map_err(|reason| WireError::Io { during: "preparing to question the source", reason })
    }

    fn server_id(&self, copy: &HeldCopy) -> u32 {
        let ours = self.upstream.config.server_id.unwrap_or(copy.identity().server_id);
        self.stand_in.unwrap_or(ours)
    }

    /// Fails when the server is not to be taken for the source yet; see [`Hosts`].
    fn check_standing(&self, source: &SourceIdentity, plan: &Plan) -> Result<(), AttemptError> {
        let lacks = match plan {
            Plan::Begin { reason: Reason::Fork, source_lacks, .. } => Some(source_lacks),
            _ => None,
        };
        let standing = Standing::of(source.is_read_only, lacks.is_some(), self.hosts.is_alone());
        if self.hosts.accepts(standing, Instant::now()) {
            return Ok(());
        }
        Err(match lacks {
            Some(lacks) if standing == Standing::Behind => AttemptError::Behind(lacks.to_line()),
            _ => AttemptError::ReadOnly(STANDBY_PATIENCE),
        })
    }

    fn check_server_id(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<(), AttemptError> {
        let ours = self.server_id(copy);
        if ours == source.server_id { Err(AttemptError::ServerId(ours)) } else { Ok(()) }
    }
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
    let is_held = |position: &LogPosition| {
        end.as_ref().is_some_and(|end| end.file != position.file || end.position >= position.position)
    };
    // Somebody may have removed or cut a file in which positions were acknowledged.
    ladder.acknowledged = ladder.acknowledged.filter(is_held);
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

//! One attempt: connect, find out who answers, decide, receive.

pub mod ask;
pub(crate) mod attempt_error;
pub(crate) mod backoff;
pub(crate) mod context;
pub mod copy;
pub(crate) mod copy_error;
pub(crate) mod life;
pub mod open_timeline;
pub(crate) mod repeats;

use super::peers::{BEFORE_MAX, Completed, SWITCHED_MAX};
use super::session::{Begun, Outside, ReceiveOptions, Sender, SessionError};
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::{AttemptError, in_short};
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use crate::decide::fork_watch::ForkWatch;
use crate::decide::hosts::{STANDBY_PATIENCE, Standing};
use crate::decide::plan::{From, Holding, Kinship, Plan, plan};
use crate::peers::above;
use crate::session::attached::Attached;
use crate::session::cursor::Cursor;
use crate::session::receive::receive;
use crate::session::refusal::{OtherFile, OtherHistory, Refusal};
use crate::sink::downstream::{Quorum, ReplicaDemand};
use crate::sink::publish::publish_copy;
use crate::watch::rival::{Taken, rival, taken};
use binlog::Position;
use binlog::forks::{Fate, Forks};
use binlog::timeline::Reason;
use codec::ServerKind;
use codec::event::BINLOG_MAGIC;
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use config::{AckTimeoutAction, OnFork, OnStranger};
use jiff::Timestamp;
use source::identify::{SourceIdentity, SourceSemiSync};
use source::link::{End, Link};
use source::negotiate::{Introduction, checksum_outside_files, dump_request};
use source::settings::{refusal, settings};
use status::{SemiSyncStatus, SourceState};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wire::{Connection, WireError};

/// Before a semi-sync replica attaches to a MariaDB, it is seen whether the source can read so much of the next transaction, in
/// bytes: see `link.rs`. More is read only when a session fell silent there.
const MARIADB_AHEAD_BYTES: u64 = 1024 * 1024;

impl Attempt<'_> {
    /// Connects and receives until a stop is requested (`Ok`) or something breaks.
    ///
    /// # Errors
    /// What broke.
    pub fn make(&self, copy: &mut HeldCopy) -> Result<(), AttemptError> {
        let monitor = &self.upstream.monitor;
        monitor.set_state(SourceState::Connecting { host: self.host.to_string() });
        self.left.timeline_above.take();
        let (mut connection, source) = self.connect()?;
        let (settings, above) = {
            let _shut_down = self.ended_by_stop(&connection)?;
            (settings(&mut connection)?, above::ask(&mut connection)?)
        };
        let tls = connection.tls_version().map(str::to_owned);
        let expires = connection.certificate_expires();
        let value = |name: &str| Some(settings.iter().find(|(known, _)| known == name)?.1.as_str());
        let refusal = refusal(value, self.upstream.config.hosts.len());
        // Before the server can be refused: who it is belongs to the host that is shown.
        monitor.update_facts(|facts| {
            facts.server_version = Some(source.version.clone());
            // MariaDB has none; the stand-in names the timeline's folder only.
            facts.server_uuid = (source.kind == ServerKind::MySql).then(|| source.uuid.clone());
            facts.server_id = Some(source.server_id);
            facts.tls = tls;
            facts.certificate_expires = expires.and_then(|second| Timestamp::from_second(second).ok());
            facts.settings = settings.into();
        });
        if let Some(refusal) = refusal {
            return Err(AttemptError::Refused(refusal.why));
        }
        self.check_server_id(copy, &source)?;
        self.come_beside(&mut connection, copy)?;
        if let Some(above) = above {
            connection.close(); // Those that follow read one timeline each.
            return self.mirror(copy, &source, &above);
        }
        self.check_epoch(&source)?;
        let at = self.place(copy, &source)?;
        self.session_at(connection, copy, &source, &at)
            .map_err(|error| self.examine(copy, &source, &at, error))
    }

    /// Where the session goes on; a timeline that is to begin for that is begun.
    pub(crate) fn place(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Position, AttemptError> {
        let (mut plan, mut back_to) = self.plan(copy, source)?;
        self.check_standing(source, &plan)?;
        // Here already, so that another attempt is spared where the peers have more.
        let ends = back_to.is_some() || matches!(plan, Plan::Begin { .. });
        if ends && self.complete_before(copy, source, BEFORE_MAX)?.something {
            (plan, back_to) = self.plan(copy, source)?;
            self.check_standing(source, &plan)?;
        }
        if let Some(timeline) = back_to {
            self.go_back_to(copy, source, &timeline)?;
        }
        match plan {
            Plan::Resume(position) => {
                self.check_continuity(copy, source)?;
                Ok(position)
            }
            Plan::Begin { reason, from, source_lacks } => {
                self.begin_timeline(copy, source, reason, &from, &source_lacks)?;
                let holding = copy.holding().expect("a timeline was begun");
                Ok(Position::new(holding.first_file, 4))
            }
            Plan::Stranger => unreachable!("decided above"),
        }
    }

    /// Shows what is held, begins to watch what forks took, and receives from `at` on.
    pub(crate) fn session_at(
        &self,
        connection: Connection,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
    ) -> Result<(), AttemptError> {
        publish_copy(self.upstream, copy);
        self.publish_lacked(copy, source)?;
        let forks = self.watch_forks(copy, source)?;
        self.session(connection, copy, source, at, forks)
    }

    /// Where to go on, and the timeline to go back to for that, where the server is that of an older history.
    fn plan(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
    ) -> Result<(Plan, Option<PathBuf>), AttemptError> {
        let config = &self.upstream.config;
        let Some(holding) = copy.holding() else { return Ok((plan(None, source, &config.start), None)) };
        if !matches!(Kinship::of(&holding, source), Kinship::Itself | Kinship::Related) {
            let is_known =
                |other: &Holding| matches!(Kinship::of(other, source), Kinship::Itself | Kinship::Related);
            if let Some((folder, other)) = copy.other_history(is_known)? {
                return Ok((plan(Some(&other), source, &config.start), Some(folder)));
            }
        }
        match (plan(Some(&holding), source, &config.start), config.on_stranger) {
            (Plan::Stranger, OnStranger::Refuse) => Err(AttemptError::Stranger {
                uuid: source.uuid.clone(),
                executed: in_short(&source.executed),
                held: in_short(&holding.gtids),
                copied: holding.uuid,
            }),
            (Plan::Stranger, OnStranger::Follow) => {
                let source_lacks = GtidState::empty(source.executed.kind());
                Ok((Plan::Begin { reason: Reason::Stranger, from: From::Earliest, source_lacks }, None))
            }
            (known, _) => Ok((known, None)),
        }
    }

    /// Has the newest timeline, if there is one, completed from the peers before it ends, within `max`.
    pub(crate) fn complete_before(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        max: Duration,
    ) -> Result<Completed, AttemptError> {
        // The successor of a source that is alive has what that one has, and so what a peer can have: commits wait there.
        let max = if self.left.switched.get() { max.min(SWITCHED_MAX) } else { max };
        self.upstream.complete_before(copy, &mut self.left.peers.borrow_mut(), &source.uuid, max)
    }

    /// A timeline has ended: says what it was not completed with.
    pub(crate) fn end_without(&self, ended: Option<String>, completed: &Completed) {
        if let Some(ended) = ended {
            self.upstream.end_without(&self.left.peers.borrow(), &ended, &completed.unasked);
        }
    }

    /// Goes on with an older timeline: the server of that one is back, and the newer ones have nothing in common with it.
    pub(crate) fn go_back_to(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        timeline: &Path,
    ) -> Result<(), AttemptError> {
        let completed = self.complete_before(copy, source, BEFORE_MAX)?;
        if completed.something {
            return Err(AttemptError::Completed);
        }
        let ended = copy.timeline().map(|timeline| timeline.name.clone());
        {
            // A purge that has planned by what was written before would take this one's files for an older timeline's.
            // A purge that deletes is waited for.
            let _histories = self.upstream.at_rest(|| self.upstream.published.histories_stay());
            self.leave_timeline(copy, false)?;
            self.upstream.at_rest(|| copy.go_back_to(timeline))?;
        }
        self.end_without(ended, &completed);
        let name = copy.timeline().map_or("", |timeline| timeline.name.as_str());
        tracing::info!(
            source = self.upstream.config.name,
            timeline = name,
            "the server of this timeline is back and goes on with it; the newer ones share nothing with it"
        );
        Ok(())
    }

    /// Begins to watch what becomes of what forks took from the source, or stops where the operator wants to decide first.
    fn watch_forks(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Arc<ForkWatch>>, AttemptError> {
        let failed = |error| CopyError::Timeline { path: copy.source_folder().to_owned(), error };
        let on_fork = self.upstream.config.on_fork;
        if on_fork == OnFork::Stop {
            let stop = &self.upstream.stop;
            let forks = match Forks::read(copy.storage(), copy.source_folder(), || !stop.is_requested()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
                forks => forks.map_err(failed)?,
            };
            // What it has executed and not sent yet is compared when it comes.
            let lacked = forks.as_ref().map(|forks| {
                let mut lacked = forks.gtids(Fate::Lacking);
                let _ = lacked.union_with(&forks.gone());
                source.lacks(&lacked)
            });
            let twice = forks.as_ref().map(|forks| forks.gtids(Fate::GivenTwice));
            if let Some(lacked) = lacked.filter(|lacked| !lacked.is_empty()) {
                let lacked = lacked.to_line();
                return Err(AttemptError::Forked(format!(
                    "the source lacks transactions that the copy holds: {lacked}"
                )));
            }
            if let Some(twice) = twice.filter(|twice| !twice.is_empty()) {
                return Err(AttemptError::Forked(format!(
                    "the source gave GTIDs twice: {}",
                    twice.to_line()
                )));
            }
        }
        let upstream = self.upstream;
        let watch = upstream.at_rest(|| ForkWatch::start(upstream, copy.source_folder(), source));
        Ok(watch.map_err(failed)?.map(Arc::new))
    }

    /// Shows what the source lacks of what forks took from it, until the copy was read and [`ForkWatch`] knows better.
    fn publish_lacked(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<(), AttemptError> {
        let lacked = match source.has_gtids {
            true => Some(source.lacks(&copy.lost_gtids(source.executed.kind())?)),
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
        let monitor = &self.upstream.monitor;
        monitor.update_facts(|facts| facts.source_lacked = lacked);
        Ok(())
    }

    /// Introduces us, asks for the binary log from `at` on, and receives.
    fn session(
        &self,
        mut connection: Connection,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        forks: Option<Arc<ForkWatch>>,
    ) -> Result<(), AttemptError> {
        let config = &self.upstream.config;
        let server_id = self.server_id(copy);
        self.attach_node(copy, source, forks.as_deref())?;
        // The copy may have what the node needs to count already. One that does not count must not acknowledge by the place at which
        // its session begins either.
        let counts = self.counts();
        let introduction = Introduction {
            replica: copy.identity(),
            server_id,
            heartbeat_period: config.heartbeat_period,
            semi_sync: config.semi_sync && counts,
        };
        let offered = introduction.offers_semi_sync(source);
        let tail = copy.timeline().expect("a session has a timeline").tail().map_err(SessionError::from)?;
        if offered {
            self.check_place(copy, source, at, &tail)?;
        }
        {
            let _shut_down = self.ended_by_stop(&connection)?;
            self.look_for_rival(&mut connection, copy)?;
            introduction.make(&mut connection, source).map_err(|error| self.with_privilege(error))?;
        }
        let replicas = self.replicas(counts);
        let passed_over = match offered {
            true => self.passed_over(&mut connection, copy, source, forks.as_deref(), replicas.as_ref())?,
            false => Vec::new(),
        };
        self.attach_node(copy, source, forks.as_deref())?;
        let timeline = copy.timeline_mut().expect("a session has a timeline");
        // A timeline that was written no more when it was asked about may be live by now, and nothing of this session would be
        // acknowledged: it ends where that ends now, and another look is taken.
        let waits = self.left.timeline_above.borrow().as_ref().is_none_or(|above| above.is_live);
        let (request, requested) = match passed_over.first() {
            Some(first) => dump_request(server_id, first, BINLOG_MAGIC.len() as u64, waits),
            None => dump_request(server_id, &at.file, at.offset - tail.len() as u64, waits),
        };
        let stream = connection.start_dump(&request)?;
        let attached = match offered {
            true => {
                Some(Attached::begin(stream.as_fd(), &*self.upstream.clock).map_err(SessionError::Network)?)
            }
            false => None,
        };
        // Until the timeline has a file, the source's first ROTATE is what begins it.
        let asked = timeline.end().map(|_| at.clone());
        let cursor =
            Cursor::new(asked, requested, timeline.expected_format(), checksum_outside_files(source))
                .comparing(timeline.tail_start, tail)
                .passing_over(passed_over);
        let options = ReceiveOptions {
            clock: self.upstream.clock.clone(),
            fsync_mode: config.fsync_mode,
            fsync_interval: config.fsync_interval,
            net_read_timeout: config.net_read_timeout,
            published: self.upstream.published.clone(),
            sender: Sender::Source { forks, replicas, is_ended: !waits },
        };
        let monitor = &self.upstream.monitor;
        let mut on_stream = |begun: Begun| {
            self.left.open.take();
            let (semi_sync, withheld) = (begun != Begun::WithoutSemiSync, begun == Begun::Withholding);
            let status = semi_sync_status(config.semi_sync, offered, source.semi_sync, semi_sync);
            let active = status.active && !withheld;
            tracing::info!(source = config.name, host = %self.host, semi_sync = active, "receiving from {at}");
            if withheld {
                let reason = monitor.facts().lost_in_words();
                tracing::error!(source = config.name, host = %self.host, "acknowledgements are withheld: {reason}");
            }
            let above = self.left.timeline_above.borrow().as_ref().map(|above| above.name.clone());
            monitor.update_facts(|facts| facts.timeline_above = above);
            monitor.semi_sync_begins(status, offered && semi_sync, withheld);
            monitor.set_state(if withheld { SourceState::Withholding } else { SourceState::Receiving });
        };
        let stop = &self.upstream.stop;
        let mut link = |end: &End<'_>| self.link(source, end, self.upstream.clock.jitter().max(1));
        let mut outside = Outside { on_stream: &mut on_stream, link: &mut link };
        let received = receive(stream, cursor, timeline, &options, monitor, stop, &mut outside);
        let source_goes_on = matches!(received, Err(SessionError::LeftBehind(_)));
        match (attached, source.kind) {
            (Some(attached), ServerKind::MariaDb) if !source_goes_on => {
                attached.leave(&*self.upstream.clock, stop);
            }
            (attached, _) => self.left.open.set(attached),
        }
        received.map_err(|error| match error {
            SessionError::Forked(reason) => AttemptError::Forked(reason),
            error => error.into(),
        })
    }

    /// What is demanded of receivers further down, or of the other nodes of a quorum. `counted`: this one counts.
    fn replicas(&self, counted: bool) -> Option<ReplicaDemand> {
        let (config, quorum) = (&self.upstream.config, &self.upstream.quorum);
        let wanted = quorum.as_ref().map_or(config.ack_after_replicas, |node| node.others_wanted());
        (wanted > 0).then(|| ReplicaDemand {
            wanted,
            timeout: config.ack_timeout,
            // What a majority does not have is never acknowledged.
            action: if quorum.is_some() { AckTimeoutAction::Wait } else { config.ack_timeout_action },
            // A quorum never goes on alone, whatever was before it.
            alone: if quorum.is_some() { Arc::default() } else { self.left.alone.clone() },
            quorum: quorum.clone().map(|node| Quorum { node, counted }),
        })
    }

    /// Whether this is no node of a quorum, or one that may acknowledge.
    fn counts(&self) -> bool {
        self.upstream.quorum.as_ref().is_none_or(|node| node.epoch() > 0)
    }

    /// In a quorum the source of its epoch is received from, and no other server.
    fn check_epoch(&self, source: &SourceIdentity) -> Result<(), AttemptError> {
        let Some(node) = &self.upstream.quorum else { return Ok(()) };
        let memory = node.memory();
        let Some(accepted) = memory.accepted() else { return Ok(()) };
        match source.uuid == accepted.source {
            true => Ok(()),
            false => Err(AttemptError::OtherEpoch {
                server: source.uuid.clone(),
                source_uuid: accepted.source.clone(),
                epoch: accepted.ballot.epoch,
            }),
        }
    }

    /// Tells the node of the quorum which timeline is written.
    fn attach_node(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        forks: Option<&ForkWatch>,
    ) -> Result<(), AttemptError> {
        let Some((node, timeline)) = self.upstream.quorum.as_ref().zip(copy.timeline()) else {
            return Ok(());
        };
        let lacks = forks.map(ForkWatch::withholds);
        node.attached(timeline.folder(), &source.uuid, lacks).map_err(CopyError::from)?;
        if let Some(end) = timeline.end() {
            let held = || (*self.upstream.monitor.gtids().durable).clone();
            node.tend(timeline.folder(), timeline.log.files(), &end, held).map_err(CopyError::from)?;
        }
        Ok(())
    }

    /// Compares the place at which a session will begin, over a dump that is none of a semi-sync replica. To a source, the
    /// place at which a session begins acknowledges all before it, in whichever history the source has by now.
    fn check_place(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        tail: &[u8],
    ) -> Result<(), AttemptError> {
        let Some(timeline) = copy.timeline().filter(|timeline| timeline.end().is_some()) else {
            return Ok(());
        };
        let ahead = match source.kind {
            ServerKind::MariaDb if copy.found.is_silent_at(at) => u64::MAX,
            ServerKind::MariaDb => MARIADB_AHEAD_BYTES,
            ServerKind::MySql => 0,
        };
        let end = End { at: at.clone(), format: timeline.format.as_ref(), tail, ahead };
        if u32::try_from(end.tail_start()).is_err() {
            return Ok(()); // The whole file will be asked for, and its beginning acknowledges nothing of it.
        }
        match self.link(source, &end, self.server_id(copy)) {
            Ok(Link::GoesOn { .. } | Link::Followed(_)) => Ok(()),
            Ok(Link::OtherFile) => {
                Err(SessionError::from(Refusal::from(OtherFile { file: at.file.clone() })).into())
            }
            Ok(Link::OtherHistory { at: differs }) => {
                let found = OtherHistory { at: Position { offset: differs, ..at.clone() }, held: at.offset };
                Err(SessionError::from(Refusal::from(found)).into())
            }
            // As the session would have heard it.
            Ok(Link::Refused(complaint)) => Err(SessionError::Source(*complaint).into()),
            Err(WireError::Server { code, sqlstate, message }) => {
                Err(SessionError::Source(ErrPacket { code, sqlstate, message }).into())
            }
            Err(error) => Err(self.with_privilege(error)),
        }
    }

    /// Says when another replica has our `server_id`; once as long as it is the same one.
    fn look_for_rival(&self, connection: &mut Connection, copy: &HeldCopy) -> Result<(), AttemptError> {
        let (server_id, uuid) = (self.server_id(copy), copy.identity().replica_uuid.clone());
        let rival = rival(connection, server_id, &uuid)?;
        let monitor = &self.upstream.monitor;
        if let Some(rival) = rival.as_ref().filter(|rival| monitor.facts().rival.as_ref() != Some(rival)) {
            tracing::warn!(source = self.upstream.config.name, host = %self.host, "server_id: {rival}");
        }
        monitor.update_facts(|facts| (facts.rival, facts.registered) = (rival, Some((server_id, uuid))));
        Ok(())
    }

    /// Before the first dump from a MariaDB: where our `server_id` is taken, another one is used, for the dump would end that of
    /// whoever has it.
    fn come_beside(&self, connection: &mut Connection, copy: &HeldCopy) -> Result<(), AttemptError> {
        let monitor = &self.upstream.monitor;
        // In a later session what is listed is a connection of ours, which is to end.
        if connection.server_kind() != ServerKind::MariaDb
            || monitor.facts().registered.is_some()
            || self.left.stand_in.get().is_some()
        {
            return Ok(());
        }
        let ours = self.server_id(copy);
        let found = {
            let _shut_down = self.ended_by_stop(connection)?;
            taken(connection, ours)?
        };
        let why = match found {
            Taken::No => return Ok(()),
            Taken::Yes => format!(
                "a replica is registered with {ours}, ours, or a connection of before is not found dead yet"
            ),
            Taken::Perhaps => format!(
                "the account has another binlog dump there, and may not see whether that has {ours}, ours; with REPLICATION \
                 MASTER ADMIN it may"
            ),
        };
        let server_id = self.upstream.clock.jitter().max(1);
        tracing::info!(
            source = self.upstream.config.name,
            host = %self.host,
            server_id,
            "coming with another server_id, so that no other dump is ended: {why}"
        );
        self.left.stand_in.set(Some(server_id));
        if found == Taken::Yes {
            monitor.update_facts(|facts| facts.taken = Some((ours, self.upstream.clock.now())));
        }
        Ok(())
    }

    /// Fails when the server is not to be taken for the source yet; see [`Hosts`](crate::decide::hosts::Hosts). The source of a
    /// quorum's epoch is, before it is writable: its first commit waits for us.
    fn check_standing(&self, source: &SourceIdentity, plan: &Plan) -> Result<(), AttemptError> {
        if self.upstream.is_of_epoch(source) {
            return Ok(());
        }
        let lacks = match plan {
            Plan::Begin { reason: Reason::Fork, source_lacks, .. } => Some(source_lacks),
            _ => None,
        };
        let standing = Standing::of(source.is_read_only, lacks.is_some(), self.hosts.is_alone());
        if self.hosts.accepts(standing, self.upstream.clock.now()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::ask::Left;
    use crate::attempt::context::Upstream;
    use crate::decide::hosts::Hosts;
    use config::Config;
    use quorum::Node;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn who_went_on_without_receivers_waits_for_nodes() {
        let text = "[serve]\nlisten = '127.0.0.1:3307'\n[[source]]\nname = 's'\nhosts = ['db1']\nuser = 'repl'\npassword = 'secret'\nack_after_replicas = 1\n";
        let config = Config::parse(text, "binlogd.toml".as_ref(), &|_| None).unwrap().config;
        let dir = tempfile::tempdir().unwrap();
        let mut upstream = Upstream::asking(config.sources[0].clone(), dir.path());
        let (hosts, left) = (Hosts::new(1, upstream.clock.now()), Left::default());
        left.alone.store(true, Relaxed);
        let is_alone = |upstream: &Upstream| {
            let attempt = Attempt { upstream, host: &upstream.config.hosts[0], hosts: &hosts, left: &left };
            attempt.replicas(true).unwrap().alone.load(Relaxed)
        };
        assert!(is_alone(&upstream));
        let (others, changes) = (vec!["b2:3307".to_owned(), "b3:3307".to_owned()], Box::new(|_| {}));
        let folder = dir.path().join("s");
        let node = Node::new(upstream.storage.clone(), folder, upstream.published.clone(), others, changes);
        upstream.quorum = Some(Arc::new(node));
        assert!(!is_alone(&upstream));
    }

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

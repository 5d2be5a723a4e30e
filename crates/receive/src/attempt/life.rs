//! The life of a source's thread: open the copy, make one attempt after the other, rest in between.

use super::ask::{Attempt, Left};
use super::attempt_error::{AttemptError, Cure};
use super::backoff::{Away, Backoff, CROWDED_MAX, DENIED_MAX};
use super::context::Upstream;
use super::copy::HeldCopy;
use super::copy_error::CopyError;
use super::open_timeline::OpenTimeline;
use super::repeats::Repeats;
use crate::decide::hosts::Hosts;
use crate::decide::shortage::{Failed, Go, LOOK_INTERVAL, SESSION_BYTES_MIN, Shortage};
use crate::nodes::Nodes;
use crate::peers::Peers;
use crate::peers::above_error::AboveError;
use crate::sink::publish::publish_copy;
use binlog::folder::of_a_quorum;
use codec::ServerKind;
use config::{HostPort, OnFork};
use quorum::memory_in;
use status::{Demanded, DiskSpace, Place, SourceState, units};
use std::io;
use std::time::{Duration, Instant};

/// Before the next session with a MariaDB that was left a moment ago: its old dump should have ended by then.
const MARIADB_STEP_MIN: Duration = Duration::from_millis(50);

/// Opening a copy again reads the live file to its end. It takes at most about this share of the time, however large the
/// file and however long the disk fails: one part of work, and so many of rest.
const REOPEN_REST: u32 = 4;

/// The longest rest between two attempts to open a copy again.
const REOPEN_REST_MAX: Duration = Duration::from_secs(30);

/// When the next attempt begins, with which host, and what the log says until then.
struct Pacing {
    backoff: Backoff,
    hosts: Hosts,
    /// One a host: those that told us to go away.
    away: Vec<Away>,
    repeats: Repeats,
    /// One a host: why it was not the source, since the last session.
    tried: Vec<Option<String>>,
    /// The disk was full when the last session ended, or is nearly so.
    shortage: Option<Shortage>,
}

impl Upstream {
    /// Opens the copy and receives until a stop is requested: the whole life of a source's thread. Returns early only when
    /// nothing but an operator can help; that is then the state, and in the log.
    pub fn live(self) {
        self.show_settings();
        self.monitor.pulse.beat(Place::Asks);
        self.monitor.set_state(SourceState::Recovering);
        let mut backoff = Backoff::new(self.config.backoff_min, self.config.backoff_max);
        let mut repeats = Repeats::default();
        let mut copy = None;
        while !self.stop.is_requested() {
            let began = self.clock.now();
            let Err(error) = self.open_or_go_on(&mut copy) else { break };
            if self.stop.is_requested() {
                break;
            }
            if error.needs_operator() {
                tracing::error!(
                    source = self.config.name,
                    "stopped: {error}. Put it right, then reload (SIGHUP) or restart binlogd; other sources are not concerned"
                );
                self.monitor.set_error(error.to_string());
                return self.monitor.set_state(SourceState::stopped(error.to_string()));
            }
            self.rest(began, &error, &mut backoff, &mut repeats);
        }
        match copy {
            Some(copy) if !self.stop.is_requested() => self.run(copy),
            _ => self.has_stopped(),
        }
    }

    /// Shows how safe the operator wants a transaction to be before it is acknowledged.
    fn show_settings(&self) {
        let config = &self.config;
        self.monitor.set_fsync_mode(config.fsync_mode);
        self.monitor.update_facts(|facts| facts.semi_sync_wanted = config.semi_sync);
        self.monitor.ack_replicas.demand(Demanded {
            wanted: self.quorum.as_ref().map_or(config.ack_after_replicas, |node| node.others_wanted()),
            timeout: config.ack_timeout,
            action: config.ack_timeout_action,
        });
    }

    /// Locks the folder if that was not done yet, and recovers the newest timeline.
    fn open_or_go_on(&self, copy: &mut Option<HeldCopy>) -> Result<(), CopyError> {
        let copy = match copy {
            Some(copy) => copy,
            None => copy.insert(self.lock()?),
        };
        self.open_node(copy)?;
        self.monitor.set_state(SourceState::Recovering);
        let remarks = self.recover(copy)?;
        self.opened(copy, &remarks);
        Ok(())
    }

    /// Reads what this node of a quorum must not forget.
    fn open_node(&self, copy: &HeldCopy) -> Result<(), CopyError> {
        let path = self.data_dir.join(&self.config.name);
        let Some(node) = &self.quorum else {
            return match memory_in(&*self.storage, &path)? {
                Some(_) => Err(CopyError::OfQuorum { path }),
                None => Ok(()),
            };
        };
        of_a_quorum(&*self.storage, &path, copy.identity())?;
        // The folder was read with it.
        let uuid = copy.identity().replica_uuid.parse().unwrap_or_default();
        Ok(node.open(uuid)?)
    }

    fn lock(&self) -> Result<HeldCopy, CopyError> {
        HeldCopy::lock(self.storage.clone(), self.clock.clone(), &self.data_dir, &self.config.name)
    }

    /// Finds out what is on disk, and shows how far that is. A request to stop ends it.
    fn recover(&self, copy: &mut HeldCopy) -> Result<Vec<String>, CopyError> {
        let mut watch = |done, total| -> io::Result<()> {
            self.monitor.publish_recovery(done, total);
            if self.stop.is_requested() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        };
        // However long it takes: a restart would begin the same again. And sources take turns with their journals.
        let recovered = self.at_rest(|| copy.reopen_watched(&mut watch));
        self.monitor.publish_recovery(0, 0);
        recovered
    }

    /// Opens the copy: locks the folder, recovers the newest timeline. When the disk is too full for that, the copy is
    /// not recovered yet, and [`Upstream::run`] goes on trying: a restart must not be what keeps binlogd from going on
    /// by itself.
    ///
    /// # Errors
    /// When another process holds the folder, or it cannot be read or repaired.
    pub fn open(&self) -> Result<HeldCopy, CopyError> {
        self.show_settings();
        self.monitor.set_state(SourceState::Recovering);
        let mut copy = self.lock()?;
        self.open_node(&copy)?;
        match self.recover(&mut copy) {
            Ok(remarks) => self.opened(&copy, &remarks),
            Err(error) if error.is_full_disk() => {
                tracing::error!(source = self.config.name, "{error}; waiting for space");
                self.monitor.set_state(SourceState::WaitingForSpace { error: error.to_string() });
            }
            Err(error) => return Err(error),
        }
        Ok(copy)
    }

    /// Says what is held.
    fn opened(&self, copy: &HeldCopy, remarks: &[String]) {
        for remark in remarks {
            tracing::warn!(source = self.config.name, "{remark}");
        }
        if let Some(timeline) = copy.timeline() {
            match timeline.end() {
                Some(end) => tracing::info!(
                    source = self.config.name,
                    timeline = timeline.name,
                    "the copy ends at {end}"
                ),
                None => {
                    tracing::info!(source = self.config.name, timeline = timeline.name, "the copy is empty")
                }
            }
        }
        publish_copy(self, copy);
    }

    /// Receives until a stop is requested. Returns early only when nothing but an operator can help.
    pub fn run(self, mut copy: HeldCopy) {
        let count = self.config.hosts.len();
        let mut pacing = Pacing {
            backoff: Backoff::new(self.config.backoff_min, self.config.backoff_max),
            hosts: Hosts::new(count, self.clock.now()),
            away: (0..count).map(|_| Away::default()).collect(),
            repeats: Repeats::default(),
            tried: vec![None; count],
            shortage: None,
        };
        let left = Left::default();
        let _nodes = match Nodes::start(&self) {
            Ok(nodes) => nodes,
            Err(error) => {
                let reason = format!("the threads of the quorum cannot be started: {error}");
                tracing::error!(source = self.config.name, "stopped: {reason}");
                return self.monitor.set_state(SourceState::stopped(reason));
            }
        };
        self.publish_peers();
        self.look_for_older(&left.peers.borrow().older);
        if !copy.is_recovered() {
            self.wait_out(pacing.backoff.pause(self.clock.jitter()));
            self.reopen(&mut copy, &mut pacing);
        }
        while !self.stop.is_requested() {
            if self.rested(&left, &mut pacing)
                || self.waited_for_space(&mut pacing)
                || self.passed_over(&mut pacing)
            {
                continue;
            }
            if let Err(error) = self.complete_while_gone(&mut copy, &mut left.peers.borrow_mut()) {
                tracing::error!(source = self.config.name, "{error}");
                self.reopen(&mut copy, &mut pacing);
            }
            self.monitor.pulse.beat(Place::Asks);
            let began = self.clock.now();
            let host = &self.config.hosts[pacing.hosts.current()];
            let attempt = Attempt { upstream: &self, host, hosts: &pacing.hosts, left: &left };
            let Err(error) = attempt.make(&mut copy) else { continue };
            if error.cure() != Cure::Now || error.switched_to().is_some() {
                left.open.take(); // No session with that server follows at once.
            }
            if !matches!(error, AttemptError::Completed) {
                left.switched.set(error.switched_to().is_some());
            }
            if self.stop.is_requested() {
                break;
            }
            if self.stop.ends_session() && !error.log_failed() {
                continue; // It is to rest, and whatever ended the attempt is nobody's failure.
            }
            if error.is_silence()
                && copy.timeline().is_some_and(|timeline| timeline.info.server_kind == ServerKind::MariaDb)
            {
                left.stand_in.set(Some(self.server_id_beside_a_dead_one()));
            }
            let there = error.source_was_there(self.clock.now().saturating_duration_since(began));
            if pacing.backoff.session_lasted(there) {
                pacing.away[pacing.hosts.current()].welcome();
            }
            if error.is_news(there) {
                pacing.repeats.forget();
            }
            let mut peers = left.peers.borrow_mut();
            if matches!(error, AttemptError::Session(_) | AttemptError::Above(AboveError::Moved)) {
                peers.source_was_there();
            }
            if !self.recover_from(&error, &mut copy, &mut pacing, &mut peers) {
                return;
            }
            self.monitor.counters.reconnects.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        self.has_stopped();
    }

    /// Rests, once, while an operator wants nothing to be received. What readers may read stays as it is.
    fn rested(&self, left: &Left, pacing: &mut Pacing) -> bool {
        let Some(why) = self.stop.halted() else { return false };
        left.open.take();
        pacing.shortage = None; // Who wants to begin again wants a try.
        self.monitor.set_state(SourceState::stopped_by_operator(why));
        self.at_rest(|| self.stop.rest());
        true
    }

    fn has_stopped(&self) {
        self.monitor.set_state(SourceState::ended());
    }

    /// Passes over a host that told us to go away a moment ago, where the list names others; they are tried meanwhile as
    /// quickly as ever.
    fn passed_over(&self, pacing: &mut Pacing) -> bool {
        let hosts = &mut pacing.hosts;
        if hosts.is_alone() || !pacing.away[hosts.current()].is_too_early(self.clock.now()) {
            return false;
        }
        if hosts.failed() {
            // The state stays what the last attempt made it.
            self.wait_out(pacing.backoff.pause(self.clock.jitter()));
        }
        true
    }

    /// A `server_id` for the sessions after one that fell silent. A MariaDB that has not noticed that the connection is dead
    /// would end the dump of the `server_id` that comes back, and hang as a whole: that waits for the thread that reads
    /// acknowledgements, which waits for the dead connection until another replica attaches (`Ack_receiver::remove_slave`
    /// of sql/semisync_master_ack_receiver.cc), and the one that could attach waits for the end. A number of 32 random bits
    /// is no other server's.
    fn server_id_beside_a_dead_one(&self) -> u32 {
        let server_id = self.clock.jitter().max(1);
        let name = &self.config.name;
        tracing::info!(
            source = name,
            server_id,
            "coming back with another server_id: the old connection may be alive to the source"
        );
        server_id
    }

    /// Waits, once, when the disk is as good as full, or has no more space than was not enough. A session would only end again,
    /// and each one makes the source start a dump and wait for a replica that cannot acknowledge.
    fn waited_for_space(&self, pacing: &mut Pacing) -> bool {
        // A file system that cannot be asked is tried.
        let Some(free) = self.writable() else { return false };
        let (name, now) = (&self.config.name, self.clock.now());
        if pacing.shortage.is_none() && free < SESSION_BYTES_MIN {
            let error = format!(
                "No space left on device: {} KiB are free in {}, and a session is not begun with less than {} KiB",
                free / 1024,
                self.data_dir.display(),
                SESSION_BYTES_MIN / 1024
            );
            tracing::error!(source = name, "{error}; nothing is acknowledged until there is space");
            pacing.shortage = Some(Shortage::nearly_full(now, error));
        }
        let Some(shortage) = &mut pacing.shortage else { return false };
        let Some(go) = shortage.look(now, free) else {
            let error = shortage.error.clone();
            self.pause(LOOK_INTERVAL, true, error);
            return true;
        };
        let waited = show(now.saturating_duration_since(shortage.since));
        match go {
            Go::Space => {
                tracing::info!(source = name, "{} are free: going on after {waited}", units::bytes(free));
                pacing.repeats.forget(); // Should that not be enough, it is news.
            }
            Go::Anyway => tracing::info!(
                source = name,
                "nothing has become free for {waited}, {} are: trying whether that is enough by now",
                units::bytes(free)
            ),
            Go::Untold => {}
        }
        false
    }

    /// Bytes that can still be written; `None` where the file system does not tell.
    fn writable(&self) -> Option<u64> {
        self.at_rest(|| DiskSpace::of(&self.data_dir)).ok().map(|space| space.writable())
    }

    /// Does what the error asks for; false when that is to stop.
    fn recover_from(
        &self,
        error: &AttemptError,
        copy: &mut HeldCopy,
        pacing: &mut Pacing,
        peers: &mut Peers,
    ) -> bool {
        let name = &self.config.name;
        // Before anything is cut off, which makes space that is not enough.
        let free = error.is_full_disk().then(|| self.writable()).flatten();
        let current = pacing.hosts.current();
        let address = &self.config.hosts[current];
        let cure = error.cure();
        if cure == Cure::Operator {
            tracing::error!(source = name, host = %address, "stopped: {error}");
            self.monitor.set_state(SourceState::stopped(error.to_string()));
            return false;
        }
        let now = self.clock.now();
        let limit = match cure {
            Cure::Later => Some(DENIED_MAX),
            Cure::Crowded => Some(CROWDED_MAX),
            _ => None,
        };
        let away = &mut pacing.away[current];
        let told_to_go = limit.map(|limit| away.stay(now, &pacing.backoff, limit, self.clock.jitter()));
        if limit.is_none() {
            away.welcome();
        }
        let others_are_left = if error.is_of_host() {
            !pacing.hosts.failed()
        } else {
            pacing.hosts.session_ended(now);
            if let Some(to) = error.switched_to() {
                pacing.hosts.go_to(to);
            }
            false
        };
        if error.is_of_host() && !others_are_left {
            self.ask_peers(peers); // No host is the source now.
        }
        let random = self.clock.jitter();
        let pause = match (cure, told_to_go) {
            // The pauses are there to spare a server, and the next one is another.
            _ if others_are_left => Duration::ZERO,
            (_, Some(away)) if pacing.hosts.is_alone() || !error.is_of_host() => away,
            (Cure::Now, _) => pacing.backoff.step(now, random).max(self.step_min(copy)),
            _ => pacing.backoff.pause(random),
        };
        let text = error.to_string();
        if let Some(again) = pacing.repeats.hear(&text, now) {
            let next = show(pause);
            match cure {
                _ if free.is_some() => tracing::error!(
                    source = name, host = %address,
                    "{text}; nothing is acknowledged until there is more space{again}"
                ),
                Cure::Later => {
                    tracing::error!(source = name, host = %address, "{text}; next attempt in {next}{again}")
                }
                // Whether it is received the next attempt decides.
                Cure::Now if self.config.on_fork == OnFork::Stop => {
                    tracing::warn!(source = name, host = %address, "{text}{again}")
                }
                Cure::Now => {
                    tracing::warn!(source = name, host = %address, "{text}; going on with it{again}")
                }
                _ => tracing::warn!(source = name, host = %address, "{text}; next attempt in {next}{again}"),
            }
        }
        if free.is_some() {
            self.monitor.set_state(SourceState::WaitingForSpace { error: text.clone() });
        }
        let discarded = if error.log_failed() { self.reopen_after_failure(copy, pacing) } else { 0 };
        if let (Some(free), Some(free_after)) = (free, free.and_then(|_| self.writable())) {
            let stored = self.monitor.counters.transactions.load(std::sync::atomic::Ordering::Relaxed);
            let failed = Failed { free, discarded, free_after, stored };
            let before = pacing.shortage.take();
            pacing.shortage = Some(Shortage::after(before, self.clock.now(), failed, text));
            return true; // It is waited for before the next attempt.
        }
        pacing.shortage = None;
        match error.is_of_host() {
            true => pacing.tried[current] = Some(text.clone()),
            false => pacing.tried.fill(None),
        }
        if !pause.is_zero() {
            self.pause(pause, error.is_full_disk(), in_the_way(&self.config.hosts, &pacing.tried, text));
        }
        true
    }

    /// The shortest pause before a step that is known to be the right one.
    fn step_min(&self, copy: &HeldCopy) -> Duration {
        match copy.timeline().map(|timeline| timeline.info.server_kind) {
            Some(ServerKind::MariaDb) => MARIADB_STEP_MIN,
            _ => Duration::ZERO,
        }
    }

    /// Waits, and shows why.
    fn pause(&self, pause: Duration, disk_is_full: bool, error: String) {
        let until = self.clock.wall_time() + pause;
        self.monitor.set_state(if disk_is_full {
            SourceState::WaitingForSpace { error }
        } else {
            SourceState::BackingOff { until, error }
        });
        self.wait_out(pause);
    }

    fn wait_out(&self, pause: Duration) {
        self.at_rest(|| self.clock.pause(&self.stop, pause));
    }

    /// As [`Upstream::reopen`]; returns how many bytes were cut off, which are no growth of the copy.
    fn reopen_after_failure(&self, copy: &mut HeldCopy, pacing: &mut Pacing) -> u64 {
        let written = copy.timeline().and_then(|timeline| timeline.log.written());
        self.reopen(copy, pacing);
        let (Some(written), Some(end)) = (written, copy.timeline().and_then(OpenTimeline::end)) else {
            return 0;
        };
        let written = written.position();
        let discarded =
            if *written.file == *end.file { written.offset.saturating_sub(end.offset) } else { 0 };
        self.monitor.discarded(discarded);
        discarded
    }

    /// After a failed write or sync: what is on disk is found out from the disk, however long that takes to succeed.
    fn reopen(&self, copy: &mut HeldCopy, pacing: &mut Pacing) {
        while !self.stop.is_requested() {
            let began = self.clock.now();
            match self.recover(copy) {
                Ok(remarks) => return self.opened(copy, &remarks),
                Err(error) => self.rest(began, &error, &mut pacing.backoff, &mut pacing.repeats),
            }
        }
    }

    /// Says that the copy could not be opened, and waits before the next attempt.
    fn rest(&self, began: Instant, error: &CopyError, backoff: &mut Backoff, repeats: &mut Repeats) {
        let now = self.clock.now();
        let rest = (now.saturating_duration_since(began) * REOPEN_REST).min(REOPEN_REST_MAX);
        let pause = backoff.pause(self.clock.jitter()).max(rest);
        let text = error.to_string();
        if let Some(again) = repeats.hear(&text, now) {
            tracing::error!(source = self.config.name, "{text}; next attempt in {}{again}", show(pause));
        }
        self.pause(pause, error.is_full_disk(), text);
    }
}

/// Pauses as people read them.
fn show(pause: Duration) -> String {
    if pause < Duration::from_secs(1) {
        format!("{} ms", pause.as_millis())
    } else {
        format!("{:.1} s", pause.as_secs_f64())
    }
}

/// Why each host is not the source: the one that was tried last need not be the one that counts.
fn in_the_way(hosts: &[HostPort], tried: &[Option<String>], last: String) -> String {
    let told = hosts.iter().zip(tried).filter_map(|(host, why)| {
        let (host, why) = (host.to_string(), why.as_ref()?);
        Some(if why.contains(&host) { why.clone() } else { format!("{host}: {why}") })
    });
    let told: Vec<String> = told.collect();
    if told.len() > 1 { told.join("; ") } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_that_counts_is_told_whichever_host_was_tried_last() {
        let hosts = ["db1", "db2"].map(|host| HostPort { host: host.to_owned(), port: 3306 });
        let refused = || "cannot connect to db1:3306: Connection refused".to_owned();
        let read_only = || "the server is read-only".to_owned();
        let told = |tried: [Option<String>; 2], last| in_the_way(&hosts, &tried, last);
        let both = "cannot connect to db1:3306: Connection refused; db2:3306: the server is read-only";
        assert_eq!(told([Some(refused()), Some(read_only())], read_only()), both);
        assert_eq!(told([Some(refused()), Some(read_only())], refused()), both);
        assert_eq!(told([Some(refused()), None], refused()), refused());
        assert_eq!(told([None, None], "the disk is slow".to_owned()), "the disk is slow");
    }
}

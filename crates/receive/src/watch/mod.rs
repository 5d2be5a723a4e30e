//! A look at the source every few seconds, over a connection of its own: what the stream cannot tell.
//!
//! A source that gives up waiting for acknowledgements, or whose operator switches semi-sync off, tells its replicas
//! nothing; it goes on sending. Its own variables and counters say it, and any account may read them. So a small thread
//! a source asks for them while a session receives, and publishes what it finds.
//!
//! The watch never disturbs receiving. It registers as no replica, it holds a connection only while a session receives
//! (so that an account with few connections has them when a session begins), its failures are logged now and then and
//! change nothing, and nobody waits for it: neither the receiving thread nor the end of the process.

pub(crate) mod counters;
mod others;
pub(crate) mod remembered;
pub(crate) mod rival;

use crate::attempt::ask::connect_options;
use crate::attempt::context::Upstream;
use crate::decide::switch_over::{Doubts, Verdict};
use crate::session::left_behind;
use crate::session::left_behind::{Commits, LeftBehind};
use crate::watch::counters::{LOOK_MAX, SourceLook, ask, check_server, may_wait, started};
use crate::watch::others::{Others, PAUSE_READ_ONLY, STACK_BYTES};
use crate::watch::remembered::Remembered;
use crate::watch::rival::{rival, rival_beside};
use config::SourceConfig;
use jiff::Timestamp;
use source::clock::Clock;
use source::identify::SourceIdentity;
use source::negotiate::choose_timeline;
use source::stop::{Interruption, StopSignal};
use status::{SourceMonitor, Watched};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::{Connection, Network, WireError};

/// Shortest pause between two looks, however often one is asked for.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// While nothing arrives the source is asked that often whether a commit waits, and twice as often where something has just
/// arrived; see [`Watch::rest`].
const GLANCE_PAUSE: Duration = Duration::from_millis(200);

/// Where the list names several hosts, the source is asked that often whether clients can write to it.
const READ_ONLY_PAUSE: Duration = Duration::from_millis(200);

/// Failures one after the other are logged that often.
const FAILURES_LOGGED_EVERY: Duration = Duration::from_secs(600);

/// How often [`SourceWatch::ended_by`] looks whether the thread has ended.
const END_LOOK: Duration = Duration::from_millis(5);

/// The thread that looks at one source.
#[derive(Debug)]
pub struct SourceWatch {
    end: Arc<AtomicBool>,
    clock: Arc<dyn Clock>,
    thread: JoinHandle<()>,
}

impl SourceWatch {
    /// Starts the watch over the source of `upstream`; `None` when `watch_interval` is 0.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(upstream: &Upstream) -> io::Result<Option<SourceWatch>> {
        if upstream.config.watch_interval.is_zero() {
            return Ok(None);
        }
        let end = Arc::new(AtomicBool::new(false));
        let watch = Watch {
            config: upstream.config.clone(),
            network: upstream.network.clone(),
            clock: upstream.clock.clone(),
            monitor: upstream.monitor.clone(),
            end: end.clone(),
            connected: None,
            failed_since: None,
            logged: None,
            stop: upstream.stop.clone(),
            left_behind: LeftBehind::default(),
            rival: None,
            semi_sync_is_on: false,
            // In a quorum the nodes agree on the source; nobody goes to another host alone.
            others: match &upstream.quorum {
                None => Others::start(upstream, end.clone())?,
                Some(_) => None,
            },
            doubts: Doubts::default(),
            doubt: None,
            remembered: Remembered::new(
                upstream.storage.beside(),
                &upstream.data_dir.join(&upstream.config.name),
            ),
        };
        let thread = std::thread::Builder::new()
            .name(format!("watch-{}", upstream.config.name))
            .stack_size(STACK_BYTES)
            .spawn(move || watch.run())?;
        upstream.monitor.set_semi_sync_watcher(Some(thread.thread().clone()));
        Ok(Some(SourceWatch { end, clock: upstream.clock.clone(), thread }))
    }

    /// Asks the thread to end. It closes its connection, unless the source keeps it waiting.
    pub fn request_end(&self) {
        self.end.store(true, Ordering::Release);
        self.thread.thread().unpark();
    }

    /// Waits for the end until `deadline`, not longer: a thread that waits for a server which hangs is left behind, and
    /// ends when its own time is over or with the process.
    pub fn ended_by(&self, deadline: Instant) {
        while !self.thread.is_finished() && self.clock.now() < deadline {
            self.clock.sleep(END_LOOK);
        }
    }
}

struct Watch {
    config: SourceConfig,
    network: Arc<dyn Network>,
    clock: Arc<dyn Clock>,
    monitor: Arc<SourceMonitor>,
    end: Arc<AtomicBool>,
    /// Open while the session lasts to which it belongs.
    connected: Option<Connected>,
    failed_since: Option<Timestamp>,
    /// When a failure was logged last.
    logged: Option<Instant>,
    stop: Arc<StopSignal>,
    left_behind: LeftBehind,
    /// Another replica with our `server_id` that a look has found.
    rival: Option<String>,
    /// By the last look's word.
    semi_sync_is_on: bool,
    /// Looks at the other hosts; `None` where there are none.
    others: Option<Others>,
    /// Which host is the source.
    doubts: Doubts,
    /// What was said of that.
    doubt: Option<String>,
    remembered: Remembered,
}

/// A connection to the server that a session receives from.
struct Connected {
    of: Watched,
    connection: Connection,
    /// When the server began to run. It cannot begin anew while the connection lasts.
    started: Option<Timestamp>,
    /// Who it is, and what it had executed when it was asked last; `None` where no other host can be the source.
    identity: Option<SourceIdentity>,
}

impl Watch {
    fn run(mut self) {
        while !self.is_to_end() {
            let began = self.clock.now();
            match self.monitor.watched() {
                None => self.without_session(),
                Some(watched) => match self.look(&watched) {
                    Ok(look) => self.seen(&watched, look),
                    Err(error) => self.failed(&error),
                },
            }
            self.rest();
            let lasted = self.clock.now().saturating_duration_since(began);
            if !self.is_to_end() && lasted < PAUSE_MIN {
                self.clock.sleep(PAUSE_MIN - lasted);
            }
        }
        self.remembered.keep(&self.monitor, self.clock.now(), true);
        self.hang_up();
        if let Some(others) = &self.others {
            others.wake();
        }
    }

    /// Waits until the next look is due, or wanted sooner, which unparks the thread, as its end does. A commit that waits while
    /// nothing arrives wants one: nearly always that is a matter of a moment, but after a reset of the source's logs it is
    /// what shows the reset, and the commit waits until then. So that much is asked in between, by one statement.
    fn rest(&mut self) {
        let began = self.clock.now();
        while !self.is_to_end() {
            let passed = self.clock.now().saturating_duration_since(began);
            let left = self.config.watch_interval.saturating_sub(passed);
            if left.is_zero() {
                return;
            }
            let pause = match self.semi_sync_is_on {
                true if self.left_behind.is_lively(self.clock.now()) => PAUSE_MIN,
                true => GLANCE_PAUSE,
                false => left,
            };
            let pause = pause.min(left).min(match &self.others {
                Some(others) if others.is_source_read_only() => PAUSE_READ_ONLY,
                Some(_) => READ_ONLY_PAUSE,
                None => left,
            });
            std::thread::park_timeout(pause);
            let now = self.clock.now();
            let is_wanted = now.saturating_duration_since(began).saturating_sub(passed) < pause;
            if is_wanted || !self.look_at_hosts() || self.is_left_behind_perhaps(now) {
                return;
            }
        }
    }

    /// Finds out whether another host of the list is the source now; then the session ends. False where the source does not answer.
    fn look_at_hosts(&mut self) -> bool {
        let (Some(others), Some(connected)) = (&self.others, self.connected.as_mut()) else { return true };
        let (of, hosts) = (&connected.of, &self.config.hosts);
        let number = hosts.iter().position(|host| host.to_string() == of.host);
        let (Some(number), Some(source)) = (number, connected.identity.as_mut()) else { return true };
        if self.monitor.watched().as_ref() != Some(of) {
            return true;
        }
        let held = || self.monitor.gtids().durable;
        let verdict = others.look(&mut connected.connection, number, source, held, &*self.clock);
        let Ok(verdict) = verdict else { return false };
        if let Verdict::GoTo(to) = verdict
            && self.monitor.watched().as_ref() == Some(of)
        {
            self.stop.interrupt(Interruption::SwitchedOver { to, host: hosts[to].to_string() });
        }
        let doubt = self.doubts.hear(&verdict, self.clock.now());
        let doubt = doubt.map(|doubt| doubt.in_words(&of.host, |host| hosts[host].to_string()));
        if doubt == self.doubt {
            return true;
        }
        match &doubt {
            Some(doubt) => {
                tracing::warn!(
                    source = self.config.name,
                    host = of.host,
                    "which host is the source? {doubt}"
                );
            }
            None => {
                tracing::info!(
                    source = self.config.name,
                    host = of.host,
                    "no doubt any more which host is the source"
                );
            }
        }
        self.doubt.clone_from(&doubt);
        self.monitor.update_facts(|facts| facts.hosts_in_doubt = doubt);
        true
    }

    /// Nothing arrives, and a commit waits for what may never arrive.
    fn is_left_behind_perhaps(&mut self, now: Instant) -> bool {
        let received = self.monitor.positions().received;
        let bytes = self.monitor.counters.bytes_received.load(Ordering::Relaxed);
        self.semi_sync_is_on
            && self.left_behind.is_at_rest(received, bytes, now)
            && self.left_behind.minds_who_waits(now)
            && self.glance()
    }

    /// Whether a commit waits on the source, or that cannot be asked: then a look finds out why.
    fn glance(&mut self) -> bool {
        let Some(connected) = self.connected.as_mut() else { return true };
        if self.monitor.watched().as_ref() != Some(&connected.of) {
            return true;
        }
        may_wait(&mut connected.connection)
    }

    fn is_to_end(&self) -> bool {
        self.end.load(Ordering::Acquire)
    }

    fn without_session(&mut self) {
        self.hang_up();
        if let Some(others) = &self.others {
            others.rest();
        }
        if self.doubt.take().is_some() {
            self.monitor.update_facts(|facts| facts.hosts_in_doubt = None);
        }
    }

    fn hang_up(&mut self) {
        if let Some(connected) = self.connected.take() {
            connected.connection.close();
        }
    }

    /// Asks the source. A connection that was open before may have been ended by the source meanwhile: then a new one is
    /// tried before that counts as a failure.
    fn look(&mut self, watched: &Watched) -> Result<SourceLook, WireError> {
        if let Some(mut connected) = self.connected.take() {
            if connected.of != *watched {
                connected.connection.close();
            } else if let Ok(look) = self.ask(&mut connected, watched) {
                self.connected = Some(connected);
                return Ok(look);
            }
        }
        if let Some(others) = &self.others {
            others.wake(); // What they are now counts later on.
        }
        let mut connection = self.connect(watched)?;
        connection.set_timeout(LOOK_MAX);
        let started = started(&mut connection, self.clock.wall_time())?;
        let identity = match &self.others {
            // A binlogd is no standby, whatever its port says.
            Some(_) if watched.timeline_above.is_none() => Some(SourceIdentity::ask(&mut connection)?),
            _ => None,
        };
        let mut connected = Connected { of: watched.clone(), connection, started, identity };
        let look = self.ask(&mut connected, watched)?;
        self.connected = Some(connected);
        Ok(look)
    }

    fn ask(&self, connected: &mut Connected, watched: &Watched) -> Result<SourceLook, WireError> {
        let connection = &mut connected.connection;
        let mut look = ask(connection, watched, self.clock.wall_time())?;
        look.started = connected.started;
        let facts = self.monitor.facts();
        // By then a source has noticed the end of a connection of ours.
        let is_alive =
            |since: Instant| self.clock.now().saturating_duration_since(since) > self.config.net_read_timeout;
        if let Some((server_id, _)) = facts.taken.filter(|(_, since)| is_alive(*since)) {
            look.rival = rival_beside(connection, server_id)?;
        } else if let Some((server_id, uuid)) = facts.registered {
            look.rival = rival(connection, server_id, &uuid)?;
        }
        Ok(look)
    }

    fn connect(&self, watched: &Watched) -> Result<Connection, WireError> {
        let host = self.config.hosts.iter().find(|host| host.to_string() == watched.host);
        // The monitor has its name from the same list.
        let host = host.unwrap_or(&self.config.hosts[0]);
        let (password, _) = self.config.password_now();
        let mut options = connect_options(&self.config, host, password);
        options.connect_timeout = options.connect_timeout.min(LOOK_MAX);
        self.network.connect(&options, &mut |_| {})
    }

    /// The one place where a look is acted on.
    fn seen(&mut self, watched: &Watched, look: SourceLook) {
        if self.is_to_end() || self.monitor.watched().as_ref() != Some(watched) {
            return; // Of a session that is over.
        }
        if let Some(since) = self.failed_since.take() {
            tracing::info!(
                source = self.config.name,
                "the look at the source succeeds again, after it failed since {since}"
            );
            self.logged = None;
        }
        self.semi_sync_is_on = look.semi_sync.as_ref().is_some_and(|semi_sync| semi_sync.on);
        self.remembered.recall(&self.monitor);
        self.monitor.semi_sync_looked(&watched.server(), look.semi_sync, look.started);
        self.remembered.keep(&self.monitor, self.clock.now(), false);
        self.see_rival(watched, look.rival);
        self.look_whether_left_behind(watched, &look.commits);
    }

    /// One that a look has found is gone when no look finds it any more. One that was found before this session registered has
    /// lost its place in the source's list to us, so nothing tells when that one goes: it is named until the next session.
    fn see_rival(&mut self, watched: &Watched, rival: Option<String>) {
        let known = self.monitor.facts().rival;
        match rival {
            Some(rival) if known.as_ref() != Some(&rival) => {
                tracing::warn!(source = self.config.name, host = watched.host, "server_id: {rival}");
                self.rival = Some(rival.clone());
                self.monitor.update_facts(|facts| facts.rival = Some(rival));
            }
            Some(_) => {}
            None => {
                if let Some(gone) = self.rival.take().filter(|gone| known.as_ref() == Some(gone)) {
                    tracing::info!(source = self.config.name, "server_id: seen no more: {gone}");
                    self.monitor.update_facts(|facts| facts.rival = None);
                }
            }
        }
    }

    fn look_whether_left_behind(&mut self, watched: &Watched, commits: &Commits) {
        let received = self.monitor.positions().received;
        let bytes = self.monitor.counters.bytes_received.load(Ordering::Relaxed);
        if commits.waiting == 0 {
            self.monitor.semi_sync_waits_in_vain(None);
        }
        if !self.left_behind.is_suspicious(received.clone(), bytes, commits, self.clock.now()) {
            return;
        }
        let Some(at) = received else { return };
        let found = self.connect(watched).and_then(|mut connection| {
            check_server(&mut connection, watched)?;
            if let Some(timeline) = &watched.timeline_above {
                choose_timeline(&mut connection, timeline)?;
            }
            left_behind::ask(connection, at, &self.monitor, &*self.clock, LOOK_MAX)
        });
        // The server's own words are an answer.
        let in_vain = match &found {
            Err(error) if !matches!(error, WireError::Server { .. }) && commits.waiting > 0 => {
                Some(error.to_string())
            }
            _ => None,
        };
        self.monitor.semi_sync_waits_in_vain(in_vain);
        let reason = self.left_behind.hear(found, &self.monitor);
        if let Some(reason) = reason.filter(|_| self.monitor.watched().as_ref() == Some(watched)) {
            self.stop.interrupt(Interruption::LeftBehind(reason));
        }
    }

    fn failed(&mut self, error: &WireError) {
        self.monitor.semi_sync_not_looked(error.to_string());
        self.failed_since.get_or_insert_with(|| self.clock.wall_time());
        let now = self.clock.now();
        let is_due = |logged: Instant| now.saturating_duration_since(logged) >= FAILURES_LOGGED_EVERY;
        // Where a session is not received any more, that is said elsewhere.
        if self.monitor.watched().is_some() && self.logged.is_none_or(is_due) {
            self.logged = Some(now);
            tracing::warn!(
                source = self.config.name,
                "cannot look at the source: {error}; receiving goes on, and whether the source waits is judged by what it sends"
            );
        }
    }
}

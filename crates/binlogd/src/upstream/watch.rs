//! A look at the source every few seconds, over a connection of its own: what the stream cannot tell.
//!
//! A source that gives up waiting for acknowledgements, or whose operator switches semi-sync off, tells its replicas
//! nothing; it goes on sending. Its own variables and counters say it, and any account may read them. So a small thread
//! a source asks for them while a session receives, and publishes what it finds.
//!
//! The watch never disturbs receiving. It registers as no replica, it holds a connection only while a session receives
//! (so that an account with few connections has them when a session begins), its failures are logged now and then and
//! change nothing, and nobody waits for it: neither the receiving thread nor the end of the process.

use super::Upstream;
use super::ask::connect_options;
use super::clock::Clock;
use super::identify::server_id_in;
use super::left_behind::{self, Commits, LeftBehind};
use super::remembered::Remembered;
use super::rival::{rival, rival_beside};
use super::stop::StopSignal;
use crate::config::SourceConfig;
use crate::status::{SemiSyncLook, SourceMonitor, Watched};
use codec::packet::printable;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::{Connection, Network, ResultSet, WireError};

/// Longest time for a look, if `connect_timeout` is not shorter: a source that takes longer tells nothing new.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Shortest pause between two looks, however often one is asked for.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// While nothing arrives the source is asked that often whether a commit waits, and twice as often where something has just
/// arrived; see [`Watch::rest`].
const GLANCE_PAUSE: Duration = Duration::from_millis(200);

/// Failures one after the other are logged that often.
const FAILURES_LOGGED_EVERY: Duration = Duration::from_secs(600);

/// Enough for a TLS handshake in a build without optimisation.
const STACK_BYTES: usize = 1 << 20;

/// Bytes that are shown at most of the name of a wait point.
const WAIT_POINT_BYTES_MAX: usize = 32;

/// How often [`SourceWatch::ended_by`] looks whether the thread has ended.
const END_LOOK: Duration = Duration::from_millis(5);

/// What one look has found: facts of one moment, of the server that the session receives from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLook {
    /// Semi-sync at the source; `None` when it has none.
    pub semi_sync: Option<SemiSyncLook>,
    /// Another replica that has taken our place in the source's list; see `rival.rs`.
    pub rival: Option<String>,
    /// When the server began to run, by its word.
    started: Option<Timestamp>,
    /// Its commits.
    commits: Commits,
}

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
            semi_sync_is_on: false,
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
    /// By the last look's word.
    semi_sync_is_on: bool,
    remembered: Remembered,
}

/// A connection to the server that a session receives from.
struct Connected {
    of: Watched,
    connection: Connection,
    /// When the server began to run. It cannot begin anew while the connection lasts.
    started: Option<Timestamp>,
}

impl Watch {
    fn run(mut self) {
        while !self.is_to_end() {
            let began = self.clock.now();
            match self.monitor.watched() {
                None => self.hang_up(),
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
            std::thread::park_timeout(pause.min(left));
            let now = self.clock.now();
            let is_wanted = now.saturating_duration_since(began).saturating_sub(passed) < pause.min(left);
            if is_wanted || self.is_left_behind_perhaps(now) {
                return;
            }
        }
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
        let mut connection = self.connect(watched)?;
        connection.set_timeout(LOOK_MAX);
        let started = started(&mut connection, self.clock.wall_time())?;
        let mut connected = Connected { of: watched.clone(), connection, started };
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
        if let Some(rival) = look.rival
            && self.monitor.facts().rival.as_ref() != Some(&rival)
        {
            tracing::warn!(source = self.config.name, host = watched.host, "server_id: {rival}");
            self.monitor.update_facts(|facts| facts.rival = Some(rival));
        }
        self.look_whether_left_behind(watched, &look.commits);
    }

    fn look_whether_left_behind(&mut self, watched: &Watched, commits: &Commits) {
        let received = self.monitor.positions().received;
        let bytes = self.monitor.counters.bytes_received.load(Ordering::Relaxed);
        if commits.waiting == 0 {
            self.monitor.semi_sync_waits_in_vain(None);
        }
        if !self.left_behind.is_suspicious(received, bytes, commits, self.clock.now()) {
            return;
        }
        let found = self.connect(watched).and_then(|mut connection| {
            check_server(&mut connection, watched)?;
            left_behind::ask(connection, &self.monitor, &*self.clock, LOOK_MAX)
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
            self.stop.interrupt(reason);
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

/// Asks for everything that a look holds, which begins at that moment. Needs no privilege.
fn ask(connection: &mut Connection, watched: &Watched, at: Timestamp) -> Result<SourceLook, WireError> {
    connection.set_timeout(LOOK_MAX);
    check_server(connection, watched)?;
    let variables = pairs(&connection.query("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync%'")?)?;
    let status = pairs(&connection.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%'")?)?;
    Ok(SourceLook {
        semi_sync: semi_sync(at, &variables, &status)?,
        rival: None,
        started: None,
        commits: commits(connection, &status)?,
    })
}

/// When the server began to run, by our clock, which shows `now`; `None` where the server does not say.
fn started(connection: &mut Connection, now: Timestamp) -> Result<Option<Timestamp>, WireError> {
    let status = pairs(&connection.query("SHOW GLOBAL STATUS LIKE 'Uptime'")?)?;
    if !status.contains_key("uptime") {
        return Ok(None);
    }
    let uptime = Duration::from_secs(number("uptime", &status)?);
    Ok(now.checked_sub(uptime).ok())
}

/// Reads what tells that something is committed which does not arrive.
fn commits(connection: &mut Connection, status: &BTreeMap<String, String>) -> Result<Commits, WireError> {
    let set = if connection.is_mariadb() { "gtid_binlog_state" } else { "gtid_executed" };
    // A set can have megabytes.
    let executed = match connection.query(&format!("SELECT MD5(@@global.{set})")) {
        Ok(rows) => rows.first().map(str::to_owned),
        // MySQL 5.5 has no such variable. `None` is not known, which is asked about as often as what changes.
        Err(WireError::Server { .. }) => None,
        Err(error) => return Err(error),
    };
    // Without semi-sync nobody waits.
    Ok(Commits { waiting: waiting(status)?.unwrap_or(0), executed })
}

/// Whether a commit waits on the source for an acknowledgement, or that cannot be asked.
pub(super) fn may_wait(connection: &mut Connection) -> bool {
    let status = connection.query("SHOW GLOBAL STATUS LIKE 'rpl_semi_sync%wait_sessions'");
    status.and_then(|status| waiting(&pairs(&status)?)).map_or(true, |waiting| waiting != Some(0))
}

/// Sessions whose commit waits for an acknowledgement, where the source says how many.
fn waiting(status: &BTreeMap<String, String>) -> Result<Option<u64>, WireError> {
    let mut names = ["source", "master"].iter().map(|role| format!("rpl_semi_sync_{role}_wait_sessions"));
    names.find(|name| status.contains_key(name)).map(|name| number(&name, status)).transpose()
}

/// An address can lead to several servers, through a proxy for instance.
fn check_server(connection: &mut Connection, watched: &Watched) -> Result<(), WireError> {
    let is_the_same = match &watched.server_uuid {
        Some(uuid) if !connection.is_mariadb() => {
            connection.query("SELECT @@global.server_uuid")?.first() == Some(uuid)
        }
        Some(_) => false,
        None => Some(server_id_in(&connection.query("SELECT @@global.server_id")?)?) == watched.server_id,
    };
    if is_the_same {
        return Ok(());
    }
    Err(WireError::Protocol {
        during: "looking at the source",
        what: format!("a second connection to {} leads to another server", watched.host),
    })
}

/// Reads what the source says of its side of semi-sync; `None` when it has none.
fn semi_sync(
    at: Timestamp,
    variables: &BTreeMap<String, String>,
    status: &BTreeMap<String, String>,
) -> Result<Option<SemiSyncLook>, WireError> {
    // MySQL since 8.0.26, and before; MariaDB has the old names.
    let Some((role, replica)) = [("source", "replica"), ("master", "slave")]
        .into_iter()
        .find(|(role, _)| variables.contains_key(&format!("rpl_semi_sync_{role}_enabled")))
    else {
        return Ok(None);
    };
    let variable = |name: &str| variables.get(&format!("rpl_semi_sync_{role}_{name}")).map(String::as_str);
    let counter = |name: &str| number(&format!("rpl_semi_sync_{role}_{name}"), status);
    Ok(Some(SemiSyncLook {
        at,
        enabled: is_on(variable("enabled")),
        on: is_on(status.get(&format!("rpl_semi_sync_{role}_status")).map(String::as_str)),
        clients: counter("clients")?,
        yes_tx: counter("yes_tx")?,
        no_tx: counter("no_tx")?,
        timeout_ms: number(&format!("rpl_semi_sync_{role}_timeout"), variables)?,
        wait_point: variable("wait_point").map(|text| printable(text.as_bytes(), WAIT_POINT_BYTES_MAX)),
        wait_no_replica: variable(&format!("wait_no_{replica}")).map(|value| is_on(Some(value))),
        wait_for_replica_count: match variable(&format!("wait_for_{replica}_count")) {
            Some(_) => Some(number(&format!("rpl_semi_sync_{role}_wait_for_{replica}_count"), variables)?),
            None => None,
        },
    }))
}

fn is_on(value: Option<&str>) -> bool {
    matches!(value, Some("ON" | "1"))
}

fn number(name: &str, values: &BTreeMap<String, String>) -> Result<u64, WireError> {
    let value = values.get(name).map(String::as_str);
    value.and_then(|text| text.parse().ok()).ok_or_else(|| WireError::Protocol {
        during: "looking at the source",
        what: format!("{name} is {value:?}, not a number"),
    })
}

/// Names in lower case, and their values. One that cannot be read is not one that the source does not have.
fn pairs(rows: &ResultSet) -> Result<BTreeMap<String, String>, WireError> {
    let pair = |row| {
        let (name, value) = (rows.get(row, "Variable_name"), rows.get(row, "Value"));
        let pair = name.zip(value).map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        pair.ok_or_else(|| WireError::Protocol {
            during: "looking at the source",
            what: format!("the variable {name:?} has the value {value:?}"),
        })
    };
    (0..rows.rows.len()).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn both_families_of_names_are_read() {
        let mysql = semi_sync(
            Timestamp::UNIX_EPOCH,
            &values(&[
                ("rpl_semi_sync_source_enabled", "ON"),
                ("rpl_semi_sync_source_timeout", "10000"),
                ("rpl_semi_sync_source_wait_for_replica_count", "1"),
                ("rpl_semi_sync_source_wait_no_replica", "ON"),
                ("rpl_semi_sync_source_wait_point", "AFTER_SYNC"),
            ]),
            &values(&[
                ("rpl_semi_sync_source_clients", "2"),
                ("rpl_semi_sync_source_no_tx", "3871"),
                ("rpl_semi_sync_source_status", "OFF"),
                ("rpl_semi_sync_source_yes_tx", "5"),
            ]),
        );
        let look = mysql.unwrap().unwrap();
        assert_eq!((look.enabled, look.on, look.clients, look.no_tx, look.yes_tx), (true, false, 2, 3871, 5));
        assert_eq!((look.timeout_ms, look.wait_for_replica_count), (10_000, Some(1)));
        assert_eq!((look.wait_point.as_deref(), look.wait_no_replica), (Some("AFTER_SYNC"), Some(true)));
        let mariadb = semi_sync(
            Timestamp::UNIX_EPOCH,
            &values(&[
                ("rpl_semi_sync_master_enabled", "OFF"),
                ("rpl_semi_sync_master_timeout", "10000"),
                ("rpl_semi_sync_master_wait_no_slave", "ON"),
                ("rpl_semi_sync_slave_enabled", "OFF"),
            ]),
            &values(&[
                ("rpl_semi_sync_master_clients", "0"),
                ("rpl_semi_sync_master_no_tx", "0"),
                ("rpl_semi_sync_master_status", "OFF"),
                ("rpl_semi_sync_master_yes_tx", "0"),
            ]),
        );
        let look = mariadb.unwrap().unwrap();
        assert_eq!(
            (look.enabled, look.wait_no_replica, look.wait_for_replica_count),
            (false, Some(true), None)
        );
    }

    #[test]
    fn a_count_that_cannot_be_read_is_not_zero() {
        let count = |text| waiting(&values(&[("rpl_semi_sync_master_wait_sessions", text)]));
        assert_eq!((count("0").unwrap(), count("3").unwrap()), (Some(0), Some(3)));
        assert_eq!(waiting(&values(&[])).unwrap(), None);
        let error = count("-1").unwrap_err().to_string();
        assert!(error.contains("wait_sessions is Some(\"-1\"), not a number"), "{error}");
    }

    #[test]
    fn a_server_without_semi_sync_and_one_that_makes_no_sense() {
        assert_eq!(semi_sync(Timestamp::UNIX_EPOCH, &values(&[]), &values(&[])).unwrap(), None);
        let enabled =
            values(&[("rpl_semi_sync_source_enabled", "ON"), ("rpl_semi_sync_source_timeout", "many")]);
        let error = semi_sync(Timestamp::UNIX_EPOCH, &enabled, &values(&[])).unwrap_err();
        assert!(error.to_string().contains("rpl_semi_sync_source_clients"), "{error}");
    }
}

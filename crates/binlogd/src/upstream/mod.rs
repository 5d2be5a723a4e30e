//! Receiving from a source: connect, decide where to go on, receive, and start over when something breaks.
//!
//! | file | noun |
//! |---|---|
//! | `receive.rs` | the heart: the loop from the socket to the acknowledgement |
//! | `sink.rs` | its second half: batch, write, sync, acknowledge, publish |
//! | `cursor.rs`, `refusal.rs` | what each arriving event is: stored, ignored, or refused and why |
//! | `acknowledge.rs` | which acknowledgement is owed, and the one way to pay it |
//! | `plan.rs` | where a session goes on: a pure decision |
//! | `identify.rs` | who answers |
//! | `negotiate.rs` | what a replica tells its source, and the dump request |
//! | `look.rs` | short looks at a source's logs, to tell a purge from a reset from a fork |
//! | `copy.rs` | what is held: the folder and its newest timeline |
//! | `attempt.rs` | one attempt: from connecting to the end of the session |
//! | `attached.rs` | why a session with MariaDB is not ended in its first moments |
//! | `examine.rs` | what a failed session means: a gap, a reset, a fork, or nothing |
//! | `attempt_error.rs`, `complaint.rs` | why an attempt ended and what helps; the causes of error 1236 |
//! | `hosts.rs` | which host of the list is the source |
//! | `backoff.rs`, `stop.rs` | pauses; the request to stop |
//! | `clock.rs` | the seam to time |

pub mod acknowledge;
mod attached;
pub mod attempt;
pub mod attempt_error;
pub mod backoff;
pub mod clock;
pub mod complaint;
pub mod copy;
pub mod cursor;
mod examine;
pub mod hosts;
pub mod identify;
pub mod look;
pub mod negotiate;
pub mod plan;
pub mod receive;
pub mod refusal;
mod sink;
pub mod stop;

use crate::config::{HostPort, SourceConfig};
use crate::log::storage::Storage;
use crate::log::timeline::ServerKind;
use crate::status::{DiskSpace, SourceMonitor, SourceState};
use crate::wire::Network;
use attempt::Attempt;
use attempt_error::{AttemptError, Cure};
use backoff::Backoff;
use clock::Clock;
use copy::{CopyError, HeldCopy};
use hosts::Hosts;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stop::StopSignal;

/// With less free space than this no session is begun, in bytes: about what a small live file grows by at a time.
const SESSION_BYTES_MIN: u64 = 1 << 20;

/// Everything that the thread of one source works with.
pub struct Upstream {
    /// Its part of the configuration.
    pub config: SourceConfig,
    /// Folder that holds all sources.
    pub data_dir: PathBuf,
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// The way to the source.
    pub network: Arc<dyn Network>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where it publishes what it does.
    pub monitor: Arc<SourceMonitor>,
    /// Tells it to end.
    pub stop: Arc<StopSignal>,
}

impl Upstream {
    /// Opens the copy: locks the folder, recovers the newest timeline. When the disk is too full for that, the copy is
    /// not recovered yet, and [`Upstream::run`] goes on trying: a restart must not be what keeps binlogd from going on
    /// by itself.
    ///
    /// # Errors
    /// When another process holds the folder, or it cannot be read or mended.
    pub fn open(&self) -> Result<HeldCopy, CopyError> {
        self.monitor.set_fsync_mode(self.config.fsync_mode);
        self.monitor.set_state(SourceState::Recovering);
        let mut copy = HeldCopy::lock(self.storage.clone(), &self.data_dir, &self.config.name)?;
        match copy.reopen() {
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
        attempt::publish_copy(&self.monitor, copy);
    }

    /// Receives until a stop is requested. Returns early only when nothing but an operator can help.
    pub fn run(self, mut copy: HeldCopy) {
        let mut backoff = Backoff::new(self.config.backoff_min, self.config.backoff_max);
        let mut hosts = Hosts::new(self.config.hosts.len(), self.clock.now());
        let mut stand_in = None;
        if !copy.is_recovered() {
            self.clock.pause(&self.stop, backoff.pause(self.clock.jitter()));
            self.reopen(&mut copy, &mut backoff);
        }
        while !self.stop.is_requested() {
            if self.waited_for_space(&mut backoff) {
                continue;
            }
            let began = self.clock.now();
            let host = &self.config.hosts[hosts.current()];
            let attempt = Attempt { upstream: &self, host, hosts: &hosts, stand_in };
            let Err(error) = attempt.make(&mut copy) else { continue };
            if self.stop.is_requested() {
                break;
            }
            if error.is_silence()
                && copy.timeline().is_some_and(|timeline| timeline.info.server_kind == ServerKind::Mariadb)
            {
                stand_in = Some(self.server_id_beside_a_dead_one());
            }
            backoff.session_lasted(error.source_was_there(self.clock.now().saturating_duration_since(began)));
            let others_are_left = if error.is_of_host() {
                !hosts.failed()
            } else {
                hosts.session_ended(self.clock.now());
                false
            };
            if !self.recover_from(&error, &mut copy, &mut backoff, host, others_are_left) {
                return;
            }
            self.monitor.counters.reconnects.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        self.monitor.set_state(SourceState::Stopped { reason: "binlogd is stopping".to_owned() });
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

    /// Waits, once, when the disk is as good as full. A session would only end again, and each one makes the source start a
    /// dump and wait for a replica that cannot acknowledge.
    fn waited_for_space(&self, backoff: &mut Backoff) -> bool {
        // A file system that cannot be asked is tried.
        let Ok(space) = DiskSpace::of(&self.data_dir) else { return false };
        if space.writable() >= SESSION_BYTES_MIN {
            return false;
        }
        let error = format!(
            "No space left on device: {} KiB are free in {}, and a session is not begun with less than {} KiB",
            space.writable() / 1024,
            self.data_dir.display(),
            SESSION_BYTES_MIN / 1024
        );
        self.pause(backoff.pause(self.clock.jitter()), true, error);
        true
    }

    /// Does what the error asks for; false when that is to stop.
    fn recover_from(
        &self,
        error: &AttemptError,
        copy: &mut HeldCopy,
        backoff: &mut Backoff,
        address: &HostPort,
        others_are_left: bool,
    ) -> bool {
        let name = &self.config.name;
        let pause = match error.cure() {
            // The pauses are there to spare a server, and the next one is another.
            _ if others_are_left => backoff.shortest(),
            Cure::Operator => {
                tracing::error!(source = name, host = %address, "stopped: {error}");
                self.monitor.set_state(SourceState::Stopped { reason: error.to_string() });
                return false;
            }
            Cure::Later => backoff.longest(),
            Cure::Soon => backoff.pause(self.clock.jitter()),
        };
        tracing::warn!(source = name, host = %address, "{error}; next attempt in {}", show(pause));
        if error.log_failed() {
            self.reopen(copy, backoff);
        }
        self.pause(pause, error.is_full_disk(), error.to_string());
        true
    }

    /// Waits, and shows why.
    fn pause(&self, pause: Duration, disk_is_full: bool, error: String) {
        let until = jiff::Timestamp::now() + pause;
        self.monitor.set_state(if disk_is_full {
            SourceState::WaitingForSpace { error }
        } else {
            SourceState::BackingOff { until, error }
        });
        self.clock.pause(&self.stop, pause);
    }

    /// After a failed write or sync: what is on disk is found out from the disk, however long that takes to succeed.
    fn reopen(&self, copy: &mut HeldCopy, backoff: &mut Backoff) {
        while !self.stop.is_requested() {
            match copy.reopen() {
                Ok(remarks) => return self.opened(copy, &remarks),
                Err(error) => {
                    let pause = backoff.pause(self.clock.jitter());
                    tracing::error!(source = self.config.name, "{error}; next attempt in {}", show(pause));
                    self.pause(pause, error.is_full_disk(), error.to_string());
                }
            }
        }
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

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
//! | `look.rs` | a short look at a source's logs, to tell a purge from a reset from a fork |
//! | `copy.rs` | what is held: the folder and its newest timeline |
//! | `attempt.rs` | one attempt: from connecting to the end of the session |
//! | `attempt_error.rs`, `complaint.rs` | why an attempt ended and what helps; the causes of error 1236 |
//! | `backoff.rs`, `stop.rs` | pauses; the request to stop |
//! | `clock.rs` | the seam to time |

pub mod acknowledge;
pub mod attempt;
pub mod attempt_error;
pub mod backoff;
pub mod clock;
pub mod complaint;
pub mod copy;
pub mod cursor;
pub mod identify;
pub mod look;
pub mod negotiate;
pub mod plan;
pub mod receive;
pub mod refusal;
mod sink;
pub mod stop;

use crate::config::SourceConfig;
use crate::log::storage::Storage;
use crate::status::{SourceMonitor, SourceState};
use crate::wire::Network;
use attempt::Attempt;
use attempt_error::{AttemptError, Cure};
use backoff::Backoff;
use clock::Clock;
use copy::{CopyError, HeldCopy};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use stop::StopSignal;

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
    /// Opens the copy: locks the folder, recovers the newest timeline.
    ///
    /// # Errors
    /// When another process holds the folder, or it cannot be read or mended.
    pub fn open(&self) -> Result<HeldCopy, CopyError> {
        self.monitor.set_fsync_mode(self.config.fsync_mode);
        self.monitor.set_state(SourceState::Recovering);
        let (copy, remarks) = HeldCopy::open(self.storage.clone(), &self.data_dir, &self.config.name)?;
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
        attempt::publish_copy(&self.monitor, &copy);
        Ok(copy)
    }

    /// Receives until a stop is requested. Returns early only when nothing but an operator can help.
    pub fn run(self, mut copy: HeldCopy) {
        let mut backoff = Backoff::new(self.config.backoff_min, self.config.backoff_max);
        let mut host = 0;
        while !self.stop.is_requested() {
            let began = self.clock.now();
            let attempt = Attempt { upstream: &self, host: &self.config.hosts[host] };
            let Err(error) = attempt.make(&mut copy) else { continue };
            if self.stop.is_requested() {
                break;
            }
            backoff.session_lasted(self.clock.now().saturating_duration_since(began));
            if !self.recover_from(&error, &mut copy, &mut backoff, host) {
                return;
            }
            self.monitor.counters.reconnects.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if error.is_unreachable() {
                host = (host + 1) % self.config.hosts.len();
            }
        }
        self.monitor.set_state(SourceState::Stopped { reason: "binlogd is stopping".to_owned() });
    }

    /// Does what the error asks for; false when that is to stop.
    fn recover_from(
        &self,
        error: &AttemptError,
        copy: &mut HeldCopy,
        backoff: &mut Backoff,
        host: usize,
    ) -> bool {
        let name = &self.config.name;
        let address = &self.config.hosts[host];
        let pause = match error.cure() {
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
        let until = jiff::Timestamp::now() + pause;
        self.monitor.set_state(if error.is_full_disk() {
            SourceState::WaitingForSpace { error: error.to_string() }
        } else {
            SourceState::BackingOff { until, error: error.to_string() }
        });
        self.clock.pause(&self.stop, pause);
        true
    }

    /// After a failed write or sync: what is on disk is found out from the disk, however long that takes to succeed.
    fn reopen(&self, copy: &mut HeldCopy, backoff: &mut Backoff) {
        while !self.stop.is_requested() {
            match copy.reopen() {
                Ok(remarks) => {
                    for remark in remarks {
                        tracing::warn!(source = self.config.name, "{remark}");
                    }
                    attempt::publish_copy(&self.monitor, copy);
                    return;
                }
                Err(error) => {
                    let pause = backoff.pause(self.clock.jitter());
                    tracing::error!(source = self.config.name, "{error}; next attempt in {}", show(pause));
                    self.monitor.set_state(SourceState::WaitingForSpace { error: error.to_string() });
                    self.clock.pause(&self.stop, pause);
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

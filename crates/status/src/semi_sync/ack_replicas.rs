//! How the receivers further down stand that acknowledgements wait for (`ack_after_replicas`).

use crate::lock::lock;
use config::AckTimeoutAction;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::Duration;

/// What is demanded of them, as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Demanded {
    /// How many different ones must have confirmed; 0 for none.
    pub wanted: u32,
    /// How long they are waited for.
    pub timeout: Duration,
    /// What happens then.
    pub action: AckTimeoutAction,
}

/// Written by the receiving thread, read by anybody.
#[derive(Debug, Default)]
pub struct AckReplicas {
    demanded: Mutex<Option<Demanded>>,
    confirmed: AtomicU32,
    waiting: AtomicBool,
    alone: AtomicBool,
}

impl AckReplicas {
    /// What is demanded from now on.
    pub fn demand(&self, demanded: Demanded) {
        *lock(&self.demanded) = Some(demanded);
    }

    /// What is demanded; `None` before a thread has begun.
    pub fn demanded(&self) -> Option<Demanded> {
        *lock(&self.demanded)
    }

    /// How many have confirmed the oldest place that the source waits for, or where nobody waits what is durable here; whether
    /// somebody waits; whether binlogd goes on without them.
    pub fn publish(&self, confirmed: u32, waiting: bool, alone: bool) {
        self.confirmed.store(confirmed, Relaxed);
        self.waiting.store(waiting, Relaxed);
        self.alone.store(alone, Relaxed);
    }

    /// The session ends: nothing that is held is known to be waited for.
    pub fn session_ends(&self) {
        self.waiting.store(false, Relaxed);
    }

    /// Whether the source waits for an acknowledgement that is held.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Relaxed)
    }

    /// Everything; `None` where nobody is demanded.
    pub fn status(&self) -> Option<AckReplicasStatus> {
        let demanded = self.demanded().filter(|demanded| demanded.wanted > 0)?;
        Some(AckReplicasStatus {
            wanted: demanded.wanted,
            confirmed: self.confirmed.load(Relaxed),
            waiting: self.is_waiting(),
            alone: self.alone.load(Relaxed),
            timeout_ms: u64::try_from(demanded.timeout.as_millis()).unwrap_or(u64::MAX),
            action: demanded.action.word().to_owned(),
        })
    }
}

/// How the receivers further down stand that acknowledgements wait for (`ack_after_replicas`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AckReplicasStatus {
    /// `ack_after_replicas`: how many different receivers must have made a transaction durable before it is acknowledged.
    pub wanted: u32,
    /// How many have confirmed the oldest place for which the source waits; where it waits for none, all that is durable here.
    pub confirmed: u32,
    /// True while the source waits for an acknowledgement that is held.
    pub waiting: bool,
    /// True while they are not waited for, because they did not come within `ack_timeout`.
    pub alone: bool,
    /// `ack_timeout`, in milliseconds.
    pub timeout_ms: u64,
    /// `ack_timeout_action`: `wait` or `go_on`.
    pub action: String,
}

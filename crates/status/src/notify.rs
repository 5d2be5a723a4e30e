//! Who is told of changes (`[notify]`), and what came of it.

use super::lock::lock;
use super::past::LastError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// A receiver of `[notify]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceiverStatus {
    /// Its key: `command`, `webhook`, `heartbeat`.
    pub key: String,
    /// True while the last try failed. It is tried again.
    pub down: bool,
    /// True after an internal error of binlogd, and where the system had no thread for it: it is not tried again before a restart.
    pub ended: bool,
    /// Tries that failed, since the daemon started.
    pub failures: u64,
    /// The last time that it was reached; null before the first.
    pub reached_at: Option<Timestamp>,
    /// Why the last try that failed did; null when none did. Of a webhook or a heartbeat without the URL, of a command with the last line of its
    /// standard error, 200 bytes at most.
    pub last_error: Option<LastError>,
}

/// The receivers that are configured. Their threads publish; anybody reads.
#[derive(Debug, Default)]
pub struct NotifyMonitor {
    receivers: Mutex<Vec<ReceiverStatus>>,
}

impl NotifyMonitor {
    /// These are configured from now on. Those that were so before keep their counts.
    pub fn configure(&self, keys: &[&str]) {
        let mut receivers = lock(&self.receivers);
        let before = std::mem::take(&mut *receivers);
        receivers.extend(keys.iter().map(|key| {
            let old = before.iter().find(|old| old.key == **key).cloned().unwrap_or_default();
            ReceiverStatus { key: (*key).to_owned(), down: false, ended: false, ..old }
        }));
    }

    /// It was reached. Whether that is news: the try before had failed.
    pub fn reached(&self, key: &str) -> bool {
        self.change(key, |receiver| {
            receiver.reached_at = Some(Timestamp::now());
            std::mem::take(&mut receiver.down)
        })
    }

    /// A try has failed, and why. Whether that is news: the try before had not failed.
    pub fn failed(&self, key: &str, why: &str) -> bool {
        self.change(key, |receiver| {
            receiver.failures += 1;
            receiver.last_error = Some(LastError { at: Timestamp::now(), message: why.to_owned() });
            !std::mem::replace(&mut receiver.down, true)
        })
    }

    /// It has no thread any more, and why.
    pub fn ended(&self, key: &str, why: &str) {
        self.failed(key, why);
        self.change(key, |receiver| std::mem::replace(&mut receiver.ended, true));
    }

    /// In the order of the configuration's keys.
    pub fn status(&self) -> Vec<ReceiverStatus> {
        lock(&self.receivers).clone()
    }

    fn change(&self, key: &str, change: impl FnOnce(&mut ReceiverStatus) -> bool) -> bool {
        lock(&self.receivers).iter_mut().find(|receiver| receiver.key == key).is_some_and(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_news_once_and_failures_are_counted_over_a_reload() {
        let notify = NotifyMonitor::default();
        assert!(!notify.failed("webhook", "nobody has it"));
        notify.configure(&["command", "webhook"]);
        assert!(!notify.reached("command"));
        assert!(notify.failed("webhook", "refused") && !notify.failed("webhook", "late"));
        assert!(notify.reached("webhook") && !notify.reached("webhook"));
        notify.ended("webhook", "an internal error");
        let webhook = notify.status().pop().unwrap();
        assert_eq!((webhook.failures, webhook.down, webhook.ended), (3, true, true));
        notify.configure(&["webhook"]);
        let webhook = notify.status().pop().unwrap();
        assert_eq!((webhook.failures, webhook.down, webhook.ended), (3, false, false));
        assert_eq!(notify.status().len(), 1);
    }
}

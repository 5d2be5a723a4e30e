//! Who is told when the judgement of a source changes, and who is asked while all goes on. Each receiver has a thread of its own, which
//! looks at what is published: nobody waits for it, and one receiver does not wait for another.

mod receiver;
mod teller;

use self::receiver::{Failure, Http};
use self::teller::{Message, Now, Teller};
use crate::keeper::{Chore, Keeper, Retry};
use config::NotifyConfig;
use jiff::Timestamp;
use source::stop::StopSignal;
use status::{DaemonMonitor, Level};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two looks at the judgement.
const LOOK: Duration = Duration::from_secs(1);

/// The threads, which are asked to end when this is dropped.
pub(super) struct Notifying {
    keepers: Vec<Keeper>,
}

impl Notifying {
    /// Starts a thread for each receiver. One for which the system has none is shown as ended: all else goes on without it.
    pub(super) fn start(config: Option<&NotifyConfig>, monitor: &Arc<DaemonMonitor>) -> Notifying {
        let receivers = config.map(receivers_of).unwrap_or_default();
        let keys: Vec<&str> = receivers.iter().map(|(key, _)| *key).collect();
        monitor.notify.configure(&keys);
        let threads = receivers.into_iter().filter_map(|(key, does)| {
            let receiver = Receiver { key, does, monitor: monitor.clone() };
            let no_thread = |error| ended(monitor, key, &format!("the system gives no thread: {error}"));
            Keeper::start(format!("notify-{key}"), LOOK, receiver).map_err(no_thread).ok()
        });
        Notifying { keepers: threads.collect() }
    }
}

impl Drop for Notifying {
    fn drop(&mut self) {
        // All are asked before any is waited for.
        self.keepers.iter().for_each(Keeper::request_end);
    }
}

/// Tells a message, or says why not.
type Tell = Box<dyn FnMut(&Message, &StopSignal) -> Result<(), Failure> + Send>;

/// What is done with a receiver.
enum Does {
    /// It is told of changes.
    Tell(Teller, Tell),
    /// It is asked so often while nothing is critical.
    Beat(Http, Duration, Retry),
}

fn receivers_of(config: &NotifyConfig) -> Vec<(&'static str, Does)> {
    let mut receivers: Vec<(&'static str, Does)> = Vec::new();
    let teller = || Teller::new(config.at_most_every);
    if let Some(command) = config.command.clone() {
        let tell: Tell = Box::new(move |message, stop| receiver::run(&command, message, stop));
        receivers.push(("command", Does::Tell(teller(), tell)));
    }
    if let Some(url) = &config.webhook {
        let mut http = Http::new(url);
        receivers
            .push(("webhook", Does::Tell(teller(), Box::new(move |message, _| http.ask(Some(message))))));
    }
    if let Some(url) = &config.heartbeat {
        let every = config.heartbeat_every;
        let retry = Retry::new(LOOK.min(every), every);
        receivers.push(("heartbeat", Does::Beat(Http::new(url), every, retry)));
    }
    receivers
}

struct Receiver {
    /// Its key in `[notify]`.
    key: &'static str,
    does: Does,
    monitor: Arc<DaemonMonitor>,
}

impl Chore for Receiver {
    fn round(&mut self, stop: &StopSignal) -> Duration {
        match &mut self.does {
            Does::Tell(teller, tell) => {
                let time = Timestamp::now();
                let due = teller.due(judgements(&self.monitor, time), Instant::now(), &time.to_string());
                let (mut was_told, mut has_failed) = (false, false);
                for message in due {
                    let told = tell(&message, stop);
                    if stop.is_requested() {
                        return LOOK;
                    }
                    let Err(failure) = told else {
                        teller.was_told(&message, Instant::now());
                        was_told = true;
                        continue;
                    };
                    has_failed = true;
                    let is_refusal = failure.is_refusal;
                    published(&self.monitor, self.key, Err(failure));
                    // What it does not take may not keep it from what it takes.
                    if !is_refusal {
                        break;
                    }
                }
                // Once a round, whatever else it took.
                if has_failed {
                    teller.failed(Instant::now());
                } else if was_told {
                    published(&self.monitor, self.key, Ok(()));
                }
                LOOK
            }
            Does::Beat(_, every, _)
                if self.monitor.glance(Timestamp::now()).verdict.level >= Level::Critical =>
            {
                LOOK.min(*every)
            }
            Does::Beat(http, every, retry) => {
                let asked = http.ask(None);
                if stop.is_requested() {
                    return *every;
                }
                if !published(&self.monitor, self.key, asked) {
                    return retry.failed();
                }
                retry.went_well();
                *every
            }
        }
    }

    fn has_failed(&mut self) {
        ended(&self.monitor, self.key, "an internal error of binlogd");
    }
}

/// Says that a receiver has no thread any more.
fn ended(monitor: &DaemonMonitor, key: &str, why: &str) {
    monitor.notify.ended(key, why);
    let text = format!("{key} in [notify] is not told any more: {why}");
    tracing::error!("{text}");
    monitor.note(Level::Warning, "notify", text);
}

/// Of each source, and, without a name, of the daemon itself.
fn judgements(monitor: &DaemonMonitor, now: Timestamp) -> Vec<Now> {
    let status = monitor.glance(now);
    let of_daemon =
        Now { source: String::new(), headline: status.verdict.headline, problems: status.verdict.problems };
    status.sources.iter().map(Now::of).chain([of_daemon]).collect()
}

/// Says what came of a try, once for each change and not for each try. Whether it went well.
fn published(monitor: &DaemonMonitor, key: &str, told: Result<(), Failure>) -> bool {
    match &told {
        Err(Failure { why, .. }) if monitor.notify.failed(key, why) => {
            tracing::warn!("{key} in [notify] cannot be reached, and is tried again: {why}");
            monitor.note(Level::Warning, "notify", format!("{key} in [notify] cannot be reached: {why}"));
        }
        Ok(()) if monitor.notify.reached(key) => {
            tracing::info!("{key} in [notify] is reached again");
            monitor.note(Level::Ok, "notify", format!("{key} in [notify] is reached again"));
        }
        _ => {}
    }
    told.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told in one round of a daemon with two sources, of which one is refused or cannot be told.
    fn told_in_a_round(is_refusal: bool) -> (Vec<String>, Arc<DaemonMonitor>) {
        let monitor = Arc::new(DaemonMonitor::new(std::path::Path::new("data")));
        for name in ["a", "b"] {
            monitor.add(Arc::new(status::SourceMonitor::new(name)));
        }
        monitor.notify.configure(&["command"]);
        let (to, told) = std::sync::mpsc::channel();
        let tell: Tell = Box::new(move |message, _| {
            let name = message.source.clone().unwrap_or_default();
            if name == "a" {
                return Err(Failure { why: "it answers 400".to_owned(), is_refusal });
            }
            to.send(name).unwrap();
            Ok(())
        });
        let does = Does::Tell(Teller::new(Duration::ZERO), tell);
        let mut receiver = Receiver { key: "command", does, monitor: monitor.clone() };
        receiver.round(&StopSignal::new());
        // It is left alone for a while.
        receiver.round(&StopSignal::new());
        (told.try_iter().collect(), monitor)
    }

    #[test]
    fn a_message_that_is_refused_holds_no_other_up() {
        let (mut told, monitor) = told_in_a_round(true);
        told.sort();
        assert_eq!(told, ["", "b"]);
        let command = monitor.notify.status().remove(0);
        assert!(command.down && command.failures == 1, "{command:?}");
        // One that is down is not tried with the next.
        let (told, monitor) = told_in_a_round(false);
        assert!(!told.contains(&"b".to_owned()), "{told:?}");
        assert_eq!(monitor.notify.status()[0].failures, 1);
    }

    #[test]
    fn an_error_of_ours_is_shown() {
        let monitor = Arc::new(DaemonMonitor::new(std::path::Path::new("data")));
        monitor.notify.configure(&["command"]);
        let tell: Tell = Box::new(|_, _| panic!("the error of ours"));
        // Without a pause before the first message.
        let does = Does::Tell(Teller::new(Duration::ZERO), tell);
        let receiver = Receiver { key: "command", does, monitor: monitor.clone() };
        let _keeper = Keeper::start("notify-command", Duration::ZERO, receiver).unwrap();
        let began = Instant::now();
        while !monitor.notify.status()[0].ended {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody says that it ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = monitor.status(Timestamp::now());
        let problem = status.verdict.problems.iter().find(|problem| problem.kind == "receiver_down");
        assert_eq!(problem.map(|problem| problem.level), Some(Level::Warning), "{:?}", status.verdict);
        assert_eq!(status.notify[0].failures, 1);
    }
}

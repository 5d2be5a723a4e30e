//! Drills: at a time of day, for each archived source, the program itself is started as `binlogd drill`, which brings a backup and the log
//! behind it back in a throw-away server and compares. One source after the other, at the lowest priority; nobody waits for it.

mod answer;
mod kept;

use self::kept::Kept;
use super::child::{Ended, run};
use super::keeper::{Chore, Keeper};
use binlog::storage::Storage;
use binlog::writer::published::Published;
use config::DrillConfig;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use source::stop::StopSignal;
use status::{DrillResult, Level, SourceMonitor, units};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks whether a drill is due.
const PAUSE: Duration = Duration::from_secs(1);

/// The program itself, whatever has taken its place on the disk since.
const PROGRAM: &str = "/proc/self/exe";

/// The thread. A drill that is under way is ended, and nothing is left of it, when this is dropped.
pub(super) struct Drilling {
    sources: Arc<Mutex<BTreeMap<String, Drilled>>>,
    _keeper: Keeper,
}

/// An archived source.
#[derive(Clone)]
pub(super) struct Drilled {
    /// The source's folder.
    pub(super) folder: PathBuf,
    pub(super) storage: Arc<dyn Storage>,
    /// The folder is this process's while something is published.
    pub(super) published: Arc<Published>,
    pub(super) monitor: Arc<SourceMonitor>,
}

impl Drilling {
    /// Starts the thread, with no source yet. The process that drills reads the same file of configuration.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(config: DrillConfig, file: &Path) -> io::Result<Drilling> {
        let sources = Arc::<Mutex<BTreeMap<String, Drilled>>>::default();
        let due = next(config.at, Timestamp::now(), TimeZone::system());
        let (sources_of, file) = (sources.clone(), std::path::absolute(file)?);
        let drills = Drills {
            config,
            file,
            sources: sources_of,
            kept: BTreeMap::new(),
            due,
            waiting: VecDeque::new(),
        };
        Ok(Drilling { sources, _keeper: Keeper::start("drill", PAUSE, drills)? })
    }

    /// A source is archived from now on, or again.
    pub(super) fn add(&self, source: &str, drilled: Drilled) {
        locked(&self.sources).insert(source.to_owned(), drilled);
    }

    /// A source is not received any more.
    pub(super) fn remove(&self, source: &str) {
        locked(&self.sources).remove(source);
    }
}

struct Drills {
    config: DrillConfig,
    /// Absolute.
    file: PathBuf,
    sources: Arc<Mutex<BTreeMap<String, Drilled>>>,
    /// Of each source that was this process's once.
    kept: BTreeMap<String, Kept>,
    due: Timestamp,
    /// Those whose turn it is.
    waiting: VecDeque<String>,
}

impl Chore for Drills {
    /// What it starts stands back as far.
    const NICE: i32 = 19;

    fn round(&mut self, stop: &StopSignal) -> Duration {
        let now = Timestamp::now();
        let upcoming = next(self.config.at, now, TimeZone::system());
        if now >= self.due {
            self.waiting = locked(&self.sources).keys().cloned().collect();
        }
        // That of a clock that was ahead as well.
        self.due = upcoming;
        self.recall(now);
        if let Some(source) = self.waiting.pop_front() {
            self.drill(&source, stop);
        }
        self.publish(None);
        PAUSE
    }
}

impl Drills {
    /// Reads what earlier processes have left, and writes what could not be written.
    fn recall(&mut self, now: Timestamp) {
        for (source, drilled) in &*locked(&self.sources) {
            if drilled.published.live().is_none() {
                continue;
            }
            let recall = || Kept::recall(&*drilled.storage, &drilled.folder, source, now);
            let kept = self.kept.entry(source.clone()).or_insert_with(recall);
            if !kept.is_written
                && let Err(error) = kept.write(&*drilled.storage, &drilled.folder)
            {
                tracing::debug!(source, "what drills have shown cannot be written yet: {error}");
            }
        }
    }

    fn publish(&self, running: Option<(&str, Timestamp)>) {
        for (source, drilled) in &*locked(&self.sources) {
            let Some(kept) = self.kept.get(source) else { continue };
            let since = running.filter(|(name, _)| name == source).map(|(_, since)| since);
            let status = kept.status(self.due, since);
            drilled.monitor.archive.update(|archive| archive.drill = Some(status));
        }
    }

    fn drill(&mut self, source: &str, stop: &StopSignal) {
        let Some(drilled) = locked(&self.sources).get(source).cloned() else { return };
        if !self.kept.contains_key(source) {
            return tracing::warn!(source, "no drill: its copy was not opened since the start");
        }
        let (began, at) = (Timestamp::now(), Instant::now());
        self.publish(Some((source, began)));
        tracing::info!(source, "a drill begins");
        let mut command = Command::new(PROGRAM);
        command.arg("drill").arg("--config").arg(&self.file).args(["--source", source, "--json"]);
        let result = match run(&mut command, self.config.time_limit, stop) {
            Ok(run) if run.ended == Ended::Stopped => return,
            Ok(run) => answer::result(&run, source, began, at.elapsed()),
            Err(error) => DrillResult {
                started: began,
                finished: Timestamp::now(),
                fault: format!("it could not be started: {error}"),
                ..DrillResult::default()
            },
        };
        let Some(kept) = self.kept.get_mut(source) else { return };
        tell(source, &drilled.monitor, kept.last(), &result);
        kept.add(result);
        self.recall(Timestamp::now());
    }
}

fn tell(source: &str, monitor: &SourceMonitor, before: Option<&DrillResult>, result: &DrillResult) {
    if result.passed {
        let took = units::duration(result.seconds as u64);
        let (backup, until) = (result.backup.as_str(), result.until.as_str());
        tracing::info!(source, backup, until, took, "a drill has passed: {}", result.proof_in_words);
        if before.is_some_and(|before| !before.passed) {
            monitor.note(Level::Ok, "drill", "a drill has passed again");
        }
    } else {
        tracing::error!(source, backup = result.backup, "a drill has FAILED: {}", result.fault);
        monitor.note(Level::Warning, "drill", format!("a drill has failed: {}", result.fault));
    }
}

/// When it is that time of day next, behind a moment. A time that a change of the clocks leaves out comes an hour later that day.
fn next(at: Time, now: Timestamp, zone: TimeZone) -> Timestamp {
    let today = now.to_zoned(zone.clone()).date();
    let on = |days: i32| {
        let date = today.checked_add(days.days()).ok()?;
        Some(date.to_datetime(at).to_zoned(zone.clone()).ok()?.timestamp())
    };
    (0..=2).filter_map(on).find(|due| *due > now).unwrap_or(Timestamp::MAX)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;

    #[test]
    fn the_next_time_is_of_today_or_tomorrow_whatever_the_clocks_do() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let after = |now: &str, at: &str| {
            let at = Time::strptime("%H:%M", at).unwrap();
            next(at, now.parse().unwrap(), zone.clone()).to_string()
        };
        assert_eq!(after("2026-11-28T20:00:00Z", "03:30"), "2026-11-29T02:30:00Z");
        assert_eq!(after("2026-11-29T02:30:00Z", "03:30"), "2026-11-30T02:30:00Z");
        assert_eq!(after("2026-11-29T02:29:59Z", "03:30"), "2026-11-29T02:30:00Z");
        // 2:30 is not there in the night of the 29th of March, and there twice in that of the 25th of October.
        assert_eq!(after("2026-03-28T23:00:00Z", "02:30"), "2026-03-29T01:30:00Z");
        assert_eq!(after("2026-10-24T23:00:00Z", "02:30"), "2026-10-25T00:30:00Z");
        assert_eq!(after("2026-10-25T00:30:00Z", "02:30"), "2026-10-26T01:30:00Z");
    }

    fn result(number: u64, passed: bool) -> DrillResult {
        DrillResult { tables: number, passed, seconds: 0.5, ..DrillResult::default() }
    }

    #[test]
    fn restarts_change_nothing_and_the_last_that_passed_is_never_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (storage, began) = (PosixStorage, Timestamp::from_second(1000).unwrap());
        let recall = |now| Kept::recall(&storage, dir.path(), "a", now);
        let mut kept = recall(began);
        kept.add(result(0, true));
        for number in 1..100 {
            kept.add(result(number, false));
        }
        kept.write(&storage, dir.path()).unwrap();
        let again = recall(Timestamp::from_second(5000).unwrap());
        assert_eq!(again, kept);
        let status = again.status(Timestamp::MAX, None);
        assert_eq!((status.since, status.last_passed.unwrap().tables), (began, 0));
        assert_eq!((status.list.len(), status.list[0].tables), (30, 99));
        std::fs::write(dir.path().join("drills.jsonl"), "nonsense").unwrap();
        assert_eq!(recall(began), Kept::new(began));
    }
}

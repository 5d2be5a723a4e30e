//! A load that fills the binary log at a steady pace, and beside it small commits that are timed.
//!
//! Writers change one number in a row of many bytes. With full row images the log gets the whole row twice, as it was and
//! as it is, and the tables, the redo log and the network get next to nothing: what is seen of the disk is the log's.

use super::rotations;
use super::times::Times;
use crate::lab::Lab;
use crate::machine::cpus::Role;
use crate::model::{Fact, Settings};
use crate::server::{DATABASE, Target};
use anyhow::{Context, anyhow, ensure};
use rig::server::Session;
use rig::statistics::Samples;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest wait for a statement: a commit stands for as long as a whole log file takes to be written.
const STATEMENT_MAX: Duration = Duration::from_secs(600);
/// Between a small commit and the next of the same session: users think, and two processors are not to be full of it.
const PAUSE: Duration = Duration::from_millis(1);
/// How often a session looks whether the run is broken off while it waits for its turn.
const NAP_MAX: Duration = Duration::from_millis(100);

/// The load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogFiller {
    /// Sessions that change large rows, each its own.
    pub writers: u32,
    /// Sessions that insert small rows.
    pub small: u32,
    /// Bytes of a large row.
    pub row_bytes: u64,
    /// Bytes of log a second, of all writers together. After a stall nobody makes up for it.
    pub pace: u64,
}

/// A commit, in seconds since the load began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Commit {
    /// When its statement was sent.
    pub began: f64,
    /// When it was answered.
    pub ended: f64,
}

/// What a load came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// Seconds since 1970 when it began.
    pub began: f64,
    /// Commits of small rows, of all sessions, not in order.
    pub small: Vec<Commit>,
    /// Commits of large rows, of all sessions, not in order.
    pub large: Vec<Commit>,
    /// Seconds since the load began, and bytes of the log then.
    pub growth: Vec<(f64, u64)>,
}

impl Commit {
    /// Seconds.
    pub fn took(&self) -> f64 {
        self.ended - self.began
    }
}

impl LogFiller {
    /// As the settings `writers`, `small`, `row_kib` and `log_mb_s` have it.
    ///
    /// # Errors
    /// When one has no sense.
    pub fn of(settings: &Settings) -> anyhow::Result<LogFiller> {
        let number = |name: &str, most: u64| {
            let value: u64 = settings.get(name)?;
            ensure!((1..=most).contains(&value), "--set {name}={value}: from 1 to {most}");
            anyhow::Ok(value)
        };
        Ok(LogFiller {
            writers: number("writers", 1000)? as u32,
            small: number("small", 1000)? as u32,
            // A row stands twice in an event, and the server takes packets of 64 MiB.
            row_bytes: number("row_kib", 16 << 10)? << 10,
            pace: number("log_mb_s", 100_000)? * 1_000_000,
        })
    }

    /// Clients of the load.
    pub fn threads(&self) -> u32 {
        self.writers + self.small
    }

    /// Bytes of log of a large commit, about.
    pub fn commit_bytes(&self) -> u64 {
        2 * self.row_bytes
    }

    /// What it is, for the report.
    pub fn fact(&self) -> Fact {
        let LogFiller { writers, small, row_bytes, pace } = self;
        let text = format!(
            "{writers} sessions change a number in rows of {} KiB, {} MB of log a second together; {small} sessions insert \
             small rows, {} ms after the last",
            row_bytes >> 10,
            pace / 1_000_000,
            PAUSE.as_millis()
        );
        Fact::new("load", "log filler", text)
    }

    /// Makes and fills the tables.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn prepare(&self, target: &mut Target) -> anyhow::Result<()> {
        target.query(&format!(
            "CREATE TABLE {DATABASE}.large (id INT PRIMARY KEY, n BIGINT NOT NULL, row_bytes LONGBLOB NOT NULL) ENGINE=InnoDB"
        ))?;
        target.query(&format!(
            "CREATE TABLE {DATABASE}.small (id BIGINT PRIMARY KEY AUTO_INCREMENT, session INT NOT NULL) ENGINE=InnoDB"
        ))?;
        let repeats = self.row_bytes / 128;
        (0..self.writers).try_for_each(|id| {
            let row = format!("{id}, 0, REPEAT(SHA2(CONCAT({id}, RAND()), 512), {repeats})");
            target.query(&format!("INSERT INTO {DATABASE}.large VALUES ({row})")).map(|_| ())
        })
    }

    /// Loads the server, whose log files lie in the folder `data`, for so many seconds, and looks at their bytes every
    /// `interval`.
    ///
    /// # Errors
    /// When a session or a statement fails, and when the run is broken off.
    pub fn load(
        &self,
        lab: &Lab,
        target: &mut Target,
        data: &Path,
        seconds: u64,
        interval: Duration,
    ) -> anyhow::Result<Outcome> {
        let mut sessions = Vec::new();
        for _ in 0..self.threads() {
            let mut session = Session::connect(target.account())?;
            session.set_timeout(STATEMENT_MAX);
            sessions.push(session);
        }
        let small = sessions.split_off(self.writers as usize);
        let turn =
            Duration::from_secs_f64(self.commit_bytes() as f64 * f64::from(self.writers) / self.pace as f64);
        let length = Duration::from_secs(seconds);
        let clock = Clock { start: Instant::now(), length, lab };
        let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..self.writers)
                .zip(sessions)
                .map(|(id, mut session)| {
                    let sql = format!("UPDATE {DATABASE}.large SET n = n + 1 WHERE id = {id}");
                    let first = turn * id / self.writers;
                    scope.spawn(move || clock.repeat(&mut session, &sql, first, Pace::Every(turn)))
                })
                .collect();
            let small: Vec<_> = (0..self.small)
                .zip(small)
                .map(|(id, mut session)| {
                    let sql = format!("INSERT INTO {DATABASE}.small (session) VALUES ({id})");
                    scope.spawn(move || clock.repeat(&mut session, &sql, Duration::ZERO, Pace::After(PAUSE)))
                })
                .collect();
            let growth = clock.watch(data, interval);
            let joined = |threads: Vec<std::thread::ScopedJoinHandle<'_, anyhow::Result<Vec<Commit>>>>| {
                let mut all = Vec::new();
                for thread in threads {
                    all.extend(thread.join().map_err(|_| anyhow!("a thread of the load has panicked"))??);
                }
                anyhow::Ok(all)
            };
            let (large, small) = (joined(writers), joined(small));
            lab.interrupt.check()?;
            Ok(Outcome { began, large: large?, small: small?, growth: growth? })
        })
    }
}

/// How the commits of a session follow each other.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// So long after the last one was due, or at once where that is over.
    Every(Duration),
    /// So long after the last one was answered.
    After(Duration),
}

/// The time of a load.
#[derive(Clone, Copy)]
struct Clock<'a> {
    start: Instant,
    length: Duration,
    lab: &'a Lab,
}

impl Clock<'_> {
    fn is_over(&self) -> bool {
        self.start.elapsed() >= self.length
    }

    /// Runs a statement again and again, until the time is over.
    fn repeat(
        &self,
        session: &mut Session,
        sql: &str,
        first: Duration,
        pace: Pace,
    ) -> anyhow::Result<Vec<Commit>> {
        let _pinned = self.lab.apart.cpus.pin(Role::Load)?;
        let mut commits = Vec::new();
        let mut due = self.start + first;
        loop {
            while let Some(wait) = due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero()) {
                self.lab.interrupt.check()?;
                std::thread::sleep(wait.min(NAP_MAX));
            }
            if self.is_over() {
                return Ok(commits);
            }
            self.lab.interrupt.check()?;
            let began = self.start.elapsed().as_secs_f64();
            session.query(sql)?;
            commits.push(Commit { began, ended: self.start.elapsed().as_secs_f64() });
            due = match pace {
                Pace::Every(turn) => (due + turn).max(Instant::now()),
                Pace::After(pause) => Instant::now() + pause,
            };
        }
    }

    /// Looks at the bytes of the log, until the time is over.
    fn watch(&self, data: &Path, interval: Duration) -> anyhow::Result<Vec<(f64, u64)>> {
        let mut growth = Vec::new();
        let mut next = self.start;
        loop {
            let at = self.start.elapsed().as_secs_f64();
            let bytes = rotations::log_bytes(data).with_context(|| format!("reading {}", data.display()))?;
            growth.push((at, bytes));
            if self.is_over() || self.lab.interrupt.check().is_err() {
                return Ok(growth);
            }
            next = (next + interval).max(Instant::now());
            std::thread::sleep(next - Instant::now());
        }
    }
}

impl Outcome {
    /// How long the small commits took; none without any.
    pub fn times(&self) -> Option<Times> {
        let mut samples = Samples::with_capacity(self.small.len());
        self.small.iter().for_each(|commit| samples.record(Duration::from_secs_f64(commit.took())));
        if samples.is_empty() {
            return None;
        }
        let found = samples.percentiles();
        let ms = |us: f64| us / 1e3;
        Some(Times {
            p50_ms: ms(found.p50),
            p95_ms: ms(found.p95),
            p99_ms: ms(found.p99),
            p99_9_ms: ms(found.p999),
            longest_ms: ms(found.max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_sense_are_named() {
        let settings = |row_kib: &'static str| {
            Settings::of([("writers", "4"), ("small", "2"), ("row_kib", row_kib), ("log_mb_s", "60")])
        };
        let filler = LogFiller::of(&settings("100")).unwrap();
        assert_eq!((filler.threads(), filler.commit_bytes(), filler.pace), (6, 200 << 10, 60_000_000));
        assert!(filler.fact().value.contains("rows of 100 KiB, 60 MB of log a second"));
        let error = LogFiller::of(&settings("0")).unwrap_err().to_string();
        assert!(error.contains("row_kib=0"), "{error}");
    }

    #[test]
    fn times_are_those_of_the_small_commits() {
        let commit = |index: u32| Commit { began: 1.0, ended: 1.0 + f64::from(index) / 1e3 };
        let small = (1..=1000).map(commit).collect();
        let times = Outcome { small, large: vec![commit(9000)], ..Outcome::default() }.times().unwrap();
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-3;
        assert!(
            near(times.p50_ms, 500.0) && near(times.p99_ms, 990.0) && near(times.longest_ms, 1000.0),
            "{times:?}"
        );
        assert_eq!(Outcome::default().times(), None);
    }
}

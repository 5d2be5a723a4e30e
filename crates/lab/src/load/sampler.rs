//! Throughput in short intervals, as the server counts it.

use crate::server::Target;
use anyhow::Context;
use rig::server::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::{ConnectOptions, ResultSet};

/// Commits of all sessions; go-tpc ends every transaction by the statement COMMIT.
const STATEMENT: &str = "SHOW GLOBAL STATUS WHERE Variable_name = 'Com_commit'";

/// Asks a server in a thread of its own the same again and again. Dropping it ends the thread.
#[derive(Debug)]
struct Watch<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Vec<T>>>>,
}

/// Looks at what a server has committed, and where it is asked to at the name of its current log file. Dropping it ends
/// that.
#[derive(Debug)]
pub struct Sampler {
    commits: Watch<Look>,
    /// By itself: the server answers this late while it rotates its log, which must not make the samples longer.
    files: Option<Watch<FileLook>>,
}

/// What a sampler saw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Seen {
    /// Throughput while there was a load: from the first commit to the last, without the intervals in which the load
    /// began and ended.
    pub samples: Vec<Sample>,
    /// The changes of the current log file; none unless it was asked for.
    pub changes: Vec<FileChange>,
}

/// One look saw a log file, and the next one another.
#[derive(Debug, Clone, PartialEq)]
pub struct FileChange {
    /// Seconds since 1970, the middle between the two looks.
    pub at: f64,
    /// The file before. There may have been others between it and the next.
    pub from: String,
    /// The file after.
    pub to: String,
}

/// A look at the name of the current log file.
#[derive(Debug, Clone, PartialEq)]
struct FileLook {
    at: f64,
    file: String,
}

/// A look at the counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Seconds since 1970, between question and answer.
    pub at: f64,
    /// Commits since the server's start.
    pub commits: u64,
}

/// The time between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since 1970 when it began.
    pub began: f64,
    /// Seconds since 1970 when it ended.
    pub ended: f64,
    /// Transactions a second.
    pub tps: f64,
}

impl Sampler {
    /// Begins to look, every `interval`; with `files` at the current log file too.
    ///
    /// # Errors
    /// When the server gives no session.
    pub fn start(target: &Target, interval: Duration, files: bool) -> anyhow::Result<Sampler> {
        let show_end = target.dialect().show_end();
        let look_at_file = move |session: &mut Session| file(session, show_end);
        let watch_files = || Watch::start(target.account(), interval, look_at_file);
        Ok(Sampler {
            commits: Watch::start(target.account(), interval, look)?,
            files: files.then(watch_files).transpose()?,
        })
    }

    /// Ends it, and returns what it saw.
    ///
    /// # Errors
    /// When the server did not answer.
    pub fn finish(self) -> anyhow::Result<Seen> {
        let files = self.files.map(Watch::finish).transpose()?.unwrap_or_default();
        Ok(Seen { samples: samples(&self.commits.finish()?), changes: changes(&files) })
    }
}

impl<T: Send + 'static> Watch<T> {
    fn start(
        account: &ConnectOptions,
        interval: Duration,
        look: impl Fn(&mut Session) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<Watch<T>> {
        let mut session = Session::connect(account)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let look_on = move || {
            let mut looks = Vec::new();
            let mut next = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                looks.push(look(&mut session)?);
                // A late answer does not make the next intervals shorter.
                next = (next + interval).max(Instant::now());
                std::thread::sleep(next - Instant::now());
            }
            Ok(looks)
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(look_on)?;
        Ok(Watch { stop, thread: Some(thread) })
    }

    fn finish(mut self) -> anyhow::Result<Vec<T>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it is finished once only")?;
        thread.join().map_err(|_| anyhow::anyhow!("the thread that samples has panicked"))?
    }
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn look(session: &mut Session) -> anyhow::Result<Look> {
    let (rows, at) = timed(session, STATEMENT)?;
    let commits = rows.get(0, "Value").and_then(|value| value.parse().ok());
    Ok(Look { at, commits: commits.context("the server does not count its commits")? })
}

fn file(session: &mut Session, show_end: &str) -> anyhow::Result<FileLook> {
    let (rows, at) = timed(session, show_end)?;
    Ok(FileLook { at, file: rows.get(0, "File").context("the server writes no binary log")?.to_owned() })
}

/// The answer, and the middle between question and answer in seconds since 1970.
fn timed(session: &mut Session, statement: &str) -> anyhow::Result<(ResultSet, f64)> {
    let asked = SystemTime::now();
    let rows = session.query(statement)?;
    let took = asked.elapsed().unwrap_or_default();
    let at = asked.duration_since(UNIX_EPOCH).unwrap_or_default() + took / 2;
    Ok((rows, at.as_secs_f64()))
}

fn changes(looks: &[FileLook]) -> Vec<FileChange> {
    let changed = looks.windows(2).filter(|pair| pair[0].file != pair[1].file);
    changed
        .map(|pair| FileChange {
            at: (pair[0].at + pair[1].at) / 2.0,
            from: pair[0].file.clone(),
            to: pair[1].file.clone(),
        })
        .collect()
}

fn samples(looks: &[Look]) -> Vec<Sample> {
    let pairs = looks.windows(2).filter(|pair| pair[1].at > pair[0].at);
    let all: Vec<Sample> = pairs
        .map(|pair| Sample {
            began: pair[0].at,
            ended: pair[1].at,
            tps: pair[1].commits.saturating_sub(pair[0].commits) as f64 / (pair[1].at - pair[0].at),
        })
        .collect();
    let first = all.iter().position(|sample| sample.tps > 0.0);
    let last = all.iter().rposition(|sample| sample.tps > 0.0);
    match (first, last) {
        (Some(first), Some(last)) if last > first + 1 => all[first + 1..last].to_vec(),
        _ => Vec::new(),
    }
}

/// The same in intervals of at least `seconds`; what is left at the end is dropped.
pub fn joined(samples: &[Sample], seconds: f64) -> Vec<Sample> {
    let (mut intervals, mut commits, mut began) = (Vec::new(), 0.0, None);
    for sample in samples {
        let began_at = *began.get_or_insert(sample.began);
        commits += sample.tps * (sample.ended - sample.began);
        let length = sample.ended - began_at;
        // A sample that is late by a hair still ends its interval.
        if length > seconds * 0.98 {
            intervals.push(Sample { began: began_at, ended: sample.ended, tps: commits / length });
            (commits, began) = (0.0, None);
        }
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_intervals_of_the_load_count() {
        let commits = [5, 5, 7, 17, 17, 27, 28, 28];
        let looks: Vec<Look> = commits
            .iter()
            .enumerate()
            .map(|(index, commits)| Look { at: 100.0 + index as f64 * 0.5, commits: *commits })
            .collect();
        // Idle, beginning, three whole ones with a stall among them, end, idle.
        let tps: Vec<f64> = samples(&looks).iter().map(|sample| sample.tps).collect();
        assert_eq!(tps, [20.0, 0.0, 20.0]);
        assert_eq!((samples(&looks)[0].began, samples(&looks)[0].ended), (101.0, 101.5));
        assert!(samples(&looks[..2]).is_empty());
    }

    #[test]
    fn a_file_changes_in_the_middle_between_two_looks() {
        let look = |at, file: &str| FileLook { at, file: file.to_owned() };
        let looks = [look(10.0, "a.1"), look(10.5, "a.1"), look(11.0, "a.2"), look(12.0, "a.4")];
        let change = |at, from: &str, to: &str| FileChange { at, from: from.to_owned(), to: to.to_owned() };
        assert_eq!(changes(&looks), [change(10.75, "a.1", "a.2"), change(11.5, "a.2", "a.4")]);
        assert!(changes(&looks[..2]).is_empty() && changes(&[]).is_empty());
    }

    #[test]
    fn intervals_hold_all_commits_of_their_samples() {
        let sample = |index: u32, tps| Sample {
            began: f64::from(index) * 0.25,
            ended: f64::from(index + 1) * 0.25,
            tps,
        };
        let samples = [sample(0, 8.0), sample(1, 0.0), sample(2, 4.0), sample(3, 12.0), sample(4, 99.0)];
        let joined = joined(&samples, 0.5);
        assert_eq!(joined.iter().map(|interval| interval.tps).collect::<Vec<_>>(), [4.0, 8.0]);
        assert_eq!((joined[1].began, joined[1].ended), (0.5, 1.0));
    }
}

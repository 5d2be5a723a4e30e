//! Throughput in short intervals, as the server counts it.

use crate::server::Target;
use anyhow::Context;
use binlogd::wire::ConnectOptions;
use binlogd_bench::semisync::server::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Commits of all sessions; go-tpc ends every transaction by the statement COMMIT.
const STATEMENT: &str = "SHOW GLOBAL STATUS WHERE Variable_name = 'Com_commit'";

/// Asks a server in a thread of its own how much was committed, again and again. Dropping it ends the thread.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Vec<Look>>>>,
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
    /// Begins to look, every `interval`.
    ///
    /// # Errors
    /// When the server gives no session.
    pub fn start(target: &Target, interval: Duration) -> anyhow::Result<Sampler> {
        Sampler::of(target.account(), interval)
    }

    fn of(account: &ConnectOptions, interval: Duration) -> anyhow::Result<Sampler> {
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
        Ok(Sampler { stop, thread: Some(thread) })
    }

    /// Ends it, and returns what it saw while there was a load: from the first commit to the last, without the intervals
    /// in which the load began and ended.
    ///
    /// # Errors
    /// When the server did not answer.
    pub fn finish(mut self) -> anyhow::Result<Vec<Sample>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it is finished once only")?;
        let looks = thread.join().map_err(|_| anyhow::anyhow!("the thread that samples has panicked"))??;
        Ok(samples(&looks))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn look(session: &mut Session) -> anyhow::Result<Look> {
    let asked = SystemTime::now();
    let rows = session.query(STATEMENT)?;
    let took = asked.elapsed().unwrap_or_default();
    let commits = rows.get(0, "Value").and_then(|value| value.parse().ok());
    let at = asked.duration_since(UNIX_EPOCH).unwrap_or_default() + took / 2;
    Ok(Look { at: at.as_secs_f64(), commits: commits.context("the server does not count its commits")? })
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

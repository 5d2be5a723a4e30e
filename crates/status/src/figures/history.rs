//! The last hour of a source, for charts: a ring of samples, taken by a thread that has time. The receiving thread knows nothing
//! of it; what it counts for everybody is read here.

use super::latency::{LatencyHistogram, LatencyMark};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Pause between two samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Samples that are kept: an hour of them.
pub(crate) const SAMPLES_MAX: usize = 360;
/// A sample that comes sooner than this after the one before is left out: its rates would jump.
const SAMPLE_INTERVAL_MIN: Duration = Duration::from_secs(2);

/// What is read of a source for a sample.
pub(crate) struct Reading<'a> {
    /// Transactions since the start.
    pub(crate) transactions: u64,
    /// Bytes stored since the start.
    pub(crate) bytes: u64,
    /// As `seconds_behind` of the status.
    pub(crate) behind: Option<u64>,
    /// All acknowledgements since the start.
    pub(crate) acknowledge: &'a LatencyHistogram,
    /// All syncs since the start.
    pub(crate) sync: &'a LatencyHistogram,
}

/// What a source did in the time since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    /// Since the start of the daemon.
    at: Duration,
    transactions_per_second: f32,
    bytes_per_second: f32,
    seconds_behind: Option<u32>,
    /// Median and 99th percentile in µs; `None` while there was none.
    acknowledge: Option<(f32, f32)>,
    sync: Option<(f32, f32)>,
}

/// The ring of one source. At most 24 KiB, most of which the marks take.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    /// When it was looked last, and transactions and bytes until then.
    last: Option<(Duration, u64, u64)>,
    acknowledge: LatencyMark,
    sync: LatencyMark,
}

impl History {
    /// Takes a sample at the time `at` since the start of the daemon. The first call only remembers where the counts stand.
    pub(crate) fn take(&mut self, at: Duration, reading: &Reading<'_>) {
        let Reading { transactions, bytes, .. } = *reading;
        let Some((last, transactions_before, bytes_before)) = self.last else {
            self.last = Some((at, transactions, bytes));
            self.acknowledge.is_at(reading.acknowledge);
            self.sync.is_at(reading.sync);
            return;
        };
        let passed = at.saturating_sub(last);
        if passed < SAMPLE_INTERVAL_MIN {
            return;
        }
        let per_second =
            |now: u64, before: u64| (now.saturating_sub(before) as f64 / passed.as_secs_f64()) as f32;
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            at,
            transactions_per_second: per_second(transactions, transactions_before),
            bytes_per_second: per_second(bytes, bytes_before),
            seconds_behind: reading.behind.map(|behind| u32::try_from(behind).unwrap_or(u32::MAX)),
            acknowledge: self.acknowledge.until(reading.acknowledge),
            sync: self.sync.until(reading.sync),
        });
        self.last = Some((at, transactions, bytes));
    }

    /// The newest sample.
    pub(crate) fn recent(&self, uptime: Duration, now: Timestamp) -> Option<Recent> {
        let sample = self.samples.back()?;
        Some(Recent {
            at: moment(sample.at, uptime, now),
            transactions_per_second: rounded(sample.transactions_per_second),
            bytes_per_second: rounded(sample.bytes_per_second),
            acknowledge_p50_us: sample.acknowledge.map(|pair| rounded(pair.0)),
            acknowledge_p99_us: sample.acknowledge.map(|pair| rounded(pair.1)),
            sync_p50_us: sample.sync.map(|pair| rounded(pair.0)),
            sync_p99_us: sample.sync.map(|pair| rounded(pair.1)),
        })
    }

    /// Transactions a second in at most so many points, each the mean of some samples.
    pub(crate) fn spark(&self, points: usize) -> Vec<f32> {
        let together = SAMPLES_MAX.div_ceil(points.max(1));
        let rates: Vec<f32> = self.samples.iter().map(|sample| sample.transactions_per_second).collect();
        // The newest point is whole.
        rates.rchunks(together).rev().map(|some| some.iter().sum::<f32>() / some.len() as f32).collect()
    }

    /// All of them, in columns.
    pub(crate) fn columns(&self, uptime: Duration, now: Timestamp) -> HistoryStatus {
        fn column<T>(samples: &VecDeque<Sample>, value: impl Fn(&Sample) -> T) -> Vec<T> {
            samples.iter().map(value).collect()
        }
        let samples = &self.samples;
        HistoryStatus {
            interval_seconds: SAMPLE_INTERVAL.as_secs(),
            at: column(samples, |sample| moment(sample.at, uptime, now).as_second()),
            transactions_per_second: column(samples, |sample| rounded(sample.transactions_per_second)),
            bytes_per_second: column(samples, |sample| rounded(sample.bytes_per_second)),
            seconds_behind: column(samples, |sample| sample.seconds_behind.map(u64::from)),
            acknowledge_p50_us: column(samples, |sample| sample.acknowledge.map(|pair| rounded(pair.0))),
            acknowledge_p99_us: column(samples, |sample| sample.acknowledge.map(|pair| rounded(pair.1))),
            sync_p50_us: column(samples, |sample| sample.sync.map(|pair| rounded(pair.0))),
            sync_p99_us: column(samples, |sample| sample.sync.map(|pair| rounded(pair.1))),
        }
    }
}

/// Samples know how long the daemon ran, so that a clock that jumps mixes up none of them.
fn moment(at: Duration, uptime: Duration, now: Timestamp) -> Timestamp {
    let ago = SignedDuration::try_from(uptime.saturating_sub(at)).unwrap_or(SignedDuration::ZERO);
    let at = now.checked_sub(ago).unwrap_or(now);
    at.round(jiff::Unit::Second).unwrap_or(at)
}

/// One decimal: more would be no news.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 10.0).round() / 10.0
}

/// What a source did in the newest sample, of about ten seconds. Latencies are null where there was none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    /// When the sample was taken: RFC 3339, UTC.
    pub at: Timestamp,
    /// Transactions stored a second.
    pub transactions_per_second: f64,
    /// Bytes stored a second.
    pub bytes_per_second: f64,
    /// Median of the acknowledgements.
    pub acknowledge_p50_us: Option<f64>,
    /// 99 % of the acknowledgements took no longer.
    pub acknowledge_p99_us: Option<f64>,
    /// Median of the syncs.
    pub sync_p50_us: Option<f64>,
    /// 99 % of the syncs took no longer.
    pub sync_p99_us: Option<f64>,
}

/// The last hour in columns of equal length, the oldest sample first: the answer of `/status/history/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryStatus {
    /// Seconds between two samples, about.
    pub interval_seconds: u64,
    /// When each was taken, in seconds since 1970.
    pub at: Vec<i64>,
    /// Transactions stored a second.
    pub transactions_per_second: Vec<f64>,
    /// Bytes stored a second.
    pub bytes_per_second: Vec<f64>,
    /// As `seconds_behind` of the source.
    pub seconds_behind: Vec<Option<u64>>,
    /// Median of the acknowledgements in µs; null where there was none.
    pub acknowledge_p50_us: Vec<Option<f64>>,
    /// Their 99th percentile.
    pub acknowledge_p99_us: Vec<Option<f64>>,
    /// Median of the syncs.
    pub sync_p50_us: Vec<Option<f64>>,
    /// Their 99th percentile.
    pub sync_p99_us: Vec<Option<f64>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn take(history: &mut History, at: u64, transactions: u64, histograms: &[LatencyHistogram; 2]) {
        let [acknowledge, sync] = histograms;
        let reading =
            Reading { transactions, bytes: transactions * 100, behind: Some(at), acknowledge, sync };
        history.take(seconds(at), &reading);
    }

    #[test]
    fn a_sample_is_of_the_time_since_the_one_before() {
        let (mut history, histograms) = (History::default(), [const { LatencyHistogram::new() }; 2]);
        let now = Timestamp::from_second(1_000_000).unwrap();
        // What was before the first look is not of our time.
        histograms[0].record(Duration::from_secs(9));
        take(&mut history, 5, 1_000, &histograms);
        assert_eq!(history.recent(seconds(5), now), None);
        for _ in 0..99 {
            histograms[0].record(Duration::from_millis(2));
        }
        take(&mut history, 15, 1_020, &histograms);
        let recent = history.recent(seconds(18), now).unwrap();
        assert_eq!(recent.at, Timestamp::from_second(999_997).unwrap());
        assert_eq!((recent.transactions_per_second, recent.bytes_per_second), (2.0, 200.0));
        let (p50, p99) = (recent.acknowledge_p50_us.unwrap(), recent.acknowledge_p99_us.unwrap());
        assert!((p50 - 2_000.0).abs() < 30.0 && p99 == p50, "{recent:?}");
        assert_eq!(recent.sync_p50_us, None, "none was synced");
        take(&mut history, 25, 1_020, &histograms);
        let recent = history.recent(seconds(25), now).unwrap();
        assert_eq!((recent.transactions_per_second, recent.acknowledge_p99_us), (0.0, None));
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let (mut history, histograms) = (History::default(), [const { LatencyHistogram::new() }; 2]);
        for look in 0..2 * SAMPLES_MAX as u64 {
            take(&mut history, 10 * look, look, &histograms);
            take(&mut history, 10 * look + 1, look, &histograms);
        }
        let uptime = seconds(20 * SAMPLES_MAX as u64 - 10);
        let columns = history.columns(uptime, Timestamp::from_second(1_000_000).unwrap());
        assert_eq!(columns.at.len(), SAMPLES_MAX, "one too soon after the other is none");
        assert_eq!((columns.at[0], *columns.at.last().unwrap()), (996_410, 1_000_000));
        assert!(columns.seconds_behind.len() == SAMPLES_MAX && columns.sync_p99_us.len() == SAMPLES_MAX);
        assert!(size_of::<Sample>() * SAMPLES_MAX < 24 * 1024, "{}", size_of::<Sample>());
    }
}

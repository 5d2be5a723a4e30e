//! Durations in log-linear buckets: small, fixed in size, recorded with three atomic operations.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The shortest duration told apart is 2^10 ns, about 1 µs.
const FIRST_OCTAVE: u32 = 10;
/// Octaves covered, from 2^10 ns up to 2^36 ns (68.7 s).
const OCTAVES: usize = 26;
/// Equal steps in each octave. 48 of them keep the error of a percentile near 1 % (two significant digits) and the
/// whole histogram below 10 KiB.
const STEPS: u64 = 48;
const BUCKETS: usize = OCTAVES * STEPS as usize;

/// A histogram of durations from 1 µs to 68 s with about two significant digits, in 10 KiB.
///
/// Shorter durations count as the shortest and longer ones as the longest bucket; the maximum and the mean stay exact.
/// The receiver thread records, any thread reads. A reader may see a record in one field and not yet in another, which
/// shifts a percentile by one record at most.
pub struct LatencyHistogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanoseconds: AtomicU64,
    max_nanoseconds: AtomicU64,
}

impl LatencyHistogram {
    /// An empty histogram.
    pub const fn new() -> LatencyHistogram {
        LatencyHistogram {
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
            sum_nanoseconds: AtomicU64::new(0),
            max_nanoseconds: AtomicU64::new(0),
        }
    }

    /// Counts one duration. No allocation, no lock.
    pub fn record(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanoseconds)].fetch_add(1, Relaxed);
        self.sum_nanoseconds.fetch_add(nanoseconds, Relaxed);
        self.max_nanoseconds.fetch_max(nanoseconds, Relaxed);
    }

    /// The percentiles of everything recorded so far.
    pub fn summary(&self) -> LatencySummary {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        if count == 0 {
            return LatencySummary::default();
        }
        let max = self.max_nanoseconds.load(Relaxed);
        let percentile = |percent: f64| {
            // Nearest rank: the smallest recorded value that `percent` of all values do not exceed.
            let rank = ((percent / 100.0 * count as f64).ceil() as u64).clamp(1, count);
            let mut seen = 0;
            let bucket = counts.iter().position(|n| {
                seen += n;
                seen >= rank
            });
            microseconds(middle_of(bucket.unwrap_or(BUCKETS - 1)).min(max))
        };
        LatencySummary {
            count,
            p50_us: percentile(50.0),
            p90_us: percentile(90.0),
            p95_us: percentile(95.0),
            p99_us: percentile(99.0),
            p999_us: percentile(99.9),
            max_us: microseconds(max),
            mean_us: microseconds(self.sum_nanoseconds.load(Relaxed) / count),
        }
    }

    /// One `(upper bound in seconds, count)` an octave, not cumulative, the last bound infinite. Octave bounds fall on
    /// bucket bounds, so the counts are exact.
    pub fn octaves(&self) -> Vec<(f64, u64)> {
        self.buckets
            .chunks(STEPS as usize)
            .enumerate()
            .map(|(octave, buckets)| {
                let count = buckets.iter().map(|bucket| bucket.load(Relaxed)).sum();
                let last = octave + 1 == OCTAVES;
                let bound = if last { f64::INFINITY } else { (octave_start(octave + 1)) as f64 / 1e9 };
                (bound, count)
            })
            .collect()
    }

    /// The sum of everything recorded, in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_nanoseconds.load(Relaxed) as f64 / 1e9
    }
}

/// What a [`LatencyHistogram`] held at an earlier moment, in 5 KiB: counts modulo 2^32.
pub(crate) struct LatencyMark(Box<[u32; BUCKETS]>);

impl LatencyMark {
    /// The moment is now.
    pub(crate) fn is_at(&mut self, histogram: &LatencyHistogram) {
        self.0
            .iter_mut()
            .zip(&histogram.buckets)
            .for_each(|(mark, count)| *mark = count.load(Relaxed) as u32);
    }

    /// Median and 99th percentile, in microseconds, of what was recorded since the moment, which is now from then on. `None` when
    /// nothing was.
    pub(crate) fn until(&mut self, histogram: &LatencyHistogram) -> Option<(f32, f32)> {
        let mut count = 0_u64;
        for (mark, now) in self.0.iter_mut().zip(&histogram.buckets) {
            // The count since then takes the place of the mark, until it is set below.
            *mark = (now.load(Relaxed) as u32).wrapping_sub(*mark);
            count += u64::from(*mark);
        }
        let percentile = |percent: u64| {
            let rank = (count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            let bucket = self.0.iter().position(|since| {
                seen += u64::from(*since);
                seen >= rank
            });
            microseconds(middle_of(bucket.unwrap_or(BUCKETS - 1))) as f32
        };
        let pair = (count > 0).then(|| (percentile(50), percentile(99)));
        self.is_at(histogram);
        pair
    }
}

impl Default for LatencyMark {
    fn default() -> LatencyMark {
        LatencyMark(Box::new([0; BUCKETS]))
    }
}

impl std::fmt::Debug for LatencyMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LatencyMark").finish_non_exhaustive()
    }
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram::new()
    }
}

/// Percentiles of durations in microseconds, with about two significant digits. All zero when nothing was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencySummary {
    /// Durations recorded.
    pub count: u64,
    /// The median.
    pub p50_us: f64,
    /// 90 % took no longer.
    pub p90_us: f64,
    /// 95 % took no longer.
    pub p95_us: f64,
    /// 99 % took no longer.
    pub p99_us: f64,
    /// 99.9 % took no longer.
    pub p999_us: f64,
    /// The longest, exact.
    pub max_us: f64,
    /// The mean, exact.
    pub mean_us: f64,
}

fn octave_start(octave: usize) -> u64 {
    1 << (FIRST_OCTAVE as usize + octave)
}

fn bucket_of(nanoseconds: u64) -> usize {
    let longest = octave_start(OCTAVES) - 1;
    let nanoseconds = nanoseconds.clamp(octave_start(0), longest);
    let exponent = nanoseconds.ilog2();
    let octave = (exponent - FIRST_OCTAVE) as usize;
    let above_start = nanoseconds - (1 << exponent);
    octave * STEPS as usize + ((above_start * STEPS) >> exponent) as usize
}

/// The middle of a bucket in nanoseconds.
fn middle_of(bucket: usize) -> u64 {
    let start = octave_start(bucket / STEPS as usize);
    let step = (bucket % STEPS as usize) as u64;
    start + start * (2 * step + 1) / (2 * STEPS)
}

/// Microseconds with one decimal: more digits would claim a precision that the buckets do not have.
fn microseconds(nanoseconds: u64) -> f64 {
    (nanoseconds as f64 / 100.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fits_ten_kibibytes() {
        assert!(size_of::<LatencyHistogram>() < 10 * 1024, "{}", size_of::<LatencyHistogram>());
    }

    #[test]
    fn empty_summary_is_all_zero() {
        assert_eq!(LatencyHistogram::new().summary(), LatencySummary::default());
    }

    #[test]
    fn durations_out_of_range_are_counted_at_the_ends() {
        let histogram = LatencyHistogram::new();
        histogram.record(Duration::ZERO);
        histogram.record(Duration::from_secs(600));
        let octaves = histogram.octaves();
        assert_eq!(octaves.first().map(|octave| octave.1), Some(1));
        assert_eq!(octaves.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!(histogram.summary().max_us, 600e6);
    }

    #[test]
    fn buckets_are_contiguous_and_hold_their_middle() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
    }

    fn nearest_rank(sorted: &[u64], percent: f64) -> f64 {
        let rank = ((percent / 100.0 * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        sorted[rank - 1] as f64 / 1000.0
    }

    proptest! {
        /// Percentiles agree with a sorted list within half a bucket (1 part in 96) and the last decimal.
        #[test]
        fn percentiles_match_a_sorted_list(
            mut durations in prop::collection::vec((10u32..36, 0u64..=u64::MAX).prop_map(|(octave, low)| {
                ((1u64 << octave) | (low & ((1 << octave) - 1))).min(60_000_000_000)
            }), 1..400),
        ) {
            let histogram = LatencyHistogram::new();
            durations.iter().for_each(|&ns| histogram.record(Duration::from_nanos(ns)));
            durations.sort_unstable();
            let got = histogram.summary();
            prop_assert_eq!(got.count, durations.len() as u64);
            prop_assert_eq!(got.max_us, microseconds(*durations.last().unwrap()));
            let mean = durations.iter().sum::<u64>() / durations.len() as u64;
            prop_assert_eq!(got.mean_us, microseconds(mean));
            for (percent, got) in
                [(50.0, got.p50_us), (90.0, got.p90_us), (95.0, got.p95_us), (99.0, got.p99_us), (99.9, got.p999_us)]
            {
                let want = nearest_rank(&durations, percent);
                prop_assert!((got - want).abs() <= want * 0.0105 + 0.051, "p{percent}: {got} for {want}");
            }
        }

        #[test]
        fn octave_counts_agree_with_the_list(durations in prop::collection::vec(0u64..80_000_000_000, 0..200)) {
            let histogram = LatencyHistogram::new();
            durations.iter().for_each(|&ns| histogram.record(Duration::from_nanos(ns)));
            let mut cumulative = 0;
            for (bound, count) in histogram.octaves() {
                cumulative += count;
                let below = durations.iter().filter(|&&ns| (ns as f64 / 1e9) < bound).count();
                prop_assert_eq!(cumulative, below as u64);
            }
        }
    }
}

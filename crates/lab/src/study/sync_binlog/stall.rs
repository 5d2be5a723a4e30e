//! What a rotation of the binary log does to throughput.

use crate::load::sampler::Sample;
use rig::statistics::median;

/// Around a rotation, at most, in seconds to each side. With rotations close to each other it is half their distance, so
/// that no sample is counted for two of them.
const WINDOW: f64 = 1.0;

/// How throughput falls around moments, as the median over these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stall {
    /// The lowest sample near a moment, relative to the median of all samples of the cell: 0 is a standstill.
    pub lowest: f64,
    /// Seconds near a moment in which throughput was below half the median.
    pub seconds: f64,
    /// The same of the worst moment.
    pub seconds_max: f64,
    /// The moments that had samples near them.
    pub count: usize,
}

impl Stall {
    /// Near these moments (seconds since 1970, ascending). `None` without samples near any of them, and when the median
    /// of the samples is 0.
    pub(super) fn near(moments: &[f64], samples: &[Sample]) -> Option<Stall> {
        let usual = median(samples.iter().map(|sample| sample.tps));
        if usual <= 0.0 {
            return None;
        }
        let apart = moments.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let window = WINDOW.min(apart / 2.0);
        let (mut lowest, mut seconds) = (Vec::new(), Vec::new());
        for moment in moments {
            let near: Vec<&Sample> = samples
                .iter()
                .filter(|sample| sample.began < moment + window && sample.ended > moment - window)
                .collect();
            let Some(low) = near.iter().map(|sample| sample.tps).reduce(f64::min) else { continue };
            lowest.push(low / usual);
            let slow = near.iter().filter(|sample| sample.tps < usual / 2.0);
            seconds.push(slow.map(|sample| sample.ended - sample.began).sum());
        }
        Some(Stall {
            seconds_max: seconds.iter().copied().reduce(f64::max)?,
            count: lowest.len(),
            lowest: median(lowest),
            seconds: median(seconds),
        })
    }

    /// Half-way between rotations, where there is none: what chance alone makes of the lowest of so many samples.
    pub(super) fn between(moments: &[f64], samples: &[Sample]) -> Option<Stall> {
        let middles: Vec<f64> = moments.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        Stall::near(&middles, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(tps: &[f64]) -> Vec<Sample> {
        let sample = |(index, tps): (usize, &f64)| {
            let began = 100.0 + index as f64 * 0.25;
            Sample { began, ended: began + 0.25, tps: *tps }
        };
        tps.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn a_stall_has_depth_and_length() {
        let mut tps = [100.0; 40];
        // At 104 s a standstill for half a second, at 108 s a dip.
        (tps[16], tps[17], tps[32]) = (0.0, 40.0, 60.0);
        let stall = Stall::near(&[104.0, 108.0], &samples(&tps)).unwrap();
        assert_eq!((stall.lowest, stall.seconds, stall.seconds_max, stall.count), (0.3, 0.25, 0.5, 2));
        let between = Stall::between(&[104.0, 108.0], &samples(&tps)).unwrap();
        assert_eq!((between.lowest, between.seconds), (1.0, 0.0));
        assert_eq!(Stall::near(&[50.0], &samples(&tps)), None);
        assert_eq!(Stall::near(&[104.0], &samples(&[0.0; 40])), None);
    }
}

//! What is seen at moments of a load: how far throughput falls, for how long, and how long a commit takes.

use crate::load::log_filler::{Commit, Outcome};
use rig::statistics::median;

/// A stall that belongs to a moment begins this many seconds before or after it, at most.
const BEFORE: f64 = 0.2;
const AFTER: f64 = 0.5;

/// A load, looked at in intervals of the same length, the first at its beginning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    /// Seconds of an interval.
    pub interval: f64,
    /// Small commits that ended in it, a second.
    pub tps: Vec<f64>,
    /// Of the commits that were under way in it, small or large, how long the longest took, in ms; 0 where none was.
    pub longest_ms: Vec<f64>,
    /// 10⁶ bytes of log a second.
    pub log_mb_s: Vec<f64>,
    /// The usual throughput: the median of the intervals that have any.
    usual: f64,
}

/// What was seen at a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stall {
    /// The lowest interval, relative to the usual throughput: 0 is a standstill.
    pub lowest: f64,
    /// Seconds for which throughput was below half the usual, without a break.
    pub seconds: f64,
    /// The longest commit that was under way, in ms.
    pub longest_ms: f64,
}

impl Course {
    /// Of a load of `seconds`.
    pub(super) fn of(outcome: &Outcome, seconds: f64, interval: f64) -> Course {
        let count = (seconds / interval).round() as usize;
        let mut course = Course {
            interval,
            tps: vec![0.0; count],
            longest_ms: vec![0.0; count],
            log_mb_s: Vec::with_capacity(count),
            usual: 0.0,
        };
        let index = |time: f64| (time / interval) as usize;
        for Commit { ended, .. } in &outcome.small {
            if let Some(tps) = course.tps.get_mut(index(*ended)) {
                *tps += 1.0 / interval;
            }
        }
        for commit in outcome.small.iter().chain(&outcome.large) {
            let (from, to) = (index(commit.began), index(commit.ended).min(count.saturating_sub(1)));
            for longest in course.longest_ms.iter_mut().take(to + 1).skip(from) {
                *longest = longest.max(commit.took() * 1e3);
            }
        }
        let bytes: Vec<f64> =
            (0..=count).map(|index| bytes_at(&outcome.growth, index as f64 * interval)).collect();
        course.log_mb_s.extend(bytes.windows(2).map(|pair| (pair[1] - pair[0]) / interval / 1e6));
        course.usual = median(course.tps.iter().copied().filter(|tps| *tps > 0.0));
        course
    }

    fn is_slow(&self, index: usize) -> bool {
        self.tps[index] < self.usual / 2.0
    }

    /// The share of the whole load in which throughput was below half the usual.
    pub(super) fn slow_share(&self) -> f64 {
        let slow = (0..self.tps.len()).filter(|index| self.is_slow(*index)).count();
        slow as f64 / self.tps.len().max(1) as f64
    }

    /// At a moment, in seconds since the load began, but not beyond `end`, where the next one is. `None` outside of the
    /// load.
    pub(super) fn stall(&self, moment: f64, end: f64) -> Option<Stall> {
        let limit = ((end / self.interval) as usize).min(self.tps.len());
        let from = ((moment - BEFORE).max(0.0) / self.interval) as usize;
        let to = (((moment + AFTER) / self.interval).ceil() as usize).min(limit);
        if from >= to {
            return None;
        }
        // It began near the moment, and goes on for as long as it goes on.
        let begins = (from..to).find(|index| self.is_slow(*index));
        let slow = begins.map_or(0..0, |begins| {
            begins..(begins..limit).find(|index| !self.is_slow(*index)).unwrap_or(limit)
        });
        let seen = from..to.max(slow.end);
        Some(Stall {
            lowest: self.tps[seen.clone()].iter().copied().reduce(f64::min)? / self.usual,
            seconds: slow.len() as f64 * self.interval,
            longest_ms: self.longest_ms[seen].iter().copied().reduce(f64::max)?,
        })
    }

    /// At each of these moments, in ascending order.
    pub(super) fn stalls(&self, moments: &[f64]) -> Vec<Stall> {
        let end = self.tps.len() as f64 * self.interval;
        let ends = moments.iter().skip(1).map(|next| next - BEFORE).chain([end]);
        moments.iter().zip(ends).filter_map(|(moment, end)| self.stall(*moment, end)).collect()
    }

    /// Half-way between the end of one stall and the next moment, before the first and after the last too: there is no
    /// rotation, so this is what chance makes of so many intervals. Where they come too close to each other there is none.
    pub(super) fn between(&self, moments: &[f64]) -> Vec<Stall> {
        let end = self.tps.len() as f64 * self.interval;
        let over = |moment: &f64, next: f64| {
            moment + self.stall(*moment, next - BEFORE).map_or(0.0, |stall| stall.seconds)
        };
        let nexts: Vec<f64> = moments.iter().copied().chain([end]).collect();
        let begins = [0.0]
            .into_iter()
            .chain(moments.iter().zip(&nexts[1..]).map(|(moment, next)| over(moment, *next)));
        begins
            .zip(nexts.iter().copied())
            .filter(|(begin, next)| next - begin > 2.0 * (BEFORE + AFTER))
            .filter_map(|(begin, next)| self.stall((begin + next) / 2.0, next - BEFORE))
            .collect()
    }
}

/// The bytes at a time, on a straight line between the two looks around it.
fn bytes_at(growth: &[(f64, u64)], time: f64) -> f64 {
    let next = growth.partition_point(|(at, _)| *at < time);
    match (next.checked_sub(1).and_then(|last| growth.get(last)), growth.get(next)) {
        (Some((before, less)), Some((after, more))) => {
            *less as f64 + (*more as f64 - *less as f64) * (time - before) / (after - before)
        }
        (Some((_, bytes)), None) | (None, Some((_, bytes))) => *bytes as f64,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of a commit each 10 ms, with standstills from and to.
    fn course(stalls: &[(f64, f64)]) -> Course {
        let mut small = Vec::new();
        let mut now: f64 = 0.0;
        while now < 10.0 {
            let stall = stalls.iter().find(|(from, to)| (*from..*to).contains(&now));
            let ended = stall.map_or(now + 0.01, |(_, to)| *to);
            small.push(Commit { began: now, ended });
            now = ended + 1e-9;
        }
        let growth = vec![(0.0, 0), (5.0, 50_000_000), (10.0, 50_000_000)];
        Course::of(&Outcome { began: 0.0, small, large: Vec::new(), growth }, 10.0, 0.1)
    }

    #[test]
    fn a_stall_has_depth_length_and_a_longest_commit() {
        let course = course(&[(2.0, 4.0), (7.03, 7.5)]);
        assert_eq!((course.tps.len(), course.log_mb_s.len()), (100, 100));
        assert!((course.log_mb_s[10] - 10.0).abs() < 1e-6 && course.log_mb_s[70] == 0.0);
        let stalls = course.stalls(&[2.0, 7.0]);
        assert_eq!(stalls[0].lowest, 0.0);
        assert!((1.9..=2.1).contains(&stalls[0].seconds), "{stalls:?}");
        assert!((1990.0..=2010.0).contains(&stalls[0].longest_ms), "{stalls:?}");
        assert!((0.4..=0.6).contains(&stalls[1].seconds), "{stalls:?}");
        // While it lasts, every interval says how long it will last.
        assert!(course.longest_ms[21..39].iter().all(|ms| *ms > 1990.0));
        let between = course.between(&[2.0, 7.0]);
        assert_eq!(between.len(), 3);
        assert!(between.iter().all(|one| one.seconds == 0.0 && one.lowest > 0.8 && one.longest_ms < 11.0));
        assert!((0.2..0.3).contains(&course.slow_share()));
    }

    #[test]
    fn what_is_not_near_a_moment_is_not_its_doing() {
        let course = course(&[(5.0, 6.0)]);
        let stall = course.stalls(&[3.0])[0];
        assert!(stall.seconds == 0.0 && stall.longest_ms < 11.0, "{stall:?}");
        assert!(course.stalls(&[11.0]).is_empty() && course.between(&[]).len() == 1);
        let empty = Course::of(&Outcome::default(), 1.0, 0.1);
        assert_eq!(empty.log_mb_s, [0.0; 10]);
    }
}

//! Processor time of a process, finer than the hundredths of a second of `/proc/<pid>/stat`: a receiver may use a
//! hundredth of a core, and two of those are to be compared.

use anyhow::Context;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What each thread of a process has run so far, in nanoseconds, user and system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessorTime(BTreeMap<PathBuf, u64>);

impl ProcessorTime {
    /// Looks at the process `pid`.
    ///
    /// # Errors
    /// When it is gone.
    pub fn of(pid: u32) -> anyhow::Result<ProcessorTime> {
        let folder = format!("/proc/{pid}/task");
        let threads = std::fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
        // A thread may end between the two looks.
        let run = threads.flatten().filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.path(), text.split_whitespace().next()?.parse().ok()?))
        });
        Ok(ProcessorTime(run.collect()))
    }

    /// Seconds that the threads alive have used since their start.
    pub fn seconds(&self) -> f64 {
        self.seconds_since(&ProcessorTime::default())
    }

    /// Seconds that were used since `before`. A thread that has ended since then is not counted, one that has begun is.
    pub fn seconds_since(&self, before: &ProcessorTime) -> f64 {
        let used = |(thread, now): (&PathBuf, &u64)| {
            now.saturating_sub(before.0.get(thread).copied().unwrap_or_default())
        };
        self.0.iter().map(used).sum::<u64>() as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        let before = ProcessorTime::of(std::process::id()).unwrap();
        assert_eq!(before.seconds_since(&before), 0.0);
        let began = std::time::Instant::now();
        let mut number = 0_u64;
        while began.elapsed().as_millis() < 50 {
            number = std::hint::black_box(number.wrapping_add(1));
        }
        let used = ProcessorTime::of(std::process::id()).unwrap().seconds_since(&before);
        assert!(used > 0.0);
    }
}

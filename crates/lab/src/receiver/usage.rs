//! Processor and memory of a process.

use rig::process;
use rig::processor::ProcessorTime;
use std::time::Instant;

/// More than this between the two ways to count the processor is the time of threads that have ended.
const ENDED_SECONDS: f64 = 0.05;

/// What a process has used until a moment.
#[derive(Debug, Clone)]
pub struct Usage {
    at: Instant,
    /// Of the threads that live, exactly.
    threads: ProcessorTime,
    /// Of the whole process, those that have ended too, in hundredths of a second.
    whole: f64,
    /// Resident memory in KiB.
    pub resident_kib: u64,
}

impl Usage {
    /// Of the process `pid`, now.
    ///
    /// # Errors
    /// When it is gone.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let (threads, whole) = (ProcessorTime::of(pid)?, process::processor_seconds(pid)?);
        Ok(Usage { at: Instant::now(), threads, whole, resident_kib: process::memory(pid)?.resident })
    }

    /// Processor time used since `before`, in seconds: exactly where all threads live on, as binlogd's do, and to a
    /// hundredth or two where some have ended, as those of a server's sessions do with the load.
    pub fn processor_seconds_since(&self, before: &Usage) -> f64 {
        let (threads, whole) = (self.threads.seconds_since(&before.threads), self.whole - before.whole);
        if whole - threads > ENDED_SECONDS { whole } else { threads }
    }

    /// Wall clock between the two looks, in seconds.
    pub fn seconds_since(&self, before: &Usage) -> f64 {
        (self.at - before.at).as_secs_f64()
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.resident_kib as f64 / 1024.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(milliseconds: u128) {
        let began = Instant::now();
        let mut number = 0_u64;
        while began.elapsed().as_millis() < milliseconds {
            number = std::hint::black_box(number.wrapping_add(1));
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_counted() {
        let before = Usage::of(std::process::id()).unwrap();
        std::thread::spawn(|| {
            let began = ProcessorTime::of(std::process::id()).unwrap();
            while ProcessorTime::of(std::process::id()).unwrap().seconds_since(&began) < 0.4 {
                work(10);
            }
        })
        .join()
        .unwrap();
        let used = Usage::of(std::process::id()).unwrap().processor_seconds_since(&before);
        assert!(used > 0.3, "{used}");
    }
}

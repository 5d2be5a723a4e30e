//! What a process has used: processor, memory, bytes written.

use anyhow::Context;
use rustix::fs::{major, minor};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// More than this between the two ways to count the processor is the time of threads that have ended.
const ENDED_SECONDS: f64 = 0.05;

/// The kernel counts the processor time of a whole process in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// Bytes of what the kernel counts as a sector, whatever the disk's own is.
const SECTOR: u64 = 512;

/// What a process has used from its start until a moment.
#[derive(Debug, Clone)]
pub struct Usage {
    at: Instant,
    /// Nanoseconds that each living thread has run, user and system.
    threads: BTreeMap<PathBuf, u64>,
    /// Seconds of the whole process, of threads that have ended too.
    whole: f64,
    /// Bytes that it made the kernel write, where the kernel tells.
    written_bytes: Option<u64>,
    /// How often each living thread has left a processor, of its own accord or not.
    switches: BTreeMap<PathBuf, u64>,
    /// Its memory at that moment.
    pub memory: Memory,
}

/// Memory of a process in KiB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory {
    /// Resident now (VmRSS).
    pub resident: u64,
    /// The most that was ever resident (VmHWM).
    pub highest: u64,
    /// Of `resident`, what is the process's own and not a mapped file (RssAnon).
    pub anonymous: u64,
}

/// What was used between two moments.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    /// Seconds of wall clock.
    pub seconds: f64,
    /// Seconds on a processor, user and system.
    pub processor_seconds: f64,
    /// Bytes that the process made the kernel write to a disk: pages of the page cache that it made dirty, and what it
    /// wrote past the page cache. What the file system writes of its own is not among them. Linux counts a page of the
    /// cache whole, and where a file was written in large pieces its pages are as large as a MiB, though only dirty
    /// blocks are written. `None` where the kernel does not tell.
    pub written_bytes: Option<u64>,
    /// How often its threads that live on have left a processor, to wait or for another thread.
    pub switches: u64,
}

impl Usage {
    /// Of the process `pid`, now. One that has ended can be asked too, until it is waited for; its memory is 0 then.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        let whole = seconds_of_stat(&read("stat")?).with_context(|| format!("the stat of process {pid}"))?;
        let status = read("status")?;
        let memory = Memory {
            resident: field(&status, "VmRSS:"),
            highest: field(&status, "VmHWM:"),
            anonymous: field(&status, "RssAnon:"),
        };
        // A process that has ended has no threads; one thread may end between the two looks.
        let (mut threads, mut switches) = (BTreeMap::new(), BTreeMap::new());
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let path = thread.path();
            let text = |file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_default();
            let run = text("schedstat").split_whitespace().next().and_then(|run| run.parse().ok());
            let (Some(run), status) = (run, text("status")) else { continue };
            let left = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
            switches.insert(path.clone(), left.iter().map(|name| field(&status, name)).sum());
            threads.insert(path, run);
        }
        // Of another account's process the kernel does not tell.
        let io = read("io").unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let written_bytes = written.and_then(|number| number.parse().ok());
        Ok(Usage { at: Instant::now(), threads, whole, written_bytes, switches, memory })
    }

    /// What was used after `before`. The processor exactly where all threads live on, as binlogd's do, and to a hundredth
    /// or two of a second where some have ended, as those of a server's sessions do with the load.
    pub fn since(&self, before: &Usage) -> Used {
        Used {
            seconds: (self.at - before.at).as_secs_f64(),
            processor_seconds: self.processor(&before.threads, before.whole),
            switches: more(&before.switches, &self.switches),
            written_bytes: self.written_bytes.zip(before.written_bytes).map(|(now, then)| now - then),
        }
    }

    /// Seconds on a processor since its start, as exact as in [`Usage::since`].
    pub fn processor_seconds(&self) -> f64 {
        self.processor(&BTreeMap::new(), 0.0)
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.memory.resident as f64 / 1024.0
    }

    fn processor(&self, threads_before: &BTreeMap<PathBuf, u64>, whole_before: f64) -> f64 {
        let threads = more(threads_before, &self.threads) as f64 / 1e9;
        let whole = self.whole - whole_before;
        if self.threads.is_empty() || whole - threads > ENDED_SECONDS { whole } else { threads }
    }
}

/// What the threads have more than before. One that has begun since then counts, one that has ended does not.
fn more(before: &BTreeMap<PathBuf, u64>, now: &BTreeMap<PathBuf, u64>) -> u64 {
    now.iter().map(|(thread, now)| now.saturating_sub(before.get(thread).copied().unwrap_or_default())).sum()
}

/// Count of a process's threads.
///
/// # Errors
/// When there is no such process.
pub fn threads(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    Ok(field(&status, "Threads:"))
}

/// Bytes that were written to the disk that holds `dir`, by whomever, since the machine's start; 0 when it is no block
/// device of its own.
///
/// # Errors
/// When `dir` is not there, or the kernel's answer is not understood.
pub fn disk_bytes(dir: &Path) -> anyhow::Result<u64> {
    let device = std::fs::metadata(dir)?.dev();
    let stat = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    let Ok(stat) = std::fs::read_to_string(stat) else { return Ok(0) };
    let sectors = stat.split_whitespace().nth(6).and_then(|field| field.parse::<u64>().ok());
    Ok(sectors.context("no sectors written in the disk's stat")? * SECTOR)
}

/// The name in brackets may hold blanks; utime and stime are fields 14 and 15.
fn seconds_of_stat(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Running;
    use std::process::Command;
    use std::time::Duration;

    fn this() -> Usage {
        Usage::of(std::process::id()).unwrap()
    }

    /// Works until this process has used so much more than `before`.
    fn work(before: &Usage, seconds: f64) {
        let mut number = 0_u64;
        while this().since(before).processor_seconds < seconds {
            (0..1 << 20).for_each(|_| number = std::hint::black_box(number.wrapping_add(1)));
        }
    }

    #[test]
    fn a_thread_that_has_ended_is_counted() {
        let before = this();
        assert_eq!(before.since(&before).processor_seconds, 0.0);
        std::thread::spawn(|| work(&this(), 0.4)).join().unwrap();
        let used = this().since(&before);
        assert!(used.processor_seconds > 0.3 && used.seconds > 0.0, "{used:?}");
    }

    #[test]
    fn a_thread_that_waits_leaves_its_processor() {
        let before = this();
        (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        assert!(this().since(&before).switches >= 20);
    }

    #[test]
    fn this_process_has_threads_and_memory_and_no_process_has_nothing() {
        assert!(threads(std::process::id()).unwrap() >= 1);
        assert!(this().memory.highest > 0 && this().resident_mib() > 0.0 && this().written_bytes.is_some());
        assert!(Usage::of(u32::MAX).is_err() && threads(u32::MAX).is_err());
    }

    #[test]
    fn a_process_that_has_ended_is_counted_until_it_is_waited_for() {
        let mut busy = Running(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap());
        let before = Usage::of(busy.0.id()).unwrap();
        while Usage::of(busy.0.id()).unwrap().since(&before).processor_seconds < 0.2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        busy.0.kill().unwrap();
        while !busy.has_ended().unwrap() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let ended = Usage::of(busy.0.id()).unwrap();
        assert!(ended.since(&before).processor_seconds > 0.1 && ended.processor_seconds() > 0.1, "{ended:?}");
        assert_eq!(ended.memory.resident, 0);
        busy.0.wait().unwrap();
        assert!(Usage::of(busy.0.id()).is_err());
    }

    #[test]
    fn the_name_of_a_program_may_hold_brackets() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 120 30 0 0 20 0 1 0 5";
        assert_eq!(seconds_of_stat(stat), Some(1.5));
        assert_eq!(seconds_of_stat("7 (a) S"), None);
    }
}

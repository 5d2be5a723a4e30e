//! Looks now and then at what each source takes of the machine: the bytes of its folder, and the processor time of the thread
//! that receives. Nobody waits for this thread, and it takes little itself.

use crate::keeper::Keeper;
use source::stop::StopSignal;
use status::{DaemonMonitor, SourceMonitor};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two looks at all sources.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// A look that takes long, because there are very many files, is followed by so many times as long a pause.
const REST: u32 = 50;
/// Folders below that of a source: its timelines and slots, and what stands in them.
const DEPTH_MAX: u32 = 3;
/// As `st_blocks` counts.
const BLOCK_BYTES: u64 = 512;

/// Looks from a thread.
///
/// # Errors
/// When the system has no thread left.
pub(crate) fn watch(monitor: Arc<DaemonMonitor>) -> io::Result<Keeper> {
    Keeper::start("usage", Duration::from_secs(1), move |stop: &StopSignal| {
        let began = Instant::now();
        monitor
            .sources()
            .iter()
            .take_while(|_| !stop.is_requested())
            .for_each(|source| look(&monitor, source));
        LOOK_INTERVAL.max(began.elapsed() * REST)
    })
}

fn look(monitor: &DaemonMonitor, source: &SourceMonitor) {
    let disk_bytes = bytes_below(&monitor.data_dir().join(source.name()), DEPTH_MAX).ok();
    let cpu = source.resources.thread().and_then(|thread| Some((thread, cpu_of(thread)?)));
    let grown = source.bytes_grown(jiff::Timestamp::now());
    source.resources.observe(monitor.uptime(), grown, disk_bytes, cpu);
}

/// Bytes that a folder takes on the disk, with what stands in it. What goes away meanwhile counts for nothing.
fn bytes_below(folder: &Path, depth: u32) -> io::Result<u64> {
    let mut bytes = std::fs::symlink_metadata(folder)?.blocks() * BLOCK_BYTES;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(found) = entry.metadata() else { continue };
        bytes += match found.is_dir() && depth > 0 {
            true => bytes_below(&entry.path(), depth - 1).unwrap_or(0),
            false => found.blocks() * BLOCK_BYTES,
        };
    }
    Ok(bytes)
}

/// Processor time of a thread of this process; `None` when it has ended, or the system does not tell.
pub(crate) fn cpu_of(thread: i32) -> Option<Duration> {
    // proc(5): nanoseconds on a processor, nanoseconds waiting for one, how often.
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_folder_and_a_thread_take_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let empty = bytes_below(folder.path(), DEPTH_MAX).unwrap();
        std::fs::create_dir(folder.path().join("0001")).unwrap();
        let file = folder.path().join("0001/b.000001");
        std::fs::write(&file, vec![1; 100_000]).unwrap();
        std::fs::File::open(&file).unwrap().sync_all().unwrap();
        let full = bytes_below(folder.path(), DEPTH_MAX).unwrap();
        assert!(full >= empty + 100_000 && full < empty + 300_000, "{empty} {full}");
        assert!(bytes_below(&folder.path().join("gone"), DEPTH_MAX).is_err());
        let this = rustix::thread::gettid().as_raw_nonzero().get();
        let before = cpu_of(this).unwrap();
        let began = Instant::now();
        while cpu_of(this).unwrap() < before + Duration::from_millis(5) {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
        assert_eq!(cpu_of(0), None);
    }
}

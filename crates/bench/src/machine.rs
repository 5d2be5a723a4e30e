//! What it was measured on.

use crate::floor;
use std::path::Path;

/// Prints processor, kernel, the disk's file system, and what an fdatasync takes there now.
///
/// # Errors
/// When the disk cannot be written.
pub fn print(dir: &Path) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = rustix::system::uname();
    println!("processor    {cores} × {}", processor().unwrap_or_else(|| "unknown".to_owned()));
    println!("kernel       {} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy());
    println!("file system  {}", file_system(dir).unwrap_or_else(|| "unknown".to_owned()));
    let sync = floor::write_and_sync(dir, 600, 1000)?.percentiles();
    println!(
        "fdatasync    of an append of 600 bytes: median {:.0} µs, p95 {:.0} µs, p99 {:.0} µs",
        sync.p50, sync.p95, sync.p99
    );
    println!();
    Ok(())
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Type and options of the mount that holds `dir`.
fn file_system(dir: &Path) -> Option<String> {
    let dir = dir.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = fields
        .filter(|fields| fields.len() > 3 && dir.starts_with(fields[1]))
        .max_by_key(|fields| fields[1].len())?;
    Some(format!("{} ({})", mount[2], mount[3]))
}

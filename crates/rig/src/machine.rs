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
    let mount = mount(dir).map(|mount| format!("{} ({})", mount.kind, mount.options));
    println!("file system  {}", mount.unwrap_or_else(|| "unknown".to_owned()));
    let sync = floor::write_and_sync(dir, 600, 1000)?.percentiles();
    println!(
        "fdatasync    of an append of 600 bytes: median {:.0} µs, p95 {:.0} µs, p99 {:.0} µs",
        sync.p50, sync.p95, sync.p99
    );
    println!();
    Ok(())
}

/// The processor's model, as the kernel names it.
pub fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted, such as `/dev/vda1`.
    pub device: String,
    /// Its type, such as `ext4`.
    pub kind: String,
    /// Options of the mount.
    pub options: String,
}

/// The mount that holds `dir`.
pub fn mount(dir: &Path) -> Option<Mount> {
    let dir = dir.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    // Of mounts at the same place, the last hides those before it.
    let mount = fields
        .filter(|fields| fields.len() > 3 && dir.starts_with(fields[1]))
        .max_by_key(|fields| fields[1].len())?;
    let [device, kind, options] = [0, 2, 3].map(|index| mount[index].to_owned());
    Some(Mount { device, kind, options })
}

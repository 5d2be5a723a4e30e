//! What it was measured on.

use crate::statistics::Samples;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Appends `count` times `len` bytes to a new file in `dir`, each followed by fdatasync, and times each pair. The file
/// is removed.
///
/// # Errors
/// As the file system says.
pub fn write_and_sync(dir: &Path, len: usize, count: usize) -> io::Result<Samples> {
    let path = dir.join("floor");
    let file = File::create(&path)?;
    let bytes = vec![0x5a; len];
    let mut samples = Samples::with_capacity(count);
    for index in 0..count {
        let began = Instant::now();
        FileExt::write_all_at(&file, &bytes, (index * len) as u64)?;
        file.sync_data()?;
        samples.record(began.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(samples)
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

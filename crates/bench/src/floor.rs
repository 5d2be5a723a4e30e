//! The floor: what one write and one fdatasync of the same bytes cost on the same disk.

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
        file.write_all_at(&bytes, (index * len) as u64)?;
        file.sync_data()?;
        samples.record(began.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(samples)
}

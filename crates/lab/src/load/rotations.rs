//! When a binary log was rotated, and how fast it grew.

use crate::load::sampler::FileChange;
use rig::server::LogFile;
use rig::statistics::median;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A log file in a server's data folder.
#[derive(Debug, Clone, Copy, PartialEq)]
struct File {
    number: u64,
    /// Seconds since 1970 of the last write to it.
    written: f64,
    bytes: u64,
}

/// The log files that lie in the server's data folder, in order.
fn files(data: &Path) -> std::io::Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("mysql-bin.").and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            let metadata = entry.metadata()?;
            let written = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            files.push(File { number, written: written.as_secs_f64(), bytes: metadata.len() });
        }
    }
    files.sort_by_key(|file| file.number);
    Ok(files)
}

/// Bytes of all log files that lie in the server's data folder, which asks the server nothing.
///
/// # Errors
/// When the folder cannot be read.
pub fn log_bytes(data: &Path) -> std::io::Result<u64> {
    Ok(files(data)?.iter().map(|file| file.bytes).sum())
}

/// The rotations of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rotations {
    /// Seconds since 1970 of each.
    pub times: Vec<f64>,
    /// Bytes of the files that they ended, as far as they are known.
    pub bytes: Vec<f64>,
}

impl Rotations {
    /// Those since `began` (seconds since 1970), from the log files that lie in the server's data folder: the last write
    /// to a file that is not the newest is that of its rotation.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn since(began: f64, data: &Path) -> std::io::Result<Rotations> {
        let mut files = files(data)?;
        files.pop();
        files.retain(|file| file.written >= began);
        Ok(Rotations {
            times: files.iter().map(|file| file.written).collect(),
            bytes: files.iter().map(|file| file.bytes as f64).collect(),
        })
    }

    /// Those of a server whose files are out of reach: from the changes of its current file that were seen, and all its
    /// files with their bytes, in order. Of several files that ended between two looks each gets the same time.
    pub fn seen(changes: &[FileChange], files: &[LogFile]) -> Rotations {
        let place = |name: &str| files.iter().position(|file| file.name == name);
        let mut rotations = Rotations::default();
        for change in changes {
            let ended = match (place(&change.from), place(&change.to)) {
                (Some(from), Some(to)) if from < to => &files[from..to],
                // Purged meanwhile: it has ended, but nobody can tell its size any more.
                _ => &[],
            };
            rotations.times.extend(std::iter::repeat_n(change.at, ended.len().max(1)));
            rotations.bytes.extend(ended.iter().map(|file| file.len as f64));
        }
        rotations
    }

    /// The median of the seconds between two.
    pub fn period(&self) -> Option<f64> {
        (self.times.len() > 1).then(|| median(self.times.windows(2).map(|pair| pair[1] - pair[0])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_are_the_changes_of_the_current_file() {
        let change = |at, from: &str, to: &str| FileChange { at, from: from.to_owned(), to: to.to_owned() };
        let files = [("b.2", 20), ("b.3", 30), ("b.4", 40), ("b.5", 5)]
            .map(|(name, len)| LogFile { name: name.to_owned(), len });
        let changes = [change(1.0, "b.1", "b.2"), change(2.0, "b.2", "b.4"), change(4.0, "b.4", "b.5")];
        let rotations = Rotations::seen(&changes, &files);
        assert_eq!(rotations.times, [1.0, 2.0, 2.0, 4.0]);
        // The first was purged.
        assert_eq!(rotations.bytes, [20.0, 30.0, 40.0]);
        assert_eq!(Rotations::seen(&[], &files), Rotations::default());
    }

    #[test]
    fn rotations_are_the_last_writes_to_all_files_but_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["mysql-bin.000009", "mysql-bin.000010", "mysql-bin.000011", "mysql-bin.index", "ibdata1"]
        {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let rotations = Rotations::since(0.0, dir.path()).unwrap();
        assert_eq!(rotations.bytes, [16.0, 16.0]);
        assert!(rotations.times[0] <= rotations.times[1] && rotations.period().is_some());
        assert_eq!(log_bytes(dir.path()).unwrap(), 3 * 16);
        assert!(Rotations::since(1e12, dir.path()).unwrap().times.is_empty());
    }
}

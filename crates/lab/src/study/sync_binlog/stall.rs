//! What a rotation of the binary log does to throughput.

use crate::load::sampler::{FileChange, Sample};
use rig::server::LogFile;
use rig::statistics::median;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Around a rotation, at most, in seconds to each side. With rotations close to each other it is half their distance, so
/// that no sample is counted for two of them.
const WINDOW: f64 = 1.0;

/// The rotations of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Rotations {
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
    pub(super) fn since(began: f64, data: &Path) -> std::io::Result<Rotations> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(data)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name.strip_prefix("mysql-bin.").and_then(|number| number.parse::<u64>().ok());
            if let Some(number) = number {
                let metadata = entry.metadata()?;
                let written = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
                files.push((number, written.as_secs_f64(), metadata.len() as f64));
            }
        }
        files.sort_by_key(|(number, ..)| *number);
        files.pop();
        files.retain(|(_, written, _)| *written >= began);
        Ok(Rotations {
            times: files.iter().map(|(_, written, _)| *written).collect(),
            bytes: files.iter().map(|(.., bytes)| *bytes).collect(),
        })
    }

    /// Those of a server whose files are out of reach: from the changes of its current file that were seen, and all its
    /// files with their bytes, in order. Of several files that ended between two looks each gets the same time.
    pub(super) fn seen(changes: &[FileChange], files: &[LogFile]) -> Rotations {
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
    pub(super) fn period(&self) -> Option<f64> {
        (self.times.len() > 1).then(|| median(self.times.windows(2).map(|pair| pair[1] - pair[0])))
    }
}

/// How throughput falls around moments, as the median over these.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stall {
    /// The lowest sample near a moment, relative to the median of all samples of the cell: 0 is a standstill.
    pub lowest: f64,
    /// Seconds near a moment in which throughput was below half the median.
    pub seconds: f64,
    /// The same of the worst moment.
    pub seconds_max: f64,
    /// The moments that had samples near them.
    pub count: usize,
}

impl Stall {
    /// Near these moments (seconds since 1970, ascending). `None` without samples near any of them, and when the median
    /// of the samples is 0.
    pub(super) fn near(moments: &[f64], samples: &[Sample]) -> Option<Stall> {
        let usual = median(samples.iter().map(|sample| sample.tps));
        if usual <= 0.0 {
            return None;
        }
        let apart = moments.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let window = WINDOW.min(apart / 2.0);
        let (mut lowest, mut seconds) = (Vec::new(), Vec::new());
        for moment in moments {
            let near: Vec<&Sample> = samples
                .iter()
                .filter(|sample| sample.began < moment + window && sample.ended > moment - window)
                .collect();
            let Some(low) = near.iter().map(|sample| sample.tps).reduce(f64::min) else { continue };
            lowest.push(low / usual);
            let slow = near.iter().filter(|sample| sample.tps < usual / 2.0);
            seconds.push(slow.map(|sample| sample.ended - sample.began).sum());
        }
        Some(Stall {
            seconds_max: seconds.iter().copied().reduce(f64::max)?,
            count: lowest.len(),
            lowest: median(lowest),
            seconds: median(seconds),
        })
    }

    /// Half-way between rotations, where there is none: what chance alone makes of the lowest of so many samples.
    pub(super) fn between(moments: &[f64], samples: &[Sample]) -> Option<Stall> {
        let middles: Vec<f64> = moments.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
        Stall::near(&middles, samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(tps: &[f64]) -> Vec<Sample> {
        let sample = |(index, tps): (usize, &f64)| {
            let began = 100.0 + index as f64 * 0.25;
            Sample { began, ended: began + 0.25, tps: *tps }
        };
        tps.iter().enumerate().map(sample).collect()
    }

    #[test]
    fn a_stall_has_depth_and_length() {
        let mut tps = [100.0; 40];
        // At 104 s a standstill for half a second, at 108 s a dip.
        (tps[16], tps[17], tps[32]) = (0.0, 40.0, 60.0);
        let stall = Stall::near(&[104.0, 108.0], &samples(&tps)).unwrap();
        assert_eq!((stall.lowest, stall.seconds, stall.seconds_max, stall.count), (0.3, 0.25, 0.5, 2));
        let between = Stall::between(&[104.0, 108.0], &samples(&tps)).unwrap();
        assert_eq!((between.lowest, between.seconds), (1.0, 0.0));
        assert_eq!(Stall::near(&[50.0], &samples(&tps)), None);
        assert_eq!(Stall::near(&[104.0], &samples(&[0.0; 40])), None);
    }

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
        assert!(Rotations::since(1e12, dir.path()).unwrap().times.is_empty());
    }
}

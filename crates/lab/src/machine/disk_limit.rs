//! A limit of what may be written to a disk in a second, by the kernel's control groups. Only a disk of the lab's own is
//! limited, the loop device of a [`Volume`].
//!
//! | kernel | how |
//! |---|---|
//! | cgroup v1, blkio | `blkio.throttle.write_bps_device` of the root group: it holds for everybody in that group who writes to the device, and the kernel's own threads, which write back what waits in memory, are always in it |
//! | cgroup v2, io | `io.max` of a group of the lab's, which the server is put into. The kernel counts the writing back of pages to the group that made them dirty, if the controllers io and memory are both on |
//!
//! The way of cgroup v2 is untested so far: no machine of the project has it. And in a group of v1 that is not the root
//! the server would not be limited, while the kernel is. So the limit is tried out before anything is measured, for both
//! who write: a program that syncs, and the kernel. Where it does not hold for one of them the scene is skipped.

use crate::lab::{Lab, Skip};
use crate::machine::changes::{Change, Group, MachineChanges};
use crate::machine::file_system::Volume;
use crate::model::Fact;
use anyhow::Context;
use rustix::fs::{major, minor, stat, syncfs};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Of the root group of cgroup v1.
const V1: &str = "blkio.throttle.write_bps_device";
/// What the names of groups of cgroup v2 begin with; the number of the process follows.
const PREFIX: &str = "binlogd-lab-";
/// Seconds that a trial takes where the limit holds.
const TRIAL_SECONDS: f64 = 0.6;
/// Longest time for trials that are slow: a disk that others use may be slow for a while. One that is too quick is the last.
const TRIALS_MAX: Duration = Duration::from_secs(60);
/// How much more than the limit a trial may write: a bucket that was full when it began.
const TOLERANCE: f64 = 1.3;
/// What share of the limit a trial has to write. With less it is not the limit that is measured.
const SHARE_MIN: f64 = 0.7;

/// A limit in force. Dropping it lifts it: declare it after the server that it holds for, and before the volume.
#[derive(Debug)]
pub struct DiskLimit {
    kind: Kind,
    bytes: u64,
    /// What the trials wrote in a second, in bytes: by a program, and by the kernel.
    found: [f64; 2],
}

#[derive(Debug)]
enum Kind {
    V1 { changes: MachineChanges },
    V2 { group: PathBuf, _changes: MachineChanges },
}

/// Who writes to the disk what a program has written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// That program, because it syncs.
    Program,
    /// The kernel: what a relaxed server leaves to it between its syncs.
    Kernel,
}

impl DiskLimit {
    /// Limits what is written to the volume's disk to so many bytes a second, and tries it out.
    ///
    /// # Errors
    /// [`Skip`] where that cannot be: not as root, without control groups that limit disks, where it does not hold, or on a
    /// disk that is slower itself.
    pub fn set(lab: &Lab, volume: &Volume, bytes: u64) -> anyhow::Result<DiskLimit> {
        let skip = |why: String| {
            anyhow::Error::from(Skip::lacks(format!(
                "no disk that is limited to {} MB/s: {why}",
                bytes / 1_000_000
            )))
        };
        if !rustix::process::geteuid().is_root() {
            return Err(skip("only root may limit one".to_owned()));
        }
        let device = device(volume)?;
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?;
        let kind = match root_of(&mounts) {
            Some(Root::V1(root)) => limited_v1(lab, &root, &device, bytes),
            Some(Root::V2(root)) => limited_v2(lab, &root, &device, bytes),
            None => Err(anyhow::anyhow!("no control groups that limit disks are mounted")),
        };
        let kind = kind.map_err(|why| skip(format!("{why:#}")))?;
        let mut limit = DiskLimit { kind, bytes, found: [0.0; 2] };
        limit.found = [limit.tried_out(volume, Writer::Program)?, limit.tried_out(volume, Writer::Kernel)?];
        match wrong(bytes, limit.found) {
            Some(why) => Err(skip(why)),
            None => Ok(limit),
        }
    }

    /// Lets it hold for a process and what that starts; where it holds for everybody nothing is to be done.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hold_for(&self, pid: u32) -> anyhow::Result<()> {
        match &self.kind {
            Kind::V1 { .. } => Ok(()),
            Kind::V2 { group, .. } => std::fs::write(group.join("cgroup.procs"), pid.to_string())
                .with_context(|| format!("putting the server into {}", group.display())),
        }
    }

    /// What is known of it, for the report.
    pub fn fact(&self) -> Fact {
        let how = match &self.kind {
            Kind::V1 { .. } => "cgroup v1, for everybody who writes to it",
            Kind::V2 { .. } => "cgroup v2, for the server",
        };
        let limit = self.bytes / 1_000_000;
        let [synced, left] = self.found.map(|bytes| bytes / 1e6);
        let found = format!("a file written and synced: {synced:.0}, left to the kernel: {left:.0}");
        Fact::new("limited disk", "MB/s", format!("{limit}, by {how}; {found}"))
    }

    /// Why it does not hold any more, if it does not: a limit of cgroup v1 can be taken away by others.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn not_in_force(&self) -> anyhow::Result<Option<String>> {
        match &self.kind {
            Kind::V1 { changes } => changes.not_in_force(),
            Kind::V2 { .. } => Ok(None),
        }
    }

    /// Bytes a second that come through.
    fn tried_out(&self, volume: &Volume, writer: Writer) -> anyhow::Result<f64> {
        let began = Instant::now();
        let mut found: f64 = 0.0;
        while found < self.bytes as f64 * SHARE_MIN && began.elapsed() < TRIALS_MAX {
            found = found.max(self.trial(volume, writer)?);
        }
        Ok(found)
    }

    /// The same of one file.
    fn trial(&self, volume: &Volume, writer: Writer) -> anyhow::Result<f64> {
        let file = volume.path().join("trial");
        let mib = ((self.bytes as f64 * TRIAL_SECONDS) as u64 >> 20).max(1);
        let (from, to) = ("if=/dev/zero", format!("of={}", file.display()));
        let mut dd = Command::new("sh");
        dd.args(["-c", "[ -z \"$GROUP\" ] || echo $$ >\"$GROUP/cgroup.procs\" || exit; exec \"$@\"", "sh"]);
        dd.args(["dd", from, &to, "bs=1M", &format!("count={mib}")]);
        if writer == Writer::Program {
            dd.arg("conv=fsync");
        }
        if let Kind::V2 { group, .. } = &self.kind {
            dd.env("GROUP", group);
        }
        let folder = File::open(volume.path())?;
        let began = Instant::now();
        let output = dd.output().context("cannot run dd")?;
        if writer == Writer::Kernel {
            // By this process, which is not in the group: it is not held to the limit itself.
            syncfs(&folder).with_context(|| format!("syncing {}", volume.path().display()))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        anyhow::ensure!(
            output.status.success(),
            "dd to {} failed: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        std::fs::remove_file(&file)?;
        Ok((mib << 20) as f64 / seconds)
    }
}

/// Why a disk with a limit that wrote so many bytes a second in the trials cannot stand for one of that speed.
fn wrong(limit: u64, [by_program, by_kernel]: [f64; 2]) -> Option<String> {
    let limit = limit as f64;
    let found = [("a program that syncs", by_program), ("the kernel by itself", by_kernel)];
    found.into_iter().find_map(|(who, found)| {
        let why = if found > limit * TOLERANCE {
            "this kernel does not hold it to the limit"
        } else if found < limit * SHARE_MIN {
            "the disk is slower itself"
        } else {
            return None;
        };
        Some(format!("{who} wrote {:.0} MB/s to it: {why}", found / 1e6))
    })
}

/// `7:0`, as control groups name the disk of a volume.
fn device(volume: &Volume) -> anyhow::Result<String> {
    let number = stat(volume.path().as_path())?.st_dev;
    Ok(format!("{}:{}", major(number), minor(number)))
}

/// Where control groups are that can limit disks.
#[derive(Debug, PartialEq, Eq)]
enum Root {
    V1(PathBuf),
    V2(PathBuf),
}

/// Of `/proc/self/mounts`. A machine may have both; then v1 has the disks, because a controller is in one alone.
fn root_of(mounts: &str) -> Option<Root> {
    let all = || {
        mounts.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((PathBuf::from(words.next()?), words.next()?, words.next()?))
        })
    };
    let v1 =
        all().find(|(_, kind, options)| *kind == "cgroup" && options.split(',').any(|one| one == "blkio"));
    v1.map(|(path, ..)| Root::V1(path))
        .or_else(|| all().find(|(_, kind, _)| *kind == "cgroup2").map(|(path, ..)| Root::V2(path)))
}

fn limited_v1(lab: &Lab, root: &Path, device: &str, bytes: u64) -> anyhow::Result<Kind> {
    let file = root.join(V1);
    let mut changes = MachineChanges::begin(&lab.journals, lab.say)?;
    // It stays with the number of the device, which another image may get.
    let (new, back) = (format!("{device} {bytes}"), format!("{device} 0"));
    changes.make(Change { file: file.clone(), new, back_file: file, back })?;
    Ok(Kind::V1 { changes })
}

fn limited_v2(lab: &Lab, root: &Path, device: &str, bytes: u64) -> anyhow::Result<Kind> {
    let group = root.join(format!("{PREFIX}{}", std::process::id()));
    let made = Group::with(&["io", "memory"], group.clone())?;
    let mut changes = MachineChanges::begin(&lab.journals, lab.say)?;
    changes.make_group(made)?;
    let max = group.join("io.max");
    std::fs::write(&max, format!("{device} wbps={bytes}"))
        .with_context(|| format!("writing to {}", max.display()))?;
    Ok(Kind::V2 { group, _changes: changes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::interrupt::Interrupt;
    use crate::machine::changes::CONTROLLERS;
    use crate::machine::file_system::{self, not_tested};

    #[test]
    fn control_groups_are_found_where_they_are_mounted() {
        let v2 = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(root_of(v2), Some(Root::V2("/sys/fs/cgroup".into())));
        let both = "cgroup2 /c/unified cgroup2 rw 0 0\ncgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/b cgroup rw,blkio 0 0\n";
        assert_eq!(root_of(both), Some(Root::V1("/c/b".into())));
        assert_eq!(root_of("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_disk_that_is_quicker_or_slower_than_its_limit_is_refused() {
        assert_eq!(wrong(100_000_000, [116e6, 98e6]), None);
        let refused = |found| wrong(100_000_000, found).unwrap();
        let quick = refused([100e6, 900e6]);
        assert!(
            quick.starts_with("the kernel by itself wrote 900 MB/s") && quick.contains("limit"),
            "{quick}"
        );
        let slow = refused([40e6, 40e6]);
        assert!(slow.ends_with("wrote 40 MB/s to it: the disk is slower itself"), "{slow}");
    }

    /// Where this may be done: as root, with control groups.
    #[test]
    fn a_limit_holds_and_is_lifted() {
        let dir = tempfile::tempdir().unwrap();
        let lab = Lab {
            binlogd: PathBuf::new(),
            scripts: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers"),
            dir: dir.path().to_owned(),
            apart: Apart::default(),
            link: None,
            journals: dir.path().join("journals"),
            interrupt: Interrupt::default(),
            unrestored: std::sync::Arc::default(),
            allowed_servers: Vec::new(),
            say: |_| (),
        };
        let volume = match Volume::mount(&lab, file_system::Kind::Ext4, 200 << 20) {
            Ok(volume) => volume,
            Err(error) => return not_tested(&error),
        };
        let read = |file: PathBuf| std::fs::read_to_string(file).unwrap();
        let root = root_of(&read("/proc/self/mounts".into()));
        // What is there beside the limit, and must stay.
        let controllers = || match &root {
            Some(Root::V2(root)) => read(root.join(CONTROLLERS)),
            Some(Root::V1(_)) | None => String::new(),
        };
        let before = controllers();
        let limit = match DiskLimit::set(&lab, &volume, 20_000_000) {
            Ok(limit) => limit,
            Err(error) => return not_tested(&error),
        };
        assert!(limit.fact().value.starts_with("20, by cgroup"), "{:?}", limit.fact());
        let line = format!("{} 20000000", device(&volume).unwrap());
        let is_limited = || match root.as_ref().unwrap() {
            Root::V1(root) => read(root.join(V1)).lines().any(|one| one == line),
            Root::V2(root) => root.join(format!("{PREFIX}{}", std::process::id())).exists(),
        };
        assert!(is_limited() && lab.journals.exists());
        drop(limit);
        assert!(!is_limited());
        assert_eq!(controllers(), before);
        assert_eq!(std::fs::read_dir(&lab.journals).unwrap().count(), 0);
    }
}

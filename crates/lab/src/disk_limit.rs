//! A limit of what may be written to a disk in a second, by the kernel's control groups. Only a disk of the lab's own is
//! limited, the loop device of a [`Volume`].
//!
//! | kernel | how |
//! |---|---|
//! | cgroup v1, blkio | `blkio.throttle.write_bps_device` of the root group: it holds for everybody who writes to the device, the kernel's own threads too |
//! | cgroup v2, io | `io.max` of a group of the lab's, which the server is put into. The kernel counts the writing back of pages to the group that made them dirty, if the controllers io and memory are both on |
//!
//! The way of cgroup v2 is untested so far: no machine of the project has it. So the limit is tried out before
//! anything is measured, and where it does not hold the scene is skipped.

use crate::file_system::Volume;
use crate::lab::{Lab, Skip};
use crate::machine_changes::{Change, MachineChanges};
use crate::model::Fact;
use anyhow::Context;
use rustix::fs::{major, minor, stat};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Of the root group of cgroup v1.
const V1: &str = "blkio.throttle.write_bps_device";
/// What the names of groups of cgroup v2 begin with; the number of the process follows.
const PREFIX: &str = "binlogd-lab-";
/// Seconds that the trial takes where the limit holds.
const TRIAL_SECONDS: f64 = 0.6;
/// How much more than the limit the trial may write: a bucket that was full when it began.
const TOLERANCE: f64 = 1.3;

/// A limit in force. Dropping it lifts it: declare it after the server that it holds for, and before the volume.
#[derive(Debug)]
pub struct DiskLimit {
    kind: Kind,
    bytes: u64,
    /// What the trial wrote in a second, in bytes.
    found: f64,
}

#[derive(Debug)]
enum Kind {
    V1 { _changes: MachineChanges },
    V2 { group: PathBuf },
}

impl DiskLimit {
    /// Limits what is written to the volume's disk to so many bytes a second, and tries it out.
    ///
    /// # Errors
    /// [`Skip`] where that cannot be: not as root, without control groups that limit disks, or where it does not hold.
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
            Some(Root::V2(root)) => limited_v2(&root, &device, bytes),
            None => Err(anyhow::anyhow!("no control groups that limit disks are mounted")),
        };
        let kind = kind.map_err(|why| skip(format!("{why:#}")))?;
        let mut limit = DiskLimit { kind, bytes, found: 0.0 };
        limit.found = limit.tried_out(volume)?;
        if limit.found > bytes as f64 * TOLERANCE {
            return Err(skip(format!("this kernel let {:.0} MB/s through", limit.found / 1e6)));
        }
        Ok(limit)
    }

    /// Lets it hold for a process and what that starts; where it holds for everybody nothing is to be done.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hold_for(&self, pid: u32) -> anyhow::Result<()> {
        match &self.kind {
            Kind::V1 { .. } => Ok(()),
            Kind::V2 { group } => std::fs::write(group.join("cgroup.procs"), pid.to_string())
                .with_context(|| format!("putting the server into {}", group.display())),
        }
    }

    /// What is known of it, for the report.
    pub fn fact(&self) -> Fact {
        let how = match &self.kind {
            Kind::V1 { .. } => "cgroup v1, for everybody who writes to it",
            Kind::V2 { .. } => "cgroup v2, for the server",
        };
        let (limit, found) = (self.bytes / 1_000_000, self.found / 1e6);
        Fact::new("limited disk", "MB/s", format!("{limit}, by {how}; a file written and synced: {found:.0}"))
    }

    /// Bytes a second of a file that is written and synced under it.
    fn tried_out(&self, volume: &Volume) -> anyhow::Result<f64> {
        let file = volume.path().join("trial");
        let mib = ((self.bytes as f64 * TRIAL_SECONDS) as u64 >> 20).max(1);
        let (from, to) = ("if=/dev/zero", format!("of={}", file.display()));
        let mut dd = Command::new("sh");
        dd.args(["-c", "[ -z \"$GROUP\" ] || echo $$ >\"$GROUP/cgroup.procs\" || exit; exec \"$@\"", "sh"]);
        dd.args(["dd", from, &to, "bs=1M", &format!("count={mib}"), "conv=fsync"]);
        if let Kind::V2 { group } = &self.kind {
            dd.env("GROUP", group);
        }
        let began = Instant::now();
        let output = dd.output().context("cannot run dd")?;
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

impl Drop for DiskLimit {
    fn drop(&mut self) {
        if let Kind::V2 { group } = &self.kind {
            let _ = std::fs::remove_dir(group);
        }
    }
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
    Ok(Kind::V1 { _changes: changes })
}

fn limited_v2(root: &Path, device: &str, bytes: u64) -> anyhow::Result<Kind> {
    remove_groups(root);
    let switch = root.join("cgroup.subtree_control");
    std::fs::write(&switch, "+io +memory").with_context(|| format!("writing to {}", switch.display()))?;
    let group = root.join(format!("{PREFIX}{}", std::process::id()));
    std::fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
    let max = group.join("io.max");
    let limited = std::fs::write(&max, format!("{device} wbps={bytes}"));
    let kind = Kind::V2 { group };
    limited.with_context(|| format!("writing to {}", max.display()))?;
    Ok(kind)
}

/// Removes the groups of labs that are gone; one with a process in it stays.
fn remove_groups(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix(PREFIX) else { continue };
        if !PathBuf::from(format!("/proc/{process}")).exists() {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::file_system;
    use rig::interrupt::Interrupt;

    #[test]
    fn control_groups_are_found_where_they_are_mounted() {
        let v2 = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        assert_eq!(root_of(v2), Some(Root::V2("/sys/fs/cgroup".into())));
        let both = "cgroup2 /c/unified cgroup2 rw 0 0\ncgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/b cgroup rw,blkio 0 0\n";
        assert_eq!(root_of(both), Some(Root::V1("/c/b".into())));
        assert_eq!(root_of("proc /proc proc rw 0 0\n"), None);
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
        let Ok(volume) = Volume::mount(&lab, file_system::Kind::Ext4, 200 << 20) else { return };
        let limit = match DiskLimit::set(&lab, &volume, 20_000_000) {
            Ok(limit) => limit,
            Err(error) => {
                assert!(error.is::<Skip>(), "{error:#}");
                return;
            }
        };
        assert!(limit.found < 26e6, "{limit:?}");
        assert!(limit.fact().value.starts_with("20, by cgroup"), "{:?}", limit.fact());
        let Kind::V1 { .. } = &limit.kind else { return };
        let line = format!("{} 20000000", device(&volume).unwrap());
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let Some(Root::V1(root)) = root_of(&mounts) else { panic!("{mounts}") };
        let is_limited = || std::fs::read_to_string(root.join(V1)).unwrap().lines().any(|one| one == line);
        assert!(is_limited() && lab.journals.exists());
        drop(limit);
        assert!(!is_limited());
        assert_eq!(std::fs::read_dir(&lab.journals).unwrap().count(), 0);
    }
}

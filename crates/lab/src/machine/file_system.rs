//! File systems of the lab's own, in image files on the disk that is measured.
//!
//! A write goes through the file system in the image and the one that the image lies on, so absolute costs are those of
//! both; what is compared is one kind of image with another on the same disk.

use crate::lab::{Lab, Skip};
use crate::model::Fact;
use anyhow::Context;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// What the folders of volumes begin with.
const PREFIX: &str = "volume-";
/// The mount point in a volume's folder.
const MOUNT: &str = "mounted";
/// The file with the process that a volume belongs to.
const OWNER: &str = "owner";

/// Longest wait until nobody uses a file system any more.
const UNMOUNT_MAX: Duration = Duration::from_secs(10);

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ext4 in an image.
    Ext4,
    /// XFS in an image.
    Xfs,
    /// No image: that of the lab's folder, as it is.
    Here,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Here => "here",
        })
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Kind> {
        let all = [Kind::Ext4, Kind::Xfs, Kind::Here];
        let found = all.into_iter().find(|kind| kind.to_string() == text);
        found.with_context(|| format!("no file system is called {text:?}; there are ext4, xfs and here"))
    }
}

impl Kind {
    /// Whether the kernel can mount one; where it does not tell, it can.
    fn is_in_kernel(self) -> bool {
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_else(|_| self.to_string());
        known.split_whitespace().any(|word| word == self.to_string())
    }
}

/// A folder on a file system of its own. It is unmounted and removed when dropped: declare it after the servers in it.
#[derive(Debug)]
pub struct Volume {
    kind: Kind,
    size: u64,
    folder: tempfile::TempDir,
    mounted: bool,
    direct: bool,
}

impl Volume {
    /// Makes and mounts one of `size` bytes in the lab's folder for the source. The space is taken at once, so that a full disk is
    /// noticed here.
    ///
    /// # Errors
    /// [`Skip`] where that cannot be done: not as root, without the file system's tools, in a container that forbids it.
    pub fn mount(lab: &Lab, kind: Kind, size: u64) -> anyhow::Result<Volume> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(PREFIX).tempdir_in(lab.source_dir())?;
        std::fs::create_dir(folder.path().join(MOUNT))?;
        let mut volume = Volume { kind, size, folder, mounted: false, direct: false };
        std::fs::write(volume.folder.path().join(OWNER), owner(std::process::id()).unwrap_or_default())?;
        if kind == Kind::Here {
            return Ok(volume);
        }
        let skip = |why: String| format!("no {kind} in an image: {why}");
        if !rustix::process::geteuid().is_root() {
            return Err(Skip::lacks(skip("only root may mount one".to_owned())).into());
        }
        volume.make(lab).map_err(|why| Skip::lacks(skip(why)))?;
        // Mounting has loaded the kernel's module, if there is one.
        volume.attach().map_err(|why| match kind.is_in_kernel() {
            true => Skip::lacks(skip(why)),
            false => Skip::by_nature(skip(why)),
        })?;
        Ok(volume)
    }

    /// Unmounts and removes what runs that were killed have left in the lab's folders, and kills what uses it: the servers in
    /// it, and the binlogd beside them. Returns how many there were.
    ///
    /// # Errors
    /// When a folder cannot be read, a server cannot be stopped, or one of them cannot be unmounted.
    pub fn remove_leftovers(lab: &Lab) -> anyhow::Result<usize> {
        lab.dirs().into_iter().map(|dir| Volume::remove_leftovers_in(dir, lab)).sum()
    }

    fn remove_leftovers_in(dir: &Path, lab: &Lab) -> anyhow::Result<usize> {
        let mut removed = 0;
        for entry in std::fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
            let path = entry?.path();
            let is_volume =
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
            // One that is being made has no owner yet, and nothing mounted either.
            let Ok(noted) = std::fs::read_to_string(path.join(OWNER)) else { continue };
            let process = noted.split_whitespace().next().and_then(|pid| pid.parse().ok());
            if !is_volume || process.and_then(owner).is_some_and(|now| now == noted) {
                continue;
            }
            let mount = path.join(MOUNT);
            stop_servers(lab, &mount)?;
            kill_users(&path)?;
            if is_mounted(&mount)? {
                unmount(&mount)
                    .map_err(anyhow::Error::msg)
                    .with_context(|| format!("unmounting {}", mount.display()))?;
            }
            std::fs::remove_dir_all(&path)?;
            removed += 1;
        }
        Ok(removed)
    }

    /// The mounted folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(MOUNT)
    }

    /// A folder on the lab's own disk that goes with it.
    pub fn beside(&self) -> &Path {
        self.folder.path()
    }

    /// What it is, for the report.
    pub fn facts(&self) -> Vec<Fact> {
        let about = format!("file system {}", self.kind);
        let fact = |name: &str, value: String| Fact::new(&about, name, value);
        let beneath = mounted_from(self.folder.path()).unwrap_or_else(|| "an unknown file system".to_owned());
        if self.kind == Kind::Here {
            return vec![fact("lies on", beneath)];
        }
        let direct = if self.direct { "past the page cache" } else { "through the page cache" };
        let mounted = mounted_from(&self.path()).unwrap_or_default();
        vec![
            fact(
                "lies on",
                format!(
                    "an image file on {beneath}, written {direct} by a loop device: its costs are those of both"
                ),
            ),
            fact("mounted as", mounted),
            fact("size, MiB", (self.size >> 20).to_string()),
        ]
    }

    fn make(&self, lab: &Lab) -> Result<(), String> {
        let image = std::fs::File::create(self.image()).map_err(|error| error.to_string())?;
        fallocate(&image, FallocateFlags::empty(), 0, self.size)
            .map_err(|error| format!("{} MiB for it: {error}", self.size >> 20))?;
        let mut format;
        match self.kind {
            Kind::Xfs => {
                need(lab, "mkfs.xfs", "xfsprogs")?;
                format = Command::new("mkfs.xfs");
                format.args(["-q", "-f"]);
            }
            _ => {
                need(lab, "mkfs.ext4", "e2fsprogs")?;
                format = Command::new("mkfs.ext4");
                // What ext4 would otherwise do in the background falls into the first minutes of measuring.
                format.args(["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
            }
        }
        run(format.arg(self.image())).map(|_| ())
    }

    fn attach(&mut self) -> Result<(), String> {
        let losetup = |direct: &[&str]| {
            run(Command::new("losetup").args(["--find", "--show"]).args(direct).arg(self.image()))
        };
        let (device, direct) = match losetup(&["--direct-io=on"]) {
            Ok(device) => (device, true),
            Err(_) => (losetup(&[])?, false),
        };
        let mounted = run(Command::new("mount").arg(&device).arg(self.path()));
        // A device in use is freed when it is unmounted, however that comes about.
        let freed = run(Command::new("losetup").args(["--detach", &device]));
        mounted.and(freed)?;
        (self.mounted, self.direct) = (true, direct);
        Ok(())
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.mounted {
            let _ = unmount(&self.path());
        }
    }
}

/// The process and when it began: its number alone may have been given to another.
fn owner(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold blanks; field 22 is the start in ticks since boot.
    let began = stat.rsplit(')').next()?.split_whitespace().nth(19)?.to_owned();
    Some(format!("{pid} {began}"))
}

/// Kills the servers that live in the folders of `mount`.
fn stop_servers(lab: &Lab, mount: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(mount).with_context(|| format!("reading {}", mount.display()))? {
        let dir = entry?.path();
        if dir.join("server.env").is_file() {
            run(Command::new(&lab.scripts).arg("stop").arg(&dir).arg("--kill"))
                .map_err(anyhow::Error::msg)?;
        }
    }
    Ok(())
}

/// Kills the processes that name something in the folder on their command line, such as binlogd its data.
///
/// # Errors
/// When one cannot be killed.
pub(crate) fn kill_users(folder: &Path) -> anyhow::Result<()> {
    let inside = format!("{}/", folder.display());
    for process in std::fs::read_dir("/proc").context("cannot read /proc")?.flatten() {
        let id = process.file_name().to_str().and_then(|name| name.parse().ok());
        // One that has ended meanwhile has no command line.
        let arguments = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let uses_it = arguments
            .split(|byte| *byte == 0)
            .any(|argument| argument.windows(inside.len()).any(|part| part == inside.as_bytes()));
        if let Some(pid) = id.and_then(Pid::from_raw).filter(|_| uses_it) {
            match kill_process(pid, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot kill process {id:?}")),
            }
        }
    }
    Ok(())
}

/// A process that is being killed may hold a file for a moment longer. One that does not let go keeps the file system,
/// but out of sight, and it goes with that process.
fn unmount(path: &Path) -> Result<(), String> {
    let deadline = Instant::now() + UNMOUNT_MAX;
    while run(Command::new("umount").arg(path)).is_err() {
        if Instant::now() > deadline {
            return run(Command::new("umount").arg("--lazy").arg(path)).map(|_| ());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn is_mounted(path: &Path) -> anyhow::Result<bool> {
    let path = path.canonicalize()?;
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    Ok(mounts.lines().any(|line| line.split_whitespace().nth(1).is_some_and(|at| Path::new(at) == path)))
}

/// `ext4 (rw,relatime)`, of the mount that holds the path.
fn mounted_from(path: &Path) -> Option<String> {
    let found = run(Command::new("findmnt").args(["-n", "-o", "FSTYPE,OPTIONS", "-T"]).arg(path)).ok()?;
    let (kind, options) = found.split_once(char::is_whitespace)?;
    Some(format!("{kind} ({})", options.trim()))
}

/// Makes sure of a command, by installing its package where that is possible, as `scripts/servers` does.
fn need(lab: &Lab, command: &str, package: &str) -> Result<(), String> {
    const NEED: &str =
        "say() { :; }; die() { printf '%s\\n' \"$*\" >&2; exit 1; }; source \"$1\"; need \"$2\" \"$3\"";
    let host = lab.scripts.parent().unwrap_or(Path::new(".")).join("lib/host.sh");
    run(Command::new("bash").args(["-c", NEED, "need"]).arg(host).args([command, package])).map(|_| ())
}

/// Runs a command to its end. The error is what it said.
fn run(command: &mut Command) -> Result<String, String> {
    // Where sbin is not in the path of ordinary users.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = command.env("PATH", path).output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Says why a test cannot show here what it is for.
///
/// # Panics
/// Where nothing may be skipped, and when it is no [`Skip`].
#[cfg(test)]
#[track_caller]
pub(crate) fn not_tested(why: &anyhow::Error) {
    use std::io::Write;
    let is_allowed = why.downcast_ref().is_some_and(Skip::is_allowed);
    assert!(is_allowed, "this must not be skipped, or {} is set: {why:#}", crate::lab::NO_SKIPS);
    // Past the harness, which keeps the output of tests that pass to itself.
    writeln!(std::io::stderr(), "\n*** NOT tested by this run: {why:#} ***\n").unwrap();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::interrupt::Interrupt;
    use rig::process::Running;

    const SIZE: u64 = 400 << 20;
    const LIMIT: Duration = Duration::from_secs(60);

    fn lab(dir: &Path) -> Lab {
        Lab {
            binlogd: PathBuf::new(),
            scripts: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers"),
            dir: dir.to_owned(),
            apart: Apart::default(),
            link: None,
            journals: dir.to_owned(),
            interrupt: Interrupt::default(),
            unrestored: std::sync::Arc::default(),
            allowed_servers: Vec::new(),
            say: |_| (),
        }
    }

    #[test]
    fn both_kinds_are_mounted_and_leave_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        for kind in [Kind::Ext4, Kind::Xfs] {
            let volume = match Volume::mount(&lab(dir.path()), kind, SIZE) {
                Ok(volume) => volume,
                Err(error) => {
                    not_tested(&error);
                    continue;
                }
            };
            std::fs::write(volume.path().join("file"), "text").unwrap();
            assert!(mounted_from(&volume.path()).unwrap().starts_with(&format!("{kind} (")));
            assert!(volume.facts().iter().any(|fact| fact.value.contains("loop device")));
            // It belongs to this process, which is alive.
            assert_eq!(Volume::remove_leftovers(&lab(dir.path())).unwrap(), 0);
            assert!(is_mounted(&volume.path()).unwrap());
            drop(volume);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    /// Not dropped: as if the process had been killed, and its number given to another. Tells its folder.
    fn killed_with(mut volume: Volume) -> PathBuf {
        volume.folder.disable_cleanup(true);
        let folder = volume.folder.path().to_owned();
        std::mem::forget(volume);
        std::fs::write(folder.join(OWNER), format!("{} 1", std::process::id())).unwrap();
        folder
    }

    /// A process that uses the folder.
    fn tail(dir: &Path) -> Running {
        let file = dir.join("log");
        std::fs::write(&file, "").unwrap();
        let tail = Running(Command::new("tail").arg("-f").arg(file).spawn().unwrap());
        // The kernel lets the parent go on before the command line of the new program is in place.
        let begun = Instant::now();
        while std::fs::read(format!("/proc/{}/cmdline", tail.0.id())).unwrap().is_empty() {
            assert!(begun.elapsed() < LIMIT, "no command line");
            std::thread::sleep(Duration::from_millis(1));
        }
        tail
    }

    #[test]
    fn processes_that_use_the_folder_are_killed_and_no_others() {
        let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut killed, kept) = (tail(ours.path()), tail(other.path()));
        kill_users(ours.path()).unwrap();
        assert_eq!(killed.wait_within(LIMIT).unwrap().code(), None);
        assert!(!kept.has_ended().unwrap());
    }

    #[test]
    fn what_runs_in_what_a_killed_run_has_left_and_beside_it_is_killed() {
        let (dir, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let volume = Volume::mount(&lab(dir.path()), Kind::Here, 0).unwrap();
        let mut users = [tail(&volume.path()), tail(volume.beside())];
        let folder = killed_with(volume);
        // The next run may have another folder for the source.
        let apart = Apart { source_dir: Some(memory.path().to_owned()), ..Apart::default() };
        let next = Lab { apart, ..lab(dir.path()) };
        assert_eq!(Volume::remove_leftovers(&next).unwrap(), 1);
        for user in &mut users {
            assert_eq!(user.wait_within(LIMIT).unwrap().code(), None);
        }
        assert!(!folder.exists());
    }

    #[test]
    fn what_a_killed_run_has_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let volume = match Volume::mount(&lab(dir.path()), Kind::Ext4, SIZE) {
            Ok(volume) => volume,
            Err(error) => return not_tested(&error),
        };
        let folder = killed_with(volume);
        assert!(is_mounted(&folder.join(MOUNT)).unwrap());
        assert_eq!(Volume::remove_leftovers(&lab(dir.path())).unwrap(), 1);
        assert!(!folder.exists());
    }

    #[test]
    fn without_an_image_it_is_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let volume = Volume::mount(&lab(dir.path()), Kind::Here, 0).unwrap();
        assert!(volume.path().is_dir() && !is_mounted(&volume.path()).unwrap());
        assert_eq!("xfs".parse::<Kind>().unwrap(), Kind::Xfs);
        assert!("zfs".parse::<Kind>().unwrap_err().to_string().contains("zfs"));
    }
}

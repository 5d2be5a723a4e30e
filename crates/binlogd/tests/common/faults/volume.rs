//! File systems of a test's own: small ones that can be filled, one that fails, one without direct output.
//!
//! Mounting takes root, and a container may forbid it. A test that gets no volume is skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::common::skip::skip;
use crate::common::wait_within;

/// Longest time until a volume is filled to the byte while somebody writes to it.
const FILL_MAX: Duration = Duration::from_secs(30);

/// Longest time until nobody has a file of a volume any more.
const UNUSED_MAX: Duration = Duration::from_secs(30);

/// What to mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In memory, of a fixed size.
    Tmpfs,
    /// In memory; refuses O_DIRECT, as some file systems do. Its size is that of the memory.
    Ramfs,
    /// In a file, by way of a loop device.
    Ext4,
    /// As a disk that promises more than it has: ext4 without a journal of its own, in a file with holes on a tmpfs. When
    /// that is full, writes into new places fail when they are synced.
    Thin,
}

/// Bytes at the beginning of a [`Kind::Thin`] that it does have: there ext4 keeps its own data.
const THIN_METADATA_BYTES: u64 = 4 << 20;

/// Bytes that a tmpfs gives or refuses at once.
const PAGE_BYTES: u64 = 4096;

/// A mounted file system, unmounted and removed when dropped: declare it before the daemon that uses it.
pub struct Volume {
    kind: Kind,
    size: u64,
    folder: tempfile::TempDir,
}

impl Volume {
    /// Mounts a new file system of `size` bytes; `None`, and the test is to be skipped, where that cannot be done.
    #[track_caller]
    pub fn mount(kind: Kind, size: u64) -> Option<Self> {
        let folder =
            tempfile::Builder::new().prefix("binlogd-volume-").tempdir().expect("a temporary folder");
        let volume = Self { kind, size, folder };
        std::fs::create_dir(volume.path()).expect("a mount point");
        match volume.make().and_then(|()| volume.attach()) {
            Ok(()) => Some(volume),
            Err(why) => {
                skip(&format!(
                    "no {kind:?} can be mounted here, and what binlogd does on it is not tested. {why}"
                ));
                None
            }
        }
    }

    /// The mount point.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("volume")
    }

    /// Takes all space but `left` bytes, until [`Volume::make_space`].
    pub fn fill_but(&self, left: u64) {
        let path = self.ballast();
        let ballast = std::fs::File::create(&path).expect("a file");
        // What binlogd writes between the two calls is not there to be taken.
        wait_within(FILL_MAX, "the volume is filled", || {
            ballast.set_len(0).expect("an empty file");
            let space = rustix::fs::statvfs(&path).expect("a mounted file system");
            let free = space.f_bavail * space.f_frsize;
            let length = free.checked_sub(left).expect("there is more space than that");
            match rustix::fs::fallocate(&ballast, FallocateFlags::empty(), 0, length) {
                Err(Errno::NOSPC) => false,
                taken => taken.is_ok() || panic!("{taken:?}"),
            }
        });
    }

    /// Gives back what [`Volume::fill_but`] has taken.
    pub fn make_space(&self) {
        std::fs::remove_file(self.ballast()).expect("the ballast");
    }

    /// Makes a [`Kind::Tmpfs`] that is in use larger.
    pub fn grow_to(&self, size: u64) {
        assert_eq!(self.kind, Kind::Tmpfs, "no other is grown so easily");
        let mut command = Command::new("mount");
        let size = format!("remount,size={size}");
        run(command.args(["-o", &size]).arg(self.path())).expect("a larger tmpfs");
    }

    /// Stops ext4 as an error of its device does: from now on every write is refused (EROFS), also to open files.
    pub fn abort(&self) {
        assert_eq!(self.kind, Kind::Ext4, "only ext4 can be told to");
        let mut command = Command::new("mount");
        run(command.args(["-o", "remount,abort"]).arg(self.path())).expect("a mounted ext4");
    }

    /// Holds up everything that writes to it, until the answer is dropped.
    pub fn freeze(&self) -> Frozen {
        run(Command::new("fsfreeze").arg("--freeze").arg(self.path()))
            .expect("a file system that can be frozen");
        Frozen(self.path())
    }

    /// Unmounts it, which nobody may be using, and mounts it again. What was in the page cache only, and could not be
    /// written, is lost by that.
    pub fn mount_again(&self) {
        // A process that another test is just starting may have its files for a moment, until it is another program.
        let deadline = Instant::now() + UNUSED_MAX;
        while let Err(error) = run(Command::new("umount").arg(self.path())) {
            assert!(Instant::now() < deadline, "somebody uses it: {error}");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.attach().expect("what could be mounted before");
    }

    fn make(&self) -> Result<(), String> {
        let mut format = Command::new("mkfs.ext4");
        // -m 0: none of it is kept for root.
        format.args(["-q", "-F", "-m", "0"]);
        match self.kind {
            Kind::Tmpfs | Kind::Ramfs => return Ok(()),
            Kind::Ext4 => {}
            Kind::Thin => {
                std::fs::create_dir(self.beneath()).map_err(|error| error.to_string())?;
                let size = format!("size={}", self.size);
                run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(self.beneath()))?;
                format.args(["-N", "128", "-O", "^has_journal", "-b", &PAGE_BYTES.to_string()]);
            }
        }
        let image = std::fs::File::create(self.image()).map_err(|error| error.to_string())?;
        image.set_len(self.size).map_err(|error| error.to_string())?;
        run(format.arg(self.image()))?;
        if self.kind == Kind::Thin {
            let has = rustix::fs::fallocate(image, FallocateFlags::KEEP_SIZE, 0, THIN_METADATA_BYTES);
            has.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn attach(&self) -> Result<(), String> {
        let mut command = Command::new("mount");
        match self.kind {
            Kind::Tmpfs => command.args(["-t", "tmpfs", "-o", &format!("size={}", self.size), "tmpfs"]),
            Kind::Ramfs => command.args(["-t", "ramfs", "ramfs"]),
            Kind::Ext4 => command.args(["-o", "loop"]).arg(self.image()),
            // A refused write must not split an extent: the block with the parts would have no place either.
            Kind::Thin => command.args(["-o", "loop,dioread_lock"]).arg(self.image()),
        };
        run(command.arg(self.path()))?;
        if self.kind == Kind::Thin { self.make_requests_small() } else { Ok(()) }
    }

    /// A loop device takes a request of which only a part was written for done. One of a single page is written or not.
    fn make_requests_small(&self) -> Result<(), String> {
        let mut find = Command::new("findmnt");
        let found = find.args(["-n", "-o", "SOURCE"]).arg(self.path()).output();
        let device = found.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let device = device.map_err(|error| format!("{find:?}: {error}"))?;
        let name = device.strip_prefix("/dev/").ok_or_else(|| format!("{device:?} is no device"))?;
        let limit = format!("/sys/block/{name}/queue/max_sectors_kb");
        std::fs::write(&limit, (PAGE_BYTES / 1024).to_string()).map_err(|error| format!("{limit}: {error}"))
    }

    /// Takes the space, of [`Kind::Thin`] that which it only promises.
    fn ballast(&self) -> PathBuf {
        let folder = if self.kind == Kind::Thin { self.beneath() } else { self.path() };
        folder.join("ballast")
    }

    fn image(&self) -> PathBuf {
        let folder = if self.kind == Kind::Thin { self.beneath() } else { self.folder.path().to_owned() };
        folder.join("image")
    }

    /// Where a [`Kind::Thin`] has its image.
    fn beneath(&self) -> PathBuf {
        self.folder.path().join("beneath")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Lazily: after a failed test somebody may still have a file open.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
        if self.kind == Kind::Thin {
            let _ = Command::new("umount").arg("--lazy").arg(self.beneath()).output();
        }
    }
}

/// A file system that does not answer. Declare it after the daemon: nobody who waits for the disk can be killed.
pub struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = run(Command::new("fsfreeze").arg("--unfreeze").arg(&self.0));
    }
}

/// Runs a command to its end. The error is what it said.
fn run(command: &mut Command) -> Result<(), String> {
    let told = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said) }
    };
    // Where sbin is not in the path of ordinary users.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).output().map_err(|error| format!("{command:?}: {error}")).and_then(told)
}

/// Flags by which process `pid` has opened the file `path`, as open(2) has them.
pub fn open_flags(pid: u32, path: &Path) -> Option<i32> {
    let path = path.canonicalize().ok()?;
    for descriptor in std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten() {
        if std::fs::read_link(descriptor.path()).is_ok_and(|target| target == path) {
            let number = descriptor.file_name();
            let info = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.display())).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            return i32::from_str_radix(flags.trim(), 8).ok();
        }
    }
    None
}

//! The storage double: a disk in memory whose every write, sync, rename and cut is recorded, can fail, and can be the last one.
//!
//! What the page cache shows, and what would be found after a power failure, is the [`Image`].

pub mod fate;
pub mod file;
pub mod image;

use crate::disk::file::{DiskFile, LaterSync};
use crate::disk::image::{Image, Inode, Node, Operation, Tree};
use binlog::storage::lock::{HeldLock, Lock};
use binlog::storage::{self, BackgroundSync, Entry, Found, ReadFile, Storage, StorageFile};
use binlog::testing::Random;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Where every simulated disk is mounted. No real folder has this name.
const MOUNT: &str = "/simulated-disk";

/// What happens to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is done.
    Do,
    /// It fails with this error of the operating system; a write after half of its bytes.
    Fail(i32),
    /// The machine stops in the middle of it.
    Crash,
}

/// What kind of operation is about to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Makes a file or folder.
    Create,
    /// Writes into the page cache.
    Write,
    /// Writes with O_DSYNC.
    SyncedWrite,
    /// Syncs a file or folder.
    Sync,
    /// Renames, removes or cuts.
    Other,
}

/// Decides what happens to each operation.
pub type Judge = Box<dyn FnMut(Kind) -> Verdict + Send>;

pub(crate) struct State {
    pub image: Image,
    /// What was done, if somebody wants to know.
    trace: Option<Vec<Operation>>,
    judge: Judge,
    /// Nothing works any more: the process is killed, or the machine is down.
    pub is_off: bool,
    /// Names of the locks that are held.
    locks: HashSet<PathBuf>,
    /// The machine has stopped in the middle of an operation: only a power failure can follow.
    has_stopped: bool,
    operations: u64,
    failed_syncs: u64,
    /// The next sync covers the changes up to this number: it began when that was the newest.
    pub sync_through: Option<u64>,
    pub random: Random,
}

/// A disk. Clones are the same one.
#[derive(Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
    /// Reads although it is off.
    is_onlooker: bool,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl Disk {
    /// The disk that `image` describes.
    pub fn new(image: Image, seed: u64) -> Disk {
        let state = State {
            image,
            trace: None,
            judge: Box::new(|_| Verdict::Do),
            is_off: false,
            locks: HashSet::new(),
            has_stopped: false,
            operations: 0,
            failed_syncs: 0,
            sync_through: None,
            random: Random::new(seed),
        };
        Disk { state: Arc::new(Mutex::new(state)), is_onlooker: false }
    }

    /// A disk that holds `tree`. Everything is durable.
    pub fn with(tree: &Tree, seed: u64) -> Disk {
        Disk::new(Image::of(tree), seed)
    }

    /// The path of a name on a disk, as the product writes it.
    pub fn path(inside: &str) -> PathBuf {
        Path::new(MOUNT).join(inside)
    }

    /// The same disk for a test that reads it, whether it is on or not.
    pub fn onlooker(&self) -> Disk {
        Disk { state: self.state.clone(), is_onlooker: true }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while the disk is in use")
    }

    /// From now on operations are recorded.
    pub fn record(&self) {
        self.state().trace = Some(Vec::new());
    }

    /// The operations since [`Disk::record`].
    pub fn take_trace(&self) -> Vec<Operation> {
        self.state().trace.take().unwrap_or_default()
    }

    /// From now on `judge` decides what happens.
    pub fn judged_by(&self, judge: Judge) {
        self.state().judge = judge;
    }

    /// From now on nothing works, and nothing changes.
    pub fn switch_off(&self) {
        self.state().is_off = true;
    }

    /// The next process begins; what the last one wrote is there, in the page cache at least.
    pub fn switch_on(&self) {
        self.state().is_off = false;
    }

    pub fn has_stopped(&self) -> bool {
        self.state().has_stopped
    }

    pub fn is_off(&self) -> bool {
        self.state().is_off
    }

    /// What it holds now.
    pub fn image(&self) -> Image {
        self.state().image.clone()
    }

    /// How many operations it was asked for.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// How many syncs of files have failed since the last look.
    pub fn take_failed_syncs(&self) -> u64 {
        std::mem::take(&mut self.state().failed_syncs)
    }

    /// The source has received an acknowledgement.
    pub fn acknowledged(&self, file: &str, position: u64) {
        let mut state = self.state();
        state.done(Operation::Acknowledged { file: file.to_owned(), position });
    }

    /// A reader has everything up to here.
    pub fn published(&self, file: &str, end: u64) {
        let mut state = self.state();
        state.done(Operation::Published { file: file.to_owned(), end });
    }
}

impl State {
    fn folder_and_name(&self, path: &Path) -> io::Result<(Inode, String)> {
        let (folder, name) = self.image.split(inside(path)).ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, name.to_owned()))
    }

    pub fn judge(&mut self, kind: Kind) -> io::Result<Verdict> {
        if self.is_off {
            return Err(io::Error::other("the process was killed"));
        }
        self.operations += 1;
        let verdict = (self.judge)(kind);
        self.has_stopped = verdict == Verdict::Crash;
        self.is_off = self.has_stopped;
        Ok(verdict)
    }

    /// Fails unless the operation is to be done. `operation` is under way when the machine stops.
    pub fn admit(&mut self, kind: Kind, operation: &Operation) -> io::Result<()> {
        match self.judge(kind)? {
            Verdict::Do => Ok(()),
            Verdict::Fail(error) => Err(io::Error::from_raw_os_error(error)),
            Verdict::Crash => {
                self.image.begin(operation);
                Err(io::Error::other("the machine stops"))
            }
        }
    }

    pub fn done(&mut self, operation: Operation) {
        match &operation {
            Operation::Write { file, offset, bytes, synced } => {
                tracing::trace!("write of {} bytes at {offset} of file {file}, synced {synced}", bytes.len());
            }
            other => tracing::trace!("{other:?}"),
        }
        self.image.apply(&operation);
        if let Some(trace) = &mut self.trace {
            trace.push(operation);
        }
    }

    pub fn sync(&mut self, file: Inode, through: u64) -> io::Result<()> {
        let operation = Operation::Sync { file, through };
        match self.admit(Kind::Sync, &operation) {
            Ok(()) => self.done(operation),
            Err(error) => {
                if !self.is_off {
                    self.failed_syncs += 1;
                    self.done(Operation::FailedSync { file, through });
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Storage for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.state();
        let (folder, name) = state.folder_and_name(path)?;
        if state.image.find(inside(path)).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.image.new_inode();
        let operation = Operation::Create { folder, name, node: Node::File(file) };
        state.admit(Kind::Create, &operation)?;
        state.done(operation);
        Ok(Box::new(DiskFile { disk: self.clone(), file, is_synced: false }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_file(path, false)
    }

    fn open_synced(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.open_file(path, true)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (folder, name) = state.folder_and_name(path)?;
        if state.image.find(inside(path)).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = Node::Folder(state.image.new_inode());
        let operation = Operation::Create { folder, name, node };
        state.admit(Kind::Create, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (folder, name) = state.folder_and_name(path)?;
        state.image.find(inside(path)).ok_or(io::ErrorKind::NotFound)?;
        let operation = Operation::Remove { folder, name };
        state.admit(Kind::Other, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (folder, old) = state.folder_and_name(from)?;
        let (other, new) = state.folder_and_name(to)?;
        assert_eq!(folder, other, "the model knows no rename from folder to folder");
        let node = state.image.find(inside(from)).ok_or(io::ErrorKind::NotFound)?;
        let operation = Operation::Rename { folder, from: old, to: new, node };
        state.admit(Kind::Other, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let Some(Node::Folder(folder)) = state.image.find(inside(path)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let operation = Operation::SyncFolder { folder };
        state.admit(Kind::Sync, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let Node::Folder(folder) = self.find(folder)? else {
            return Err(io::ErrorKind::NotADirectory.into());
        };
        let state = self.state();
        let names = state.image.names(folder).iter();
        Ok(names.map(|(name, node)| Entry { name: name.into(), kind: kind(*node) }).collect())
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        let node = self.find(path)?;
        let len = match node {
            Node::File(file) => self.state().image.shown(file).len() as u64,
            Node::Folder(_) => 0,
        };
        Ok(Found { kind: kind(node), len, modified: None })
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let Node::File(file) = self.find(path)? else { return Err(io::ErrorKind::IsADirectory.into()) };
        Ok(self.state().image.shown(file).to_vec())
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        let Node::File(file) = self.find(path)? else { return Err(io::ErrorKind::IsADirectory.into()) };
        Ok(Box::new(DiskFile { disk: self.clone(), file, is_synced: false }))
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        if !self.state().locks.insert(path.to_owned()) {
            return Ok(Lock::HeldBy("another simulated process".to_owned()));
        }
        Ok(Lock::Taken(Box::new(DiskLock { disk: self.clone(), path: path.to_owned() })))
    }

    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// Each background sync is followed by one.
    fn mark_bytes(&self) -> u64 {
        1
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        Box::new(LaterSync::of(self.clone()))
    }
}

impl Disk {
    pub(crate) fn while_on(&self) -> io::Result<()> {
        if !self.is_onlooker && self.is_off() {
            Err(io::Error::other("the process was killed"))
        } else {
            Ok(())
        }
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<Node> {
        self.while_on()?;
        self.state().image.find(inside(path)).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn open_file(&self, path: &Path, is_synced: bool) -> io::Result<Box<dyn StorageFile>> {
        let Node::File(file) = self.find(path)? else { return Err(io::ErrorKind::IsADirectory.into()) };
        Ok(Box::new(DiskFile { disk: self.clone(), file, is_synced }))
    }
}

/// The path below the mount, as the image knows it.
fn inside(path: &Path) -> &str {
    let path = path.strip_prefix(MOUNT).expect("binlogd stays below its data folder");
    path.to_str().expect("paths are UTF-8")
}

fn kind(node: Node) -> storage::Kind {
    match node {
        Node::File(_) => storage::Kind::File,
        Node::Folder(_) => storage::Kind::Folder,
    }
}

/// A lock that a process has, until it ends.
#[derive(Debug)]
struct DiskLock {
    disk: Disk,
    path: PathBuf,
}

impl HeldLock for DiskLock {}

impl Drop for DiskLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

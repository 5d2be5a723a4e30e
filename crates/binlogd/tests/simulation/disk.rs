//! The storage double: a folder whose every write, sync, rename and cut is recorded, can fail, and can be the last one.
//!
//! What the page cache would show stands in a real folder, because some of the product's readers open files for
//! themselves. What the disk itself would hold after a power failure is the [`Image`].

use crate::image::{Image, Inode, Node, Operation, Tree};
use crate::random::Random;
use log::lock::Lock;
use log::storage::{Entry, Found, PosixStorage, ReadAt, ReadFile, Storage, StorageFile};
use log::syncer::{BackgroundSync, Synced};
use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// How many looks at a background sync find it still running, at most.
const LOOKS_MAX: u64 = 4;

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

struct State {
    root: PathBuf,
    image: Image,
    /// What was done, if somebody wants to know.
    trace: Option<Vec<Operation>>,
    judge: Judge,
    /// Nothing works any more: the process is killed, or the machine is down.
    is_off: bool,
    /// The machine has stopped in the middle of an operation: only a power failure can follow.
    has_stopped: bool,
    operations: u64,
    failed_syncs: u64,
    /// The next sync covers the changes up to this number: it began when that was the newest.
    sync_through: Option<u64>,
    random: Random,
}

/// A disk. Clones are the same one.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<State>>);

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

impl Disk {
    /// The disk that `image` describes, with the folder `root`, which shows what its page cache shows.
    pub fn new(root: &Path, image: Image, seed: u64) -> Disk {
        Disk(Arc::new(Mutex::new(State {
            root: root.to_owned(),
            image,
            trace: None,
            judge: Box::new(|_| Verdict::Do),
            is_off: false,
            has_stopped: false,
            operations: 0,
            failed_syncs: 0,
            sync_through: None,
            random: Random::new(seed),
        })))
    }

    /// A disk that holds `tree`, written into the new folder `root`. Everything is durable.
    pub fn with(root: &Path, tree: &Tree, seed: u64) -> Disk {
        write_tree(root, tree);
        Disk::new(root, Image::of(tree), seed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic while the disk is in use")
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
}

/// Writes files and folders below `root`, which is made.
pub fn write_tree(root: &Path, tree: &Tree) {
    std::fs::create_dir_all(root).expect("a folder for the disk");
    for folder in &tree.folders {
        std::fs::create_dir(root.join(folder)).expect("a folder on the disk");
    }
    for (path, bytes) in &tree.files {
        std::fs::write(root.join(path), bytes).expect("a file on the disk");
    }
}

/// Reads all files and folders below `root`; the locks of running processes left out.
pub fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::default();
    let mut waiting = vec![String::new()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).expect("a folder that can be read") {
            let entry = entry.expect("an entry that can be read");
            let name = entry.file_name().into_string().expect("names are UTF-8");
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if entry.path().is_dir() {
                tree.folders.push(path.clone());
                waiting.push(path);
            } else if name != "lock" {
                tree.files.insert(path, std::fs::read(entry.path()).expect("a file that can be read"));
            }
        }
    }
    tree.folders.sort();
    tree
}

impl State {
    /// The path below the root, as the image knows it.
    fn inside(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).expect("binlogd stays below its data folder");
        path.to_str().expect("paths are UTF-8").to_owned()
    }

    fn folder_and_name(&self, path: &Path) -> io::Result<(Inode, String)> {
        let path = self.inside(path);
        let (folder, name) = self.image.split(&path).ok_or(io::ErrorKind::NotFound)?;
        Ok((folder, name.to_owned()))
    }

    fn judge(&mut self, kind: Kind) -> io::Result<Verdict> {
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
    fn admit(&mut self, kind: Kind, operation: &Operation) -> io::Result<()> {
        match self.judge(kind)? {
            Verdict::Do => Ok(()),
            Verdict::Fail(error) => Err(io::Error::from_raw_os_error(error)),
            Verdict::Crash => {
                self.image.begin(operation);
                Err(io::Error::other("the machine stops"))
            }
        }
    }

    fn done(&mut self, operation: Operation) {
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

    fn sync(&mut self, file: Inode, through: u64) -> io::Result<()> {
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
        if state.image.find(&state.inside(path)).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.image.new_inode();
        let operation = Operation::Create { folder, name, node: Node::File(file) };
        state.admit(Kind::Create, &operation)?;
        let shown = PosixStorage.create(path)?;
        state.done(operation);
        Ok(Box::new(DiskFile { disk: self.clone(), file, shown, is_synced: false }))
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
        if state.image.find(&state.inside(path)).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let node = Node::Folder(state.image.new_inode());
        let operation = Operation::Create { folder, name, node };
        state.admit(Kind::Create, &operation)?;
        PosixStorage.create_dir(path)?;
        state.done(operation);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (folder, name) = state.folder_and_name(path)?;
        state.image.find(&state.inside(path)).ok_or(io::ErrorKind::NotFound)?;
        let operation = Operation::Remove { folder, name };
        state.admit(Kind::Other, &operation)?;
        PosixStorage.remove_file(path)?;
        state.done(operation);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (folder, old) = state.folder_and_name(from)?;
        let (other, new) = state.folder_and_name(to)?;
        assert_eq!(folder, other, "the model knows no rename from folder to folder");
        let node = state.image.find(&state.inside(from)).ok_or(io::ErrorKind::NotFound)?;
        let operation = Operation::Rename { folder, from: old, to: new, node };
        state.admit(Kind::Other, &operation)?;
        PosixStorage.rename(from, to)?;
        state.done(operation);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let Some(Node::Folder(folder)) = state.image.find(&state.inside(path)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let operation = Operation::SyncFolder { folder };
        state.admit(Kind::Sync, &operation)?;
        state.done(operation);
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.while_on()?;
        PosixStorage.list(folder)
    }

    fn look(&self, path: &Path) -> io::Result<Found> {
        self.while_on()?;
        PosixStorage.look(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.while_on()?;
        PosixStorage.read(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        self.while_on()?;
        PosixStorage.open_read(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Lock> {
        PosixStorage.lock(path)
    }

    fn beside(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// Each background sync is followed by one.
    fn mark_bytes(&self) -> u64 {
        1
    }

    fn background_sync(&self) -> Box<dyn BackgroundSync> {
        Box::new(LaterSync { disk: self.clone(), running: None })
    }
}

impl Disk {
    fn while_on(&self) -> io::Result<()> {
        if self.is_off() { Err(io::Error::other("the process was killed")) } else { Ok(()) }
    }

    fn open_file(&self, path: &Path, is_synced: bool) -> io::Result<Box<dyn StorageFile>> {
        let state = self.state();
        if state.is_off {
            return Err(io::Error::other("the process was killed"));
        }
        let Some(Node::File(file)) = state.image.find(&state.inside(path)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let shown = PosixStorage.open(path)?;
        Ok(Box::new(DiskFile { disk: self.clone(), file, shown, is_synced }))
    }
}

/// One open file.
#[derive(Debug)]
struct DiskFile {
    disk: Disk,
    file: Inode,
    /// Shows what the page cache would.
    shown: Box<dyn StorageFile>,
    /// Each write is durable when it returns.
    is_synced: bool,
}

impl ReadAt for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.disk.is_off() {
            return Err(io::Error::other("the process was killed"));
        }
        self.shown.read_at(buffer, offset)
    }
}

impl ReadFile for DiskFile {
    fn size(&self) -> io::Result<u64> {
        self.shown.size()
    }
}

impl StorageFile for DiskFile {
    fn write_all_at(&self, parts: &mut [IoSlice<'_>], offset: u64) -> io::Result<()> {
        let bytes = parts.iter().map(|part| &part[..]).collect::<Vec<_>>().concat();
        let (file, synced) = (self.file, self.is_synced);
        let kind = if synced { Kind::SyncedWrite } else { Kind::Write };
        let mut state = self.disk.state();
        match state.judge(kind)? {
            Verdict::Do => {
                self.shown.write_all_at(&mut [IoSlice::new(&bytes)], offset)?;
                state.done(Operation::Write { file, offset, bytes, synced });
                Ok(())
            }
            Verdict::Fail(error) => {
                // A full disk takes part of the bytes. Of a write that goes past the cache, what is there is there now.
                let half = bytes[..bytes.len() / 2].to_vec();
                if !synced || state.random.one_in(2) {
                    self.shown.write_all_at(&mut [IoSlice::new(&half)], offset)?;
                    state.done(Operation::Write { file, offset, bytes: half, synced });
                }
                Err(io::Error::from_raw_os_error(error))
            }
            Verdict::Crash => {
                state.image.begin(&Operation::Write { file, offset, bytes, synced });
                Err(io::Error::other("the machine stops"))
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let newest = state.image.newest_change();
        let through = state.sync_through.take().unwrap_or(newest);
        state.sync(self.file, through)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let operation = Operation::SetLen { file: self.file, len };
        state.admit(Kind::Other, &operation)?;
        self.shown.truncate(len)?;
        state.done(operation);
        Ok(())
    }

    fn forget_cached(&self) {
        let mut state = self.disk.state();
        if state.is_off || !state.image.has_orphans(self.file) {
            return;
        }
        let seed = state.random.next();
        state.done(Operation::Forget { file: self.file, seed });
        let shown = state.image.shown(self.file);
        let len = shown.len() as u64;
        let rewritten =
            self.shown.truncate(len).and_then(|()| self.shown.write_all_at(&mut [IoSlice::new(&shown)], 0));
        rewritten.expect("the folder that shows the page cache can be written");
    }
}

/// A background sync in the same thread: it begins when it is asked for, and ends after some looks. What is written
/// meanwhile is not covered by it.
#[derive(Debug)]
struct LaterSync {
    disk: Disk,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    file: Arc<dyn StorageFile>,
    through: u64,
    /// Number of the last change that it covers.
    newest_change: u64,
    looks_left: u64,
}

impl BackgroundSync for LaterSync {
    fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    fn begin(&mut self, file: Arc<dyn StorageFile>, through: u64) -> io::Result<()> {
        assert!(self.running.is_none(), "one background sync at a time");
        let mut state = self.disk.state();
        let (newest_change, looks_left) = (state.image.newest_change(), state.random.below(LOOKS_MAX));
        drop(state);
        self.running = Some(Running { file, through, newest_change, looks_left });
        Ok(())
    }

    fn take_ended(&mut self) -> Option<Synced> {
        let running = self.running.as_mut()?;
        if running.looks_left > 0 {
            running.looks_left -= 1;
            return None;
        }
        self.wait()
    }

    fn wait(&mut self) -> Option<Synced> {
        let Running { file, through, newest_change, .. } = self.running.take()?;
        self.disk.state().sync_through = Some(newest_change);
        Some(Synced { through, took: Duration::ZERO, result: file.sync_data() })
    }
}

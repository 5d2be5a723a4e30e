//! What a disk is sure to hold, what it may hold, and what the page cache shows of it.
//!
//! The model is harsher than any file system that binlogd runs on. It promises what POSIX and the Linux manual pages
//! promise and nothing else:
//!
//! - A write, a new length and a new name may each reach the disk at any moment before the sync that makes them durable, or
//!   never, in any order, and a write in part, sector by sector.
//! - fdatasync makes the bytes and the length of a file durable, but not its name; a sync of the folder makes its names
//!   durable, but nothing in the files.
//! - A write with O_DSYNC is durable when it returns; until then each of its sectors may be there or not.
//! - A sync that fails leaves pages behind that can be read from the cache, that no later sync writes, and that may be on
//!   the disk or not.
//! - Where a file was made longer and the bytes did not come, there are zeros, or whatever stood on the disk before.

use binlog::testing::Random;
use std::collections::BTreeMap;

/// Number of a file or folder.
pub type Inode = u64;

/// The folder that everything stands in.
pub const ROOT: Inode = 0;

/// What the page cache is written in.
pub(crate) const PAGE: u64 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    File(Inode),
    Folder(Inode),
}

/// One operation that has ended, as the disk saw it.
#[derive(Debug, Clone)]
pub enum Operation {
    Create {
        folder: Inode,
        name: String,
        node: Node,
    },
    Remove {
        folder: Inode,
        name: String,
    },
    Rename {
        folder: Inode,
        from: String,
        to: String,
        node: Node,
    },
    SyncFolder {
        folder: Inode,
    },
    Write {
        file: Inode,
        offset: u64,
        bytes: Vec<u8>,
        synced: bool,
    },
    SetLen {
        file: Inode,
        len: u64,
    },
    /// Covers the changes up to this number.
    Sync {
        file: Inode,
        through: u64,
    },
    /// As `Sync`, but it has failed.
    FailedSync {
        file: Inode,
        through: u64,
    },
    /// Reads of the page with `from` and of those behind it come from the disk from now on. Where the disk does not have what a
    /// failed sync should have written, the random number decides what is there.
    Forget {
        file: Inode,
        from: u64,
        seed: u64,
    },
    /// The source has received this acknowledgement.
    Acknowledged {
        file: String,
        position: u64,
    },
    /// A reader has taken everything up to here. Changes nothing.
    Published {
        file: String,
        end: u64,
    },
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Write(u64, Vec<u8>),
    SetLen(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Pending {
    number: u64,
    pub change: Change,
    /// A sync of it has failed: no later sync covers it.
    orphaned: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FileImage {
    pub durable: Vec<u8>,
    pub pending: Vec<Pending>,
    /// What the page cache shows.
    shown: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Link(String, Node),
    Unlink(String),
    Rename(String, String, Node),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FolderImage {
    pub durable: BTreeMap<String, Node>,
    pub current: BTreeMap<String, Node>,
    pub pending: Vec<NameChange>,
}

/// Files by their path below the root, and folders; what is found after a power failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tree {
    pub folders: Vec<String>,
    pub files: BTreeMap<String, Vec<u8>>,
}

/// The state of a disk.
#[derive(Debug, Clone)]
pub struct Image {
    pub(crate) files: BTreeMap<Inode, FileImage>,
    pub(crate) folders: BTreeMap<Inode, FolderImage>,
    next_inode: Inode,
    next_change: u64,
}

impl Image {
    /// A disk that holds `tree`, all of it durable.
    pub fn of(tree: &Tree) -> Image {
        let folders = BTreeMap::from([(ROOT, FolderImage::default())]);
        let mut image = Image { files: BTreeMap::new(), folders, next_inode: 1, next_change: 1 };
        for path in &tree.folders {
            let node = Node::Folder(image.new_inode());
            image.place(path, node);
        }
        for (path, bytes) in &tree.files {
            let inode = image.new_inode();
            image.files.insert(
                inode,
                FileImage { durable: bytes.clone(), pending: Vec::new(), shown: bytes.clone() },
            );
            image.place(path, Node::File(inode));
        }
        image
    }

    fn place(&mut self, path: &str, node: Node) {
        let (folder, name) = self.split(path).expect("a tree names a folder before what is in it");
        if let Node::Folder(inode) = node {
            self.folders.insert(inode, FolderImage::default());
        }
        let folder = self.folders.get_mut(&folder).expect("it was found");
        folder.durable.insert(name.to_owned(), node);
        folder.current.insert(name.to_owned(), node);
    }

    pub fn new_inode(&mut self) -> Inode {
        self.next_inode += 1;
        self.next_inode - 1
    }

    /// What a path, with slashes, means now.
    pub fn find(&self, path: &str) -> Option<Node> {
        let mut node = Node::Folder(ROOT);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Node::Folder(folder) = node else { return None };
            node = *self.folders.get(&folder)?.current.get(name)?;
        }
        Some(node)
    }

    /// The folder of a path, and the name in it.
    pub fn split<'a>(&self, path: &'a str) -> Option<(Inode, &'a str)> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.find(folder)? {
            Node::Folder(folder) => Some((folder, name)),
            Node::File(_) => None,
        }
    }

    /// Number of the newest change.
    pub fn newest_change(&self) -> u64 {
        self.next_change - 1
    }

    /// Takes an operation that has ended.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { file, offset, bytes, .. } => {
                let file = self.files.get_mut(file).expect("a file that is written exists");
                write(&mut file.shown, *offset, bytes, 0);
            }
            Operation::SetLen { file, len } => {
                let file = self.files.get_mut(file).expect("a file that is cut exists");
                file.shown.resize(*len as usize, 0);
            }
            _ => {}
        }
        match operation {
            Operation::Write { file, offset, bytes, synced: true } => {
                let file = self.files.get_mut(file).expect("a file that is written exists");
                write(&mut file.durable, *offset, bytes, 0);
            }
            Operation::Sync { file, through } => self.sync(*file, *through),
            Operation::FailedSync { file, through } => self.orphan(*file, *through),
            Operation::Forget { file, from, seed } => self.forget(*file, *from, *seed),
            Operation::SyncFolder { folder } => {
                let folder = self.folders.get_mut(folder).expect("a folder that is synced exists");
                folder.durable = folder.current.clone();
                folder.pending.clear();
            }
            Operation::Acknowledged { .. } | Operation::Published { .. } => {}
            other => self.begin(other),
        }
    }

    /// Takes an operation that is under way: its effect is there in part, or not, or wholly.
    pub fn begin(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { folder, name, node } => {
                let (Node::File(inode) | Node::Folder(inode)) = *node;
                self.next_inode = self.next_inode.max(inode + 1);
                match node {
                    Node::File(_) => drop(self.files.insert(inode, FileImage::default())),
                    Node::Folder(_) => drop(self.folders.insert(inode, FolderImage::default())),
                }
                self.rename(*folder, NameChange::Link(name.clone(), *node));
            }
            Operation::Remove { folder, name } => self.rename(*folder, NameChange::Unlink(name.clone())),
            Operation::Rename { folder, from, to, node } => {
                self.rename(*folder, NameChange::Rename(from.clone(), to.clone(), *node));
            }
            Operation::Write { file, offset, bytes, .. } => {
                self.change(*file, Change::Write(*offset, bytes.clone()));
            }
            Operation::SetLen { file, len } => self.change(*file, Change::SetLen(*len)),
            // Until they end, nothing is sure that was not sure before.
            Operation::Sync { .. }
            | Operation::FailedSync { .. }
            | Operation::Forget { .. }
            | Operation::SyncFolder { .. }
            | Operation::Acknowledged { .. }
            | Operation::Published { .. } => {}
        }
    }

    fn rename(&mut self, folder: Inode, change: NameChange) {
        let folder = self.folders.get_mut(&folder).expect("a folder that is changed exists");
        apply_name(&mut folder.current, &change);
        folder.pending.push(change);
    }

    fn change(&mut self, file: Inode, change: Change) {
        let image = self.files.get_mut(&file).expect("a file that is changed exists");
        if let Change::Write(offset, bytes) = &change {
            let pages = offset / PAGE..=(offset + bytes.len() as u64) / PAGE;
            for pending in &mut image.pending {
                // Written to again, the page is dirty, and the next sync writes all of it.
                if let Change::Write(at, _) = &pending.change {
                    pending.orphaned &= !pages.contains(&(at / PAGE));
                }
            }
        }
        image.pending.push(Pending { number: self.next_change, change, orphaned: false });
        self.next_change += 1;
    }

    fn sync(&mut self, file: Inode, through: u64) {
        let image = self.files.get_mut(&file).expect("a file that is synced exists");
        let cuts: Vec<(u64, u64)> = image
            .pending
            .iter()
            .filter_map(|pending| match pending.change {
                Change::SetLen(len) if pending.number <= through => Some((pending.number, len)),
                _ => None,
            })
            .collect();
        let (covered, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut image.pending)
            .into_iter()
            .partition(|pending| pending.number <= through && !pending.orphaned);
        for pending in covered {
            apply_change(&mut image.durable, &pending.change, 0);
        }
        let is_cut = |pending: &Pending| match pending.change {
            Change::Write(at, _) => cuts.iter().any(|(number, len)| pending.number < *number && *len <= at),
            Change::SetLen(_) => false,
        };
        image.pending = rest.into_iter().filter(|pending| !is_cut(pending)).collect();
    }

    /// What a failed sync should have covered is left to chance, page by page.
    fn orphan(&mut self, file: Inode, through: u64) {
        let image = self.files.get_mut(&file).expect("a file that is synced exists");
        let mut pending = Vec::new();
        for Pending { number, change, orphaned } in std::mem::take(&mut image.pending) {
            match change {
                Change::Write(offset, bytes) if number <= through && !orphaned => {
                    for (at, part) in parts(offset, &bytes, PAGE) {
                        pending.push(Pending {
                            number,
                            change: Change::Write(at, part.to_vec()),
                            orphaned: true,
                        });
                    }
                }
                change => pending.push(Pending { number, change, orphaned }),
            }
        }
        image.pending = pending;
    }

    fn forget(&mut self, file: Inode, from: u64, seed: u64) {
        let image = self.files.get_mut(&file).expect("a file that is forgotten exists");
        let mut random = Random::new(seed);
        let mut rest = Vec::new();
        for pending in std::mem::take(&mut image.pending) {
            let is_before = matches!(&pending.change, Change::Write(at, _) if at / PAGE < from / PAGE);
            if !pending.orphaned || is_before {
                rest.push(pending);
            } else if random.one_in(2) {
                apply_change(&mut image.durable, &pending.change, 0);
            }
        }
        image.pending = rest;
        image.shown.clone_from(&image.durable);
        image.pending.iter().for_each(|pending| apply_change(&mut image.shown, &pending.change, 0));
    }

    /// True when a sync of the file has failed and the page cache may show what the disk does not have.
    pub fn has_orphans(&self, file: Inode) -> bool {
        self.files[&file].pending.iter().any(|pending| pending.orphaned)
    }

    /// What the page cache shows of a file.
    pub fn shown(&self, file: Inode) -> &[u8] {
        &self.files[&file].shown
    }

    /// What a folder holds now.
    pub fn names(&self, folder: Inode) -> &BTreeMap<String, Node> {
        &self.folders[&folder].current
    }

    /// True when every state after a power failure is the same.
    pub fn is_sure(&self) -> bool {
        self.files.values().all(|file| file.pending.is_empty())
            && self.folders.values().all(|folder| folder.pending.is_empty())
    }
}

/// The parts of a write that lie in one block of `grain` bytes each.
pub(crate) fn parts(offset: u64, bytes: &[u8], grain: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let left = bytes.get(at..).filter(|left| !left.is_empty())?;
        let begin = offset + at as u64;
        let len = left.len().min((grain - begin % grain) as usize);
        at += len;
        Some((begin, &left[..len]))
    })
}

pub(crate) fn write(file: &mut Vec<u8>, offset: u64, bytes: &[u8], fill: u8) {
    let begin = offset as usize;
    if file.len() < begin {
        file.resize(begin, fill);
    }
    let (over, behind) = bytes.split_at(bytes.len().min(file.len() - begin));
    file[begin..begin + over.len()].copy_from_slice(over);
    file.extend_from_slice(behind);
}

pub(crate) fn apply_change(file: &mut Vec<u8>, change: &Change, fill: u8) {
    match change {
        Change::Write(offset, bytes) => write(file, *offset, bytes, fill),
        Change::SetLen(len) => file.resize(*len as usize, fill),
    }
}

pub(crate) fn apply_name(names: &mut BTreeMap<String, Node>, change: &NameChange) {
    match change {
        NameChange::Link(name, node) => {
            names.insert(name.clone(), *node);
        }
        NameChange::Unlink(name) => {
            names.remove(name);
        }
        NameChange::Rename(from, to, node) => {
            if names.get(from) == Some(node) {
                names.remove(from);
            }
            names.insert(to.clone(), *node);
        }
    }
}

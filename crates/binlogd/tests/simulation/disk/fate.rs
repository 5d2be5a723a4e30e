//! What a power failure leaves of what no sync has covered.

use crate::disk::image::{
    Change, FileImage, FolderImage, Image, Inode, Node, PAGE, ROOT, Tree, apply_change, apply_name, parts,
    write,
};
use binlog::testing::Random;
use std::collections::BTreeMap;

/// Smallest part of a write that a disk leaves out.
const SECTOR: u64 = 512;

/// What a power failure does to what no sync has covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// All of it is gone.
    Lost,
    /// Nothing is.
    Kept,
    /// The names are there, the bytes are not.
    NamesOnly,
    /// The bytes are there, the new names are not.
    BytesOnly,
    /// Names and lengths are there, with zeros for bytes.
    Zeros,
    /// Names and lengths are there, with whatever stood on the disk before for bytes.
    Garbage,
    /// Only the last sector of everything is there.
    LastSector,
    /// Each part may be there or not.
    Random(u64),
}

impl Image {
    /// What is found after a power failure.
    pub fn after_power_failure(&self, fate: Fate) -> Tree {
        let mut tree = Tree::default();
        let mut chance = Chance::new(fate);
        self.collect(ROOT, "", &mut chance, &mut tree);
        tree
    }

    fn collect(&self, folder: Inode, path: &str, chance: &mut Chance, tree: &mut Tree) {
        for (name, node) in chance.names(&self.folders[&folder]) {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            match node {
                Node::File(inode) => {
                    tree.files.insert(path, chance.bytes(&self.files[&inode]));
                }
                Node::Folder(inode) => {
                    tree.folders.push(path.clone());
                    self.collect(inode, &path, chance, tree);
                }
            }
        }
    }
}

/// Decides what of a disk survives.
struct Chance {
    fate: Fate,
    random: Random,
    /// How many of 8 parts survive.
    eighths: u64,
    grain: u64,
}

impl Chance {
    fn new(fate: Fate) -> Chance {
        let mut random = Random::new(match fate {
            Fate::Random(seed) => seed,
            _ => 0,
        });
        let eighths = *random.pick(&[1, 4, 7]);
        let grain = *random.pick(&[SECTOR, PAGE]);
        Chance { fate, random, eighths, grain }
    }

    fn survives(&mut self) -> bool {
        self.random.below(8) < self.eighths
    }

    fn names(&mut self, folder: &FolderImage) -> BTreeMap<String, Node> {
        match self.fate {
            Fate::Lost | Fate::BytesOnly => folder.durable.clone(),
            Fate::Random(_) => {
                let mut names = folder.durable.clone();
                for change in &folder.pending {
                    if self.survives() {
                        apply_name(&mut names, change);
                    }
                }
                names
            }
            _ => folder.current.clone(),
        }
    }

    fn bytes(&mut self, file: &FileImage) -> Vec<u8> {
        let mut bytes = file.durable.clone();
        let fill = match self.fate {
            Fate::Garbage => 0xa5,
            Fate::Random(_) if self.random.one_in(2) => 0xa5,
            _ => 0,
        };
        let keeps_lengths = match self.fate {
            Fate::Random(_) => self.random.one_in(2),
            fate => matches!(fate, Fate::Zeros | Fate::Garbage | Fate::LastSector),
        };
        for pending in &file.pending {
            match (&pending.change, self.fate) {
                (_, Fate::Lost | Fate::NamesOnly) => {}
                (change, Fate::Kept | Fate::BytesOnly) => apply_change(&mut bytes, change, 0),
                (Change::SetLen(len), Fate::Random(_)) => {
                    if self.survives() {
                        bytes.resize(*len as usize, fill);
                    }
                }
                (Change::SetLen(len), _) => bytes.resize(*len as usize, fill),
                (Change::Write(offset, content), _) => {
                    let end = (offset + content.len() as u64) as usize;
                    if keeps_lengths && bytes.len() < end {
                        bytes.resize(end, fill);
                    }
                    self.write_parts(&mut bytes, *offset, content, fill);
                }
            }
        }
        bytes
    }

    fn write_parts(&mut self, bytes: &mut Vec<u8>, offset: u64, content: &[u8], fill: u8) {
        let parts: Vec<_> = parts(offset, content, self.grain).collect();
        let last = parts.len().saturating_sub(1);
        for (index, (at, part)) in parts.into_iter().enumerate() {
            let survives = match self.fate {
                Fate::LastSector => index == last,
                Fate::Random(_) => self.survives(),
                _ => false,
            };
            if survives {
                write(bytes, at, part, fill);
            }
        }
    }
}

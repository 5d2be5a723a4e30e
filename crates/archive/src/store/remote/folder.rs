//! A folder as an object store: on this machine, or one that is mounted here, by NFS for example.
//!
//! An object is written under a hidden name, synced, and linked to its own name: `link(2)` fails where the name is taken, on
//! NFS too, and never shows half an object. A crash leaves hidden files, which no listing shows.

use crate::names;
use crate::store::{Below, Created, Fault, Meta, Store, StoreError};
use bytes::Bytes;
use codec::rows::hex;
use jiff::Timestamp;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In front of the hidden names. No object has a name that begins with a dot.
const HIDDEN: &str = ".new-";
/// Folders inside one another are followed so far: a link may lead back.
const DEPTH_MAX: usize = 16;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Folders inside whose names are on the disk, as this process knows.
    synced: Mutex<HashSet<PathBuf>>,
}

impl Folder {
    /// Opens a folder; makes it, if the one around it is there.
    ///
    /// # Errors
    /// When it is not there and cannot be made.
    pub fn open(root: &Path) -> Result<Folder, StoreError> {
        let fail = |error: &io::Error| {
            let advice = match error.kind() {
                ErrorKind::NotFound => ": the folder around it is not there. Is it mounted?",
                _ => "",
            };
            let text = format!("cannot open the archive's folder {}: {error}{advice}", root.display());
            StoreError::new(if advice.is_empty() { fault(error) } else { Fault::Refused }, text)
        };
        match fs::metadata(root) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(fail(&ErrorKind::NotADirectory.into())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_folder(root).map_err(|error| fail(&error))?;
            }
            Err(error) => return Err(fail(&error)),
        }
        Ok(Folder { root: root.to_owned(), synced: Mutex::default() })
    }

    fn path(&self, name: &str) -> Result<PathBuf, StoreError> {
        if name.split('/').all(names::is_part) {
            Ok(self.root.join(name))
        } else {
            Err(StoreError::new(Fault::Refused, format!("{name:?} is no name of an object")))
        }
    }

    /// Makes the folders between the root and an object. The root itself is not made again: it may be a mount that is gone.
    fn make_folders(&self, folder: &Path) -> io::Result<()> {
        if folder == self.root || self.synced().contains(folder) {
            return Ok(());
        }
        if let Some(around) = folder.parent() {
            self.make_folders(around)?;
        }
        make_folder(folder)?;
        self.synced().insert(folder.to_owned());
        Ok(())
    }

    fn synced(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        // A set of paths is whole between any two steps.
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create_file(&self, path: &Path, bytes: &[u8]) -> io::Result<Created> {
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        self.make_folders(folder)?;
        let hidden = folder.join(hidden_name()?);
        let created = write_synced(&hidden, bytes).and_then(|()| link(&hidden, path));
        // Also after an error: nobody else knows the name. One that stays is in nobody's way.
        let _ = fs::remove_file(&hidden);
        let created = created?;
        // Also where the name was taken: who made it may have crashed before the name was on the disk. From here on the object
        // is there, whatever fails.
        sync_folder(folder)
            .map_err(|error| io::Error::other(format!("its name may not be on the disk: {error}")))?;
        Ok(created)
    }

    fn read_range(&self, name: &str, range: &Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.path(name)?;
        let fail = |error| self::fail("read", name, &error);
        let mut file = File::open(path).map_err(fail)?;
        let size = file.metadata().map_err(fail)?.len();
        if range.start > size || (range.start == size && !range.is_empty()) {
            return Err(StoreError::new(
                Fault::Refused,
                format!("cannot read {name}: the range begins behind the end of the object"),
            ));
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(range.start)).map_err(fail)?;
        file.take(range.end.saturating_sub(range.start)).read_to_end(&mut bytes).map_err(fail)?;
        Ok(Bytes::from(bytes))
    }

    /// What stands directly in a folder: whole names, those of folders with a slash.
    fn entries(&self, folder: &Path, prefix: &str) -> io::Result<Below> {
        let mut below = Below::default();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // There is no such prefix, or somebody has removed it meanwhile. The root has to be there.
            Err(error) if error.kind() == ErrorKind::NotFound && folder != self.root => return Ok(below),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Some(part) =
                entry.file_name().to_str().filter(|part| names::is_part(part)).map(str::to_owned)
            else {
                continue;
            };
            let metadata = match fs::metadata(entry.path()) {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let name = format!("{prefix}{part}");
            if metadata.is_dir() {
                below.folders.insert(format!("{name}/"));
            } else if metadata.is_file() {
                below.objects.push(meta(name, &metadata));
            }
        }
        Ok(below)
    }

    /// Adds the objects below a folder.
    fn walk(&self, folder: &Path, prefix: &str, depth: usize, found: &mut Vec<Meta>) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(io::Error::other(format!(
                "folders are more than {DEPTH_MAX} deep: a link leads back"
            )));
        }
        let below = self.entries(folder, prefix)?;
        found.extend(below.objects);
        below.folders.iter().try_for_each(|name| self.walk(&self.root.join(name), name, depth + 1, found))
    }

    /// The folder of a prefix of names.
    fn folder(&self, prefix: &str) -> Result<PathBuf, StoreError> {
        match prefix.strip_suffix('/').unwrap_or(prefix) {
            "" => Ok(self.root.clone()),
            prefix => self.path(prefix),
        }
    }
}

fn not_listed(folder: &Path, error: &io::Error) -> StoreError {
    let text = format!("cannot list {}: {error}", folder.display());
    // What is missing here is the archive.
    let fault = if error.kind() == ErrorKind::NotFound { Fault::Unavailable } else { fault(error) };
    StoreError::new(fault, text)
}

impl Store for Folder {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        let path = self.path(name)?;
        self.create_file(&path, &bytes).map_err(|error| match error.kind() {
            // Of a creation only a folder can be missing.
            ErrorKind::NotFound => {
                let text =
                    format!("cannot create {name}: {error}: its folder is gone. Is the archive mounted?");
                StoreError::new(Fault::Unavailable, text)
            }
            _ => fail("create", name, &error),
        })
    }

    fn get(&self, name: &str) -> Result<Bytes, StoreError> {
        let path = self.path(name)?;
        fs::read(path).map(Bytes::from).map_err(|error| fail("read", name, &error))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.read_range(name, &range)
    }

    fn head(&self, name: &str) -> Result<Meta, StoreError> {
        let metadata = fs::metadata(self.path(name)?).map_err(|error| fail("look at", name, &error))?;
        if !metadata.is_file() {
            return Err(StoreError::new(Fault::Missing, format!("cannot look at {name}: it is no file")));
        }
        Ok(meta(name.to_owned(), &metadata))
    }

    fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        let folder = self.folder(prefix)?;
        let mut found = Vec::new();
        // Whether the root is there is asked even when the prefix is not: an archive that is not mounted is no empty one.
        let listed = fs::metadata(&self.root).and_then(|_| self.walk(&folder, prefix, 0, &mut found));
        listed.map_err(|error| not_listed(&folder, &error))?;
        found.retain(|meta| after.is_none_or(|after| meta.name.as_str() > after));
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn look_into(&self, prefix: &str) -> Result<Below, StoreError> {
        let folder = self.folder(prefix)?;
        let found = fs::metadata(&self.root).and_then(|_| self.entries(&folder, prefix));
        let mut below = found.map_err(|error| not_listed(&folder, &error))?;
        below.objects.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(below)
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name)?;
        match fs::remove_file(&path) {
            Ok(()) => path.parent().map_or(Ok(()), sync_folder).map_err(|error| fail("delete", name, &error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(fail("delete", name, &error)),
        }
    }
}

fn hidden_name() -> io::Result<String> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!("{HIDDEN}{}", hex(&random)))
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Gives a file its own name, unless that is taken.
fn link(hidden: &Path, path: &Path) -> io::Result<Created> {
    match fs::hard_link(hidden, path) {
        Ok(()) => Ok(Created::New),
        // Over NFS the answer to a first try may be lost, and the second one then meets the first: two names of one file say so.
        Err(_) if fs::metadata(hidden).is_ok_and(|metadata| metadata.nlink() == 2) => Ok(Created::New),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Created::Exists),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
            // The file could be written in the same folder, so what is missing is the link.
            Err(io::Error::new(
                ErrorKind::Unsupported,
                "this file system has no hard links, without which two writers could overwrite each other",
            ))
        }
        Err(error) => Err(error),
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    // Also when another made it: its name must be on the disk before anything inside counts.
    folder.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn meta(name: String, metadata: &fs::Metadata) -> Meta {
    let modified = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    Meta { name, size: metadata.len(), modified: modified.unwrap_or(Timestamp::UNIX_EPOCH) }
}

fn fail(verb: &str, name: &str, error: &io::Error) -> StoreError {
    StoreError::new(fault(error), format!("cannot {verb} {name}: {error}"))
}

fn fault(error: &io::Error) -> Fault {
    match error.kind() {
        ErrorKind::NotFound => Fault::Missing,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Fault::Denied,
        ErrorKind::Unsupported
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::InvalidInput
        | ErrorKind::FileTooLarge
        | ErrorKind::InvalidFilename => Fault::Refused,
        // A full disk, a server of NFS that is away, a disk with errors: worth another try.
        _ => Fault::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    fn folder() -> (tempfile::TempDir, Folder) {
        let around = tempfile::tempdir().unwrap();
        let folder = Folder::open(&around.path().join("archive")).unwrap();
        (around, folder)
    }

    fn names_of(found: &[Meta]) -> Vec<&str> {
        found.iter().map(|meta| meta.name.as_str()).collect()
    }

    #[test]
    fn an_object_is_made_once_and_read_back() {
        let (_around, store) = folder();
        assert_eq!(store.create("a/b/c.json", Bytes::from_static(b"first")).unwrap(), Created::New);
        assert_eq!(store.create("a/b/c.json", Bytes::from_static(b"second")).unwrap(), Created::Exists);
        assert_eq!(store.get("a/b/c.json").unwrap().as_ref(), b"first");
        assert_eq!(store.get_range("a/b/c.json", 1..3).unwrap().as_ref(), b"ir");
        assert_eq!(store.get_range("a/b/c.json", 3..99).unwrap().as_ref(), b"st");
        assert_eq!(store.get_range("a/b/c.json", 5..6).unwrap_err().fault, Fault::Refused);
        assert_eq!(store.head("a/b/c.json").unwrap().size, 5);
        store.delete("a/b/c.json").unwrap();
        store.delete("a/b/c.json").unwrap();
        for error in [
            store.get("a/b/c.json").unwrap_err(),
            store.get_range("a/b/c.json", 0..1).unwrap_err(),
            store.head("a/b/c.json").unwrap_err(),
            store.head("a/b").unwrap_err(),
        ] {
            assert!(error.is_missing(), "{error}");
        }
    }

    #[test]
    fn lists_are_sorted_and_begin_behind_a_name() {
        let (around, store) = folder();
        // By bytes "a-b/x" comes before "a/x", which no order of folders gives.
        for name in ["b", "a/x", "a-b/x", "a/y/z", "a/y.z"] {
            store.create(name, Bytes::from_static(b"1")).unwrap();
        }
        assert_eq!(names_of(&store.list("", None).unwrap()), ["a-b/x", "a/x", "a/y.z", "a/y/z", "b"]);
        assert_eq!(names_of(&store.list("a/", None).unwrap()), ["a/x", "a/y.z", "a/y/z"]);
        assert_eq!(names_of(&store.list("a/", Some("a/x")).unwrap()), ["a/y.z", "a/y/z"]);
        assert_eq!(names_of(&store.list("a/", Some("a/xx")).unwrap()), ["a/y.z", "a/y/z"]);
        assert!(store.list("nothing/", None).unwrap().is_empty());
        fs::remove_dir_all(around.path().join("archive")).unwrap();
        assert_eq!(store.list("a/", None).unwrap_err().fault, Fault::Unavailable);
        // Nor is a root that is gone made again by a write.
        assert!(store.create("a/x", Bytes::new()).is_err());
    }

    #[test]
    fn what_a_crash_or_a_stranger_leaves_is_not_listed() {
        let (around, store) = folder();
        let root = around.path().join("archive");
        store.create("s/commits/1.json", Bytes::from_static(b"1")).unwrap();
        fs::write(root.join("s/commits").join(hidden_name().unwrap()), b"half").unwrap();
        fs::write(root.join("s/commits/a b"), b"x").unwrap();
        fs::create_dir(root.join(".snapshot")).unwrap();
        fs::write(root.join(".snapshot/1"), b"x").unwrap();
        assert_eq!(names_of(&store.list("", None).unwrap()), ["s/commits/1.json"]);
        let left = fs::read_dir(root.join("s/commits")).unwrap().count();
        assert_eq!(left, 3, "a creation leaves nothing beside its object");
    }

    #[test]
    fn of_many_that_create_one_name_one_is_told_that_it_did() {
        let (_around, store) = folder();
        let store = Arc::new(store);
        for round in 0..20 {
            let name = format!("s/commits/{round}.json");
            let barrier = Arc::new(Barrier::new(8));
            let threads: Vec<_> = (0..8u8)
                .map(|number| {
                    let (store, barrier, name) = (store.clone(), barrier.clone(), name.clone());
                    std::thread::spawn(move || {
                        barrier.wait();
                        (number, store.create(&name, Bytes::from(vec![number; 1000])).unwrap())
                    })
                })
                .collect();
            let made: Vec<u8> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|(_, created)| *created == Created::New)
                .map(|(number, _)| number)
                .collect();
            assert_eq!(made.len(), 1, "{made:?}");
            assert_eq!(store.get(&name).unwrap(), Bytes::from(vec![made[0]; 1000]));
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        let (_around, store) = folder();
        for name in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".new-x", "a/.x", "a b"] {
            assert_eq!(store.create(name, Bytes::new()).unwrap_err().fault, Fault::Refused, "{name}");
            assert_eq!(store.get(name).unwrap_err().fault, Fault::Refused, "{name}");
        }
    }

    #[test]
    fn a_folder_is_made_where_the_one_around_it_is_there() {
        let around = tempfile::tempdir().unwrap();
        let deep = around.path().join("not/there");
        let error = Folder::open(&deep).unwrap_err();
        assert!(error.fault == Fault::Refused && error.text.contains("mounted"), "{error}");
        fs::write(around.path().join("file"), b"").unwrap();
        assert_eq!(Folder::open(&around.path().join("file")).unwrap_err().fault, Fault::Refused);
    }
}

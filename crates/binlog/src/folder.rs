//! The folder of one source: its lock, its identity towards the source, its timelines.

use super::format::{FORMAT, FormatError, QUORUM, read_toml};
use super::storage::{Entry, Kind, Storage};
use crate::storage::failed::{during, within};
use crate::storage::lock;
use crate::storage::lock::{HeldLock, Lock};
use crate::timeline::index::replace_file;
use codec::gtid::Uuid;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the lock in a source's folder.
pub const LOCK_FILE: &str = "lock";
/// Name of the file that keeps the identity.
pub(crate) const REPLICA_FILE: &str = "replica.toml";
/// Name of the file that says which timeline is written, where that is not the newest one.
pub(crate) const PRESENT_FILE: &str = "present.toml";

/// What can go wrong with a source's folder; the message names the path and what to do.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Another process holds the lock.
    #[error(
        "{path} is in use by another binlogd (process {holder}); stop that one or give this one another data_dir or source name"
    )]
    Locked {
        /// The source's folder.
        path: PathBuf,
        /// Process id from the lock file, or "unknown".
        holder: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {}", within(path, error))]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// `replica.toml` is there but holds nonsense, or is of a later format.
    #[error("{path}: {reason}")]
    Replica {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl FolderError {
    /// True when another process holds the folder.
    pub fn is_locked(&self) -> bool {
        matches!(self, FolderError::Locked { .. })
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
        let path = path.to_owned();
        move |error| FolderError::Io { action, path, error }
    }
}

/// Who binlogd is to one source. Made once and kept: with a fixed UUID in the program, two receivers would evict each
/// other for ever, and with a new one at each start the source could not tell a reconnect from a second replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaIdentity {
    /// Presented as `@replica_uuid`; a source ends older dump threads of the same UUID.
    pub replica_uuid: String,
    /// Presented as `server_id` when the configuration names none.
    pub server_id: u32,
}

/// A source's folder, locked for this process until dropped.
#[derive(Debug)]
pub struct SourceFolder {
    path: PathBuf,
    /// Who binlogd is to this source.
    pub identity: ReplicaIdentity,
    _lock: Box<dyn HeldLock>,
}

impl SourceFolder {
    /// Makes the folder if need be, locks it and reads or makes the identity.
    ///
    /// # Errors
    /// When another process has it, or it cannot be made, read or written.
    pub fn open(storage: &dyn Storage, data_dir: &Path, source: &str) -> Result<SourceFolder, FolderError> {
        let path = data_dir.join(source);
        // The folder above too: a process may have ended between making it and making its name durable.
        make_folder(storage, data_dir).map_err(FolderError::io("use the folder", data_dir))?;
        make_folder(storage, &path).map_err(FolderError::io("use the folder", &path))?;
        let lock = match storage.lock(&path.join(LOCK_FILE)) {
            Ok(Lock::Taken(lock)) => lock,
            Ok(Lock::HeldBy(holder)) => return Err(locked(path, holder)),
            Err(error) => return Err(FolderError::io("open", &path.join(LOCK_FILE))(error)),
        };
        let identity = read_or_make_identity(storage, &path)?;
        Ok(SourceFolder { path, identity, _lock: lock })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The timelines in the order in which they began, the one that is written last; see [`timelines`].
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn timelines(&self, storage: &dyn Storage) -> Result<Vec<PathBuf>, FolderError> {
        timelines(storage, &self.path).map_err(FolderError::io("read the folder", &self.path))
    }
}

/// Whether the folder of `source` can be had, without making or keeping anything: what is in the way is told before
/// anything is begun, however long opening the copy takes.
///
/// # Errors
/// When another process holds the lock, or it cannot be opened.
pub fn check_free(data_dir: &Path, source: &str) -> Result<(), FolderError> {
    let folder = data_dir.join(source);
    let path = folder.join(LOCK_FILE);
    match lock::held_by_another(&path) {
        Ok(None) => Ok(()),
        Ok(Some(holder)) => Err(locked(folder, holder)),
        Err(error) => Err(FolderError::Io { action: "open", path, error }),
    }
}

/// Makes a folder, and those above it that are missing, and makes its name durable, whoever made it: a crash could
/// otherwise take everything that is acknowledged in it.
///
/// # Errors
/// When the name is that of a file, or as the operating system says.
pub fn make_folder(storage: &dyn Storage, path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()), // The root.
    };
    let existed = is_folder(storage, path)?;
    if !existed {
        if !is_folder(storage, parent)? {
            make_folder(storage, parent)?;
        }
        match storage.create_dir(path) {
            // Somebody else may have made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_folder(storage, path)? => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let why = io::Error::new(error.kind(), "a folder is needed, and a file has that name");
                return Err(during("create", path)(why));
            }
            other => other.map_err(during("create", path))?,
        }
    }
    match storage.sync_dir(parent) {
        // Whoever made it for us kept the folder above to himself, and has to care for its name too.
        Err(error) if existed && error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        // The folder above is mounted read-only, as a unit with ProtectSystem and a container have it, and cannot be asked
        // whether its disk is well. The name was not made here. Where the disk below has failed, what is written next fails.
        Err(error) if existed && error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(()),
        other => other.map_err(during("sync the folder", parent)),
    }
}

/// Whether there is a folder. A disk that cannot say has not said no.
fn is_folder(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    match storage.look(path) {
        Ok(found) => Ok(found.kind == Kind::Folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        // Something above it is a file: making it says so.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(during("look at", path)(error)),
    }
}

fn locked(path: PathBuf, holder: String) -> FolderError {
    let holder = if holder.is_empty() { "unknown".to_owned() } else { holder };
    FolderError::Locked { path, holder }
}

/// Reads the identity from a source's folder without making one; `None` when there is none yet.
///
/// # Errors
/// When it is there and cannot be read or understood.
pub fn read_identity(storage: &dyn Storage, folder: &Path) -> Result<Option<ReplicaIdentity>, FolderError> {
    let path = folder.join(REPLICA_FILE);
    match storage.read_to_string(&path) {
        Ok(text) => match read_toml(&text).and_then(check) {
            Ok(identity) => Ok(Some(identity)),
            Err(later @ FormatError::Later(_)) => {
                Err(FolderError::Replica { path, reason: later.to_string() })
            }
            Err(FormatError::Wrong(reason)) => {
                let reason = format!(
                    "cannot be understood ({reason}); restore it, or remove it to present a new identity to the source"
                );
                Err(FolderError::Replica { path, reason })
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FolderError::Io { action: "read", path, error }),
    }
}

fn read_or_make_identity(storage: &dyn Storage, folder: &Path) -> Result<ReplicaIdentity, FolderError> {
    if let Some(identity) = read_identity(storage, folder)? {
        return Ok(identity);
    }
    let identity = make_identity();
    write_identity(storage, folder, &identity, FORMAT)?;
    Ok(identity)
}

/// From now on no older binlogd touches the folder of a source: it is that of a node of a quorum, and an older one, which does not know
/// quorums, would acknowledge alone. Not taken back: what the node has promised stays.
///
/// # Errors
/// When `replica.toml` cannot be read or written.
pub fn of_a_quorum(
    storage: &dyn Storage,
    folder: &Path,
    identity: &ReplicaIdentity,
) -> Result<(), FolderError> {
    let path = folder.join(REPLICA_FILE);
    let text = storage.read_to_string(&path).map_err(FolderError::io("read", &path))?;
    match text.contains(&format_line(QUORUM)) {
        true => Ok(()),
        false => write_identity(storage, folder, identity, QUORUM),
    }
}

fn format_line(format: u32) -> String {
    format!("\nformat = {format}\n")
}

fn write_identity(
    storage: &dyn Storage,
    folder: &Path,
    identity: &ReplicaIdentity,
    format: u32,
) -> Result<(), FolderError> {
    let path = folder.join(REPLICA_FILE);
    let text = format!(
        "# Who binlogd is to this source. Made once; keep it, so that the source recognises a reconnect.\n\
         # An older binlogd must not touch a folder of a later format: docs/formats.md.\n\
         replica_uuid = \"{}\"\nserver_id = {}{}",
        identity.replica_uuid,
        identity.server_id,
        format_line(format)
    );
    replace_file(storage, &path, text.as_bytes()).map_err(FolderError::io("write", &path))
}

/// The text becomes part of a statement to the source, so it must be what it claims to be.
fn check(identity: ReplicaIdentity) -> Result<ReplicaIdentity, FormatError> {
    if identity.replica_uuid.parse::<Uuid>().is_err() {
        return Err(FormatError::Wrong("replica_uuid is not a UUID".to_owned()));
    }
    if identity.server_id == 0 {
        return Err(FormatError::Wrong("server_id must be 1 to 4294967295".to_owned()));
    }
    Ok(identity)
}

fn make_identity() -> ReplicaIdentity {
    let uuid = uuid::Uuid::new_v4();
    // Above 2^31 a clash with a number that a person chose is unlikely.
    let server_id = (uuid.as_u128() as u32) | 0x8000_0000;
    ReplicaIdentity { replica_uuid: uuid.to_string(), server_id }
}

/// The folders of sources under a data folder, by name: those that hold an identity, a lock or a timeline.
///
/// # Errors
/// When the folder cannot be read.
pub fn source_folders(storage: &dyn Storage, data_dir: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in storage.list(data_dir)? {
        let Ok(name) = entry.name.into_string() else { continue };
        let path = data_dir.join(&name);
        if is_source_folder(storage, &path) {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a folder is that of a source.
pub fn is_source_folder(storage: &dyn Storage, path: &Path) -> bool {
    let is_file = |name| storage.look(&path.join(name)).is_ok_and(|found| found.kind == Kind::File);
    [LOCK_FILE, REPLICA_FILE].into_iter().any(is_file)
        || by_number(storage, path).is_ok_and(|timelines| !timelines.is_empty())
}

/// The timeline that is written, where that is not the newest one: the content of [`PRESENT_FILE`].
#[derive(Debug, Serialize, Deserialize)]
struct Present {
    /// Folder name.
    timeline: String,
    /// Folder name of the newest timeline by then. The file means nothing any more when another one is the newest.
    newest: String,
}

/// Makes an older timeline the one that is written, from now on and after a restart, until a new one begins.
///
/// # Errors
/// As the operating system says.
pub fn make_present(storage: &dyn Storage, source_folder: &Path, timeline: &str) -> io::Result<()> {
    let newest = by_number(storage, source_folder)?.pop().unwrap_or_default();
    let newest = newest.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text =
        toml::to_string(&Present { timeline: timeline.to_owned(), newest }).map_err(io::Error::other)?;
    let text = format!("# The server of an older timeline is back and goes on with it.\n{text}");
    replace_file(storage, &source_folder.join(PRESENT_FILE), text.as_bytes())
}

/// The timeline folders under a source's folder, in the order in which they were begun; the one that is written comes last,
/// which is the newest unless the server of an older one is back and [goes on with it](make_present).
///
/// # Errors
/// When the folder cannot be read.
pub fn timelines(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = by_number(storage, source_folder)?;
    let path = source_folder.join(PRESENT_FILE);
    let named =
        |kind, error: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {error}", path.display()));
    let present: Present = match storage.read_to_string(&path) {
        Ok(text) => read_toml(&text).map_err(|error| named(io::ErrorKind::InvalidData, &error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(named(error.kind(), &error)),
    };
    if found.last().is_some_and(|newest| newest.ends_with(&present.newest)) {
        let at = found.iter().position(|folder| folder.ends_with(&present.timeline));
        let missing =
            || named(io::ErrorKind::NotFound, &format!("there is no timeline {}", present.timeline));
        let folder = found.remove(at.ok_or_else(missing)?);
        found.push(folder);
    }
    Ok(found)
}

/// The timeline folders in the order of their numbers: `NNNN-…`.
///
/// # Errors
/// When the folder cannot be read.
pub fn by_number(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for Entry { name, kind } in storage.list(source_folder)? {
        if let Some(number) = name.to_str().and_then(timeline_number)
            && kind == Kind::Folder
        {
            found.push((number, source_folder.join(name)));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The number at the front of a timeline folder's name.
pub fn timeline_number(name: &str) -> Option<u32> {
    let (number, rest) = name.split_once('-')?;
    (number.len() >= 4 && !rest.is_empty()).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::storage::{BackgroundSync, Found, ReadFile, StorageFile};
    use super::*;
    use crate::storage::posix::PosixStorage;

    #[test]
    fn the_identity_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let first = SourceFolder::open(&PosixStorage, dir.path(), "a").unwrap().identity;
        let again = SourceFolder::open(&PosixStorage, dir.path(), "a").unwrap().identity;
        let other = SourceFolder::open(&PosixStorage, dir.path(), "b").unwrap().identity;
        assert_eq!(first, again);
        assert_ne!(first.replica_uuid, other.replica_uuid);
        // An older version, which knows none later than 1, refuses the folder of a node of a quorum.
        let folder = dir.path().join("a");
        of_a_quorum(&PosixStorage, &folder, &first).unwrap();
        of_a_quorum(&PosixStorage, &folder, &first).unwrap();
        let text = std::fs::read_to_string(folder.join(REPLICA_FILE)).unwrap();
        assert!(text.ends_with("\nformat = 2\n") && text.matches("format = ").count() == 1, "{text}");
        assert_eq!(SourceFolder::open(&PosixStorage, dir.path(), "a").unwrap().identity, first);
    }

    /// A disk that gives EIO for a folder would do it too, and used to be told as "File exists".
    #[test]
    fn a_folder_that_cannot_be_looked_at_is_not_taken_for_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("loop");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let error = make_folder(&PosixStorage, &path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot look at {}: ", path.display())), "{error}");
        assert!(error.contains("symbolic links"), "{error}");
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = make_folder(&PosixStorage, &file).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot create {}: a folder is needed, and a file has that name", file.display())
        );
    }

    /// A disk on which no name can be synced, for this reason.
    #[derive(Debug)]
    struct Unsyncable(io::ErrorKind);

    impl Storage for Unsyncable {
        fn sync_dir(&self, _: &Path) -> io::Result<()> {
            Err(self.0.into())
        }
        fn look(&self, path: &Path) -> io::Result<Found> {
            PosixStorage.look(path)
        }
        fn create_dir(&self, path: &Path) -> io::Result<()> {
            PosixStorage.create_dir(path)
        }
        fn create(&self, _: &Path) -> io::Result<Box<dyn StorageFile>> {
            unreachable!()
        }
        fn open(&self, _: &Path) -> io::Result<Box<dyn StorageFile>> {
            unreachable!()
        }
        fn open_synced(&self, _: &Path) -> io::Result<Box<dyn StorageFile>> {
            unreachable!()
        }
        fn remove_file(&self, _: &Path) -> io::Result<()> {
            unreachable!()
        }
        fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
            unreachable!()
        }
        fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
            unreachable!()
        }
        fn read(&self, _: &Path) -> io::Result<Vec<u8>> {
            unreachable!()
        }
        fn open_read(&self, _: &Path) -> io::Result<Box<dyn ReadFile>> {
            unreachable!()
        }
        fn lock(&self, _: &Path) -> io::Result<Lock> {
            unreachable!()
        }
        fn beside(&self) -> Arc<dyn Storage> {
            unreachable!()
        }
        fn background_sync(&self) -> Box<dyn BackgroundSync> {
            unreachable!()
        }
    }

    /// The data folder of a container or a unit whose root is mounted read-only.
    #[test]
    fn a_folder_that_is_there_needs_nothing_of_a_read_only_one_above() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied] {
            std::fs::create_dir(&path).unwrap();
            make_folder(&Unsyncable(kind), &path).unwrap();
            std::fs::remove_dir(&path).unwrap();
            assert_eq!(make_folder(&Unsyncable(kind), &path).unwrap_err().kind(), kind, "one that it makes");
            std::fs::remove_dir(&path).unwrap();
        }
        std::fs::create_dir(&path).unwrap();
        let error = make_folder(&Unsyncable(io::ErrorKind::Other), &path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
    }

    #[test]
    fn a_second_holder_is_told_who_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let _held = SourceFolder::open(&PosixStorage, dir.path(), "a").unwrap();
        let error = SourceFolder::open(&PosixStorage, dir.path(), "a").unwrap_err().to_string();
        assert!(error.contains("in use by another binlogd"), "{error}");
        assert!(error.contains(&std::process::id().to_string()), "{error}");
    }

    #[test]
    fn an_older_timeline_is_the_present_one_until_a_new_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| std::fs::create_dir(dir.path().join(name)).unwrap();
        let names = || {
            let folders = timelines(&PosixStorage, dir.path()).unwrap();
            let name = |folder: &PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
            folders.iter().map(name).collect::<Vec<_>>()
        };
        ["0001-a", "0002-b"].iter().for_each(|name| make(name));
        make_present(&PosixStorage, dir.path(), "0001-a").unwrap();
        assert_eq!(names(), ["0002-b", "0001-a"]);
        make("0003-c");
        assert_eq!(names(), ["0001-a", "0002-b", "0003-c"]);
        make_present(&PosixStorage, dir.path(), "0002-b").unwrap();
        assert_eq!(names(), ["0001-a", "0003-c", "0002-b"]);
        std::fs::remove_dir(dir.path().join("0002-b")).unwrap();
        let error = timelines(&PosixStorage, dir.path()).unwrap_err().to_string();
        assert!(error.contains("present.toml") && error.contains("0002-b"), "{error}");
    }

    #[test]
    fn timelines_are_in_the_order_of_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["0002-b", "0010-a", "0001-c", "10000-x", "lost+found", "12-short"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let names: Vec<_> = timelines(&PosixStorage, dir.path())
            .unwrap()
            .iter()
            .map(|p| p.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["0001-c", "0002-b", "0010-a", "10000-x"]);
    }
}

//! The memory of a node in its file, for the node itself and for who decides about it while no binlogd runs.

use super::error::NodeError;
use crate::memory::Memory;
use crate::words::of_record;
use binlog::storage::Storage;
use codec::gtid::GtidState;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the memory in a source's folder.
pub const QUORUM_FILE: &str = "quorum.toml";

/// Name under which the memory of a node stays that has left its quorum.
const LEFT_FILE: &str = "quorum.toml.left";

/// The memory in a source's folder, and what was kept of its epoch; `None` when there is none: it is no node, or one that is blank.
pub(super) fn read(
    storage: &dyn Storage,
    folder: &Path,
) -> Result<Option<(Memory, Option<GtidState>)>, NodeError> {
    let path = folder.join(QUORUM_FILE);
    match storage.read_to_string(&path) {
        Ok(text) => of_record(&text).map(Some).map_err(|error| NodeError::Damaged { path, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NodeError::Io { action: "read", path, error }),
    }
}

/// What the node of a source's folder must not forget; `None` when the folder is of no node.
///
/// # Errors
/// When that cannot be read, or is damaged.
pub fn memory_in(storage: &dyn Storage, folder: &Path) -> Result<Option<Memory>, NodeError> {
    Ok(read(storage, folder)?.map(|(memory, _)| memory))
}

/// The node leaves its quorum for good: its memory is set aside, and it is blank from now on. Nobody may run a binlogd on the folder
/// meanwhile. Returns where the memory is now; an older one there is replaced.
///
/// # Errors
/// When the file system refuses.
pub fn leave(storage: &dyn Storage, folder: &Path) -> Result<PathBuf, NodeError> {
    let (path, aside) = (folder.join(QUORUM_FILE), folder.join(LEFT_FILE));
    let moved = storage.rename(&path, &aside).and_then(|()| storage.sync_dir(folder));
    moved.map_err(|error| NodeError::Io { action: "rename", path, error })?;
    Ok(aside)
}

//! Why the copy cannot be opened.

use binlog::folder::FolderError;
use binlog::is_full_disk;
use binlog::storage::failed::opening;
use quorum::NodeError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why the copy cannot be opened. The message names the path.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The source's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal in it.
    #[error("{}", opening("the journal in", path, error))]
    Journal {
        /// The source's folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A timeline in it.
    #[error("{}", opening("the timeline", path, error))]
    Timeline {
        /// Its folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// What a node of a quorum must not forget.
    #[error("the quorum: {0}")]
    Node(#[from] NodeError),
    /// A node of a quorum whose configuration names none: it would acknowledge what it alone has.
    #[error(
        "{} is the folder of a node of a quorum, and the configuration has no quorum: binlogd would acknowledge what this node alone has. Put \
         quorum back; or, to go on without the other nodes for good: binlogd leave-quorum",
        path.display()
    )]
    OfQuorum {
        /// The source's folder.
        path: PathBuf,
    },
}

impl CopyError {
    /// True when space may return by itself.
    pub fn is_full_disk(&self) -> bool {
        let (CopyError::Folder(FolderError::Io { error, .. })
        | CopyError::Journal { error, .. }
        | CopyError::Timeline { error, .. }
        | CopyError::Node(NodeError::Io { error, .. })) = self
        else {
            return false;
        };
        is_full_disk(error)
    }

    /// True when trying again cannot help before somebody has put right what is there: files that make no sense or that
    /// are missing, a folder that is in use.
    pub fn needs_operator(&self) -> bool {
        let error = match self {
            CopyError::Folder(FolderError::Io { error, .. })
            | CopyError::Journal { error, .. }
            | CopyError::Timeline { error, .. }
            | CopyError::Node(NodeError::Io { error, .. }) => error,
            CopyError::Node(NodeError::Damaged { .. }) | CopyError::OfQuorum { .. } => return true,
            CopyError::Node(_) => return false,
            CopyError::Folder(FolderError::Locked { .. } | FolderError::Replica { .. }) => return true,
        };
        matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound)
    }

    /// True when another process holds the folder.
    pub fn is_locked(&self) -> bool {
        matches!(self, CopyError::Folder(FolderError::Locked { .. }))
    }
}

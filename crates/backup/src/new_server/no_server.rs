//! Why there is no new server.

use repair::Event;
use repair::restore::NoRestore;
use std::io;
use wire::WireError;

/// Who hears how far it is.
pub type Hear<'a> = dyn FnMut(Event<'_>) + 'a;

/// Why there is no server. What was begun of it stays in its folder, which says that it is not whole.
#[derive(Debug, thiserror::Error)]
pub enum NoServer {
    /// A program cannot be run, or is another one than the backup needs; in words.
    #[error("{0}")]
    Program(String),
    /// The folder cannot be used; in words.
    #[error("{0}")]
    Folder(String),
    /// It cannot be done; in words.
    #[error("{0}")]
    Refused(String),
    /// The backup cannot be read.
    #[error("the backup cannot be read: {0}")]
    Backup(io::Error),
    /// A tool has failed.
    #[error("{during}: {said}")]
    Tool {
        /// At what.
        during: &'static str,
        /// What the tool said.
        said: String,
    },
    /// The server has ended, or does not end.
    #[error("{during}: {said}")]
    Ended {
        /// At what.
        during: &'static str,
        /// How, and what is in its log.
        said: String,
    },
    /// The server does not answer.
    #[error("the new server: {0}")]
    Server(#[from] WireError),
    /// The log does not lead it to the point.
    #[error(transparent)]
    Restore(#[from] NoRestore),
    /// Somebody has ended it.
    #[error("ended by a signal; the folder holds a server that is not whole: remove it, and begin again")]
    Interrupted,
}

//! What is asked for, and why it was not done.

use archive::chain::ChainError;
use archive::chain::backup::Tool;
use archive::writer::stream::StreamError;
use std::io;
use std::time::Duration;
use wire::{ConnectOptions, WireError};

/// How long an answer may take: the definitions of a server with a hundred thousand tables.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// What is to be backed up, and how.
#[derive(Debug)]
pub struct Order {
    /// The server.
    pub server: ConnectOptions,
    /// The tool; `None` for that of the server's kind.
    pub tool: Option<Tool>,
    /// Another program of its kind, or of another place.
    pub program: Option<std::path::PathBuf>,
    /// What is added to its arguments.
    pub arguments: Vec<String>,
    /// Where a clone stands until it is in the store: a folder of the server's machine.
    pub clone_dir: Option<std::path::PathBuf>,
    /// The point, where a command does not tell it in its stream.
    pub point: Option<String>,
}

/// Why no backup was recorded. What was uploaded of it is named by nothing.
#[derive(Debug, thiserror::Error)]
pub enum NoBackup {
    /// The server does not answer.
    #[error("the server: {0}")]
    Server(#[from] WireError),
    /// The archive does not.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The stream did not get into the store.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The tool cannot be run.
    #[error("{program} cannot be run: {error}")]
    NotRun {
        /// Which.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The tool failed, or wrote a part.
    #[error("{0}")]
    Tool(String),
    /// It would be no backup of the source at its point; in words.
    #[error("{0}")]
    Refused(String),
}

//! What servers, loads, receivers and scenes are given of the run that they are part of.

use rig::interrupt::Interrupt;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What every scene needs.
#[derive(Debug, Clone)]
pub struct Lab {
    /// binlogd's binary, built for release.
    pub binlogd: PathBuf,
    /// `scripts/servers`.
    pub scripts: PathBuf,
    /// Folder on the disk to measure; scenes make temporary folders in it.
    pub dir: PathBuf,
    /// Folder of the journals of what was changed on the user's servers; it outlives the run, and `binlogd-lab restore`
    /// finds it again.
    pub journals: PathBuf,
    /// Ctrl-C.
    pub interrupt: Interrupt,
    /// Servers of the user's that may be used although they hold other data, each as `host:port`.
    pub allowed_servers: Vec<String>,
    /// Set when a server of the user's could not be set back.
    pub unrestored: Arc<AtomicBool>,
    /// Says what happens now, without disturbing the progress bar.
    pub say: fn(&str),
}

/// Why a scene cannot be set up on this machine, such as a file system that only root may mount:
/// `return Err(Skip("…".to_owned()).into())`. Context may be added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

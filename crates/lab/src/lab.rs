//! What servers, loads, receivers and scenes are given of the run that they are part of.

use crate::apart::Apart;
use rig::interrupt::Interrupt;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
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
    /// What is set apart of it. Its folders are whole paths.
    pub apart: Apart,
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

impl Lab {
    /// The folder for the source's files.
    pub fn source_dir(&self) -> &Path {
        self.apart.source_dir.as_ref().unwrap_or(&self.dir)
    }

    /// All folders that scenes make folders in, each once.
    pub fn dirs(&self) -> BTreeSet<&Path> {
        let apart = self.apart.disks().map(|(_, dir)| dir);
        apart.chain([self.dir.as_path()]).collect()
    }
}

/// When this is set in the environment, what a machine lacks is an error, as it is in the tests.
pub const NO_SKIPS: &str = "BINLOGD_NO_SKIPS";

/// Why a scene is left out. Context may be added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    why: String,
    may_always: bool,
}

impl Skip {
    /// Something is missing on this machine that somebody could install or allow.
    pub fn lacks(why: impl Into<String>) -> Skip {
        Skip { why: why.into(), may_always: false }
    }

    /// It cannot be otherwise here, so it is left out also where [`NO_SKIPS`] is set.
    pub fn by_nature(why: impl Into<String>) -> Skip {
        Skip { why: why.into(), may_always: true }
    }

    /// Whether the run may go on without the scene.
    pub fn is_allowed(&self) -> bool {
        self.may_always || std::env::var_os(NO_SKIPS).is_none()
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Skip {}

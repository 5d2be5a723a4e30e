//! What servers, loads, receivers and scenes are given of the run that they are part of.

use crate::apart::Apart;
use crate::interrupt::Interrupt;
use crate::machine::cpus::{Pinned, Role};
use crate::machine::link::{Entered, Link};
pub use crate::results::skip::{NO_SKIPS, Skip};
use std::collections::BTreeSet;
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
    /// The link between source and receivers while a scene is measured, where one is asked for.
    pub link: Option<Arc<Link>>,
    /// Folder of the journals of what was changed on the user's servers and on this machine; it outlives the run,
    /// and `binlogd-lab restore` finds it again.
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

/// While it lives, what this thread starts is where a role is to be.
#[derive(Debug)]
pub struct Placed {
    _pinned: Pinned,
    _entered: Entered,
}

impl Lab {
    /// The same with the link that was asked for, which goes when nobody has it any more.
    ///
    /// # Errors
    /// [`Skip`] where there can be none; see [`Link::up`].
    pub fn linked(&self) -> anyhow::Result<Lab> {
        let link = self.apart.network.as_ref().map(Link::up).transpose()?;
        Ok(Lab { link: link.map(Arc::new), ..self.clone() })
    }

    /// Puts this thread where receivers are, so that what it connects to is theirs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enter_link(&self) -> anyhow::Result<Entered> {
        self.link.as_ref().map_or_else(|| Ok(Entered::nowhere()), |link| link.enter())
    }

    /// Lets what this thread starts from now on be where the role is to be: on its processors, and behind the link.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn place(&self, role: Role) -> anyhow::Result<Placed> {
        let entered = if role == Role::Receiver { self.enter_link()? } else { Entered::nowhere() };
        Ok(Placed { _pinned: self.apart.cpus.pin(role)?, _entered: entered })
    }

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

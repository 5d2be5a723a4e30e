//! The folder of a new server: what stands in it while it is made, and to whom it belongs.

use super::no_server::NoServer;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};

/// While it is there the server is not whole.
const MARK: &str = "UNFINISHED";

/// The user of the servers' packages.
const USER: &str = "mysql";

/// A path of a socket must be shorter than this, in bytes: `sun_path` of unix(7), and the servers make one beside it.
const SOCKET_BYTES_MAX: usize = 100;

/// The folder.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
    /// Of the user that the server runs as, where that is another one.
    pub(super) owner: Option<(u32, u32)>,
}

impl Folder {
    /// Takes an empty folder, or one that is not there, and marks it as unfinished.
    ///
    /// # Errors
    /// [`NoServer::Folder`] when there is something in it, or it cannot be written.
    pub fn take(root: &Path) -> Result<Folder, NoServer> {
        let failed = |error: io::Error| NoServer::Folder(format!("{}: {error}", root.display()));
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(root).map_err(failed)?;
        let root = root.canonicalize().map_err(failed)?;
        let shown = root.display();
        if root.join(MARK).exists() {
            return Err(NoServer::Folder(format!(
                "{shown} has a server that is not whole: a restore was ended there. Nothing of it is needed: remove the folder, and begin again"
            )));
        }
        if fs::read_dir(&root).map_err(failed)?.next().is_some() {
            return Err(NoServer::Folder(format!(
                "{shown} is not empty: name an empty folder, or one that is not there yet"
            )));
        }
        if root.join("mysqld.sock").as_os_str().len() > SOCKET_BYTES_MAX {
            return Err(NoServer::Folder(format!(
                "{shown} has too long a name: the path of a socket has at most {SOCKET_BYTES_MAX} bytes"
            )));
        }
        let owner = if rustix::process::geteuid().is_root() { user() } else { None };
        // The server's own user must get there.
        let owner = owner.filter(|_| root.ancestors().skip(1).all(is_open));
        let folder = Folder { root, owner };
        folder
            .write(MARK, "This server is not whole until binlogd restore --new has ended. Do not start it.\n")
            .map_err(failed)?;
        for name in ["data", "tmp"] {
            builder.create(folder.root.join(name)).map_err(failed)?;
        }
        folder.hand_over().map_err(failed)?;
        Ok(folder)
    }

    /// The whole of it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The server's data folder.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A small file that nobody else may read.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.root.join(name);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        self.give(&path)?;
        Ok(path)
    }

    /// All that is in it belongs to the server's user from here on.
    pub(super) fn hand_over(&self) -> io::Result<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        let mut open = vec![self.root.clone()];
        while let Some(path) = open.pop() {
            if path.symlink_metadata()?.is_dir() {
                for entry in fs::read_dir(&path)? {
                    open.push(entry?.path());
                }
            }
            self.give(&path)?;
        }
        Ok(())
    }

    fn give(&self, path: &Path) -> io::Result<()> {
        match self.owner {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }

    /// Removes what was for the time being.
    pub(super) fn finish(&self) -> io::Result<()> {
        for name in ["client.cnf", "begin.sql"] {
            gone(fs::remove_file(self.root.join(name)))?;
        }
        gone(fs::remove_dir_all(self.root.join("tmp")))?;
        // Last: until here it is not whole.
        fs::remove_file(self.root.join(MARK))
    }
}

/// The folder for what is fetched of the log.
#[derive(Debug)]
pub struct Fetched {
    folder: PathBuf,
    /// Nobody named it, so it goes.
    is_ours: bool,
}

impl Fetched {
    /// The one that was named, or one beside the folder of the new server.
    pub fn of(named: Option<&Path>, root: &Path) -> Fetched {
        let mut beside = root.as_os_str().to_owned();
        beside.push(".fetched");
        Fetched { folder: named.map_or_else(|| beside.into(), Path::to_owned), is_ours: named.is_none() }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        if self.is_ours {
            // What stays serves the next run.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Whether everybody gets through a folder.
fn is_open(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o001 != 0)
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Numbers of the user and the group of the servers' packages; `None` where there is none.
fn user() -> Option<(u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    let line =
        text.lines().find_map(|line| line.strip_prefix(USER)?.strip_prefix(':').map(ToOwned::to_owned))?;
    let mut fields = line.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

//! Files that did not exist before: whole or not at all, and never over another one.

#![allow(clippy::disallowed_methods, reason = "the operator's files, before there is a copy")]

use super::files::Owner;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// binlogd, and nobody else.
    Binlogd,
    /// Whoever may enter its folder.
    All,
}

/// Makes a file with its folder. It appears under its name when all of it is on disk.
///
/// # Errors
/// When the name is taken, or the file cannot be written.
pub fn write_new(path: &Path, text: &str, readers: Readers, owner: Option<Owner>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(folder, owner)?;
    let unfinished = unfinished(path)?;
    // What an interrupted run has left.
    let _ = std::fs::remove_file(&unfinished);
    let mode = if readers == Readers::Binlogd { 0o400 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    let written = (|| {
        if let (Some(owner), Readers::Binlogd) = (owner, readers) {
            fchown(&file, Some(owner.uid), Some(owner.gid))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // Unlike a rename it fails where the name is taken.
        std::fs::hard_link(&unfinished, path)
    })();
    std::fs::remove_file(&unfinished)?;
    written?;
    File::open(folder)?.sync_all()
}

/// Makes the folder of the copies, which only binlogd may enter.
///
/// # Errors
/// When it cannot be made.
pub fn make_data_dir(folder: &Path, owner: Option<Owner>) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        make_folder(parent, owner)?;
    }
    DirBuilder::new().mode(0o700).create(folder)?;
    match owner {
        Some(owner) => std::os::unix::fs::chown(folder, Some(owner.uid), Some(owner.gid)),
        None => Ok(()),
    }
}

/// Gives a file another name, which must be free.
///
/// # Errors
/// When the name is taken, or the file cannot be renamed.
pub fn put_aside(path: &Path, aside: &Path) -> io::Result<()> {
    std::fs::hard_link(path, aside)?;
    std::fs::remove_file(path)
}

/// A folder of configuration: binlogd may enter it, its owner may change it, and nobody else sees it.
fn make_folder(folder: &Path, owner: Option<Owner>) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent, owner)?;
    }
    let mode = if owner.is_some() { 0o750 } else { 0o700 };
    DirBuilder::new().mode(mode).create(folder)?;
    match owner {
        Some(owner) => std::os::unix::fs::chown(folder, None, Some(owner.gid)),
        None => Ok(()),
    }
}

fn unfinished(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| io::Error::other("no file's name"))?;
    let mut name = name.to_owned();
    name.push(".unfinished");
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_whole_private_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/password");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(unfinished(&path).unwrap(), "half").unwrap();
        write_new(&path, "secret\n", Readers::Binlogd, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400);
        let error = write_new(&path, "other\n", Readers::All, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret\n");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn folders_are_made_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("etc/binlogd.toml");
        write_new(&path, "a", Readers::All, None).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path) & 0o600, 0o600);
        let data = folder.path().join("lib/data");
        make_data_dir(&data, None).unwrap();
        assert_eq!(mode(&data), 0o700);
        let aside = folder.path().join("etc/old");
        put_aside(&path, &aside).unwrap();
        assert!(!path.exists() && aside.exists());
        std::fs::write(&path, "b").unwrap();
        assert!(put_aside(&path, &aside).is_err() && path.exists());
    }
}

//! `binlog.index`: the names of a timeline's files in order.

use crate::storage::Storage;
use crate::storage::failed::during;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Name of the index in a timeline's folder.
pub const INDEX_FILE: &str = "binlog.index";

/// What becomes the index, while a purge writes it.
const BESIDE_FILE: &str = "binlog.index.purge.tmp";

/// Reads the names in order; empty when there is no index yet.
///
/// # Errors
/// When the file is there but cannot be read.
pub fn read(storage: &dyn Storage, folder: &Path) -> io::Result<Vec<String>> {
    match storage.read(&folder.join(INDEX_FILE)) {
        // Damage in it is no reason to stop: a name that is none names no file, and the files are the truth.
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes)
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(during("read", &folder.join(INDEX_FILE))(error)),
    }
}

/// Replaces the index as a whole, so that a crash leaves either the old or the new one.
///
/// # Errors
/// As the operating system says.
pub fn write(storage: &dyn Storage, folder: &Path, names: &[String]) -> io::Result<()> {
    let mut text = names.join("\n");
    text.push('\n');
    replace_file(storage, &folder.join(INDEX_FILE), text.as_bytes())
}

/// As [`write`], unless the index says so already, for who is not the timeline's writer. The temporary file is another one: if
/// the writer takes the timeline up in this very moment, neither renames what the other one has half written.
///
/// # Errors
/// As the operating system says.
pub(crate) fn write_beside(storage: &dyn Storage, folder: &Path, names: &[String]) -> io::Result<()> {
    if read(storage, folder)? == names {
        return Ok(());
    }
    let text = names.iter().map(|name| format!("{name}\n")).collect::<String>();
    replace_through(
        storage,
        &folder.join(INDEX_FILE),
        &folder.join(BESIDE_FILE),
        text.as_bytes(),
        Lasting::Synced,
    )
}

/// Writes a small file so that after a crash it holds all of the old or all of the new content: a temporary file,
/// synced, takes the name, and the folder is synced.
///
/// # Errors
/// As the operating system says.
pub fn replace_file(storage: &dyn Storage, path: &Path, content: &[u8]) -> io::Result<()> {
    replace_through(storage, path, &temporary_name(path), content, Lasting::Synced)
}

/// As [`replace_file`], for what is derived and has a checksum: nothing is synced, so a crash may leave anything under the name.
///
/// # Errors
/// As the operating system says.
pub(crate) fn replace_derived(storage: &dyn Storage, path: &Path, content: &[u8]) -> io::Result<()> {
    replace_through(storage, path, &temporary_name(path), content, Lasting::Derived)
}

/// Whether what is written must outlive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasting {
    Synced,
    Derived,
}

fn replace_through(
    storage: &dyn Storage,
    path: &Path,
    temporary: &Path,
    content: &[u8],
    lasting: Lasting,
) -> io::Result<()> {
    match storage.remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {} // One that a crash left behind is worth nothing.
    }
    let file = storage.create(temporary)?;
    file.write_all_at(&mut [IoSlice::new(content)], 0)?;
    if lasting == Lasting::Synced {
        // The bytes first, then the name: otherwise a crash could leave an empty file under the good name.
        file.sync_data()?;
    }
    drop(file); // One descriptor at a time is enough.
    storage.rename(temporary, path)?;
    if lasting == Lasting::Derived {
        return Ok(());
    }
    storage.sync_dir(path.parent().unwrap_or(Path::new(".")))
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(&PosixStorage, dir.path()).unwrap().is_empty());
        let names = vec!["mysql-bin.000001".to_owned(), "mysql-bin.000002".to_owned()];
        write(&PosixStorage, dir.path(), &names).unwrap();
        assert_eq!(read(&PosixStorage, dir.path()).unwrap(), names);
        std::fs::write(dir.path().join("binlog.index.tmp"), "left by a crash").unwrap();
        write(&PosixStorage, dir.path(), &names[..1]).unwrap();
        assert_eq!(read(&PosixStorage, dir.path()).unwrap(), names[..1]);
    }
}

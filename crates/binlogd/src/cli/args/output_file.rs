//! A file that a verb writes: of nobody else's eyes, under another name until it is whole, and never over another.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Refuses one that is there already.
pub(in crate::cli) fn check(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Err(format!("--output {}: it exists already, and nothing is written over", path.display())),
        false => Ok(()),
    }
}

/// Writes it; `failed` makes an error of one of the disk.
pub(in crate::cli) fn whole_file<E>(
    path: &Path,
    failed: fn(io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let named =
        |error: io::Error| failed(io::Error::new(error.kind(), format!("{}: {error}", partial.display())));
    // It holds what the tables hold.
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.write(true).create(true).truncate(true).open(&partial).map_err(named)?;
    let written = write(&mut file).and_then(|()| {
        file.sync_all().map_err(named)?;
        // A link, unlike a rename, does not take the place of a file that came meanwhile.
        fs::hard_link(&partial, path).map_err(named)
    });
    let removed = fs::remove_file(&partial).map_err(named);
    written.and(removed)
}

//! The folder of a drill: of one at a time, and nothing stays in it.

use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is in the folder is a drill's as long as this is there, and may go. Locked as long as the drill runs.
const MARK: &str = "UNFINISHED";

/// See [the module](self). It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Work {
    root: PathBuf,
    /// The folder around it, where that was made for it.
    made: Option<PathBuf>,
    _locked: File,
}

impl Work {
    /// Takes `dir/drill-<source>`; what a drill that was killed has left there is removed.
    ///
    /// # Errors
    /// In words: another drill of the source runs, somebody else's files are in it, or it cannot be written.
    pub(super) fn take(dir: &Path, source: &str) -> Result<Work, String> {
        let failed = |error: io::Error| format!("{}: {error}", dir.display());
        let made = (!dir.exists()).then(|| dir.to_owned());
        // The server's user gets through it.
        DirBuilder::new().recursive(true).mode(0o711).create(dir).map_err(failed)?;
        let root = dir.canonicalize().map_err(failed)?.join(format!("drill-{source}"));
        DirBuilder::new().recursive(true).mode(0o711).create(&root).map_err(failed)?;
        let mark = root.join(MARK);
        if !mark.exists() && fs::read_dir(&root).map_err(failed)?.next().is_some() {
            return Err(format!(
                "{} has files of somebody else in it: name another folder with --work",
                root.display()
            ));
        }
        let locked = OpenOptions::new().append(true).create(true).mode(0o600).open(&mark).map_err(failed)?;
        flock(&locked, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            format!("another drill of {source} is under way in {}: wait for its end", root.display())
        })?;
        let work = Work { root, made, _locked: locked };
        work.clear().map_err(failed)?;
        Ok(work)
    }

    /// Something in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A folder in it that is not there: what was there is gone.
    ///
    /// # Errors
    /// When that cannot be removed.
    pub(super) fn without(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        Ok(path)
    }

    /// Removes all that is in it but the mark.
    pub(super) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false if entry.file_name() == MARK => {}
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What cannot be removed now the next drill removes, by its mark.
        let _ = self.clear().and_then(|()| fs::remove_dir_all(&self.root));
        if let Some(made) = &self.made {
            let _ = fs::remove_dir(made);
        }
    }
}

/// Bytes in the files of people's schemas in a server's data folder.
pub(super) fn data_bytes(data: &Path) -> u64 {
    let is_of_people = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        // Those of InnoDB itself begin so; a name of people's has such a character written otherwise.
        let is_of_server = name.to_string_lossy().starts_with('#');
        path.is_dir()
            && !is_of_server
            && !["mysql", "sys", "performance_schema"].iter().any(|other| name == *other)
    };
    let mut open: Vec<PathBuf> = entries(data).into_iter().filter(is_of_people).collect();
    let mut bytes = 0;
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(entries(&path).into_iter().filter(|path| !path.is_symlink())),
            false => bytes += path.metadata().map_or(0, |file| file.len()),
        }
    }
    bytes
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_drill_left_goes_and_what_others_have_stays() {
        let dir = tempfile::tempdir().unwrap();
        let around = dir.path().join("drills");
        let root = around.join("drill-shop");
        fs::create_dir_all(root.join("server/data")).unwrap();
        assert!(Work::take(&around, "shop").unwrap_err().contains("of somebody else"));
        fs::write(root.join(MARK), "").unwrap();
        let work = Work::take(&around, "shop").unwrap();
        assert!(!root.join("server").exists());
        assert!(Work::take(&around, "shop").unwrap_err().contains("another drill of shop"));
        drop(work);
        assert!(!root.exists() && around.exists(), "it was there before");
        drop(Work::take(&dir.path().join("new"), "shop").unwrap());
        assert!(!dir.path().join("new").exists());
    }
}

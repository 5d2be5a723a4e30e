//! What a study changes of this machine itself: limits of disks, the kernel's limits of dirty pages. Each change is in a
//! file, durable, before it is made; it is set back at the end, by the next run, or by `binlogd-lab restore`.

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How the name of such a file ends. It lies beside the journals of servers.
const SUFFIX: &str = ".machine";

/// A file of the kernel's that is written, and how that is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The kernel's file.
    pub file: PathBuf,
    /// What is written. A line of the file is this for as long as nobody else has changed it.
    pub new: String,
    /// The file by which that is undone, most often the same.
    pub back_file: PathBuf,
    /// What is written there to undo it.
    pub back: String,
}

impl Change {
    /// Writes it back where it is still in force; what somebody else has set meanwhile stays, and so does a machine that
    /// was started anew. Tells whether there was something to undo.
    fn undo(&self) -> anyhow::Result<bool> {
        let now = std::fs::read_to_string(&self.file).unwrap_or_default();
        if !now.lines().any(|line| line.trim() == self.new) {
            return Ok(false);
        }
        std::fs::write(&self.back_file, &self.back)
            .with_context(|| format!("writing {} to {}", self.back, self.back_file.display()))?;
        Ok(true)
    }
}

/// Changes of this machine. Dropping them undoes them.
#[derive(Debug)]
pub struct MachineChanges {
    path: PathBuf,
    /// Locked for as long as the changes are wanted.
    file: File,
    changes: Vec<Change>,
    say: fn(&str),
}

impl MachineChanges {
    /// Begins a file of changes in the folder of journals. Nothing is changed yet.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(journals: &Path, say: fn(&str)) -> anyhow::Result<MachineChanges> {
        std::fs::create_dir_all(journals)
            .with_context(|| format!("cannot make the folder {}", journals.display()))?;
        let process = std::process::id();
        let mut number = 0;
        // Several of one process, in a scene that limits its disk and changes something else too.
        let (path, file) = loop {
            let path = journals.join(format!("{process}-{number}{SUFFIX}"));
            match OpenOptions::new().create_new(true).append(true).open(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => bail!("cannot write {}: {error}", path.display()),
            }
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("{} is in use", path.display()))?;
        File::open(journals)?.sync_all()?;
        Ok(MachineChanges { path, file, changes: Vec::new(), say })
    }

    /// Makes a change.
    ///
    /// # Errors
    /// When it cannot be written down, and when the kernel refuses it.
    pub fn make(&mut self, change: Change) -> anyhow::Result<()> {
        let line = serde_json::to_string(&change)? + "\n";
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data())?;
        let made = std::fs::write(&change.file, &change.new)
            .with_context(|| format!("writing {} to {}", change.new, change.file.display()));
        self.changes.push(change);
        made
    }
}

impl Drop for MachineChanges {
    fn drop(&mut self) {
        if let Err(error) = undo(&self.path, &self.changes) {
            (self.say)(&format!("this machine is not as it was: {error:#}; binlogd-lab restore tries again"));
        }
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Undoes all, the last first, and removes their file. Tells what was undone.
fn undo(path: &Path, changes: &[Change]) -> anyhow::Result<Vec<String>> {
    let mut done = Vec::new();
    for change in changes.iter().rev() {
        if change.undo()? {
            done.push(format!("{}: {} again", change.back_file.display(), change.back));
        }
    }
    std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(done)
}

/// Undoes what runs that were killed have left changed on this machine. A line for each thing that was done.
///
/// # Errors
/// When something could not be undone; its file stays then.
pub fn restore(journals: &Path) -> anyhow::Result<Vec<String>> {
    let mut done = Vec::new();
    let Ok(entries) = std::fs::read_dir(journals) else { return Ok(done) };
    for entry in entries {
        let path = entry?.path();
        if !path.to_string_lossy().ends_with(SUFFIX) {
            continue;
        }
        // Another run may have removed its own meanwhile.
        let Ok(file) = File::open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // A last line without an end was being written when the run was killed: its change was not made.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let changes: Result<Vec<Change>, _> = whole.lines().map(serde_json::from_str).collect();
        let changes = changes.with_context(|| format!("reading {}", path.display()))?;
        done.extend(undo(&path, &changes)?);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(file: &Path, new: &str) -> Change {
        let back = "20".to_owned();
        Change { file: file.to_owned(), new: new.to_owned(), back_file: file.to_owned(), back }
    }

    #[test]
    fn what_is_changed_is_undone_unless_somebody_else_has_changed_it() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let journals = dir.path().join("journals");
        let mut changes = MachineChanges::begin(&journals, |_| ()).unwrap();
        changes.make(change(&one, "5")).unwrap();
        changes.make(change(&two, "6")).unwrap();
        assert_eq!((read(&one), read(&two)), ("5".to_owned(), "6".to_owned()));
        // It is in use, by this process.
        assert!(restore(&journals).unwrap().is_empty() && read(&one) == "5");
        std::fs::write(&two, "7\n").unwrap();
        drop(changes);
        assert_eq!((read(&one), read(&two)), ("20".to_owned(), "7\n".to_owned()));
        assert_eq!(std::fs::read_dir(&journals).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_has_left_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("limits");
        std::fs::write(&file, "7:1 5\n7:2 6\n").unwrap();
        let line = serde_json::to_string(&change(&file, "7:2 6")).unwrap();
        std::fs::write(dir.path().join("1-0.machine"), format!("{line}\n{{\"half")).unwrap();
        let done = restore(dir.path()).unwrap();
        assert!(done.len() == 1 && done[0].ends_with("limits: 20 again"), "{done:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "20");
        assert!(restore(dir.path()).unwrap().is_empty());
        assert!(restore(&dir.path().join("missing")).unwrap().is_empty());
    }
}

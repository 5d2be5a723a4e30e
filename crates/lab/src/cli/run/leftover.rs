//! What a run that was killed has left in the folder to measure: its servers go on, and would be measured too.

use crate::lab::Lab;
use crate::machine::file_system::{Volume, kill_users};
use crate::progress::say;
use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The right to measure in a folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct FolderLock {
    folder: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing would not do while a child that is just being started has the descriptor too.
        let _ = flock(&self.folder, FlockOperation::Unlock);
    }
}

impl FolderLock {
    /// Takes it, so that what is in the folder belongs to no run that goes on.
    ///
    /// # Errors
    /// When another process has it.
    pub(super) fn take(folder: &Path) -> anyhow::Result<FolderLock> {
        let failed = || format!("cannot lock {}", folder.display());
        let file = File::open(folder).with_context(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(FolderLock { folder: file }),
            Err(Errno::WOULDBLOCK) => bail!(
                "another run measures in {} now: wait for it; two at a time would measure each other",
                folder.display()
            ),
            Err(error) => Err(error).with_context(failed),
        }
    }
}

/// Kills the servers that live in the run's folders, and removes the file systems and the temporary folders of `studies`
/// with whatever uses them: those of a run on a user's server hold its password and a copy of its log. The folders must be
/// locked.
///
/// # Errors
/// When a folder cannot be read, or a server cannot be stopped.
pub(super) fn remove(lab: &Lab, studies: &[&str]) -> anyhow::Result<()> {
    let removed = Volume::remove_leftovers(lab)?;
    if removed > 0 {
        say(&format!("removed {removed} file systems of runs that were killed"));
    }
    lab.dirs().into_iter().try_for_each(|dir| remove_from(dir, lab, studies))
}

fn remove_from(dir: &Path, lab: &Lab, studies: &[&str]) -> anyhow::Result<()> {
    for folder in folders(dir)? {
        let servers: Vec<PathBuf> = folders(&folder)?.into_iter().filter(|dir| is_server(dir)).collect();
        for server in &servers {
            let stopped = Command::new(&lab.scripts).arg("stop").arg(server).arg("--kill").output();
            let stopped = stopped.with_context(|| format!("cannot run {}", lab.scripts.display()))?;
            if !stopped.status.success() {
                bail!(
                    "the server of a run that was killed cannot be stopped, {}: {}",
                    server.display(),
                    String::from_utf8_lossy(&stopped.stderr).trim()
                );
            }
        }
        if is_temporary(&folder, studies) {
            say(&format!("removing what a run that was killed has left: {}", folder.display()));
            kill_users(&folder)?;
            std::fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
    }
    Ok(())
}

fn folders(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.map(|entry| entry.path()).collect())
}

/// `scripts/servers` keeps this file in the folder of each server.
fn is_server(dir: &Path) -> bool {
    dir.join("server.env").is_file()
}

/// Named by a study, as [`tempfile`] does it: six random letters and digits at the end.
fn is_temporary(folder: &Path, studies: &[&str]) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_random = |rest: &str| rest.len() == 6 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    studies
        .iter()
        .any(|study| name.strip_prefix(study).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apart::Apart;
    use crate::interrupt::Interrupt;
    use crate::machine::folders::Folders;
    use std::sync::Arc;

    #[test]
    fn only_temporary_folders_of_studies_are_removed() {
        let is_temporary = |name: &str| is_temporary(&Path::new("/x").join(name), &["sync-binlog"]);
        assert!(is_temporary("sync-binlog-a1B2c3"));
        for kept in
            ["sync-binlog", "sync-binlog-data", "sync-binlog-a1B2c3d", "data-a1B2c3", "sync-binlog-a1B2-3"]
        {
            assert!(!is_temporary(kept), "{kept}");
        }
    }

    #[test]
    fn what_a_run_on_a_users_server_has_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (left, kept) = (dir.path().join("sync-binlog-a1B2c3"), dir.path().join("go-tpc"));
        for folder in [&left, &kept] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("sysbench-db_1.cnf"), "mysql-password=secret").unwrap();
        }
        // As a killed rotation-stall leaves it.
        let volume = dir.path().join("volume-a1B2c3");
        std::fs::create_dir_all(volume.join("mounted")).unwrap();
        std::fs::write(volume.join("owner"), "999999999 1").unwrap();
        let lab = Lab {
            binlogd: PathBuf::new(),
            scripts: PathBuf::new(),
            dir: dir.path().to_owned(),
            apart: Apart::default(),
            link: None,
            journals: PathBuf::new(),
            interrupt: Interrupt::default(),
            unrestored: Arc::default(),
            allowed_servers: Vec::new(),
            say: |_| (),
        };
        remove(&lab, &["sync-binlog"]).unwrap();
        assert!(!left.exists() && !volume.exists() && kept.join("sysbench-db_1.cnf").exists());
        // What is set apart is somewhere else, and is removed there too.
        let memory = tempfile::tempdir().unwrap();
        let source_dir = Some(memory.path().to_owned());
        let lab = Lab { apart: Apart { source_dir, ..Apart::default() }, ..lab };
        let (of_others, of_study) = (memory.path().join("sync"), Folders::of(&lab, "sync-binlog").unwrap());
        std::fs::create_dir(&of_others).unwrap();
        assert!(of_study.source().starts_with(memory.path()));
        assert!(of_study.path().starts_with(dir.path()) && of_study.receivers() == of_study.path());
        remove(&lab, &["sync-binlog"]).unwrap();
        assert!(!of_study.source().exists() && !of_study.path().exists() && of_others.exists());
    }

    #[test]
    fn one_run_at_a_time_measures_in_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(dir.path()).unwrap();
        assert!(FolderLock::take(dir.path()).unwrap_err().to_string().contains("another run measures in"));
        drop(lock);
        FolderLock::take(dir.path()).unwrap();
    }
}

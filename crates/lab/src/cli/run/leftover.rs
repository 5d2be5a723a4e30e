//! What a run that was killed has left in the folder to measure: its servers go on, and would be measured too.

use crate::lab::Lab;
use crate::progress::say;
use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
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

/// Kills the servers that live in the run's folders, and removes the temporary folders of `studies` with whatever uses
/// them: those of a run on a user's server hold its password and a copy of its log. The folders must be locked.
///
/// # Errors
/// When a folder cannot be read, or a server cannot be stopped.
pub(super) fn remove(lab: &Lab, studies: &[&str]) -> anyhow::Result<()> {
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

/// Kills the processes that name something in the folder on their command line, such as binlogd its data.
fn kill_users(folder: &Path) -> anyhow::Result<()> {
    let inside = format!("{}/", folder.display());
    for process in folders(Path::new("/proc"))? {
        let id = process.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
        // One that has ended meanwhile has no command line.
        let arguments = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let uses_it = arguments
            .split(|byte| *byte == 0)
            .any(|argument| argument.windows(inside.len()).any(|part| part == inside.as_bytes()));
        if let Some(pid) = id.and_then(Pid::from_raw).filter(|_| uses_it) {
            match kill_process(pid, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot kill process {id:?}")),
            }
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
    use crate::folders::Folders;
    use rig::interrupt::Interrupt;
    use rig::process::Running;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    const LIMIT: Duration = Duration::from_secs(60);

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
        assert!(!left.exists() && kept.join("sysbench-db_1.cnf").exists());
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
    fn processes_that_use_the_folder_are_killed_and_no_others() {
        let (ours, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tail = |dir: &tempfile::TempDir| {
            let file = dir.path().join("log");
            std::fs::write(&file, "").unwrap();
            let tail = Running(Command::new("tail").arg("-f").arg(file).spawn().unwrap());
            // The kernel lets the parent go on before the command line of the new program is in place.
            let begun = Instant::now();
            while std::fs::read(format!("/proc/{}/cmdline", tail.0.id())).unwrap().is_empty() {
                assert!(begun.elapsed() < LIMIT, "no command line");
                std::thread::sleep(Duration::from_millis(1));
            }
            tail
        };
        let (mut killed, kept) = (tail(&ours), tail(&other));
        kill_users(ours.path()).unwrap();
        assert_eq!(killed.wait_within(LIMIT).unwrap().code(), None);
        assert!(!kept.has_ended().unwrap());
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

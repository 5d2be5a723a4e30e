//! The file of what was changed on a user's server: one JSON object a line, each durable before the change is made.
//!
//! A file `host_port.journal` belongs to one server. It is locked while a run uses the server, which also keeps a second
//! run away, and removed when everything is as it was.

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How the name of a journal ends.
const SUFFIX: &str = ".journal";

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Whose journal it is. The first line, and only that.
    Server {
        /// The account without its password, as a URL.
        url: String,
        /// What distinguishes the server from another one at the same address.
        identity: String,
    },
    /// A global variable that is set.
    Variable {
        /// Its name.
        name: String,
        /// Its value before, as SHOW GLOBAL VARIABLES prints it.
        old: String,
        /// Its value from now on.
        new: String,
    },
    /// A plugin that is installed.
    Plugin {
        /// Its name.
        name: String,
    },
    /// The database that is created.
    Database {
        /// Its name.
        name: String,
        /// What its marker table holds.
        token: String,
    },
    /// A program of the lab that was started and uses the server.
    Process {
        /// Its number.
        pid: u32,
        /// Field 22 of `/proc/<pid>/stat`: when it started. Another process may get the number later.
        started: u64,
    },
}

/// An open journal. The lock ends with it, also when the process is killed.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Journal {
    /// Begins the journal of the server at `place` (`host:port`) in the folder `dir`.
    ///
    /// # Errors
    /// When there is one already, from a run that is running or did not restore everything, and when it cannot be written.
    pub fn begin(dir: &Path, place: &str, server: Entry) -> anyhow::Result<Journal> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
        let safe = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' };
        let path = dir.join(place.chars().map(safe).collect::<String>() + SUFFIX);
        if path.exists() {
            bail!(
                "there is a journal of changes on {place}, {}: another run uses the server, or one was killed before it \
                 could restore it; then run binlogd-lab restore first",
                path.display()
            );
        }
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .with_context(|| format!("{} is in use", path.display()))?;
        let mut journal = Journal { path, file, entries: Vec::new() };
        journal.push(server)?;
        // Its name must be as durable as what stands in it.
        File::open(dir)?.sync_all()?;
        Ok(journal)
    }

    /// The journals in `dir` that no run uses, each locked.
    ///
    /// # Errors
    /// When the folder or one of them cannot be read.
    pub fn left_behind(dir: &Path) -> anyhow::Result<Vec<Journal>> {
        let mut journals = Vec::new();
        let Ok(files) = std::fs::read_dir(dir) else { return Ok(journals) };
        for file in files {
            let path = file?.path();
            if path.to_string_lossy().ends_with(SUFFIX) {
                journals.extend(Journal::open(&path).with_context(|| format!("reading {}", path.display()))?);
            }
        }
        Ok(journals)
    }

    fn open(path: &Path) -> anyhow::Result<Option<Journal>> {
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let entries = parse(&std::fs::read_to_string(path)?)?;
        Ok(Some(Journal { path: path.to_owned(), file, entries }))
    }

    /// Adds a line, durable when this returns.
    ///
    /// # Errors
    /// When it cannot be written; then the change must not be made.
    pub fn push(&mut self, entry: Entry) -> anyhow::Result<()> {
        let mut line = serde_json::to_string(&entry)?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.entries.push(entry);
        Ok(())
    }

    /// All lines, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it: everything is as it was.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(self) -> anyhow::Result<()> {
        std::fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// A last line without an end was being written when the run was killed: its change was not made.
fn parse(text: &str) -> anyhow::Result<Vec<Entry>> {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().enumerate();
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).with_context(|| format!("line {} is not one of a journal", index + 1))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Entry {
        Entry::Server { url: "mysql://dba@db:3306".to_owned(), identity: "1-2".to_owned() }
    }

    #[test]
    fn what_was_written_is_read_again_but_for_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(dir.path(), "db:3306", server()).unwrap();
        let change = Entry::Variable { name: "sync_binlog".into(), old: "1".into(), new: "0".into() };
        journal.push(change.clone()).unwrap();
        journal.file.write_all(b"{\"variable\":{\"na").unwrap();
        drop(journal);
        let left = Journal::left_behind(dir.path()).unwrap();
        assert_eq!(left[0].entries(), [server(), change]);
        left.into_iter().next().unwrap().remove().unwrap();
        assert!(Journal::left_behind(dir.path()).unwrap().is_empty());
        assert!(parse("{}\n").is_err());
    }

    #[test]
    fn a_server_has_one_journal_and_a_run_that_uses_it_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::begin(dir.path(), "[::1]:3306", server()).unwrap();
        let error = Journal::begin(dir.path(), "[::1]:3306", server()).unwrap_err().to_string();
        assert!(error.contains("binlogd-lab restore"), "{error}");
        assert!(Journal::left_behind(dir.path()).unwrap().is_empty(), "it is in use");
        drop(journal);
        assert_eq!(Journal::left_behind(dir.path()).unwrap().len(), 1);
        assert!(Journal::left_behind(&dir.path().join("none")).unwrap().is_empty());
    }
}

//! The file of what was changed on a user's server: one JSON object a line, each durable before the change is made.
//!
//! A file `host_port.journal` belongs to one server. It is locked while a run uses the server, which also keeps a second
//! run away, and removed when everything is as it was.

use super::address::file_name;
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

impl Entry {
    fn identity(&self) -> Option<&str> {
        match self {
            Entry::Server { identity, .. } => Some(identity),
            _ => None,
        }
    }
}

/// An open journal. The lock ends with it, also when the process is killed.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Closing it would not do: a process that this one is starting has the descriptor too, until it runs its program.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Journal {
    /// Begins the journal of the server at `place` (`host:port`) in the folder `dir`.
    ///
    /// # Errors
    /// When there is one already, from a run that is running or did not restore everything, and be it by another name of
    /// the same server; and when it cannot be written.
    pub fn begin(dir: &Path, place: &str, server: Entry) -> anyhow::Result<Journal> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
        let path = dir.join(file_name(place) + SUFFIX);
        let other = if path.exists() { Some(path.clone()) } else { journal_of(dir, &server)? };
        if let Some(other) = other {
            bail!(
                "there is a journal of changes on {place}, {}: another run uses the server, or one was killed before it \
                 could restore it; then run binlogd-lab restore first",
                other.display()
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

    /// The journals in `dir` that no run uses, each locked, or why it cannot be read.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn left_behind(dir: &Path) -> anyhow::Result<Vec<anyhow::Result<Journal>>> {
        let open = |path: &PathBuf| {
            Journal::open(path).with_context(|| format!("reading {}", path.display())).transpose()
        };
        Ok(journals(dir)?.iter().filter_map(open).collect())
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
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would spoil the one that comes after it, and with it what is to be set back.
            let _ = self.file.set_len(before);
            return Err(error).with_context(|| format!("cannot write {}", self.path.display()));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// What distinguishes its server from others.
    pub fn identity(&self) -> Option<&str> {
        self.entries.iter().find_map(Entry::identity)
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

/// The files of journals in a folder, which need not be there.
fn journals(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(files) = std::fs::read_dir(dir) else { return Ok(Vec::new()) };
    let files = files.map(|file| Ok(file?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(files.into_iter().filter(|path| path.to_string_lossy().ends_with(SUFFIX)).collect())
}

/// The journal in `dir` of the server of the line `server`, under whatever name. One that cannot be read is nobody's.
fn journal_of(dir: &Path, server: &Entry) -> anyhow::Result<Option<PathBuf>> {
    let is_its = |path: &PathBuf| {
        let entries =
            std::fs::read_to_string(path).ok().and_then(|text| parse(&text).ok()).unwrap_or_default();
        entries.first().is_some_and(|first| first.identity() == server.identity())
    };
    Ok(journals(dir)?.into_iter().find(is_its))
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
        let left = left.into_iter().next().unwrap().unwrap();
        assert_eq!(left.entries(), [server(), change]);
        left.remove().unwrap();
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
    #[test]
    fn a_server_has_one_journal_under_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let _journal = Journal::begin(dir.path(), "localhost:3306", server()).unwrap();
        let error = Journal::begin(dir.path(), "127.0.0.1:3306", server()).unwrap_err().to_string();
        assert!(error.contains("localhost_3306.journal") && error.contains("binlogd-lab restore"), "{error}");
        let other = Entry::Server { url: "mysql://dba@db:3307".to_owned(), identity: "1-3".to_owned() };
        Journal::begin(dir.path(), "127.0.0.1:3306", other).unwrap();
    }

    #[test]
    fn one_that_cannot_be_read_does_not_hide_the_others() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a_1.journal"), "{}\n").unwrap();
        std::fs::write(dir.path().join("z_1.journal"), b"\xff\n").unwrap();
        drop(Journal::begin(dir.path(), "db:3306", server()).unwrap());
        let left = Journal::left_behind(dir.path()).unwrap();
        assert_eq!((left.len(), left.iter().filter(|journal| journal.is_ok()).count()), (3, 1));
    }

    #[test]
    fn a_line_that_could_not_be_written_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::begin(dir.path(), "db:3306", server()).unwrap();
        journal.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        journal.push(Entry::Plugin { name: "one".to_owned() }).unwrap_err();
        assert_eq!(journal.entries(), [server()]);
    }
}

//! What a rescue has set on its target for the time being, kept on disk so that it is put back even if the rescue is killed.

#![allow(clippy::disallowed_methods, reason = "reads its notes beside a daemon that may run")]

use binlog::storage::Storage;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::index::replace_file;
use serde::{Deserialize, Serialize};
use source::own_session::literal;
use std::io;
use std::path::{Path, PathBuf};

/// Beginning of the file's name in the source's folder; the target's host and port follow.
const PREFIX: &str = "rescue-restore-";

/// One global variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// For instance `event_scheduler`.
    pub name: String,
    /// Its value before, as SET takes it.
    pub was: String,
    /// What rescue has set, as SET takes it.
    pub held: String,
}

impl Setting {
    /// Whether the server has it as it was set, by the word of SHOW VARIABLES.
    pub fn is_held(&self, is: Option<&str>) -> bool {
        is.is_some_and(|is| {
            self.held == is || self.held == literal(is) || (self.held == "NULL" && is.is_empty())
        })
    }

    /// The statement that puts it back.
    pub fn sql(&self) -> String {
        format!("SET GLOBAL {} = {}", self.name, self.was)
    }
}

/// The settings of one target, in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// `host:port` of the target.
    pub target: String,
    /// `@@server_uuid`; `mariadb-<server_id>` for MariaDB.
    pub server_uuid: String,
    /// What to put back, in the order in which it was set.
    #[serde(default)]
    pub settings: Vec<Setting>,
    #[serde(skip)]
    path: PathBuf,
}

impl Restore {
    /// What an earlier rescue of this target has left, or nothing yet.
    ///
    /// # Errors
    /// When the file is there and cannot be read or understood; the message names it.
    pub fn open(source_folder: &Path, target: &str, server_uuid: &str) -> io::Result<Restore> {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' };
        let name = target.chars().map(safe).collect::<String>();
        let path = source_folder.join(format!("{PREFIX}{name}.toml"));
        let all = Restore::all(source_folder)?;
        // With MySQL the same server may be reached by another name. MariaDB servers have no name of their own.
        let is_this = |restore: &Restore| {
            restore.path == path || restore.server_uuid == server_uuid && !server_uuid.starts_with("mariadb-")
        };
        if let Some(left) = all.into_iter().find(is_this) {
            return Ok(left);
        }
        Ok(Restore {
            target: target.to_owned(),
            server_uuid: server_uuid.to_owned(),
            settings: Vec::new(),
            path,
        })
    }

    /// What earlier rescues of any target have left.
    ///
    /// # Errors
    /// When the folder or such a file cannot be read.
    pub fn all(source_folder: &Path) -> io::Result<Vec<Restore>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(source_folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with(PREFIX) && name.ends_with(".toml") {
                found.push(Restore::read(&path)?);
            }
        }
        Ok(found)
    }

    fn read(path: &Path) -> io::Result<Restore> {
        let named =
            |kind, what: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| named(error.kind(), &error))?;
        let restore: Restore =
            toml::from_str(&text).map_err(|error| named(io::ErrorKind::InvalidData, &error.message()))?;
        Ok(Restore { path: path.to_owned(), ..restore })
    }

    /// Where it stands.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a setting and makes that durable, which must come before it is changed on the target. One that an earlier rescue
    /// has noted keeps the value that it had before that.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note(&mut self, setting: Setting) -> io::Result<()> {
        if !self.settings.iter().any(|noted| noted.name == setting.name) {
            self.settings.push(setting);
        }
        self.write()
    }

    /// Takes a setting that could not be changed out again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&mut self, name: &str) -> io::Result<()> {
        self.settings.retain(|noted| noted.name != name);
        if self.settings.is_empty() { self.done() } else { self.write() }
    }

    fn write(&self) -> io::Result<()> {
        let head = "# binlogd rescue has changed these settings on its target for the time being. The next rescue of that target\n\
                    # puts them back; by hand: SET GLOBAL name = was, then remove this file.\n";
        let body = toml::to_string(self).map_err(io::Error::other)?;
        replace_file(&PosixStorage, &self.path, format!("{head}{body}").as_bytes())
    }

    /// Takes the file away: everything was put back.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn done(&mut self) -> io::Result<()> {
        self.settings.clear();
        match PosixStorage.remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => PosixStorage.sync_dir(self.path.parent().unwrap_or(Path::new("."))),
        }
    }

    /// The statements that put everything back, the last first.
    pub fn sql(&self) -> String {
        let statements: Vec<String> = self.settings.iter().rev().map(Setting::sql).collect();
        statements.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_first_is_what_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let mut restore = Restore::open(dir.path(), "[::1]:3306", "u").unwrap();
        assert!(restore.settings.is_empty());
        let setting = |name: &str, was: &str, held: &str| Setting {
            name: name.into(),
            was: was.into(),
            held: held.into(),
        };
        restore.note(setting("event_scheduler", "ON", "OFF")).unwrap();
        restore.note(setting("read_only", "OFF", "ON")).unwrap();
        let mut again = Restore::open(dir.path(), "[::1]:3306", "u").unwrap();
        assert_eq!(again, restore);
        again.note(setting("event_scheduler", "OFF", "OFF")).unwrap();
        assert_eq!(again.sql(), "SET GLOBAL read_only = OFF; SET GLOBAL event_scheduler = ON");
        assert_eq!(Restore::all(dir.path()).unwrap(), std::slice::from_ref(&again));
        assert_eq!(
            Restore::open(dir.path(), "db2:3306", "u").unwrap(),
            again,
            "the same server by another name"
        );
        assert!(Restore::open(dir.path(), "db2:3306", "v").unwrap().settings.is_empty());
        again.done().unwrap();
        again.done().unwrap();
        assert!(Restore::open(dir.path(), "[::1]:3306", "u").unwrap().settings.is_empty());
        std::fs::write(again.path(), "garbage").unwrap();
        let error = Restore::open(dir.path(), "[::1]:3306", "u").unwrap_err().to_string();
        assert!(error.contains("rescue-restore-___1__3306.toml"), "{error}");
    }
}

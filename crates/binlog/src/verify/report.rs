//! What a walk over a timeline found.

use super::writer::Writer;
use crate::scan::damage::Damage;
use serde::Serialize;
use std::fmt;

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file's bare name; `None` when it concerns the timeline as a whole.
    pub file: Option<String>,
    /// Offset in bytes in that file, where there is one place.
    pub at: Option<u64>,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Problem {
    /// `mysql-bin.000002 at 1234: what`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(at) = self.at {
                write!(f, " at {at}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.what)
    }
}

/// How a file ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FileEnd {
    /// With ROTATE naming the next file.
    Rotate {
        /// The name in it.
        next: String,
    },
    /// With STOP: the source was shut down.
    Stop,
    /// With neither: the source crashed, or the end is missing.
    None,
    /// It may be written at this moment.
    Live {
        /// Bytes after the last boundary: an incomplete event or transaction.
        after_boundary: u64,
    },
    /// Not known: the file is damaged or missing.
    Unknown,
}

/// What was found in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Bare name.
    pub name: String,
    /// Its length when the walk began.
    pub bytes: u64,
    /// Sound events.
    pub events: u64,
    /// Complete transactions.
    pub transactions: u64,
    /// How it ends.
    pub end: FileEnd,
    /// What is wrong with it; empty for a sound file.
    pub problems: Vec<Problem>,
    /// What is unusual and no damage.
    pub notes: Vec<String>,
    /// Who wrote it; `None` where it does not say so.
    #[serde(skip)]
    pub(super) writer: Option<Writer>,
}

/// What was found in one timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineReport {
    /// Name of its folder.
    pub name: String,
    /// Its files in order, missing ones included.
    pub files: Vec<FileReport>,
    /// What is wrong with the folder as a whole.
    pub problems: Vec<Problem>,
    /// What is unusual and no damage.
    pub notes: Vec<String>,
}

impl TimelineReport {
    /// Everything that is wrong.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(self.files.iter().flat_map(|file| &file.problems))
    }
}

impl FileReport {
    pub(super) fn problem(&mut self, at: Option<u64>, what: String) {
        self.problems.push(Problem { file: Some(self.name.clone()), at, what });
    }

    pub(super) fn damage(&mut self, damage: &Damage) {
        self.problem(Some(damage.at), damage.kind.to_string());
    }
}

/// A problem of the timeline as a whole.
pub(super) fn whole(what: String) -> Problem {
    Problem { file: None, at: None, what }
}

/// A report of which nothing is known yet.
pub(super) fn blank(name: &str) -> FileReport {
    FileReport {
        name: name.to_owned(),
        bytes: 0,
        events: 0,
        transactions: 0,
        end: FileEnd::Unknown,
        problems: Vec::new(),
        notes: Vec::new(),
        writer: None,
    }
}

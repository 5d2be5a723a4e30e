//! What the archive of a source is known to have of the copy.

use super::archiver::Archiver;
use crate::chain::history::ArchivedFile;
use binlog::timeline::files::timeline_files;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The end of what the archive has of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivedEnd {
    /// The timeline's name in the archive.
    pub timeline: String,
    /// Its last file.
    pub file: String,
    /// A boundary in it.
    pub offset: u64,
    /// GTIDs executed up to there.
    pub gtids: String,
}

/// A finished file in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The timeline's name there.
    pub timeline: String,
    /// What it has of the file; `None` when the file has expired.
    pub file: Option<Arc<ArchivedFile>>,
}

/// A finished file of the copy of which the archive has everything, as it was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeFile {
    /// Folder of its timeline.
    pub folder: PathBuf,
    /// The timeline's name in the archive.
    pub timeline: String,
    /// Its name.
    pub name: String,
    /// Its length in bytes.
    pub len: u64,
    /// Hexadecimal SHA-256 of all of it.
    pub sha256: String,
}

impl Archiver {
    /// Where the archive of the timeline in `folder` ends: its name there, the file, the offset, and the GTIDs executed up to it.
    /// `None` before anything of it is there.
    pub fn end_of(&self, folder: &Path) -> Option<ArchivedEnd> {
        let (_, timeline) = self.names.iter().find(|(of, _)| of == folder)?;
        let archived = self.chain.as_ref()?.history().timelines.get(timeline)?;
        let file = archived.files.last()?;
        Some(ArchivedEnd {
            timeline: timeline.clone(),
            file: file.name.clone(),
            offset: file.end(),
            gtids: file.gtids.clone(),
        })
    }

    /// What the archive calls timelines of the copy, by their folders, as far as they were looked at.
    pub fn names(&self) -> &[(PathBuf, String)] {
        &self.names
    }

    /// The first file of the copy of which the archive does not have everything, as of the last step, and the folder of its
    /// timeline: from there on this machine must keep what it has. `None` where that is not known.
    pub fn first_lacking(&self) -> Option<(&Path, &str)> {
        self.lacking.as_ref().map(|(folder, file)| (&**folder, &**file))
    }

    /// What the archive has of a file that is finished here, as of the last step, with the timeline's name there. `None` where it
    /// does not have all of it, or that is not known.
    pub fn finished_file(&self, folder: &Path, name: &str) -> Option<Finished> {
        let (_, timeline) = self.names.iter().find(|(of, _)| of == folder)?;
        let archived = self.chain.as_ref()?.history().timelines.get(timeline)?;
        let file = archived.file(name).cloned();
        if file.as_ref().is_some_and(|file| file.sealed.is_none()) {
            return None;
        }
        if file.is_none() {
            let files = timeline_files(&*self.storage, folder).ok()?;
            let place = files.iter().position(|file| file == name)?;
            if !self.has_expired(timeline, &files, place) {
                return None;
            }
        }
        Some(Finished { timeline: timeline.clone(), file })
    }

    /// How many files were found to be finished, here and in the archive, since something of that was unknown.
    pub fn whole_files_known(&self) -> usize {
        self.settled.len()
    }

    /// The files that are finished here and in the archive, and were found to be the same, as of the last step: timeline by timeline,
    /// the oldest first. Some of them may be purged here by now.
    pub fn whole_files(&self) -> Vec<WholeFile> {
        let mut found = Vec::new();
        let Some(chain) = &self.chain else { return found };
        for (folder, timeline) in &self.names {
            let Some(archived) = chain.history().timelines.get(timeline) else { continue };
            for file in archived.files.iter().filter(|file| self.settled.contains(&folder.join(&file.name))) {
                let Some(seal) = &file.sealed else { continue };
                found.push(WholeFile {
                    folder: folder.clone(),
                    timeline: timeline.clone(),
                    name: file.name.clone(),
                    len: file.end(),
                    sha256: seal.sha256.clone(),
                });
            }
        }
        found
    }
}

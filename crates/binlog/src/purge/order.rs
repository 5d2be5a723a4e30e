//! All files of a source, over all its timelines, in the order in which they go.

use crate::folder::{by_number, timelines};
use crate::storage::Storage;
use crate::timeline::Timeline;
use crate::timeline::files::timeline_files;
use codec::event::{BINLOG_MAGIC, EventHeader, HEADER_LEN};
use jiff::Timestamp;
use std::io;
use std::path::{Path, PathBuf};

/// A binary log of a source's copy, on whichever timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// The timeline's folder.
    pub folder: PathBuf,
    /// Bare name.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
    /// Whether it is of the timeline that is written.
    pub is_of_present: bool,
}

impl LogFile {
    /// Folder name of the timeline.
    pub fn timeline(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// All files of a source: by the numbers of their timelines, that which is written last, and in the order of each.
///
/// # Errors
/// When a folder cannot be read.
pub fn list(storage: &dyn Storage, source_folder: &Path) -> io::Result<Vec<LogFile>> {
    let folders = timelines(storage, source_folder)?;
    let mut files = Vec::new();
    for (at, folder) in folders.iter().enumerate() {
        for name in timeline_files(storage, folder)? {
            let bytes = storage.look(&folder.join(&name))?.len;
            files.push(LogFile {
                folder: folder.clone(),
                name,
                bytes,
                is_of_present: at + 1 == folders.len(),
            });
        }
    }
    Ok(files)
}

/// When a file was sealed: when its source began the next one, by the time in that file's first event. That is part of the
/// bytes, so a copy that comes back from a backup has the same ages; the file system's times are those of the restore. The
/// last file of a timeline that is written no more was sealed when the last of those began that follow it by their own word; where
/// none says so, when the next one began. `None` where nobody knows: for the live file, and for the last file of a timeline that
/// was left to go back to an older one.
///
/// # Errors
/// When the next file, or a description, cannot be read.
pub fn sealed_at(storage: &dyn Storage, files: &[LogFile], at: usize) -> io::Result<Option<Timestamp>> {
    let (Some(file), Some(next)) = (files.get(at), files.get(at + 1)) else { return Ok(None) };
    if file.folder != next.folder {
        return followed_at(storage, &file.folder, &next.folder);
    }
    let mut header = [0; HEADER_LEN];
    let path = next.folder.join(&next.name);
    let read = storage.open_read(&path)?.read_full_at(&mut header, BINLOG_MAGIC.len() as u64)?;
    let header = EventHeader::parse(&header).ok().filter(|header| read == HEADER_LEN && header.timestamp > 0);
    Ok(header.and_then(|header| Timestamp::from_second(header.timestamp.into()).ok()))
}

/// When the last timeline began that goes on from the one in `folder`; `next` is the one behind it in the order.
fn followed_at(storage: &dyn Storage, folder: &Path, next: &Path) -> io::Result<Option<Timestamp>> {
    let all = by_number(storage, folder.parent().unwrap_or(Path::new(".")))?;
    let mut followed: Option<Timestamp> = None;
    let number = |folder: &Path| all.iter().position(|other| other == folder);
    for later in all.iter().skip(number(folder).map_or(0, |at| at + 1)) {
        let info = Timeline::read(storage, later)?;
        if info.previous.is_empty() || !folder.ends_with(&info.previous) {
            continue;
        }
        let Ok(began) = info.began_at.parse::<Timestamp>() else { return Ok(None) };
        followed = Some(followed.map_or(began, |known| known.max(began)));
    }
    if followed.is_none() && number(next) > number(folder) {
        followed = Timeline::read(storage, next)?.began_at.parse().ok();
    }
    Ok(followed)
}

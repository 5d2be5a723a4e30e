//! What binlogd holds of one source: the folder, its newest timeline, and where that ends.

use super::plan::Holding;
use crate::log::Position;
use crate::log::folder::{FolderError, SourceFolder, timeline_number};
use crate::log::journal::Journal;
use crate::log::recover::{Tail, recover, write_again};
use crate::log::scan::scan_file;
use crate::log::storage::Storage;
use crate::log::timeline::Timeline;
use crate::log::writer::{LogError, LogWriter};
use codec::event::FormatDescription;
use codec::gtid::GtidState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Every file's format description ends before this offset: it lists at most 255 event types.
const FORMAT_DESCRIPTION_END_MAX: u64 = 4096;

/// Why the copy cannot be opened. The message names the path.
#[derive(Debug, Error)]
pub enum CopyError {
    /// The source's folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal in it.
    #[error("cannot open the journal in {path}: {error}")]
    Journal {
        /// The source's folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A timeline in it.
    #[error("cannot open the timeline {path}: {error}")]
    Timeline {
        /// Its folder.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

impl CopyError {
    /// True when another process holds the folder.
    pub fn is_locked(&self) -> bool {
        matches!(self, CopyError::Folder(FolderError::Locked { .. }))
    }
}

/// The newest timeline, open for appending.
#[derive(Debug)]
pub struct OpenTimeline {
    /// Folder name.
    pub name: String,
    /// Content of its `timeline.toml`.
    pub info: Timeline,
    /// The end of its files.
    pub log: LogWriter,
    /// Format description of the live file, once it has one.
    pub format: Option<FormatDescription>,
    /// GTIDs of all transactions that are durable.
    pub gtids: GtidState,
    /// Time of the newest event, seconds since 1970; 0 when unknown.
    pub last_timestamp: u32,
}

/// The copy of one source, held by one thread.
#[derive(Debug)]
pub struct HeldCopy {
    storage: Arc<dyn Storage>,
    folder: SourceFolder,
    timeline: Option<OpenTimeline>,
}

impl HeldCopy {
    /// Locks the source's folder and recovers its newest timeline. The second value says what was found and mended.
    ///
    /// # Errors
    /// When another process holds the folder, or something in it cannot be read or mended.
    pub fn open(
        storage: Arc<dyn Storage>,
        data_dir: &Path,
        source: &str,
    ) -> Result<(HeldCopy, Vec<String>), CopyError> {
        let folder = SourceFolder::open(&*storage, data_dir, source)?;
        let mut copy = HeldCopy { storage, folder, timeline: None };
        let remarks = copy.open_newest(Tail::SaveAside)?;
        Ok((copy, remarks))
    }

    /// Opens the newest timeline again from disk, after an error that made the state in memory worthless.
    ///
    /// # Errors
    /// As [`HeldCopy::open`].
    pub fn reopen(&mut self) -> Result<Vec<String>, CopyError> {
        if let Some((path, from)) = self.timeline.as_ref().and_then(|timeline| timeline.log.synced()) {
            // The page cache may be all that has them; a timeline that is gone is found out below.
            match write_again(&*self.storage, path, from) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(CopyError::Timeline { path: path.to_owned(), error });
                }
                _ => {}
            }
        }
        self.timeline = None;
        self.open_newest(Tail::Discard)
    }

    fn open_newest(&mut self, tail: Tail) -> Result<Vec<String>, CopyError> {
        let mut remarks = Vec::new();
        let folder = self.folder.path();
        // The journal and the timelines have their names here, and a process may have ended before it made them durable.
        self.storage.sync_dir(folder).map_err(|error| FolderError::Io {
            action: "sync the folder",
            path: folder.to_owned(),
            error,
        })?;
        let journal = self.open_journal(&mut remarks)?;
        let Some(path) = self.folder.timelines()?.pop() else { return Ok(remarks) };
        let failed = |error| CopyError::Timeline { path: path.clone(), error };
        let info = Timeline::read(&path).map_err(failed)?;
        let mut recovered = recover(&*self.storage, &path, tail).map_err(failed)?;
        remarks.append(&mut recovered.remarks);
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            info,
            format: recovered.live.as_ref().and_then(|live| live.format.clone()),
            last_timestamp: recovered.live.as_ref().map_or(0, |live| live.last_timestamp),
            gtids: std::mem::take(&mut recovered.gtids),
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
        });
        Ok(remarks)
    }

    /// The journal, after what it holds was put back into the files.
    fn open_journal(&self, remarks: &mut Vec<String>) -> Result<Option<Journal>, CopyError> {
        let path = self.folder.path();
        Journal::open(&*self.storage, path, remarks)
            .map_err(|error| CopyError::Journal { path: path.to_owned(), error })
    }

    /// Begins a timeline and makes it the newest one.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn begin_timeline(&mut self, mut info: Timeline) -> Result<(), CopyError> {
        let newest = self.folder.timelines()?.pop();
        let newest_name = newest.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        info.previous = newest_name.unwrap_or_default().to_owned();
        let number = newest_name.and_then(timeline_number).unwrap_or(0) + 1;
        let path =
            info.create(&*self.storage, self.folder.path(), number).map_err(|error| CopyError::Timeline {
                path: self.folder.path().join(format!("{number:04}-{}", info.server_uuid)),
                error,
            })?;
        let recovered = recover(&*self.storage, &path, Tail::Discard)
            .map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        // If it cannot be opened, the timeline of before stays the newest one here.
        let journal = match self.timeline.as_mut().and_then(|timeline| timeline.log.take_journal()) {
            Some(journal) => Some(journal),
            None => self.open_journal(&mut Vec::new())?,
        };
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            info,
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
            format: None,
            // Its first file says what came before. The older timeline's set may name the same GTIDs with other contents.
            gtids: GtidState::default(),
            last_timestamp: 0,
        });
        Ok(())
    }

    /// Who binlogd is to this source.
    pub fn identity(&self) -> &crate::log::folder::ReplicaIdentity {
        &self.folder.identity
    }

    /// The newest timeline.
    pub fn timeline(&self) -> Option<&OpenTimeline> {
        self.timeline.as_ref()
    }

    /// The newest timeline.
    pub fn timeline_mut(&mut self) -> Option<&mut OpenTimeline> {
        self.timeline.as_mut()
    }

    /// The end of the file before the live one and its format description, when the live file has no event yet. Nothing in
    /// the live file can then tell whether the source's file of that name goes on from there.
    ///
    /// # Errors
    /// When that file cannot be read.
    pub fn before_empty(&self) -> Result<Option<(Position, FormatDescription)>, CopyError> {
        let Some(path) = self.timeline.as_ref().and_then(|timeline| timeline.log.before_empty()) else {
            return Ok(None);
        };
        let found = self.storage.open(&path).and_then(|file| {
            Ok((file.size()?, scan_file(&*file, FORMAT_DESCRIPTION_END_MAX, |_| {})?.format))
        });
        let (end, format) = found.map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format.map(|format| (Position::new(&*name, end), format)))
    }

    /// What the decision about the next session needs.
    pub fn holding(&self) -> Option<Holding> {
        let timeline = self.timeline.as_ref()?;
        Some(Holding {
            uuid: timeline.info.server_uuid.clone(),
            end: timeline.end(),
            first_file: timeline.info.first_file.clone(),
            gtids: timeline.gtids.clone(),
        })
    }
}

impl OpenTimeline {
    /// End of the durable bytes. Between sessions that is a boundary.
    pub fn end(&self) -> Option<Position> {
        self.log.durable().map(|durable| durable.position().clone())
    }

    /// After a session: drops the beginning of a transaction that was not received to its end.
    ///
    /// # Errors
    /// When the log has failed; it must then be opened again from disk.
    pub fn cut_to_boundary(&mut self, boundary: u64) -> Result<(), LogError> {
        self.log.cut_to(boundary)
    }
}

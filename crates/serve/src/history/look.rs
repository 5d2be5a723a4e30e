//! What is looked at to find a place in the log: the history, and what its files say of themselves.

use super::head::Head;
use crate::dump::refusal::{DumpError, Refusal};
use crate::history::{FileId, History};
use binlog::storage::Storage;
use binlog::timeline::held::HeldGtids;
use binlog::writer::published::Live;
use codec::ServerKind;
use codec::gtid::GtidState;
use std::path::Path;

/// Why no dump begins.
#[derive(Debug)]
pub(crate) enum NoPlace {
    /// The reader is told.
    Refused(Refusal),
    /// As [`NoPlace::Refused`], unless the copy is behind the reader: it may have by and by what the reader has.
    Ahead(Refusal),
    /// As [`NoPlace::Refused`], unless the copy is a moment behind the reader. What it has of the reader's domain is newer.
    Apart(Refusal),
    /// The copy cannot be read.
    Failed(DumpError),
}

impl std::convert::From<Refusal> for NoPlace {
    fn from(refusal: Refusal) -> NoPlace {
        NoPlace::Refused(refusal)
    }
}

/// What is looked at to find a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) storage: &'a dyn Storage,
    /// The source's folder.
    pub(crate) folder: &'a Path,
    pub(crate) history: &'a History,
    pub(crate) live: &'a Live,
}

impl Look<'_> {
    /// The GTID system of the newest timeline.
    pub(crate) fn kind(&self) -> ServerKind {
        let newest = self.history.files().next_back();
        newest.map_or(ServerKind::MySql, |file| self.history.timeline(file).server_kind)
    }

    /// Whether a file is the one that is written.
    pub(crate) fn is_live(&self, file: FileId) -> bool {
        self.history.is_of_newest(file) && **self.history.name(file) == *self.live.file
    }

    /// End of what readers may have of a file.
    pub(crate) fn end_of(&self, file: FileId) -> Result<u64, NoPlace> {
        if self.is_live(file) {
            return Ok(self.live.end());
        }
        let found = self.storage.look(&self.history.path(file));
        Ok(found.map_err(|error| self.failed(file, error))?.len)
    }

    pub(crate) fn head(&self, file: FileId) -> Result<Head, NoPlace> {
        let limit = self.end_of(file)?;
        Head::read(self.storage, &self.history.path(file), limit).map_err(|error| self.failed(file, error))
    }

    /// What was executed before a file, by its own word; `None` where it says nothing of that. Of one that is not on this disk
    /// without reading it: a search goes through thousands.
    pub(crate) fn gtids_before(&self, file: FileId) -> Result<Option<GtidState>, NoPlace> {
        match self.storage.recorded(&self.history.path(file)) {
            Some(recorded) => Ok(recorded.gtids_before),
            None => Ok(self.head(file)?.gtids_before),
        }
    }

    pub(crate) fn failed(&self, file: FileId, error: std::io::Error) -> NoPlace {
        NoPlace::Failed(DumpError::File { path: self.history.path(file), error })
    }

    pub(crate) fn failed_folder(&self, error: std::io::Error) -> NoPlace {
        NoPlace::Failed(DumpError::File { path: self.folder.to_owned(), error })
    }

    /// GTIDs of the present history, and the server that goes on with it.
    pub(crate) fn held(&self) -> Result<Option<HeldGtids>, NoPlace> {
        HeldGtids::of(self.storage, &self.history.held(), self.kind())
            .map_err(|error| self.failed_folder(error))
    }
}

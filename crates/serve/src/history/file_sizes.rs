//! How much is between a place in an older file and the live end, for those who look on.
//!
//! Whoever asks for the status must not wait for a disk that hangs, so `size_watch.rs` reads them beforehand. Sealed files never
//! change.

use crate::history::History;
use binlog::storage::Storage;
use binlog::writer::published::Live;
use codec::Position;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of one source up to one live file.
#[derive(Debug)]
pub struct FileSizes {
    timeline: PathBuf,
    live: Arc<str>,
    generation: u64,
    /// Bytes from the beginning of each file to the beginning of the live one. Of two with one name the newer one counts.
    before_live: HashMap<Arc<str>, u64>,
}

/// Sizes by the name of the source.
pub(crate) type AllSizes = BTreeMap<String, Arc<FileSizes>>;

impl FileSizes {
    /// Of the source in `folder`, up to its live file.
    ///
    /// # Errors
    /// When a folder or a description cannot be read.
    pub(crate) fn read(storage: &dyn Storage, folder: &Path, live: &Live) -> io::Result<FileSizes> {
        let history = History::read(storage, folder, live)?;
        let mut before_live = HashMap::new();
        let mut bytes = 0;
        for file in history.files().rev() {
            let name = history.name(file);
            if *name != live.file || !before_live.is_empty() {
                bytes += storage.look(&history.path(file))?.len;
            }
            before_live.entry(name.clone()).or_insert(bytes);
        }
        Ok(FileSizes {
            timeline: live.timeline.clone(),
            live: live.file.clone(),
            generation: live.generation,
            before_live,
        })
    }

    /// Whether they are those up to this live file.
    pub(crate) fn is_of(&self, live: &Live) -> bool {
        self.generation == live.generation && self.live == live.file && self.timeline == live.timeline
    }
}

/// Bytes from a place to the end of what readers may have; `None` when not known.
pub(crate) fn behind(at: &Position, live: &Live, files: Option<&FileSizes>) -> Option<u64> {
    if at.file == live.file {
        return Some(live.end().saturating_sub(at.offset));
    }
    let files = files.filter(|files| files.is_of(live))?;
    let to_live = files.before_live.get(&at.file)?.saturating_sub(at.offset);
    Some(to_live + live.end())
}

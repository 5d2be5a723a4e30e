//! How much is between a place in an older file and the live end, for those who look on.
//!
//! Whoever asks for the status must not wait for a disk that hangs. So a thread of its own reads the sizes, once for each live
//! file, and only while somebody reads from an older one: sealed files never change.

use super::history::History;
use super::readers::Doing;
use super::shared::{Shared, Source};
use codec::Position;
use log::published::Live;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether there are other files. Until then what is behind a new one is not known.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The files of one source up to one live file.
#[derive(Debug)]
pub(crate) struct FileSizes {
    timeline: PathBuf,
    live: Arc<str>,
    generation: u64,
    /// Bytes from the beginning of each file to the beginning of the live one. Of two with one name the newer one counts.
    before_live: HashMap<Arc<str>, u64>,
}

/// Sizes by the name of the source.
pub(crate) type AllSizes = BTreeMap<String, Arc<FileSizes>>;

impl FileSizes {
    fn read(source: &Source, live: &Live) -> io::Result<FileSizes> {
        let history = History::read(&*source.storage, &source.folder, live)?;
        let mut before_live = HashMap::new();
        let mut bytes = 0;
        for file in history.files().rev() {
            let name = history.name(file);
            if *name != live.file || !before_live.is_empty() {
                bytes += source.storage.look(&history.path(file))?.len;
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

    fn is_of(&self, live: &Live) -> bool {
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

/// Keeps the sizes that somebody needs, until `stopped` is closed.
pub(super) fn keep(shared: &Shared, stopped: &UnixStream) {
    let pause = Timespec { tv_sec: LOOK_INTERVAL.as_secs().cast_signed(), tv_nsec: 0 };
    let mut wanted = [PollFd::new(stopped, PollFlags::IN)];
    // Fails for a signal only, which another thread takes.
    while !matches!(poll(&mut wanted, Some(&pause)), Ok(1..)) {
        let sizes = look(shared);
        shared.set_sizes(sizes);
    }
}

fn look(shared: &Shared) -> AllSizes {
    let mut known = shared.sizes().as_ref().clone();
    let mut needed = AllSizes::new();
    for reader in shared.readers.list() {
        let Some(at) = reader.progress.position() else { continue };
        if needed.contains_key(&reader.source) || !matches!(reader.shown().doing, Doing::Dump { .. }) {
            continue;
        }
        let Some(source) = shared.source(&reader.source) else { continue };
        let Some(live) = source.published.live().filter(|live| live.file != at.file) else { continue };
        let sizes = match known.remove(&reader.source).filter(|sizes| sizes.is_of(&live)) {
            Some(sizes) => Ok(sizes),
            None => FileSizes::read(&source, &live).map(Arc::new),
        };
        match sizes {
            Ok(sizes) => drop(needed.insert(reader.source.clone(), sizes)),
            Err(error) => {
                tracing::debug!(source = reader.source, "the sizes of the files are not known: {error}")
            }
        }
    }
    needed
}

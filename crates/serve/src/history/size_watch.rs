//! A thread of its own that looks every second: who has gone while a dump waits, and how much is in the files. The files it looks
//! at once for each live file, and only while somebody reads from an older one.

use super::file_sizes::{AllSizes, FileSizes};
use crate::port::gone::end_those_gone;
use crate::port::readers::Doing;
use crate::port::shared::Shared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether somebody has gone, and whether there are other files. Until then what is behind a new one is not
/// known.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Keeps the sizes that somebody needs, until `stopped` is closed.
pub(crate) fn keep(shared: &Shared, stopped: &UnixStream) {
    let pause = Timespec { tv_sec: LOOK_INTERVAL.as_secs().cast_signed(), tv_nsec: 0 };
    let mut wanted = [PollFd::new(stopped, PollFlags::IN)];
    // Fails for a signal only, which another thread takes.
    while !matches!(poll(&mut wanted, Some(&pause)), Ok(1..)) {
        end_those_gone(&shared.readers);
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
            None => FileSizes::read(&*source.storage, &source.folder, &live).map(Arc::new),
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

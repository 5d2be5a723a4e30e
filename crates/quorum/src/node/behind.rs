//! How much of this copy another node lacks.

use super::Node;
use crate::ballot::Place;
use binlog::timeline::files::timeline_files;
use codec::BinlogName;

impl Node {
    /// Bytes that this copy holds behind a place of the live timeline; 0 where the place is ahead of the copy. `None` while nothing is
    /// received, and when the files cannot be looked at, which is only done where the place is in an older file.
    pub fn bytes_behind(&self, place: &Place) -> Option<u64> {
        let live = self.published.live()?;
        let number = |name| BinlogName::parse(name).ok().map(|name| name.number());
        if place.file == *live.file {
            return Some(live.end().saturating_sub(place.offset));
        }
        if number(&place.file) > number(&live.file) {
            return Some(0);
        }
        let files = timeline_files(&*self.storage, &live.timeline).ok()?;
        let at = files.iter().position(|file| *file == place.file)?;
        let sealed = files[at..].iter().filter(|file| file.as_str() != &*live.file);
        let bytes = sealed.map(|file| Some(self.storage.look(&live.timeline.join(file)).ok()?.len));
        Some((bytes.sum::<Option<u64>>()? + live.end()).saturating_sub(place.offset))
    }
}

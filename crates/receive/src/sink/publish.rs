//! What is held, as it is shown before and without a session.

use crate::attempt::context::Upstream;
use crate::attempt::copy::HeldCopy;
use crate::attempt::open_timeline::OpenTimeline;
use binlog::Position;
use binlog::folder::by_number;
use binlog::scan::scan_file;
use binlog::storage::Storage;
use binlog::timeline::Timeline;
use binlog::timeline::beginning;
use binlog::timeline::files::timeline_files;
use status::{Ladder, TimelineStatus};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Timelines that are shown, the newest.
const TIMELINES_MAX: usize = 50;

/// Shows what is held before, and without, a session.
pub(crate) fn publish_copy(upstream: &Upstream, copy: &HeldCopy) {
    let Some(timeline) = copy.timeline() else { return };
    let monitor = &upstream.monitor;
    let mut before = None;
    let missing = timeline.missing();
    monitor.update_facts(|facts| {
        before = facts.timeline.replace(timeline.name.clone());
        facts.missing = missing;
    });
    if before.as_ref() != Some(&timeline.name) {
        publish_timelines(upstream, copy);
    }
    let mut ladder = monitor.positions();
    if before.is_some_and(|before| before != timeline.name) {
        // What was acknowledged belongs to the timeline before, whose successor was begun by an attempt that failed.
        ladder = Ladder::default();
        monitor.publish_gtids(|gtids| {
            gtids.durable.clear();
            gtids.acknowledged.clear();
        });
    }
    let end = timeline.end();
    publish_readable(upstream, copy, timeline);
    let is_held = |position: &Position| {
        end.as_ref().is_some_and(|end| end.file != position.file || end.offset >= position.offset)
    };
    // Somebody may have removed or cut a file in which positions were acknowledged.
    ladder.acknowledged = ladder.acknowledged.filter(is_held);
    (ladder.received, ladder.written, ladder.durable) = (end.clone(), end.clone(), end);
    monitor.publish_positions(&ladder);
    let held = Arc::new(timeline.stored());
    monitor.publish_gtids(|gtids| gtids.durable.replace(held));
}

/// Shows which timelines there are, and why. What cannot be read is said where it is needed.
pub(crate) fn publish_timelines(upstream: &Upstream, copy: &HeldCopy) {
    let Ok(folders) = by_number(copy.storage(), copy.source_folder()) else { return };
    let newest = folders.len().saturating_sub(TIMELINES_MAX);
    let shown = folders[newest..].iter().filter_map(|folder| {
        let info = Timeline::read(copy.storage(), folder).ok()?;
        Some(TimelineStatus {
            name: folder.file_name()?.to_string_lossy().into_owned(),
            began_at: info.began_at,
            reason: info.reason.word().to_owned(),
            why: info.reason.words().to_owned(),
            first_file: info.first_file,
            server_version: info.server_version,
            previous: info.previous,
            source_lacked: info.source_lacks,
            missing: info.missing,
        })
    });
    let shown = shown.collect();
    upstream.monitor.update_facts(|facts| facts.timelines = shown);
}

/// Lets readers have what is held: where the live file has nothing yet, what stands before it, be it on an older timeline.
fn publish_readable(upstream: &Upstream, copy: &HeldCopy, timeline: &OpenTimeline) {
    let published = &upstream.published;
    published.is_at(timeline.folder(), timeline.shown_end(published).as_ref());
    if published.live().is_some() {
        return;
    }
    let storage = copy.storage();
    let found = match readable_end(storage, timeline.folder()) {
        Ok(Some(end)) => Ok(Some((timeline.folder().to_owned(), end))),
        Ok(None) => end_of_older(storage, copy.source_folder(), &timeline.info),
        Err(error) => Err(error),
    };
    match found {
        Ok(Some((folder, end))) => published.is_at(&folder, Some(&end)),
        Ok(None) => {}
        Err(error) => tracing::warn!(
            source = upstream.config.name,
            "readers are served from the next events of the source on, for what stands before them cannot be read: {error}"
        ),
    }
}

/// The newest of the timelines before one that has something to read, and where that ends.
fn end_of_older(
    storage: &dyn Storage,
    source_folder: &Path,
    newest: &Timeline,
) -> io::Result<Option<(PathBuf, Position)>> {
    let mut previous = Some(newest.previous.clone());
    while let Some(name) = previous.filter(|name| !name.is_empty()) {
        let folder = source_folder.join(&name);
        let info = Timeline::read(storage, &folder)?;
        if let Some(end) = readable_end(storage, &folder)? {
            return Ok(Some((folder, end)));
        }
        // An earlier one it must be, so that this comes to an end whatever a file says.
        previous = Some(info.previous).filter(|earlier| *earlier < name);
    }
    Ok(None)
}

/// The last boundary of the newest file of a timeline that has begun. Walks that file: one that was sealed when the source crashed
/// ends with the beginning of a transaction.
fn readable_end(storage: &dyn Storage, folder: &Path) -> io::Result<Option<Position>> {
    let files = timeline_files(storage, folder)?;
    for name in files.iter().rev() {
        let file = storage.open_read(&folder.join(name))?;
        if !beginning::is_whole(&*file, file.size()?)? {
            continue;
        }
        let end = Position::new(name.as_str(), scan_file(&*file, u64::MAX, |_| {})?.boundary);
        if beginning::is_whole(&*file, end.offset)? {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};

    #[test]
    fn a_live_file_that_has_not_begun_hides_none_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), 1).unwrap();
        assert_eq!(readable_end(&PosixStorage, &folder).unwrap(), None);
        let sealed = FileBuilder::new().previous_gtids("").transaction(1, 9).finish();
        let crashed = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).finish();
        std::fs::write(folder.join("b.000001"), &crashed[..crashed.len() - 31]).unwrap();
        for begun in [&codec::event::BINLOG_MAGIC[..], &FileBuilder::new().finish()] {
            std::fs::write(folder.join("b.000002"), begun).unwrap();
            let expected = Position::new("b.000001", sealed.len() as u64);
            assert_eq!(readable_end(&PosixStorage, &folder).unwrap(), Some(expected));
        }
    }

    /// A process that begins while the newest timeline is empty, as after a failover that was not finished.
    #[test]
    fn the_older_timeline_is_found_that_has_something() {
        let dir = tempfile::tempdir().unwrap();
        let make = |number, previous: &str| {
            let timeline = Timeline { previous: previous.into(), ..first_timeline(SERVER_UUID) };
            (timeline.create(&PosixStorage, dir.path(), number).unwrap(), timeline)
        };
        let name = |number| format!("{number:04}-{SERVER_UUID}");
        let (first, _) = make(1, "");
        let sound = FileBuilder::new().previous_gtids("").transaction(1, 9).finish();
        let torn = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).finish();
        std::fs::write(first.join("b.000001"), &torn[..torn.len() - 3]).unwrap();
        let (second, _) = make(2, &name(1));
        std::fs::write(second.join("b.000001"), FileBuilder::new().finish()).unwrap();
        std::fs::write(second.join("b.000002"), codec::event::BINLOG_MAGIC).unwrap();
        let (_, third) = make(3, &name(2));
        let found = end_of_older(&PosixStorage, dir.path(), &third).unwrap();
        assert_eq!(found, Some((first, Position::new("b.000001", sound.len() as u64))));
        let (_, circle) = make(4, &name(4));
        assert_eq!(end_of_older(&PosixStorage, dir.path(), &circle).unwrap(), None);
    }
}

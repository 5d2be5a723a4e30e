//! What binlogd holds of one source: the folder and its newest timeline, locked and recovered.

use super::copy_error::CopyError;
use super::open_timeline::OpenTimeline;
use crate::decide::found::Found;
use crate::decide::plan::Holding;
use binlog::Position;
use binlog::folder::{FolderError, SourceFolder, by_number, make_present, timeline_number};
use binlog::forks::settlement::Settlements;
use binlog::journal::{self, Journal};
use binlog::purge::unfinished::remove_left;
use binlog::recover::{Tail, Watch, recover, recover_watched, write_again};
use binlog::scan::scan_file;
use binlog::storage::Storage;
use binlog::timeline::Timeline;
use binlog::timeline::gaps::Gaps;
use binlog::timeline::held::{lost_gtids, other_histories, present_history};
use binlog::timeline::offline::resume_point;
use binlog::writer::LogWriter;
use codec::ServerKind;
use codec::event::{BINLOG_MAGIC, FormatDescription};
use codec::gtid::GtidState;
use source::clock::Clock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The copy of one source, held by one thread.
#[derive(Debug)]
pub struct HeldCopy {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    folder: SourceFolder,
    timeline: Option<OpenTimeline>,
    /// What was found about the source and the newest timeline.
    pub(crate) found: Found,
    /// What is on disk has been found out, and is what `timeline` says.
    is_recovered: bool,
    /// That was done before in this process: bytes behind the last boundary are its own.
    was_recovered: bool,
}

impl HeldCopy {
    /// Locks the source's folder and recovers its newest timeline. The second value says what was found and repaired.
    ///
    /// # Errors
    /// When another process holds the folder, or something in it cannot be read or repaired.
    pub fn open(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        data_dir: &Path,
        source: &str,
    ) -> Result<(HeldCopy, Vec<String>), CopyError> {
        let mut copy = HeldCopy::lock(storage, clock, data_dir, source)?;
        let remarks = copy.reopen()?;
        Ok((copy, remarks))
    }

    /// Locks the source's folder and looks at nothing in it yet: [`HeldCopy::reopen`] must follow.
    ///
    /// # Errors
    /// When another process holds the folder, or it cannot be made.
    pub fn lock(
        storage: Arc<dyn Storage>,
        clock: Arc<dyn Clock>,
        data_dir: &Path,
        source: &str,
    ) -> Result<HeldCopy, CopyError> {
        let folder = SourceFolder::open(&*storage, data_dir, source)?;
        Ok(HeldCopy {
            storage,
            clock,
            folder,
            timeline: None,
            found: Found::default(),
            is_recovered: false,
            was_recovered: false,
        })
    }

    /// True when [`HeldCopy::reopen`] has found out what is on disk. Nothing may be decided before.
    pub fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    /// Opens the newest timeline from disk, at the start and after an error that made the state in memory worthless.
    /// The value says what was found and repaired.
    ///
    /// # Errors
    /// When something in the folder cannot be read or repaired. It can be tried again.
    pub fn reopen(&mut self) -> Result<Vec<String>, CopyError> {
        self.reopen_watched(&mut |_, _| Ok(()))
    }

    /// As [`HeldCopy::reopen`], for a caller who wants to know how far it is, or to end it early.
    ///
    /// # Errors
    /// As [`HeldCopy::reopen`], or with the error that `watch` gave.
    pub(crate) fn reopen_watched(&mut self, watch: &mut Watch<'_>) -> Result<Vec<String>, CopyError> {
        let mut remarks = Vec::new();
        if let Some(timeline) = &self.timeline
            && let Some((path, from)) = timeline.log.synced()
        {
            // The page cache may be all that has them; a timeline that is gone is found out below.
            match write_again(&*self.storage, path, from) {
                Ok(()) if timeline.log.is_journal_displaced() => remarks.extend(self.without_journal(path)?),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(CopyError::Timeline { path: path.to_owned(), error });
                }
                _ => {}
            }
        }
        (self.is_recovered, self.timeline) = (false, None);
        let tail = match self.was_recovered {
            true => Tail::Discard,
            false => Tail::SaveAside(self.clock.wall_time()),
        };
        remarks.append(&mut self.open_newest(tail, watch)?);
        (self.is_recovered, self.was_recovered) = (true, true);
        Ok(remarks)
    }

    /// Somebody has cut or replaced the journal while this process wrote to it. Its bytes are in the live file, whose sync
    /// takes its place; what stands where it stood cannot be read as a journal and is put aside.
    fn without_journal(&self, live: &Path) -> Result<Option<String>, CopyError> {
        let folder = self.folder.path();
        let put_aside = self
            .storage
            .open(live)
            .and_then(|file| file.sync_data())
            .and_then(|()| journal::put_aside(&*self.storage, folder, self.clock.wall_time()));
        let aside = put_aside.map_err(|error| CopyError::Journal { path: folder.to_owned(), error })?;
        Ok(aside.map(|aside| {
            format!(
                "the journal was cut or replaced from outside; nothing is missing, for the binary log has all of it. What stood in \
                 its place is kept as {}, and another journal is made",
                aside.display()
            )
        }))
    }

    fn open_newest(&mut self, tail: Tail, watch: &mut Watch<'_>) -> Result<Vec<String>, CopyError> {
        let mut remarks = Vec::new();
        let folder = self.folder.path();
        // The journal and the timelines have their names here, and a process may have ended before it made them durable.
        self.storage.sync_dir(folder).map_err(|error| FolderError::Io {
            action: "sync the folder",
            path: folder.to_owned(),
            error,
        })?;
        // Before anything is changed: a later version may have written it.
        let newest = self.folder.timelines(&*self.storage)?.pop();
        let newest = newest.map(|path| match Timeline::read(&*self.storage, &path) {
            Ok(info) => Ok((path, info)),
            Err(error) => Err(CopyError::Timeline { path, error }),
        });
        let newest = newest.transpose()?;
        let journal = self.open_journal(&mut remarks)?;
        if let Err(error) = remove_left(&*self.storage, folder) {
            // What is left is counted nowhere, and the next purge tries again.
            remarks
                .push(format!("files in {} that were purged cannot be removed: {error}", folder.display()));
        }
        let Some((path, info)) = newest else { return Ok(remarks) };
        let failed = |error| CopyError::Timeline { path: path.clone(), error };
        let gaps = Gaps::read(&*self.storage, folder).map_err(failed)?;
        let mut recovered = recover_watched(&*self.storage, &path, tail, watch).map_err(failed)?;
        remarks.append(&mut recovered.remarks);
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            shared_before: info.shared_before(),
            gaps,
            tail_start: recovered.live.as_ref().map_or(4, |live| live.tail_start),
            info,
            format: recovered.live.as_ref().and_then(|live| live.format.clone()),
            expected: None,
            last_timestamp: recovered.live.as_ref().map_or(0, |live| live.last_timestamp),
            gtids: std::mem::take(&mut recovered.gtids),
            unspoken: GtidState::default(),
            gtids_in_file: std::mem::take(&mut recovered.gtids_in_file),
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
        });
        Ok(remarks)
    }

    /// The journal, after what it holds was put back into the files.
    fn open_journal(&self, remarks: &mut Vec<String>) -> Result<Option<Journal>, CopyError> {
        let path = self.folder.path();
        Journal::open(&*self.storage, path, self.clock.wall_time(), remarks)
            .map_err(|error| CopyError::Journal { path: path.to_owned(), error })
    }

    /// Begins a timeline and makes it the newest one.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn begin_timeline(&mut self, info: Timeline) -> Result<(), CopyError> {
        self.begin_numbered(info, 0)
    }

    /// As [`HeldCopy::begin_timeline`], with a number from `number_min` on. The timeline before it is the one that `info` names;
    /// where it names none, the one that was written.
    ///
    /// # Errors
    /// As [`HeldCopy::begin_timeline`].
    pub(crate) fn begin_numbered(&mut self, mut info: Timeline, number_min: u32) -> Result<(), CopyError> {
        let newest = self.folder.timelines(&*self.storage)?.pop();
        let newest_name = newest.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        if info.previous.is_empty() {
            info.previous = newest_name.unwrap_or_default().to_owned();
        }
        // Not that of the one that is written: the server of an older one may have come back.
        let numbered = by_number(&*self.storage, self.folder.path())
            .map_err(|error| CopyError::Timeline { path: self.folder.path().to_owned(), error })?;
        let last = numbered.last().and_then(|folder| folder.file_name()?.to_str());
        let number = (last.and_then(timeline_number).unwrap_or(0) + 1).max(number_min);
        let path =
            info.create(&*self.storage, self.folder.path(), number).map_err(|error| CopyError::Timeline {
                path: self.folder.path().join(format!("{number:04}-{}", info.server_uuid)),
                error,
            })?;
        let recovered = recover(&*self.storage, &path, Tail::Discard)
            .map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        let gaps = Gaps::read(&*self.storage, self.folder.path())
            .map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        self.found.another_timeline();
        // If it cannot be opened, the timeline of before stays the newest one here.
        let journal = match self.timeline.as_mut().and_then(|timeline| timeline.log.take_journal()) {
            Some(journal) => Some(journal),
            None => self.open_journal(&mut Vec::new())?,
        };
        self.timeline = Some(OpenTimeline {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            shared_before: info.shared_before(),
            gaps,
            tail_start: 4,
            info,
            log: LogWriter::new(self.storage.clone(), &path, recovered, journal),
            format: None,
            expected: None,
            // Its first file says what came before. The older timeline's set may name the same GTIDs with other contents.
            gtids: GtidState::default(),
            unspoken: GtidState::default(),
            gtids_in_file: GtidState::default(),
            last_timestamp: 0,
        });
        Ok(())
    }

    /// The newest timeline, of which nothing has arrived, is described anew.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn describe_anew(&mut self, info: Timeline) -> Result<(), CopyError> {
        let Some(timeline) = &mut self.timeline else { return Ok(()) };
        let failed = |error| CopyError::Timeline { path: timeline.folder().to_owned(), error };
        info.write(&*self.storage, timeline.folder()).map_err(failed)?;
        timeline.info = info;
        Ok(())
    }

    /// The last timeline of each history but the present one, the newest first. What they hold is read as `wanted` is asked
    /// for each; the first to which it says yes is the answer.
    ///
    /// # Errors
    /// When a folder or a file cannot be read.
    pub(crate) fn other_history(
        &self,
        wanted: impl Fn(&Holding) -> bool,
    ) -> Result<Option<(PathBuf, Holding)>, CopyError> {
        let source_folder = self.folder.path();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| CopyError::Timeline { path, error }
        };
        for folder in other_histories(&*self.storage, source_folder).map_err(failed(source_folder))? {
            let info = Timeline::read(&*self.storage, &folder).map_err(failed(&folder))?;
            let mut gtids = info.shared_before();
            let point = resume_point(&*self.storage, &folder).map_err(failed(&folder))?;
            if point.is_none() && !info.purged.is_empty() {
                continue; // All of it was purged: nothing is left that could go on.
            }
            if let Some(point) = &point
                && gtids.union_with(&point.gtids).is_err()
            {
                gtids.clone_from(&point.gtids);
            }
            let holding = Holding {
                uuid: info.server_uuid.clone(),
                end: point.map(|point| point.position),
                never_held: info.never_held(),
                first_file: info.first_file,
                gtids,
            };
            if wanted(&holding) {
                return Ok(Some((folder, holding)));
            }
        }
        Ok(None)
    }

    /// Goes on with an older timeline, which becomes the one that is written.
    ///
    /// # Errors
    /// When it cannot be made so or opened.
    pub(crate) fn go_back_to(&mut self, timeline: &Path) -> Result<(), CopyError> {
        let name = timeline.file_name().unwrap_or_default().to_string_lossy();
        make_present(&*self.storage, self.folder.path(), &name)
            .map_err(|error| CopyError::Timeline { path: timeline.to_owned(), error })?;
        self.found.another_timeline();
        self.reopen().map(drop)
    }

    /// Transactions that forks took from the source, that the copy holds, and about which nobody has decided.
    ///
    /// # Errors
    /// When the description of a timeline, or what was decided, cannot be read.
    pub(crate) fn lost_gtids(&self, kind: ServerKind) -> Result<GtidState, CopyError> {
        let path = self.folder.path();
        let failed = |error| CopyError::Timeline { path: path.to_owned(), error };
        let history = present_history(&*self.storage, path).map_err(failed)?;
        // Each timeline's folder was found by its number; 0 is below all, when nothing was lost.
        let lossy = history.iter().rev().find(|held| !held.info.lacked().is_empty());
        let number = lossy.and_then(|held| timeline_number(held.folder.file_name()?.to_str()?)).unwrap_or(0);
        let settlements = Settlements::read(&*self.storage, path, kind).map_err(failed)?;
        Ok(lost_gtids(&history, kind).subtract(&settlements.decided(number, kind)))
    }

    /// Takes off what was purged since the newest timeline was opened: the files to compare with the source are those that are
    /// there.
    pub(crate) fn forget_purged(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.log.forget_purged();
        }
    }

    /// The disk that it is on.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// The source's folder.
    pub fn source_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Who binlogd is to this source.
    pub fn identity(&self) -> &binlog::folder::ReplicaIdentity {
        &self.folder.identity
    }

    /// The newest timeline.
    pub fn timeline(&self) -> Option<&OpenTimeline> {
        self.timeline.as_ref()
    }

    /// Where the newest timeline ends.
    pub(crate) fn end(&self) -> Option<Position> {
        self.timeline.as_ref().and_then(OpenTimeline::end)
    }

    /// The newest timeline.
    pub fn timeline_mut(&mut self) -> Option<&mut OpenTimeline> {
        self.timeline.as_mut()
    }

    /// Remembers what the source's live file begins with where ours has nothing of it yet, so that the session notices if it is
    /// another one by then.
    pub fn expect(&mut self, format: FormatDescription) {
        let has_nothing = |timeline: &OpenTimeline| {
            timeline.end().is_some_and(|end| end.offset <= BINLOG_MAGIC.len() as u64)
        };
        if let Some(timeline) = self.timeline.as_mut().filter(|timeline| has_nothing(timeline)) {
            timeline.format = Some(format);
        }
    }

    /// Remembers what the first file of a timeline of which nothing has arrived begins with on the source, so that the session
    /// notices if the source's logs were begun anew since.
    pub(crate) fn expect_first(&mut self, format: Option<FormatDescription>) {
        if let Some(timeline) = self.timeline.as_mut() {
            timeline.expected = format;
        }
    }

    /// The end of the file before the live one and its format description, when the live file has no transaction yet. Nothing
    /// in the live file can then tell for sure whether the source's file of that name goes on from there.
    ///
    /// # Errors
    /// When that file cannot be read.
    pub(crate) fn before_untold(&self) -> Result<Option<(Position, FormatDescription)>, CopyError> {
        let Some(path) = self.timeline.as_ref().and_then(OpenTimeline::before_untold) else {
            return Ok(None);
        };
        let found = self.storage.open(&path).and_then(|file| {
            Ok((file.size()?, scan_file(&*file, FormatDescription::END_MAX, |_| {})?.format))
        });
        let (end, format) = found.map_err(|error| CopyError::Timeline { path: path.clone(), error })?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(format.map(|format| (Position::new(&*name, end), format)))
    }

    /// What the decision about the next session needs.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let timeline = self.timeline.as_ref()?;
        Some(Holding {
            uuid: timeline.info.server_uuid.clone(),
            end: timeline.end(),
            first_file: timeline.info.first_file.clone(),
            gtids: timeline.history(),
            never_held: timeline.gaps.never_held().clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::FaultyStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use binlog::timeline::Reason;
    use source::clock::SystemClock;
    use std::io::IoSlice;
    use std::sync::atomic::Ordering::Relaxed;

    fn open(dir: &Path) -> HeldCopy {
        HeldCopy::open(Arc::new(PosixStorage), Arc::new(SystemClock), dir, "s").unwrap().0
    }

    fn begin(copy: &mut HeldCopy, reason: Reason, source_lacks: &str) {
        let gtid_before = copy.holding().map(|holding| holding.gtids.to_record()).unwrap_or_default();
        copy.begin_timeline(Timeline {
            began_at: String::new(),
            reason,
            server_uuid: SERVER_UUID.to_owned(),
            server_version: String::new(),
            server_kind: ServerKind::MySql,
            first_file: "b.000001".to_owned(),
            gtid_before,
            source_lacks: source_lacks.to_owned(),
            source_shares: String::new(),
            missing: String::new(),
            unreadable: String::new(),
            previous: String::new(),
            purged: Vec::new(),
        })
        .unwrap();
    }

    fn history(copy: &HeldCopy) -> String {
        copy.holding().unwrap().gtids.to_line().replace(SERVER_UUID, "")
    }

    /// A copy of transactions 1 to 3, closed.
    fn copied() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::First, "");
        let file =
            FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).transaction(3, 9);
        std::fs::write(copy.timeline().unwrap().folder().join("b.000001"), file.finish()).unwrap();
        dir
    }

    /// Compared with the newest timeline alone, a second successor that lacks the end would pass for complete.
    #[test]
    fn the_history_is_not_forgotten_while_a_new_timeline_has_less() {
        let dir = copied();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::SourceChanged, "");
        assert_eq!(history(&copy), ":1-3", "nothing has arrived yet");
        drop(copy);
        let copy = open(dir.path());
        assert_eq!(history(&copy), ":1-3", "after a restart");
        let begun = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")).transaction(2, 9).finish();
        std::fs::write(copy.timeline().unwrap().folder().join("b.000001"), begun).unwrap();
        drop(copy);
        let mut copy = open(dir.path());
        assert_eq!(copy.timeline().unwrap().gtids.to_line(), format!("{SERVER_UUID}:1-2"));
        assert_eq!(history(&copy), ":1-3", "with a part of the first file");
        begin(&mut copy, Reason::SourceChanged, "");
        assert_eq!(history(&copy), ":1-3", "after another switch");
    }

    #[test]
    fn what_a_fork_lost_is_history_no_more() {
        let dir = copied();
        let mut copy = open(dir.path());
        begin(&mut copy, Reason::Fork, &format!("{SERVER_UUID}:3"));
        assert_eq!(history(&copy), ":1-2");
        begin(&mut copy, Reason::SourceReset, "");
        assert_eq!(history(&copy), "");
    }

    #[test]
    fn the_tail_is_the_last_transaction() {
        let dir = copied();
        let copy = open(dir.path());
        let timeline = copy.timeline().unwrap();
        let file = std::fs::read(timeline.folder().join("b.000001")).unwrap();
        let expected = FileBuilder::new().previous_gtids("").transaction(1, 9).transaction(2, 9).len();
        assert_eq!(timeline.tail_start, expected as u64);
        assert_eq!(timeline.tail().unwrap(), file[expected..]);
    }

    #[test]
    fn a_disk_that_is_full_at_the_start_can_be_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let storage = FaultyStorage::sound();
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 30);
        let boundary = builder.len();
        let file = builder.transaction(2, 300).finish();
        let (mut copy, _) =
            HeldCopy::open(Arc::new(storage.clone()), Arc::new(SystemClock), dir.path(), "a").unwrap();
        assert!(copy.is_recovered() && copy.timeline().is_none());
        copy.begin_timeline(first_timeline(SERVER_UUID)).unwrap();
        let log = &mut copy.timeline_mut().unwrap().log;
        log.begin_file("b.000001").unwrap();
        log.append(&mut [IoSlice::new(&file[4..boundary])]).unwrap();
        log.sync().unwrap();
        log.use_journal().unwrap();
        // Acknowledged, and the process ends before the file has it.
        assert!(log.commit([&file[boundary..]].into_iter()).unwrap());
        drop(copy);

        let mut copy =
            HeldCopy::lock(Arc::new(storage.clone()), Arc::new(SystemClock), dir.path(), "a").unwrap();
        assert!(!copy.is_recovered());
        storage.writes_until_failure.store(0, Relaxed);
        let error = copy.reopen().unwrap_err();
        assert!(error.is_full_disk() && !copy.is_recovered(), "{error}");
        copy.reopen().unwrap();
        assert!(copy.is_recovered());
        assert_eq!(copy.timeline().unwrap().end().unwrap().offset, file.len() as u64);
    }
}

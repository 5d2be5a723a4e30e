//! The files of the present history, over all its timelines, as one list.
//!
//! Readers get the present history and nothing else. Where a fork of the same server goes on with a file that the older
//! timeline has too, the older one's file is history no more, nor are those behind it: the source took them back. What a
//! fork of another server took is told by GTID only; see [`History::lost_after`].

pub(crate) mod choice;
pub(crate) mod file_sizes;
pub(crate) mod head;
pub(crate) mod look;
pub(crate) mod mariadb_choice;
pub(crate) mod mariadb_place;
pub(crate) mod next_timeline;
pub(crate) mod place;
pub(crate) mod seen;
pub(crate) mod size_watch;
pub(crate) mod timeline_end;

use binlog::folder::timelines;
use binlog::storage::Storage;
use binlog::timeline::described::drop_unbegun;
use binlog::timeline::files::timeline_files;
use binlog::timeline::held::{HeldTimeline, history_of};
use binlog::timeline::{Reason, Timeline};
use binlog::writer::published::Live;
use codec::BinlogName;
use codec::ServerKind;
use codec::gtid::GtidState;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of a [`History`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    timeline: usize,
    file: usize,
}

/// The files that readers may have.
#[derive(Debug, Clone)]
pub struct History {
    timelines: Vec<Part>,
}

/// One timeline's part of it.
#[derive(Debug, Clone)]
struct Part {
    held: HeldTimeline,
    /// Those that are history, in order.
    files: Vec<Arc<str>>,
    /// The first file behind them that the next timeline has in another form.
    superseded: Option<Arc<str>>,
    /// The first file behind them that says nothing yet, of a timeline that is written no more.
    unbegun: Option<Arc<str>>,
}

/// What follows a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Following {
    /// The next file of the same timeline.
    File(FileId),
    /// The first file of the next timeline.
    Timeline(FileId),
    /// Nothing yet.
    Nothing,
}

impl History {
    /// Reads the names of the files up to the live one.
    ///
    /// # Errors
    /// When a folder or a description cannot be read.
    pub fn read(storage: &dyn Storage, source_folder: &Path, live: &Live) -> io::Result<History> {
        let mut timelines = Vec::new();
        for held in history_of(storage, source_folder, &live.timeline)? {
            let files = timeline_files(storage, &held.folder)?.into_iter().map(Arc::from).collect();
            timelines.push(Part { held, files, superseded: None, unbegun: None });
        }
        for at in 1..timelines.len() {
            let (older, newer) = timelines.split_at_mut(at);
            if let Some(older) = older.last_mut() {
                older.unbegun = drop_unbegun(storage, &older.held.folder, &mut older.files)?;
                older.give_way_to(&newer[0].held.info);
            }
        }
        if let Some(newest) = timelines.last_mut() {
            newest.end_at(&live.file);
        }
        Ok(History { timelines })
    }

    /// As [`History::read`], of one timeline alone, as it stands, whatever became of it since: another binlogd of the source asks
    /// for it that way, to have the same bytes. `None` where there is none of that name, or nothing of it was published. Without a
    /// name it is the one that is written.
    ///
    /// # Errors
    /// When a folder or a description cannot be read.
    pub(crate) fn of_one(
        storage: &dyn Storage,
        source_folder: &Path,
        name: &str,
        live: &Live,
    ) -> io::Result<Option<History>> {
        let is_it = |folder: &PathBuf| match name.is_empty() {
            true => *folder == live.timeline,
            false => folder.file_name().is_some_and(|folder| folder == name),
        };
        // The server of an older one may be back: then the newer ones were written before.
        let all = timelines(storage, source_folder)?;
        let number = |folder: &Path| all.iter().position(|other| *other == *folder);
        let Some(folder) = all.iter().find(|folder| is_it(folder)) else { return Ok(None) };
        if number(folder) > number(&live.timeline) {
            return Ok(None);
        }
        let read = |folder: &Path| -> io::Result<HeldTimeline> {
            Ok(HeldTimeline { folder: folder.to_owned(), info: Timeline::read(storage, folder)? })
        };
        let files = timeline_files(storage, folder)?.into_iter().map(Arc::from).collect();
        let mut parts = vec![Part { held: read(folder)?, files, superseded: None, unbegun: None }];
        if *folder == live.timeline {
            parts[0].end_at(&live.file);
        } else {
            parts[0].unbegun = drop_unbegun(storage, folder, &mut parts[0].files)?;
            // What is written now stands behind it, without files: so the timeline is an older one, that ends.
            let mut held = read(&live.timeline)?;
            held.info.source_lacks = String::new();
            parts.push(Part { held, files: Vec::new(), superseded: None, unbegun: None });
        }
        Ok(Some(History { timelines: parts }))
    }

    /// Reads again which files the newest timeline has, up to the live one. Returns what has become of a file of it: old files
    /// may be gone, so that the others stand elsewhere in the list.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn refresh(&mut self, storage: &dyn Storage, live: &Live, at: FileId) -> io::Result<Option<FileId>> {
        let name = self.name(at).clone();
        if let Some(newest) = self.timelines.last_mut() {
            newest.files = timeline_files(storage, &newest.held.folder)?.into_iter().map(Arc::from).collect();
            newest.end_at(&live.file);
            let file = newest.files.iter().position(|file| *file == name);
            return Ok(file.map(|file| FileId { file, ..at }));
        }
        Ok(None)
    }

    /// All files, the oldest first.
    pub fn files(&self) -> impl DoubleEndedIterator<Item = FileId> + '_ {
        let of = |timeline: usize| {
            (0..self.timelines[timeline].files.len()).map(move |file| FileId { timeline, file })
        };
        (0..self.timelines.len()).flat_map(of)
    }

    /// The files that can be asked for by name, the oldest first: of files with one name the newest timeline's.
    pub fn listed(&self) -> impl Iterator<Item = FileId> + '_ {
        self.files().filter(|id| self.named(self.name(*id)) == Some(*id))
    }

    /// The file that a name means: the newest timeline's that has it.
    pub fn named(&self, name: &str) -> Option<FileId> {
        self.files().rev().find(|id| &**self.name(*id) == name)
    }

    /// Its name.
    pub fn name(&self, id: FileId) -> &Arc<str> {
        &self.timelines[id.timeline].files[id.file]
    }

    /// Its path.
    pub fn path(&self, id: FileId) -> PathBuf {
        self.timelines[id.timeline].held.folder.join(&**self.name(id))
    }

    /// The description of its timeline.
    pub fn timeline(&self, id: FileId) -> &Timeline {
        &self.timelines[id.timeline].held.info
    }

    /// Whether it is of the timeline that is written.
    pub fn is_of_newest(&self, id: FileId) -> bool {
        id.timeline + 1 == self.timelines.len()
    }

    /// Folder of its timeline.
    pub fn folder(&self, id: FileId) -> &Path {
        &self.timelines[id.timeline].held.folder
    }

    /// Whether it is the last file of a timeline that is written no more.
    pub(crate) fn ends_older_timeline(&self, id: FileId) -> bool {
        self.timelines[id.timeline].superseded.is_none()
            && self.last_of_timeline(id) == id
            && !self.is_of_newest(id)
    }

    /// The last file of the same timeline that is history.
    pub(crate) fn last_of_timeline(&self, id: FileId) -> FileId {
        FileId { file: self.timelines[id.timeline].files.len().saturating_sub(1), ..id }
    }

    /// The next file of the same timeline.
    pub(crate) fn next_of_timeline(&self, id: FileId) -> Option<FileId> {
        match self.following(id) {
            Following::File(next) => Some(next),
            _ => None,
        }
    }

    /// The file of the same timeline behind the last one that is history: what came before it is what was executed there.
    pub(crate) fn superseded_after(&self, id: FileId) -> Option<PathBuf> {
        let part = &self.timelines[id.timeline];
        let name = part.superseded.as_ref().filter(|_| id.file + 1 == part.files.len())?;
        Some(part.held.folder.join(&**name))
    }

    /// The name of the file behind the last one of a timeline that is written no more, where that says nothing yet.
    pub(crate) fn unbegun_behind(&self, id: FileId) -> Option<&str> {
        let part = &self.timelines[id.timeline];
        part.unbegun.as_deref().filter(|_| self.ends_older_timeline(id))
    }

    /// What follows a file.
    pub(crate) fn following(&self, id: FileId) -> Following {
        let next = FileId { timeline: id.timeline, file: id.file + 1 };
        if next.file < self.timelines[id.timeline].files.len() {
            return Following::File(next);
        }
        self.after_timeline(id)
    }

    /// What follows the timeline of a file.
    pub(crate) fn after_timeline(&self, id: FileId) -> Following {
        let later =
            (id.timeline + 1..self.timelines.len()).find(|later| !self.timelines[*later].files.is_empty());
        later.map_or(Following::Nothing, |timeline| Following::Timeline(FileId { timeline, file: 0 }))
    }

    /// Its timelines, the oldest first.
    pub fn held(&self) -> Vec<HeldTimeline> {
        self.timelines.iter().map(|part| part.held.clone()).collect()
    }

    /// The timelines behind that of a file.
    pub(crate) fn held_after(&self, id: FileId) -> Vec<HeldTimeline> {
        self.timelines[id.timeline + 1..].iter().map(|part| part.held.clone()).collect()
    }

    /// The files of the same timeline that are history, in order.
    pub fn of_timeline(&self, id: FileId) -> impl Iterator<Item = FileId> + use<> {
        (0..self.timelines[id.timeline].files.len()).map(move |file| FileId { file, ..id })
    }

    /// What forks took from the source after this file's timeline: transactions that it holds and that are history no more.
    pub fn lost_after(&self, id: FileId, kind: ServerKind) -> GtidState {
        let mut lost = GtidState::empty(kind);
        for later in &self.timelines[id.timeline + 1..] {
            // A set of the other kind of server, from before a migration, says nothing about this one.
            let _ = lost.union_with(&later.held.info.lacked());
        }
        lost
    }

    /// Whether the log of the file's timeline goes on with the first file of the next one as a server's own log does from
    /// file to file, so that a reader by file and position can be sent both. By their names; `Err` says why not.
    ///
    /// # Errors
    /// In words.
    pub fn goes_on_by_position(&self, from: FileId, to: FileId) -> Result<(), &'static str> {
        let (older, newer) = (self.timeline(from), self.timeline(to));
        if older.server_uuid != newer.server_uuid {
            return Err(
                "another server wrote what comes next, under other names and positions. Read it by GTID",
            );
        }
        // After a MariaDB that was killed while it wrote, nothing is missing but half an event that never counted.
        let is_whole = newer.server_kind == ServerKind::MariaDb && !newer.unreadable.is_empty();
        let is_gap = newer.reason == Reason::Gap && !is_whole;
        if is_gap || !newer.missing.is_empty() || newer.first_file != **self.name(to) {
            return Err(
                "transactions are missing between this file and the next one: they were never copied",
            );
        }
        let names = (BinlogName::parse(self.name(from)), BinlogName::parse(self.name(to)));
        match names {
            (Ok(from), Ok(to)) if from.successor().as_deref() == Some(to.as_str()) => Ok(()),
            _ => Err("the next file is not the one that follows this one"),
        }
    }
}

impl Part {
    /// The next timeline begins with a file of this one, of the same server: what this one has under that name, and behind it,
    /// is history no more.
    fn give_way_to(&mut self, next: &Timeline) {
        if self.held.info.server_uuid != next.server_uuid {
            return;
        }
        let Ok(first) = BinlogName::parse(&next.first_file) else { return };
        let is_taken_back = |name: &Arc<str>| {
            BinlogName::parse(name).is_ok_and(|name| name.base() == first.base() && name >= first)
        };
        if let Some(at) = self.files.iter().position(is_taken_back) {
            self.superseded = Some(self.files[at].clone());
            self.files.truncate(at);
        }
    }

    /// Files behind the live one are being begun: nobody may have them yet. Without the live one nobody knows where that is.
    fn end_at(&mut self, live: &str) {
        let at = self.files.iter().position(|name| **name == *live);
        self.files.truncate(at.map_or(0, |at| at + 1));
    }
}

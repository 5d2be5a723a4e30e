//! The archive of one source, kept up with its copy step by step.
//!
//! A step looks for the first thing that the archive lacks, uploads it, and commits it. Everything that a step needs to know
//! stands in the store and on the disk, so a process that is killed at any moment goes on where its last commit is.

mod archiver;
mod error;
mod file;
mod known;
pub mod local;
pub mod stream;
pub mod upload;

pub use archiver::{Archiver, DurableEnd, Step};
pub use error::ArchiveError;
pub use known::{ArchivedEnd, Finished, WholeFile};

use self::archiver::kept;
use self::error::{in_file, unreadable};
use self::file::Candidate;
use crate::chain::history::ArchivedFile;
use crate::chain::mapping::{LocalTimeline, MappingError, Others, archived_name};
use crate::chain::mark::{MARK_FILE, Mark};
use crate::chain::trust::Signing;
use crate::chain::{Chain, ChainError};
use binlog::folder::timelines;
use binlog::timeline::Timeline;
use binlog::timeline::files::timeline_files;
use jiff::Timestamp;
use std::io;
use std::path::{Path, PathBuf};

impl Archiver {
    /// Does one thing that the archive lacks. `durable` is the end of the file that is written; while it is not known, that file
    /// waits. `tails` says that its new bytes are to be archived now, however few; else they wait for `TAIL_BYTES`.
    ///
    /// # Errors
    /// When it could not be done. The next step tries again, from what stands in the store by then.
    pub fn step(
        &mut self,
        durable: Option<&DurableEnd>,
        tails: bool,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let store = self.uploader.store.clone();
        self.open_chain()?;
        let mut first_error = None;
        self.lacking = None;
        if !self.storage.exists(&self.folder).is_ok_and(|is_there| is_there) {
            return Ok(Step::Idle); // Nothing has ever been copied.
        }
        let folders = timelines(&*self.storage, &self.folder)
            .map_err(|error| ArchiveError::Copy(format!("{}: {error}", self.folder.display())))?;
        for (index, folder) in folders.iter().enumerate() {
            let is_written = index + 1 == folders.len();
            if !is_written && self.is_finished(folder)? {
                continue;
            }
            match self.timeline(&folders, folder, is_written, durable, tails, now) {
                Ok(Step::Idle) => {}
                Ok(step) => return Ok(step),
                // What is wrong with one timeline keeps no other from being archived.
                Err(
                    error @ (ArchiveError::Damaged { .. }
                    | ArchiveError::Differs { .. }
                    | ArchiveError::Unreadable { .. }),
                ) => {
                    first_error.get_or_insert(error);
                }
                Err(error) => {
                    if matches!(error, ArchiveError::Chain(ChainError::Unsound(_) | ChainError::Older(_))) {
                        self.chain = None;
                    }
                    return Err(error);
                }
            }
        }
        if matches!(first_error, Some(ArchiveError::Unreadable { .. })) && self.refresh()? {
            return Ok(Step::Behind); // The file may have expired.
        }
        let after = if self.snapshots_wanted > 0 { 1 } else { self.commits_per_snapshot };
        if let Some(change) = self.opened()?.snapshot_if_due(&*store, after)? {
            self.snapshots_wanted = self.snapshots_wanted.saturating_sub(1);
            return self.commit(now, vec![change], (0, 0, 0));
        }
        first_error.map_or(Ok(Step::Idle), Err)
    }

    /// Takes notice of what others have committed. True when there was something.
    ///
    /// # Errors
    /// When the store cannot be read, or what stands in it cannot be.
    pub fn refresh(&mut self) -> Result<bool, ArchiveError> {
        if self.open_chain()? {
            return Ok(true);
        }
        let store = self.uploader.store.clone();
        let Some(chain) = &mut self.chain else { return Ok(false) };
        let refreshed = chain.refresh(&*store);
        if matches!(refreshed, Err(ChainError::Older(_))) {
            self.chain = None;
        }
        let is_news = refreshed?;
        self.note();
        Ok(is_news)
    }

    /// Reads the chain, if that was not done; true when it was now. It must go on from what was seen of it; and with one that has a
    /// hole nobody goes on, for the next commit would fill it.
    fn open_chain(&mut self) -> Result<bool, ArchiveError> {
        if self.chain.is_some() {
            return Ok(false);
        }
        let store = self.uploader.store.clone();
        if self.remembered.is_none() {
            let read = Mark::read(&*self.storage, &self.folder, &self.place);
            self.seen = read.map_err(|error| in_file(&self.folder.join(MARK_FILE), &error))?;
            self.remembered = Some(self.seen.clone());
        }
        let Signing { key, trust } = self.signing.clone();
        let chain = Chain::open_trusting(&*store, &self.source, &trust)?.signing(key);
        let mut chain = chain.checked(&*store, self.seen.as_ref())?;
        chain.check_whole(&*store)?;
        self.chain = Some(chain);
        self.note();
        Ok(true)
    }

    /// Puts what is known of the archive on the disk, for the next process. To be called by who has the copy: before local files are
    /// given up because of it, and from time to time.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn remember(&mut self) -> io::Result<()> {
        let Some(mark) = self.seen.as_ref().filter(|_| self.remembered.as_ref() != Some(&self.seen)) else {
            return Ok(());
        };
        mark.write(&*self.storage, &self.folder)?;
        self.remembered = Some(self.seen.clone());
        Ok(())
    }

    /// Whether an older timeline is what it was when the archive had all of it: its server may have been back meanwhile.
    fn is_finished(&mut self, folder: &Path) -> Result<bool, ArchiveError> {
        let Some((file, len)) = self.finished.get(folder) else { return Ok(false) };
        let files = timeline_files(&*self.storage, folder).map_err(|error| in_file(folder, &error))?;
        let path = folder.join(file);
        let is_same = match files.last() {
            None => true, // All of it was purged.
            Some(last) => last == file && self.storage.look(&path).is_ok_and(|found| found.len == *len),
        };
        if !is_same {
            self.finished.remove(folder);
        }
        Ok(is_same)
    }

    /// What else the copy has.
    fn others(&self, folders: &[PathBuf], folder: &Path) -> Others {
        let names = self.names.iter().filter(|(of, _)| of != folder).map(|(_, name)| name.clone()).collect();
        let began = |other: &PathBuf| Some(Timeline::read(&*self.storage, other).ok()?.began_at);
        Others {
            names,
            began_at: folders.iter().filter(|other| *other != folder).filter_map(began).collect(),
        }
    }

    fn timeline(
        &mut self,
        folders: &[PathBuf],
        folder: &Path,
        is_written: bool,
        durable: Option<&DurableEnd>,
        tails: bool,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let in_folder = |error: io::Error| ArchiveError::Copy(format!("{}: {error}", folder.display()));
        let files = timeline_files(&*self.storage, folder).map_err(in_folder)?;
        let Some(last) = files.last() else { return Ok(Step::Idle) };
        let local = LocalTimeline::read(&*self.storage, folder, &files).map_err(ArchiveError::Copy)?;
        let timeline = self.archived_name(&local, &self.others(folders, folder))?;
        if self.names.iter().any(|(of, before)| of == folder && *before != timeline) {
            // What was compared was compared with another one.
            self.agreed = None;
            self.settled.clear();
        }
        self.names.retain(|(of, _)| of != folder);
        self.names.push((folder.to_owned(), timeline.clone()));
        let timeline = timeline.as_str();
        let here = durable.filter(|durable| durable.timeline == folder);
        let mut unreadable = None;
        for (place, name) in files.iter().enumerate() {
            let path = folder.join(name);
            if self.settled.contains(&path) {
                continue;
            }
            let archived = self.opened()?.history().file(timeline, name).cloned();
            if archived.is_none() && self.has_expired(timeline, &files, place) {
                continue;
            }
            let is_here = here.is_some_and(|here| here.file == *name);
            let is_sealed = name != last && !is_here;
            if let Some(archived) = archived.as_ref().filter(|archived| archived.sealed.is_some()) {
                let settled = self.settle(&path, archived, is_sealed).inspect_err(|_| {
                    self.lacking.get_or_insert_with(|| (folder.to_owned(), name.clone()));
                });
                match settled {
                    // An object that somebody has harmed keeps nothing new from being archived.
                    Err(error @ ArchiveError::Unreadable { .. }) => drop(unreadable.get_or_insert(error)),
                    settled => settled?,
                }
                continue;
            }
            self.lacking.get_or_insert_with(|| (folder.to_owned(), name.clone()));
            let end = match here.filter(|_| is_here) {
                Some(here) => here.offset,
                // Nobody has said how much of it is durable.
                None if is_written && (!is_sealed || is_behind(here, &files, place)) => break,
                None => self.storage.look(&path).map_err(|error| in_file(&path, &error))?.len,
            };
            let at_once = tails || !is_written || is_sealed;
            let candidate = Candidate { path, timeline, name, archived, end, is_sealed, at_once };
            match self.file(&candidate, &local, now)? {
                Step::Idle => {}
                step => return Ok(step),
            }
        }
        if let Some(error) = unreadable {
            return Err(error);
        }
        if !is_written {
            let len = self.storage.look(&folder.join(last)).map_err(in_folder)?.len;
            self.finished.insert(folder.to_owned(), (last.clone(), len));
            self.lacking = self.lacking.take().filter(|(of, _)| of != folder);
        }
        Ok(Step::Idle)
    }

    /// Whether retention took the file at `place`, or one behind it: the archive does not want it again.
    fn has_expired(&self, timeline: &str, files: &[String], place: usize) -> bool {
        let archived = self.chain.as_ref().and_then(|chain| chain.history().timelines.get(timeline));
        archived.is_some_and(|archived| archived.has_let_go(&files[place..]))
    }

    /// What the archive calls a timeline of the copy.
    fn archived_name(&mut self, local: &LocalTimeline, others: &Others) -> Result<String, ArchiveError> {
        let history = self.opened()?.history().clone();
        let (storage, store) = (self.storage.clone(), self.uploader.store.clone());
        let mut segments = |file: &ArchivedFile| kept(&mut self.index, &*store, file);
        archived_name(&history, &mut segments, &*storage, local, others).map_err(|error| match error {
            MappingError::Copy(error) => in_file(&local.folder, &error),
            MappingError::Archive(error) => unreadable(&local.folder, error),
        })
    }
}

/// Whether the file at `place` comes behind the one up to which something is durable.
fn is_behind(here: Option<&DurableEnd>, files: &[String], place: usize) -> bool {
    let durable = here.and_then(|here| files.iter().position(|file| *file == here.file));
    durable.is_some_and(|durable| place > durable)
}

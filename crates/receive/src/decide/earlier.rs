//! A source that was put back to before the newest timeline began: it shares no file with that, but it does with an earlier one
//! of the same history. Without a look at those it would pass for one that began its logs anew, and all that it lost for given up.

use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use binlog::Position;
use binlog::scan::scan_file;
use binlog::timeline::files::timeline_files;
use binlog::timeline::held::{HeldTimeline, lost_gtids, present_history};
use binlog::timeline::offline::{gtids_until, resume_point};
use binlog::verify::kept_from;
use codec::event::FormatDescription;
use codec::gtid::GtidState;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::identify::SourceIdentity;
use source::look::{Compared, Look, Ours};
use std::path::Path;
use wire::WireError;

/// Where the source's logs leave the copy's history.
pub(crate) struct Parting {
    /// An event that differs, or the end of what the source has, on an earlier timeline.
    pub(crate) at: Position,
    /// Folder name of that timeline.
    pub(crate) timeline: String,
    /// The source's file with which its own history goes on.
    pub(crate) from: String,
    /// GTIDs of the copy from there on, on that timeline and the later ones.
    pub(crate) source_lacks: GtidState,
}

impl Attempt<'_> {
    /// Where the source leaves the history before the newest timeline; `None` when it has no file of it.
    pub(crate) fn parts_earlier(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Parting>, AttemptError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| CopyError::Timeline { path, error }
        };
        let source_folder = copy.source_folder();
        let storage = copy.storage();
        let history = present_history(storage, source_folder).map_err(failed(source_folder))?;
        let Some((_, earlier)) = history.split_last() else { return Ok(None) };
        if earlier.is_empty() {
            return Ok(None);
        }
        let oldest = self.look(copy, source, "")?;
        for folder in earlier.iter().rev().map(|held| &held.folder) {
            let names = timeline_files(storage, folder).map_err(failed(folder))?;
            let names = oldest.not_purged(&names)?;
            let mut shared = 0;
            while shared < names.len() && self.has_file(copy, source, folder, &names[shared], &oldest)? {
                shared += 1;
            }
            let Some(name) = names[..shared].last() else { continue };
            let path = folder.join(name);
            let ours = storage.open_read(&path).map_err(failed(&path))?;
            let len = ours.size().map_err(failed(&path))?;
            let sealed = shared < names.len();
            let compared = self.compare(copy, source, name, Ours { file: &*ours, len, sealed })?;
            let (at, from) = match compared {
                Compared::Equal { next } => (len, next.unwrap_or_else(|| name.clone())),
                Compared::Differs { at } => (at, name.clone()),
            };
            let kind = source.executed.kind();
            let mut held = lost_gtids(&history, kind);
            let point = resume_point(storage, folder).map_err(failed(folder))?;
            let later = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
            for gtids in point.iter().map(|point| &point.gtids).chain([&later]) {
                // Of another kind of server, from before a migration, it has nothing to lack.
                let _ = held.union_with(gtids);
            }
            let told = gtids_until(storage, folder, &names[..shared], at).map_err(failed(folder))?;
            // Where no file tells what came before it, nothing is known to be shared.
            let shares = told.unwrap_or_default();
            let timeline = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (at, source_lacks) = (Position::new(name.as_str(), at), held.subtract(&shares));
            return Ok(Some(Parting { at, timeline, from, source_lacks }));
        }
        Ok(None)
    }

    /// What a source lacks that was put back to before the oldest file that is left of a copy: its log ends before that, so they
    /// have no file in common. `None` for one that began its logs anew, whose oldest file is newer than that file. Without
    /// a file that was purged or moved away, every file that a source can be put back to is here.
    pub(crate) fn lost_before_what_is_left(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<GtidState>, AttemptError> {
        let source_folder = copy.source_folder();
        let storage = copy.storage();
        let failed = |error| CopyError::Timeline { path: source_folder.to_owned(), error };
        let history = present_history(storage, source_folder).map_err(failed)?;
        let is_cut =
            |held: &HeldTimeline| !held.info.purged.is_empty() || kept_from(storage, &held.folder).is_some();
        if !history.iter().any(is_cut) {
            return Ok(None);
        }
        // That of the present server. A timeline of another one has other files.
        let Some(held) = history.last() else { return Ok(None) };
        let names = timeline_files(storage, &held.folder).map_err(failed)?;
        let Some(first) = names.first() else { return Ok(None) };
        let opened = storage.open_read(&held.folder.join(first));
        let scan = opened.and_then(|file| scan_file(&*file, FormatDescription::END_MAX, |_| {}));
        let Some(ours) = scan.map_err(failed)?.format else { return Ok(None) };
        let oldest = self.look(copy, source, "")?;
        // Its first file after a reset began when the copy's had long begun.
        if oldest.format.timestamp >= ours.timestamp {
            return Ok(None);
        }
        let mut held = lost_gtids(&history, source.executed.kind());
        let later = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
        // Of another kind of server, from before a migration, it has nothing to lack.
        let _ = held.union_with(&later);
        Ok(Some(source.lacks(&held)))
    }

    /// Whether the source has this file, as far as the format description tells.
    fn has_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        folder: &Path,
        name: &str,
        oldest: &Look,
    ) -> Result<bool, AttemptError> {
        let path = folder.join(name);
        let opened = copy.storage().open_read(&path);
        let scan = opened.and_then(|file| scan_file(&*file, FormatDescription::END_MAX, |_| {}));
        let ours: Option<FormatDescription> =
            scan.map_err(|error| CopyError::Timeline { path, error })?.format;
        // One of which nothing has arrived says nothing.
        let Some(ours) = ours else { return Ok(false) };
        if oldest.file == name {
            return Ok(ours.is_same_file(&oldest.format));
        }
        match self.look(copy, source, name) {
            Ok(look) => Ok(ours.is_same_file(&look.format)),
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. }))
                if Complaint::of(&message) == Complaint::FileNotFound =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

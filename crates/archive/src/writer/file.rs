//! A file of the copy, and what the archive lacks of it: its bytes, fewer and larger objects, its seal.

use super::archiver::{Archiver, Step};
use super::error::{ArchiveError, in_file};
use super::local::{Cut, Next, head, next_piece, read_range};
use super::upload::{Owner, UploadError, create_data};
use crate::chain::commit::{Change, Grown, Segment};
use crate::chain::history::ArchivedFile;
use crate::chain::mapping::{LocalTimeline, is_foreign};
use crate::names;
use crate::segment::merge::next_merge;
use crate::segment::segments;
use crate::segment::whole::sum_beside;
use binlog::storage::ReadFile;
use codec::gtid::GtidState;
use codec::rows::hex;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// So many bytes of the live file are uploaded at once however short the time since the last upload.
const TAIL_BYTES: u64 = 16 << 20;

/// So many bytes of a file are in memory at once when it is compared, for each source.
const COMPARE_BYTES: u64 = 256 << 10;

/// A file of the copy, and what the archive has of it.
pub(super) struct Candidate<'a> {
    pub(super) path: PathBuf,
    pub(super) timeline: &'a str,
    pub(super) name: &'a str,
    pub(super) archived: Option<Arc<ArchivedFile>>,
    pub(super) end: u64,
    pub(super) is_sealed: bool,
    /// Whether anything new is to be uploaded, however little.
    pub(super) at_once: bool,
}

impl Candidate<'_> {
    fn archived_end(&self) -> u64 {
        self.archived.as_ref().map_or(0, |archived| archived.end())
    }
}

impl Archiver {
    /// A file to which the archive adds nothing more must not go on on this disk, nor be another one: nobody would archive
    /// what it has, and retention here may rely on the archive.
    pub(super) fn settle(
        &mut self,
        path: &Path,
        archived: &ArchivedFile,
        is_sealed: bool,
    ) -> Result<(), ArchiveError> {
        if self.settled.contains(path) {
            return Ok(());
        }
        let len = self.storage.look(path).map_err(|error| in_file(path, &error))?.len;
        let head = head(&*self.storage, path, u64::MAX).map_err(|error| in_file(path, &error))?;
        let is_other = head.is_some_and(|head| head != archived.head);
        if is_other || len > archived.end() || (is_sealed && len < archived.end()) {
            let what = format!(
                "it has {len} bytes, and the archive has it as a finished file of {}, from another copy. One of the two is wrong; both are kept",
                archived.end()
            );
            return Err(ArchiveError::Differs { path: path.to_owned(), what });
        }
        if !is_sealed {
            return Ok(());
        }
        // The end of it, where two that have parted differ: reading all files once a start would take hours.
        if let Some(last) = self.segments(path, archived)?.last() {
            let file = self.open(path)?;
            compare(path, &*file, last, |part| part)?;
        }
        self.settled.insert(path.to_owned());
        Ok(())
    }

    /// What the archive has of a file from other writers, or from an earlier run, must be on this disk too before anything is
    /// put behind it: two copies whose files begin alike and part later would become one file that nobody wrote.
    fn agree(
        &mut self,
        candidate: &Candidate<'_>,
        archived: &ArchivedFile,
        file: &dyn ReadFile,
    ) -> Result<(), ArchiveError> {
        let known = self.agreed_with(&candidate.path);
        let mut through = known;
        // One that ends behind what this copy has waits.
        let is_here = |segment: &&Segment| segment.to > known && segment.to <= candidate.end;
        for segment in inline(archived).iter().filter(is_here) {
            if self.uploader.stop.load(Ordering::Relaxed) {
                return Err(ArchiveError::Stopped);
            }
            compare(&candidate.path, file, segment, |part| part)?;
            through = segment.to;
        }
        self.agreed = Some((candidate.path.clone(), through));
        Ok(())
    }

    /// Up to where a file is known to be the same here and in the archive.
    fn agreed_with(&self, path: &Path) -> u64 {
        self.agreed.as_ref().filter(|(of, _)| of == path).map_or(0, |(_, to)| *to)
    }

    pub(super) fn file(
        &mut self,
        candidate: &Candidate<'_>,
        local: &LocalTimeline,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let Candidate { path, end, is_sealed, .. } = candidate;
        let from = candidate.archived_end();
        if *is_sealed && from > *end {
            return Err(ArchiveError::Differs {
                path: path.clone(),
                what: format!(
                    "it has {end} bytes, and the archive has {from} of it, from another copy. One of the two is wrong; both are kept"
                ),
            });
        }
        let is_enough = candidate.at_once || end.saturating_sub(from) >= TAIL_BYTES;
        if from < *end && is_enough {
            let step = self.grow(candidate, local, now)?;
            if step != Step::Idle {
                return Ok(step);
            }
        }
        let Some(archived) = &candidate.archived else { return Ok(Step::Idle) };
        if from >= *end && self.agreed_with(path) < (*end).min(from) {
            // Another copy was faster. Nothing is to be added, and yet what it has must be what this one has.
            let file = self.open(path)?;
            self.agree(candidate, archived, &*file)?;
        }
        let is_whole = *is_sealed && from == *end;
        let segments = inline(archived);
        if let Some(range) = next_merge(segments, is_whole) {
            return self.merge(candidate, &segments[range], now);
        }
        if is_whole { self.seal(candidate, segments, now) } else { Ok(Step::Idle) }
    }

    fn grow(
        &mut self,
        candidate: &Candidate<'_>,
        local: &LocalTimeline,
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let Candidate { path, timeline, name, end, is_sealed, .. } = candidate;
        let from = candidate.archived_end();
        let head = head(&*self.storage, path, *end).map_err(|error| in_file(path, &error))?;
        if head.is_none() && !is_sealed {
            return Ok(Step::Idle);
        }
        let head = head.unwrap_or_default();
        if candidate.archived.as_ref().is_some_and(|archived| archived.head != head) {
            let what = "the archive has another file of this name on this timeline, made at another time. Both are kept; give one of the two another `url`";
            return Err(ArchiveError::Differs { path: path.clone(), what: what.into() });
        }
        let file = self.open(path)?;
        if let Some(archived) = &candidate.archived {
            self.agree(candidate, archived, &*file)?;
        }
        let known = self.known.as_ref().filter(|(of, _)| of == path).map(|(_, known)| known);
        let piece =
            match next_piece(&*file, from, known, *end, *is_sealed).map_err(|error| in_file(path, &error))? {
                Next::Nothing => return Ok(Step::Idle),
                Next::Damaged(what) => return Err(ArchiveError::Damaged { path: path.clone(), what }),
                Next::Piece(piece) => piece,
            };
        self.is_ours(timeline, local, &piece.gtids)?;
        if self.sync_first {
            let written = self.storage.open(path).and_then(|file| file.sync_data());
            written.map_err(|error| in_file(path, &error))?;
        }
        let segments = self.upload(candidate, &*file, &piece.cuts)?;
        let stored = segments.iter().map(|segment| segment.stored).sum();
        let new = piece.to() - piece.from();
        let mut changes = Vec::new();
        let record = local.record(&self.names).map_err(ArchiveError::Copy)?;
        let known = self.opened()?.history().timelines.get(*timeline);
        // Each copy has a description of its own. That of the one which began the timeline there stays.
        if known.is_none_or(|known| known.record != record && local.has_begun(known)) {
            changes.push(Change::Timeline { timeline: (*timeline).to_owned(), record });
        }
        changes.push(Change::Grown(Grown {
            timeline: (*timeline).to_owned(),
            file: (*name).to_owned(),
            segments,
            head,
            gtids_before: piece.gtids_before.as_ref().map(ToString::to_string),
            gtids: piece.gtids.to_string(),
            last_time: piece.last_time,
        }));
        let step = self.commit(now, changes, (new, 0, stored))?;
        if matches!(step, Step::Committed { .. }) {
            self.agreed = Some((path.clone(), piece.to()));
            self.known = Some((path.clone(), piece.known));
        }
        Ok(step)
    }

    /// Two sources that were given one name would become one history, from which neither could be brought back. A copy of which the
    /// archive has another timeline has followed its source to another server, or to another history, by its operator's word.
    fn is_ours(
        &self,
        timeline: &str,
        local: &LocalTimeline,
        executed: &GtidState,
    ) -> Result<(), ArchiveError> {
        let history = self.opened()?.history();
        let others = self.names.iter().filter(|(folder, _)| *folder != local.folder);
        let follows = others.into_iter().any(|(_, name)| history.timelines.contains_key(name));
        if follows || history.timelines.contains_key(timeline) {
            return Ok(());
        }
        let Some(theirs) = is_foreign(history, &local.server_uuid, executed) else { return Ok(()) };
        let what = format!(
            "the archive has under the name {} the history of another source, of the servers {theirs}, and this one ({}) shares no server \
             with that. Give one of the two sources another name, or its archive another url; nothing of this one is archived meanwhile",
            self.source, local.server_uuid
        );
        Err(ArchiveError::Differs { path: local.folder.clone(), what })
    }

    fn merge(
        &mut self,
        candidate: &Candidate<'_>,
        old: &[Segment],
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(Step::Idle) };
        let file = self.open(&candidate.path)?;
        for segment in old {
            compare(&candidate.path, &*file, segment, |part| part)?;
        }
        let cuts = [Cut { at: first.from, event: first.from }, Cut { at: last.to, event: last.to }];
        let mut segments = self.upload(candidate, &*file, &cuts)?;
        let Some(segment) = segments.pop() else { return Ok(Step::Idle) };
        let done = (0, segment.len(), segment.stored);
        let (timeline, file) = (candidate.timeline.to_owned(), candidate.name.to_owned());
        self.commit(now, vec![Change::Merged { timeline, file, segment }], done)
    }

    /// Everything of a file is there: its bytes on this disk are read once more and compared with what was archived of them.
    fn seal(
        &mut self,
        candidate: &Candidate<'_>,
        segments: &[Segment],
        now: Timestamp,
    ) -> Result<Step, ArchiveError> {
        let file = self.open(&candidate.path)?;
        let compared = sum_beside(|parts| {
            for segment in segments {
                if self.uploader.stop.load(Ordering::Relaxed) {
                    return Err(ArchiveError::Stopped);
                }
                compare(&candidate.path, &*file, segment, |part| parts.add(part))?;
            }
            Ok(())
        });
        let (compared, sha256) = compared.map_err(|error| in_file(&candidate.path, &error))?;
        compared?;
        let what = format!("{} of timeline {}", candidate.name, candidate.timeline);
        let text = list_text(&what, segments, &sha256, &self.next_commit()?);
        let list =
            names::list(&self.source, candidate.timeline, candidate.name, &names::sha256(text.as_bytes()));
        let (index, bytes) = segments::pack(self.owner(candidate), segments)
            .map_err(|error| ArchiveError::Copy(format!("{}: {error}", candidate.path.display())))?;
        let stored = (text.len() + bytes.len()) as u64;
        create_data(&*self.uploader.store, &list, text.into())?;
        create_data(&*self.uploader.store, &index.object, bytes)?;
        let (timeline, file) = (candidate.timeline.to_owned(), candidate.name.to_owned());
        let sealed = Change::Sealed { timeline, file, size: candidate.end, sha256, list, index: Some(index) };
        self.commit(now, vec![sealed], (0, 0, stored))
    }

    fn owner<'a>(&'a self, candidate: &'a Candidate<'_>) -> Owner<'a> {
        Owner { source: &self.source, timeline: candidate.timeline, file: candidate.name }
    }

    fn upload(
        &self,
        candidate: &Candidate<'_>,
        file: &dyn ReadFile,
        cuts: &[Cut],
    ) -> Result<Vec<Segment>, ArchiveError> {
        self.uploader.upload(self.owner(candidate), file, cuts).map_err(|error| match error {
            UploadError::Store(error) => error.into(),
            UploadError::Read(error) => in_file(&candidate.path, &error),
            UploadError::Seal(error) => ArchiveError::Copy(format!("{}: {error}", candidate.path.display())),
            UploadError::Stopped => ArchiveError::Stopped,
        })
    }

    /// Which commit comes next, and whose, in words that are never the same again.
    fn next_commit(&self) -> Result<String, ArchiveError> {
        let seq = self.opened()?.history().seq + 1;
        Ok(format!("commit {seq} of writer {}", self.writer.id))
    }
}

/// The segments of a file that grows, which the history has.
fn inline(archived: &ArchivedFile) -> &[Segment] {
    archived.inline().unwrap_or_default()
}

/// Reads a segment's bytes from this disk and holds them against what was archived. `done` is given each part of them, and gives
/// memory for the next.
fn compare(
    path: &Path,
    file: &dyn ReadFile,
    segment: &Segment,
    mut done: impl FnMut(Vec<u8>) -> Vec<u8>,
) -> Result<(), ArchiveError> {
    let (mut sum, mut part, mut at) = (Sha256::new(), Vec::new(), segment.from);
    while at < segment.to {
        let end = segment.to.min(at + COMPARE_BYTES);
        read_range(file, at, end, &mut part).map_err(|error| in_file(path, &error))?;
        sum.update(&part);
        (part, at) = (done(part), end);
    }
    let ours = hex(&sum.finalize());
    if ours == segment.sha256 {
        return Ok(());
    }
    Err(ArchiveError::Differs {
        path: path.to_owned(),
        what: format!(
            "bytes {}..{} have SHA-256 {ours}, and the archive has {} of them in {}. Either the bytes on this disk have changed, \
             which `binlogd verify` tells, or two copies of different servers go to one place. Both are kept",
            segment.from, segment.to, segment.sha256, segment.object
        ),
    })
}

/// The objects of a file in order, as `sha256sum -c` reads them. `commit` is in it so that no two lists have one name: one that
/// was made for a commit that came too late may be about to be deleted.
pub(super) fn list_text(what: &str, segments: &[Segment], sha256: &str, commit: &str) -> String {
    let end = segments.last().map_or(0, |last| last.to);
    let mut text = format!(
        "# {what}: {end} bytes, SHA-256 {sha256}\n# Its bytes are those of these objects, one behind the other.\n# Written for {commit}.\n",
    );
    for segment in segments {
        let object = segment.object.rsplit('/').next().unwrap_or_default();
        text.push_str(&format!("{}  {object}\n", segment.stored_sha256));
    }
    text
}

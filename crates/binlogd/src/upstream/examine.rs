//! What a failed session means: the causes of error 1236 told apart, and where the source's history leaves that of the copy.

use super::attempt::Attempt;
use super::attempt_error::AttemptError;
use super::complaint::Complaint;
use super::copy::{HeldCopy, OpenTimeline};
use super::identify::SourceIdentity;
use super::look::{Compared, Look, Ours};
use super::plan::From;
use super::receive::SessionError;
use super::refusal::{PeerError, Refusal};
use crate::config::OnGap;
use crate::log::Position;
use crate::log::scan::scan_file;
use crate::log::timeline::Reason;
use crate::log::writer::LogError;
use crate::wire::WireError;
use codec::event::{BINLOG_MAGIC, FormatDescription};
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use std::fs::File;
use std::io;

/// `ER_MASTER_FATAL_ERROR_READING_BINLOG` / `ER_SOURCE_FATAL_ERROR_READING_BINLOG`: the source cannot or will not dump.
/// One number for a dozen causes that only its text tells apart (`sql/rpl_binlog_sender.cc`, MariaDB `sql/sql_repl.cc`).
pub(super) const ER_FATAL_READING_BINLOG: u16 = 1236;

/// `ER_SLAVE_SAME_ID`: MariaDB's number for a dump that another client with our server id took over
/// (`sql/share/errmsg-utf8.txt`). MySQL says the same by error 1236 and its text.
const ER_SAME_SERVER_ID: u16 = 4052;

/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: a privilege is missing.
pub(super) const ER_SPECIFIC_ACCESS_DENIED: u16 = 1227;

/// Bytes of a file within which its format description ends: magic, header, and at most 255 post-header lengths.
const FORMAT_BYTES_MAX: u64 = 1024;

/// What a new timeline begins with, and why.
struct Verdict {
    reason: Reason,
    from: From,
    /// GTIDs that the copy holds and the source lacks.
    source_lacks: GtidState,
}

/// How the source's logs compare with the newest timeline.
enum History {
    /// The source has all of it.
    Same,
    /// They have no file in common.
    Unrelated,
    /// They part within the timeline.
    Fork {
        /// Where: an event that differs, or the end of what the source has.
        at: Position,
        /// The source's file with which its own history goes on.
        from: String,
        /// GTIDs of the copy from there on.
        source_lacks: GtidState,
    },
}

/// What the last of the files is that the source and the copy both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SharedEnd {
    /// The file that the copy appends to.
    Live,
    /// The one before a live file that holds no event yet.
    BeforeEmpty,
    /// One that others follow in the copy, which the source does not have.
    Sealed,
}

impl Attempt<'_> {
    /// Finds out what a failed session means, and begins a new timeline where that is the answer.
    pub(super) fn examine(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        error: AttemptError,
    ) -> AttemptError {
        let verdict = match &error {
            AttemptError::Session(SessionError::Source(complaint)) => {
                self.examine_complaint(copy, source, at, complaint)
            }
            AttemptError::Session(SessionError::Refused(Refusal::Peer(peer))) => {
                if copy.was_found_equal(at) || !is_senseless_at(peer, at) {
                    return error;
                }
                self.compare_history(copy, source)
            }
            AttemptError::Session(
                SessionError::Refused(Refusal::OtherFile(_) | Refusal::OtherHistory(_))
                | SessionError::Log(LogError::FileExists(_)),
            ) => self.compare_history(copy, source),
            _ => return error,
        };
        let verdict = match verdict {
            Ok(Some(verdict)) => verdict,
            Ok(None) => return error,
            Err(better) => return better,
        };
        match self.begin_timeline(copy, source, verdict.reason, &verdict.from, &verdict.source_lacks) {
            Ok(()) => AttemptError::NewTimeline(verdict.reason.words()),
            Err(error) => error,
        }
    }

    /// Tells the causes of error 1236 apart: by its text as far as that goes, then by a look at the source's logs.
    fn examine_complaint(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        complaint: &ErrPacket,
    ) -> Result<Option<Verdict>, AttemptError> {
        if complaint.code == ER_SPECIFIC_ACCESS_DENIED {
            return Err(AttemptError::Privilege(
                complaint.message.clone(),
                self.upstream.config.user.clone(),
            ));
        }
        if complaint.code == ER_SAME_SERVER_ID {
            return Err(AttemptError::Evicted(complaint.message.clone()));
        }
        if complaint.code != ER_FATAL_READING_BINLOG {
            return Ok(None);
        }
        match Complaint::of(&complaint.message) {
            Complaint::NoBinlog => Err(AttemptError::NoBinlog),
            Complaint::Evicted => Err(AttemptError::Evicted(complaint.message.clone())),
            Complaint::FileNotFound | Complaint::Purged => {
                let oldest = self.look(copy, source, "")?.file;
                if number_of(&oldest) <= number_of(&at.file) {
                    return self.compare_history(copy, source);
                }
                if self.upstream.config.on_gap == OnGap::Record {
                    let source_lacks = GtidState::empty(source.executed.flavour());
                    return Ok(Some(Verdict { reason: Reason::Gap, from: From::Earliest, source_lacks }));
                }
                Err(AttemptError::Gap { needed: at.to_string(), oldest })
            }
            Complaint::PastTheEnd | Complaint::AheadOfSource => self.compare_history(copy, source),
            // Where the source had everything when it was compared last, its file is damaged further on.
            Complaint::Unreadable if copy.was_found_equal(at) => Ok(None),
            Complaint::Unreadable => self.compare_history(copy, source),
            Complaint::Other => Ok(None),
        }
    }

    /// A live file that has no event yet says nothing about the source's file of that name: it may be that of another
    /// history, after a reset. So the source is asked for the end of the file before, as the copy holds it.
    pub(super) fn check_continuity(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<(), AttemptError> {
        let Some((end, format)) = copy.before_empty()? else { return Ok(()) };
        match self.look_from(copy, source, &end.file, end.offset) {
            Ok(look) if look.format.is_same_file(&format) => return Ok(()),
            Ok(_) => {}
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. })) => {
                // Purged meanwhile, most likely: nothing is left to compare with.
                if Complaint::of(&message) != Complaint::PastTheEnd {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
        match self.compare_history(copy, source)? {
            None => Ok(()),
            Some(Verdict { reason, from, source_lacks }) => {
                self.begin_timeline(copy, source, reason, &from, &source_lacks)?;
                Err(AttemptError::NewTimeline(reason.words()))
            }
        }
    }

    /// Holds the source's logs against the newest timeline. `None` when the source has everything that it holds, so that
    /// whatever made this necessary is only to be tried again.
    fn compare_history(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Verdict>, AttemptError> {
        let none = GtidState::empty(source.executed.flavour());
        match self.history(copy, source)? {
            History::Same => {
                copy.found_equal();
                Ok(None)
            }
            History::Unrelated => {
                Ok(Some(Verdict { reason: Reason::SourceReset, from: From::Earliest, source_lacks: none }))
            }
            History::Fork { at, from, source_lacks } => {
                tracing::error!(
                    source = self.upstream.config.name,
                    "the source's log is not what the copy holds from {at} on; the copy's is kept, and the source's is \
                     received into a new timeline from {from} on"
                );
                let from = From::File(from);
                Ok(Some(Verdict { reason: Reason::Fork, from, source_lacks }))
            }
        }
    }

    fn history(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<History, AttemptError> {
        let Some(timeline) = copy.timeline() else { return Ok(History::Unrelated) };
        let oldest = self.look(copy, source, "")?;
        let mut files = timeline.log.files();
        let live_is_empty = timeline.log.before_empty().is_some();
        if live_is_empty {
            // It cannot be compared; the one before it says whether it goes on.
            files = &files[..files.len() - 1];
        }
        // What the source purged cannot be compared. The files that both have are a beginning of what is left.
        let files = &files[files.partition_point(|file| number_of(file) < number_of(&oldest.file))..];
        if live_is_empty && files.is_empty() {
            return Ok(History::Same);
        }
        let (mut shared, mut unknown) = (0, files.len());
        // The first one first: after a reset it is another one, and so are all others.
        let mut next = 0;
        while shared < unknown {
            if self.is_same_file(copy, source, timeline, &files[next], &oldest)? {
                shared = next + 1;
            } else {
                unknown = next;
            }
            next = shared + (unknown - shared) / 2;
        }
        if shared == 0 {
            return Ok(History::Unrelated);
        }
        let end = match (shared < files.len(), live_is_empty) {
            (true, _) => SharedEnd::Sealed,
            (false, true) => SharedEnd::BeforeEmpty,
            (false, false) => SharedEnd::Live,
        };
        self.where_they_part(copy, source, timeline, &files[..shared], end)
    }

    /// Whether the source has this file of the copy, as far as the format description tells.
    fn is_same_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        timeline: &OpenTimeline,
        file: &str,
        oldest: &Look,
    ) -> Result<bool, AttemptError> {
        let ours = format_of(timeline, file)?;
        // A file of which nothing has arrived yet cannot be another one.
        let is_ours = |theirs: &FormatDescription| ours.as_ref().is_none_or(|ours| ours.is_same_file(theirs));
        if oldest.file == file {
            return Ok(is_ours(&oldest.format));
        }
        match self.look(copy, source, file) {
            Ok(look) => Ok(is_ours(&look.format)),
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. }))
                if Complaint::of(&message) == Complaint::FileNotFound =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Compares the last of the files that both have, byte by byte.
    fn where_they_part(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        timeline: &OpenTimeline,
        shared: &[String],
        end: SharedEnd,
    ) -> Result<History, AttemptError> {
        let sealed = end != SharedEnd::Live;
        let Some(file) = shared.last() else { return Ok(History::Unrelated) };
        let failed = |error| unreadable(timeline, file, error);
        let ours = File::open(timeline.folder().join(file)).map_err(failed)?;
        let len = match timeline.end() {
            Some(end) if *end.file == **file => end.offset,
            _ => ours.metadata().map_err(failed)?.len(),
        };
        if !sealed && len <= BINLOG_MAGIC.len() as u64 {
            return Ok(History::Same);
        }
        let (at, from) = match self.compare(copy, source, file, Ours { file: &ours, len, sealed })? {
            Compared::Equal { .. } if !sealed => return Ok(History::Same),
            Compared::Equal { next }
                if end == SharedEnd::BeforeEmpty && goes_on(timeline, next.as_deref()) =>
            {
                return Ok(History::Same);
            }
            Compared::Equal { next } => (len, next.unwrap_or_else(|| file.clone())),
            Compared::Differs { at } => (at, file.clone()),
        };
        // What stands before that place is on the source; everything else of the timeline is not.
        let source_lacks = timeline.gtids.subtract(&gtids_until(timeline, shared, at)?);
        Ok(History::Fork { at: Position::new(file.as_str(), at), from, source_lacks })
    }
}

/// GTIDs of the history up to `at` in the last of `files`, by the files' own word.
fn gtids_until(timeline: &OpenTimeline, files: &[String], at: u64) -> Result<GtidState, AttemptError> {
    let mut limit = at;
    for file in files.iter().rev() {
        let failed = |error| unreadable(timeline, file, error);
        let opened = File::open(timeline.folder().join(file)).map_err(failed)?;
        let scan = scan_file(&opened, limit, |_| {}).map_err(failed)?;
        if scan.gtids_before.is_some() {
            return Ok(scan.gtids);
        }
        // It parts before it says what came before it, so the file before it does at its end.
        limit = u64::MAX;
    }
    Ok(GtidState::default())
}

/// Whether the copy's live file is the one that follows on the source. One that ends with its server names none.
fn goes_on(timeline: &OpenTimeline, next: Option<&str>) -> bool {
    next.is_none_or(|next| timeline.log.files().last().is_some_and(|live| live == next))
}

/// Whether bytes made no sense at the very place of the request: there may be no event of the source at that place.
fn is_senseless_at(error: &PeerError, at: &Position) -> bool {
    match error {
        PeerError::Event { at: place, .. } | PeerError::Discontinuity { at: place, .. } => place == at,
        _ => false,
    }
}

/// The format description of a file of the copy; `None` when it has none yet.
fn format_of(timeline: &OpenTimeline, file: &str) -> Result<Option<FormatDescription>, AttemptError> {
    let failed = |error| unreadable(timeline, file, error);
    let opened = File::open(timeline.folder().join(file)).map_err(failed)?;
    Ok(scan_file(&opened, FORMAT_BYTES_MAX, |_| {}).map_err(failed)?.format)
}

fn unreadable(timeline: &OpenTimeline, file: &str, error: io::Error) -> AttemptError {
    let path = timeline.folder().join(file);
    SessionError::Log(LogError::Io { action: "read", path, error }).into()
}

/// The number at the end of a binary log's name.
fn number_of(file: &str) -> u64 {
    file.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

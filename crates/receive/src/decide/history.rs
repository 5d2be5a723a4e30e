//! How the source's logs compare with the newest timeline: which files both have, and where they part.

use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::copy::HeldCopy;
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::SessionError;
use binlog::Position;
use binlog::scan::scan_file;
use binlog::timeline::offline::gtids_until;
use binlog::writer::LogError;
use codec::event::{BINLOG_MAGIC, FormatDescription};
use codec::gtid::GtidState;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::identify::SourceIdentity;
use source::look::{Compared, Look, Ours};
use std::io;
use wire::{Connection, WireError};

/// How the source's logs compare with the newest timeline.
pub(crate) enum History {
    /// The source has all of it.
    Same,
    /// They have no file in common.
    Unrelated,
    /// The source has none of the files any more that could be compared.
    Purged {
        /// The first one that it has.
        oldest: String,
    },
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
    /// The one before a live file that holds no transaction yet.
    BeforeUntold,
    /// One that others follow in the copy, which the source does not have.
    Sealed,
}

impl Attempt<'_> {
    /// Compares them.
    pub(crate) fn history(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<History, AttemptError> {
        let Some(timeline) = copy.timeline() else { return Ok(History::Unrelated) };
        let oldest = self.look(copy, source, "")?;
        // What the source purged cannot be compared. The files that both have are a beginning of what is left.
        let files = oldest.not_purged(timeline.log.files())?;
        // Purged under this look, and not reset: a server whose logs began anew has not executed what the copy holds.
        if files.is_empty() && has_executed(source, &timeline.history()) {
            return Ok(History::Purged { oldest: oldest.file });
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
        if shared < files.len() {
            return self.where_they_part(copy, source, timeline, &files[..shared], SharedEnd::Sealed);
        }
        if timeline.before_untold().is_some() {
            // A live file without a transaction says little; the one before it says whether it goes on.
            if shared == 1 {
                return Ok(History::Purged { oldest: oldest.file });
            }
            let before = &files[..shared - 1];
            let found = self.where_they_part(copy, source, timeline, before, SharedEnd::BeforeUntold)?;
            if !matches!(found, History::Same) {
                return Ok(found);
            }
        }
        self.where_they_part(copy, source, timeline, files, SharedEnd::Live)
    }

    /// Whether the source has this file of the copy, as far as the format description tells.
    pub(crate) fn is_same_file(
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
                // Of one without an event, the file before it says more.
                Ok(ours.is_none() && timeline.log.files().len() > 1)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether no transaction of the copy's file stands before `at`.
    fn shares_no_transaction(
        &self,
        timeline: &OpenTimeline,
        file: &str,
        at: u64,
    ) -> Result<bool, AttemptError> {
        let failed = |error| unreadable(timeline, file, error);
        let opened = timeline.log.open_read(file).map_err(failed)?;
        Ok(scan_file(&*opened, at, |_| {}).map_err(failed)?.transactions == 0)
    }

    /// Whether the server has not been started since the copy's file began. One that lost the end of its log in a crash, or
    /// was restored, has been.
    fn has_run_since_it_began(&self, timeline: &OpenTimeline, file: &str) -> Result<bool, AttemptError> {
        let Some(format) = format_of(timeline, file)? else { return Ok(false) };
        let started_at = started_at(&mut self.connect_only()?)?;
        Ok(started_at.is_some_and(|started_at| started_at <= u64::from(format.timestamp)))
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
        let ours = timeline.log.open_read(file).map_err(failed)?;
        let len = match timeline.end() {
            Some(end) if *end.file == **file => end.offset,
            _ => ours.size().map_err(failed)?,
        };
        if !sealed && len <= BINLOG_MAGIC.len() as u64 {
            return Ok(History::Same);
        }
        let (at, from) = match self.compare(copy, source, file, Ours { file: &*ours, len, sealed })? {
            Compared::Equal { .. } if !sealed => return Ok(History::Same),
            Compared::Equal { next }
                if end == SharedEnd::BeforeUntold && goes_on(timeline, next.as_deref()) =>
            {
                return Ok(History::Same);
            }
            Compared::Equal { next } => (len, next.unwrap_or_else(|| file.clone())),
            Compared::Differs { at } => (at, file.clone()),
        };
        // Behind a purge the first file that is left is not that of the timeline, and was not begun by a reset.
        if *file == timeline.info.first_file
            && self.shares_no_transaction(timeline, file, at)?
            && self.has_run_since_it_began(timeline, file)?
        {
            // Its logs were reset twice in one second, so that the beginnings of the two files are the same.
            return Ok(History::Unrelated);
        }
        // What stands before that place is on the source; everything else of the timeline is not.
        let told = gtids_until(copy.storage(), timeline.folder(), shared, at).map_err(|error| {
            SessionError::Log(LogError::Io { action: "read", path: timeline.folder().to_owned(), error })
        })?;
        // Where no file tells what came before it, nothing is known to be there.
        let source_lacks = timeline.gtids.subtract(&told.unwrap_or_default());
        Ok(History::Fork { at: Position::new(file.as_str(), at), from, source_lacks })
    }
}

/// Whether the source has executed all of these transactions; where there are none, nobody knows.
fn has_executed(source: &SourceIdentity, held: &GtidState) -> bool {
    !held.is_empty() && held.subtract(&source.executed).is_empty()
}

/// The time in seconds since 1970 at which the server was started, at the latest.
fn started_at(connection: &mut Connection) -> Result<Option<u64>, WireError> {
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| WireError::Protocol {
            during: "asking when the server was started",
            what: format!("{name} is {text:?}, not a number"),
        })
    };
    let uptime = connection.query("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
    let Some(uptime) = uptime.get(0, "Value") else { return Ok(None) };
    let uptime = number("Uptime", uptime)?;
    let now = match connection.query("SELECT UNIX_TIMESTAMP()") {
        Ok(rows) => rows.first().map(|now| number("UNIX_TIMESTAMP()", now)).transpose()?,
        Err(WireError::Server { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(now.and_then(|now| now.checked_sub(uptime)))
}

/// Whether the copy's live file is the one that follows on the source. One that ends with its server names none.
fn goes_on(timeline: &OpenTimeline, next: Option<&str>) -> bool {
    next.is_none_or(|next| timeline.log.files().last().is_some_and(|live| live == next))
}

/// The format description of a file of the copy; `None` when it has none yet.
fn format_of(timeline: &OpenTimeline, file: &str) -> Result<Option<FormatDescription>, AttemptError> {
    let failed = |error| unreadable(timeline, file, error);
    let opened = timeline.log.open_read(file).map_err(failed)?;
    Ok(scan_file(&*opened, FormatDescription::END_MAX, |_| {}).map_err(failed)?.format)
}

/// The error of a file of the copy that cannot be read.
pub(crate) fn unreadable(timeline: &OpenTimeline, file: &str, error: io::Error) -> AttemptError {
    let path = timeline.folder().join(file);
    SessionError::Log(LogError::Io { action: "read", path, error }).into()
}

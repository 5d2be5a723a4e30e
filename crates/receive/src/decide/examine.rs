//! What a failed session means: the causes of error 1236 told apart, and where the source's history leaves that of the copy.

use super::earlier::Parting;
use super::history::{History, unreadable};
use super::plan::{From, Plan, begun_anew};
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::{AttemptError, told};
use crate::attempt::copy::HeldCopy;
use crate::attempt::open_timeline::OpenTimeline;
use crate::peers::GAP_MAX;
use crate::session::SessionError;
use crate::session::left_file::{LastWord, LeftFile};
use crate::session::refusal::{PeerError, Refusal};
use crate::session::unproven::Unproven;
use binlog::Position;
use binlog::scan::scan_file;
use binlog::timeline::Reason;
use binlog::writer::LogError;
use codec::event::EventType;
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use codec::{BinlogName, ServerKind};
use config::OnGap;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG, ER_SAME_SERVER_ID, ER_SPECIFIC_ACCESS_DENIED};
use source::identify::SourceIdentity;
use source::link::{End, Link};
use wire::WireError;

/// What a new timeline begins with, and why.
struct Verdict {
    reason: Reason,
    from: From,
    /// GTIDs that the copy holds and the source lacks.
    source_lacks: GtidState,
}

impl Attempt<'_> {
    /// Finds out what a failed session means, and begins a new timeline where that is the answer.
    pub(crate) fn examine(
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
                if copy.found.is_equal_through(at) || !is_senseless_at(peer, at) {
                    return error;
                }
                self.compare_history(copy, source)
            }
            AttemptError::Session(SessionError::Refused(Refusal::NotNext(found))) => {
                self.examine_missing(copy, source, &found.after)
            }
            AttemptError::Session(SessionError::Silent(_) | SessionError::LeftBehind(_)) => {
                let end = copy.end();
                copy.found.silent(at, end);
                return error;
            }
            // The next attempt begins the timeline anew, with the server that answers then.
            AttemptError::Session(SessionError::Refused(Refusal::OtherFile(_)))
                if copy
                    .timeline()
                    .is_some_and(|timeline| timeline.is_untold() && timeline.expected.is_some()) =>
            {
                return error;
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
                // The session may have come far since it began.
                let end = copy.end();
                self.examine_missing(copy, source, end.as_ref().unwrap_or(at))
            }
            Complaint::PastTheEnd | Complaint::AheadOfSource => self.compare_history(copy, source),
            // Where the source had everything when it was compared last, its file is damaged further on.
            Complaint::Unreadable | Complaint::ReadFailed => {
                let end = copy.end();
                if !copy.found.is_equal_through(at) || end.as_ref() != Some(at) {
                    return self.compare_history(copy, source);
                }
                self.complete_before_gap(copy, source)?;
                let from = self.examine_unreadable(copy, source, at, complaint)?;
                let source_lacks = GtidState::empty(source.executed.kind());
                Ok(Some(Verdict { reason: Reason::Gap, from, source_lacks }))
            }
            Complaint::Anonymous => self.examine_anonymous(copy, source),
            Complaint::Other => Ok(None),
        }
    }

    /// The source has a transaction without a GTID where it was asked to begin, and sends it to nobody. Where that is the last
    /// one of the copy, as its place says, only the comparison must begin behind it: what follows has GTIDs.
    fn examine_anonymous(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Verdict>, AttemptError> {
        let server_id = self.server_id(copy);
        let Some(timeline) = copy.timeline_mut() else { return Ok(None) };
        let Some(at) = timeline.end() else {
            return Err(AttemptError::Anonymous(Position::new(timeline.info.first_file.as_str(), 4)));
        };
        if timeline.tail_start >= at.offset {
            return Err(AttemptError::Anonymous(at)); // It was asked for what follows the copy.
        }
        let end = End { at: at.clone(), format: timeline.format.as_ref(), tail: &[], ahead: 0 };
        match self.link(source, &end, server_id) {
            Ok(Link::GoesOn { .. } | Link::Refused(_) | Link::Followed(_)) => {
                timeline.tail_start = at.offset;
                Err(AttemptError::NotComparable(at))
            }
            Ok(Link::OtherFile | Link::OtherHistory { .. }) => self.compare_history(copy, source),
            Err(error) => Err(self.with_privilege(error)),
        }
    }

    /// The source does not have the file of `at`, or not that one: it was purged, or another one has its name.
    fn examine_missing(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
    ) -> Result<Option<Verdict>, AttemptError> {
        let oldest = self.look(copy, source, "")?;
        if !oldest.begins_behind(&at.file)? {
            return self.compare_history(copy, source);
        }
        self.gap(copy, source, at, &oldest.file)
    }

    fn gap(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        at: &Position,
        oldest: &str,
    ) -> Result<Option<Verdict>, AttemptError> {
        self.complete_before_gap(copy, source)?;
        if self.upstream.config.on_gap == OnGap::Record {
            let source_lacks = GtidState::empty(source.executed.kind());
            return Ok(Some(Verdict { reason: Reason::Gap, from: From::Earliest, source_lacks }));
        }
        let purged = match source.kind {
            ServerKind::MySql => source.purged.clone(),
            ServerKind::MariaDb => self.look(copy, source, "")?.gtids_before.unwrap_or_default(),
        };
        let held = copy.holding().map(|holding| holding.gtids).unwrap_or_default();
        let missing = purged.subtract(&held);
        Err(AttemptError::Gap { needed: at.to_string(), oldest: oldest.to_owned(), missing: told(&missing) })
    }

    /// Has the newest timeline completed from the peers where the source cannot send what follows it. There is time for that.
    ///
    /// # Errors
    /// [`AttemptError::Completed`] when they had some of it: the source is tried behind that, and the peers again if that fails.
    pub(crate) fn complete_before_gap(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<(), AttemptError> {
        if !self.complete_before(copy, source, GAP_MAX)?.something {
            return Ok(());
        }
        self.left.peers.borrow_mut().forget_wait();
        Err(AttemptError::Completed)
    }

    /// Whether the newest timeline is the source's history, as far as its live file cannot tell. Once a process, its beginning
    /// is held against the source's. And a live file that has no transaction yet says little about the source's file of that
    /// name: it may be that of another history, after a reset. So the source is asked for the end of the file before, as the
    /// copy holds it.
    pub(crate) fn check_continuity(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<(), AttemptError> {
        copy.forget_purged();
        let verdict = if copy.timeline().is_some_and(OpenTimeline::is_untold) {
            self.begins_earlier(copy, source)?
        } else if self.begins_as_the_source(copy, source)? {
            self.examine_before_untold(copy, source)?
        } else {
            self.compare_history(copy, source)?
        };
        let Some(Verdict { reason, from, source_lacks }) = verdict else { return Ok(()) };
        self.begin_timeline(copy, source, reason, &from, &source_lacks)?;
        Err(AttemptError::NewTimeline(reason.words()))
    }

    /// Nothing of the newest timeline has arrived yet: whether it would begin with an earlier file now, or as a fork. The source's
    /// logs may have begun anew since, and what they hold before the file of that name would be left out; or it may have lost
    /// what it had then.
    fn begins_earlier(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Verdict>, AttemptError> {
        let Some(timeline) = copy.timeline() else { return Ok(None) };
        let info = &timeline.info;
        let holding = copy.holding();
        let anew = begun_anew(info, holding.as_ref(), source, &self.upstream.config.start);
        let Some(Plan::Begin { reason, from, source_lacks }) = anew else {
            let source_lacks = GtidState::empty(source.executed.kind());
            let reset = Verdict { reason: Reason::SourceReset, from: From::Earliest, source_lacks };
            return Ok(self.begins_another(copy, source)?.then_some(reset));
        };
        if !source_lacks.subtract(&info.lacked()).is_empty() {
            return Ok(Some(Verdict { reason, from, source_lacks }));
        }
        let first = match self.first_file(copy, source, &from) {
            Ok(first) => first,
            Err(gap @ AttemptError::Gap { .. }) => {
                if !self.begins_another(copy, source)? {
                    return Ok(None); // The file is asked for, and found missing, as that of any timeline.
                }
                // Nor is it there under another history's name.
                return match self.upstream.config.on_gap {
                    OnGap::Record => {
                        Ok(Some(Verdict { reason: Reason::Gap, from: From::Earliest, source_lacks }))
                    }
                    OnGap::Stop => Err(gap),
                };
            }
            Err(error) => return Err(error),
        };
        if BinlogName::parse(&first.name)?.number() >= BinlogName::parse(&info.first_file)?.number() {
            let format = first.format.filter(|_| first.name == info.first_file);
            copy.expect_first(format);
            return Ok(None);
        }
        Ok(Some(Verdict { reason, from, source_lacks }))
    }

    /// Whether the source has another file now under the name of the one that the newest timeline was begun for, of which nothing
    /// has arrived. Where it has none, the session hears so.
    fn begins_another(&self, copy: &HeldCopy, source: &SourceIdentity) -> Result<bool, AttemptError> {
        let Some(timeline) = copy.timeline() else { return Ok(false) };
        let Some(expected) = &timeline.expected else { return Ok(false) };
        match self.look(copy, source, &timeline.info.first_file) {
            Ok(first) => Ok(!first.format.is_same_file(expected)),
            Err(AttemptError::Wire(WireError::Server { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether the first file of the newest timeline that the source still has is the same one there. After a reset with which
    /// an earlier binlogd put files of two histories into one timeline, it is not.
    fn begins_as_the_source(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<bool, AttemptError> {
        // The session itself compares the live file.
        let Some(timeline) = copy.timeline().filter(|timeline| timeline.log.files().len() > 1) else {
            return Ok(true);
        };
        if copy.found.is_beginning_compared() {
            return Ok(true);
        }
        let oldest = self.look(copy, source, "")?;
        if let Some(first) = oldest.not_purged(timeline.log.files())?.first()
            && !self.is_same_file(copy, source, timeline, first, &oldest)?
        {
            return Ok(false);
        }
        copy.found.beginning_is_compared();
        Ok(true)
    }

    /// Whether the source's log goes on with our live file, when that has no transaction yet.
    fn examine_before_untold(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Verdict>, AttemptError> {
        let Some((at, format)) = copy.before_untold()? else { return Ok(None) };
        let Some(timeline) = copy.timeline() else { return Ok(None) };
        let Some(live) = timeline.log.files().last() else { return Ok(None) };
        let end = End { at: at.clone(), format: Some(&format), tail: &[], ahead: 0 };
        let unproven = Unproven { name: live.clone(), left: left_file(timeline, &at)?, events: Vec::new() };
        let error = match self.link(source, &end, self.server_id(copy)) {
            Ok(Link::Followed(next)) if *live == next.name => {
                // A reset under this dump, too: it has the old file open, and goes on to the next name in the new logs. A dump
                // that begins now does not.
                let before = next.gtids_before.as_ref();
                if !unproven.is_announced(&next.format, before, &timeline.gtids, &timeline.unspoken) {
                    match self.link(source, &end, self.server_id(copy)) {
                        Ok(Link::Followed(again))
                            if *live == again.name && again.format.is_same_file(&next.format) => {}
                        Ok(_) | Err(WireError::Server { .. }) => return self.compare_history(copy, source),
                        Err(error) => return Err(self.with_privilege(error)),
                    }
                }
                copy.expect(next.format);
                return Ok(None);
            }
            Ok(_) => return self.compare_history(copy, source),
            Err(error) => error,
        };
        let WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. } = &error else {
            return Err(self.with_privilege(error));
        };
        if !matches!(Complaint::of(message), Complaint::FileNotFound | Complaint::Purged) {
            return self.compare_history(copy, source);
        }
        // Purged meanwhile, or reset.
        let oldest = self.look(copy, source, "")?;
        if !oldest.begins_behind(&at.file)? {
            return self.compare_history(copy, source);
        }
        self.examine_purged_before_untold(copy, source, &oldest.file)
    }

    /// Our live file has no transaction yet, and the source has purged all files before it: what both files say of each other is
    /// all that is left to compare.
    fn examine_purged_before_untold(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        oldest: &str,
    ) -> Result<Option<Verdict>, AttemptError> {
        let Some((at, _)) = copy.before_untold()? else { return Ok(None) };
        let Some(timeline) = copy.timeline() else { return Ok(None) };
        let Some(live) = timeline.log.files().last() else { return Ok(None) };
        let unproven = Unproven { name: live.clone(), left: left_file(timeline, &at)?, events: Vec::new() };
        match self.beginning(copy, source, live) {
            Ok(Link::Followed(begun)) => {
                let before = begun.gtids_before.as_ref();
                if unproven.is_announced(&begun.format, before, &timeline.gtids, &timeline.unspoken) {
                    copy.expect(begun.format);
                    return Ok(None);
                }
            }
            // It has no such file any more, or another one.
            Ok(_) | Err(WireError::Server { .. }) => {}
            // What could not be read says nothing, least of all that something is missing.
            Err(error) => return Err(self.with_privilege(error)),
        }
        self.gap(copy, source, &at, oldest)
    }

    /// Holds the source's logs against the newest timeline. `None` when the source has everything that it holds, so that
    /// whatever made this necessary is only to be tried again.
    fn compare_history(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
    ) -> Result<Option<Verdict>, AttemptError> {
        copy.forget_purged();
        let none = GtidState::empty(source.executed.kind());
        match self.history(copy, source)? {
            History::Same => {
                let end = copy.end();
                copy.found.equal(end);
                Ok(None)
            }
            History::Purged { oldest } => self.examine_purged_before_untold(copy, source, &oldest),
            History::Unrelated => {
                let Some(Parting { at, timeline, from, source_lacks }) = self.parts_earlier(copy, source)?
                else {
                    let (from, lacked) = (From::Earliest, self.lost_before_what_is_left(copy, source)?);
                    let Some(source_lacks) = lacked else {
                        return Ok(Some(Verdict { reason: Reason::SourceReset, from, source_lacks: none }));
                    };
                    tracing::error!(
                        source = self.upstream.config.name,
                        "the source was put back to before the oldest file that is left here, for its log is older than that and has \
                         no file in common with the copy; what the copy has is kept, and the source's log is received into a new \
                         timeline from its oldest file on"
                    );
                    return Ok(Some(Verdict { reason: Reason::Fork, from, source_lacks }));
                };
                tracing::error!(
                    source = self.upstream.config.name,
                    "the source was put back to before the newest timeline: its log is not what the copy holds from {at} of \
                     {timeline} on; the copy's is kept, and the source's is received into a new timeline from {from} on"
                );
                Ok(Some(Verdict { reason: Reason::Fork, from: From::File(from), source_lacks }))
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
}

/// A file of the copy, as a stream would have left it.
fn left_file(timeline: &OpenTimeline, end: &Position) -> Result<LeftFile, AttemptError> {
    let failed = |error| unreadable(timeline, &end.file, error);
    let opened = timeline.log.open_read(&end.file).map_err(failed)?;
    let scan = scan_file(&*opened, end.offset, |_| {}).map_err(failed)?;
    let last_word = match (scan.last_event, scan.rotates_to) {
        (Some(EventType::ROTATE), Some(next)) => {
            Some(LastWord::Rotate { next, timestamp: scan.last_timestamp })
        }
        (Some(EventType::STOP), _) => Some(LastWord::Stop),
        _ => None,
    };
    Ok(LeftFile { end: end.clone(), boundary: scan.boundary, tail_start: scan.tail_start, last_word })
}

/// Whether bytes made no sense at the very place of the request: there may be no event of the source at that place.
fn is_senseless_at(error: &PeerError, at: &Position) -> bool {
    match error {
        PeerError::Event { at: place, .. } | PeerError::Discontinuity { at: place, .. } => place == at,
        _ => false,
    }
}

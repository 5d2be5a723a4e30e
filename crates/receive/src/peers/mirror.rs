//! A copy below another binlogd has the same timelines, one by one.
//!
//! ```text
//! which timeline of the binlogd above is the newest one here?        by when it was begun, else by the bytes at its end
//!   ├─ one that is written no more ─► it is received to its end ─► the next one begins as it began there, or the
//!   │                                                              one that is live there is the present one again
//!   ├─ the live one ────────────────► it is received, and acknowledged
//!   └─ none ────────────────────────► the first one there that is not here is taken as that of a server: plan.rs
//! ```
//!
//! Each connection reads one timeline alone (`@binlogd_timeline`), so that within one the binlogd above is to this one what a server
//! is: what does not fit is examined as with a server. No file can come under the name of another server, for a timeline has one.

use super::above::identity;
use super::above_error::AboveError;
use super::kin::{Both, Kin, Own};
use super::lacking::Before;
use crate::attempt::ask::{Attempt, TimelineAbove};
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use crate::attempt::open_timeline::OpenTimeline;
use crate::peers::BEFORE_MAX;
use crate::session::SessionError;
use binlog::Position;
use binlog::timeline::Timeline;
use binlog::timeline::described::{Described, Descriptions};
use binlog::timeline::extent::Extent;
use binlog::writer::LogError;
use config::Start;
use source::complaint::ER_FATAL_READING_BINLOG;
use source::identify::SourceIdentity;
use source::link::{End, Link};
use source::look::{Compared, Ours};
use wire::WireError;

impl Attempt<'_> {
    /// Receives what the binlogd above has, until a stop is requested. `presented` is what it says of itself.
    pub(crate) fn mirror(
        &self,
        copy: &mut HeldCopy,
        presented: &SourceIdentity,
        above: &Descriptions,
    ) -> Result<(), AttemptError> {
        self.look_at_doubts(above);
        let theirs = &above.timelines;
        let mut whole = Vec::new();
        // Each turn comes to the end of one timeline. What has changed above meanwhile ends a session, and the next attempt asks anew.
        for _ in 0..=3 * theirs.len() {
            let own = Own::all(copy)?;
            let both = Both::new(&own, theirs);
            let kin = self.kin(copy, presented, &both)?;
            let at = match kin {
                Kin::Itself(at) | Kin::Server(at) => Some(at),
                Kin::None => None,
            };
            let next = both.next(at);
            if let Some(at) = at.filter(|at| *at != above.live || next.is_none()) {
                let is_itself = kin == Kin::Itself(at);
                if !self.receive_timeline(copy, presented, above, at, is_itself)? {
                    return Ok(());
                }
                whole.push(at);
            }
            if let Some((short, folder)) = both.cut_short(above.live, &whole).filter(|_| at.is_some()) {
                self.go_back_to(copy, &identity(presented, &theirs[short], false), folder)?;
                continue;
            }
            let begins = match (next, at) {
                (Some(next), _) => next,
                (None, Some(_)) => match both.known[above.live] {
                    Some(back) => {
                        let source = identity(presented, above.live(), true);
                        self.go_back_to(copy, &source, &own[back].folder)?;
                        continue;
                    }
                    None => above.live,
                },
                (None, None) if above.live().unreadable.is_some() => above.live,
                (None, None) => {
                    let newest = own.last().map_or_else(String::new, |own| own.name.clone());
                    return Err(AboveError::Lacks(newest).into());
                }
            };
            if theirs[begins].unreadable.is_some() {
                return Err(AboveError::unreadable(&theirs[begins]).into());
            }
            if !self.begin_as_above(copy, presented, above, &both, at, begins)? {
                return Ok(());
            }
        }
        Err(AboveError::Moved.into())
    }

    /// Says which timelines cannot be read above, whenever others cannot.
    fn look_at_doubts(&self, above: &Descriptions) {
        let is_news = self.left.doubts_above.borrow_mut().seen(above, self.upstream.clock.now());
        if is_news {
            self.tell(format!(
                "the binlogd above cannot read all of its timelines, so that this copy cannot have them: {}",
                above.unreadable()
            ));
        }
    }

    fn tell(&self, text: String) {
        tracing::warn!(source = self.upstream.config.name, host = %self.host, "{text}");
        self.upstream.monitor.set_error(text);
    }

    /// The doubt as an error, until it has lasted for so long that it is no matter of a moment.
    fn unless_lasting(&self, doubt: &AboveError) -> Result<(), AttemptError> {
        match self.left.doubts_above.borrow().lasts(doubt, self.upstream.clock.now()) {
            true => Ok(()),
            false => Err(doubt.clone().into()),
        }
    }

    /// What of theirs is the newest one here.
    fn kin(&self, copy: &HeldCopy, presented: &SourceIdentity, both: &Both<'_>) -> Result<Kin, AttemptError> {
        let Some(newest) = both.own.last() else { return Ok(Kin::None) };
        if let Some(at) = both.theirs.iter().position(|their| newest.is(their)) {
            // It may have lost what was readable of it, and gets that again.
            return if both.theirs[at].is_pending {
                Err(AboveError::Nothing.into())
            } else {
                Ok(Kin::Itself(at))
            };
        }
        let candidates = both.candidates(newest);
        let mut found = None;
        for at in &candidates {
            if self.has_our_end(copy, presented, &both.theirs[*at])? {
                found = Some(*at);
                break;
            }
        }
        match (both.may_be_unread(newest, found), found) {
            (Some(unread), _) => {
                self.unless_lasting(&AboveError::unreadable(&both.theirs[unread]))?;
                Ok(Kin::Itself(unread))
            }
            (None, Some(at)) => Ok(Kin::Itself(at)),
            (None, None) => Ok(both.of_server(newest, &candidates)),
        }
    }

    /// Whether a timeline of the binlogd above has the end of the newest one here.
    fn has_our_end(
        &self,
        copy: &HeldCopy,
        presented: &SourceIdentity,
        theirs: &Described,
    ) -> Result<bool, AttemptError> {
        let source = self.choose(presented, theirs, false);
        let (Some(timeline), Some(at)) = (copy.timeline(), copy.end()) else { return Ok(false) };
        let (end, followed) = match copy.before_untold()? {
            Some((before, format)) => {
                let end = End { at: before, format: Some(&format), tail: &[], ahead: 0 };
                (self.link(&source, &end, self.server_id(copy)), true)
            }
            None => {
                let tail = timeline.tail().map_err(SessionError::from)?;
                if tail.is_empty() && timeline.tail_start > 4 {
                    return self.has_our_file(copy, &source, timeline, &at);
                }
                let end = End { at: at.clone(), format: timeline.format.as_ref(), tail: &tail, ahead: 0 };
                (self.link(&source, &end, self.server_id(copy)), false)
            }
        };
        match end {
            Ok(Link::Followed(next)) if followed => Ok(*next.name == *at.file),
            Ok(Link::GoesOn { .. } | Link::Followed(_) | Link::Refused(_)) => Ok(!followed),
            Ok(Link::OtherFile | Link::OtherHistory { .. })
            | Err(WireError::Server { code: ER_FATAL_READING_BINLOG, .. }) => Ok(false),
            Err(error) => Err(self.with_privilege(error)),
        }
    }

    /// As [`has_our_end`](Self::has_our_end), where the last transaction is too long to be asked for again.
    fn has_our_file(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        timeline: &OpenTimeline,
        at: &Position,
    ) -> Result<bool, AttemptError> {
        let failed = |error| {
            let path = timeline.folder().join(&*at.file);
            SessionError::from(LogError::Io { action: "read", path, error })
        };
        let file = timeline.log.open_read(&at.file).map_err(failed)?;
        let ours = Ours { file: &*file, len: at.offset, sealed: false };
        match self.compare(copy, source, &at.file, ours) {
            Ok(compared) => Ok(matches!(compared, Compared::Equal { .. })),
            Err(AttemptError::Wire(WireError::Server { code: ER_FATAL_READING_BINLOG, .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// From now on connections read this timeline. The value stands for its server.
    fn choose(&self, presented: &SourceIdentity, theirs: &Described, is_live: bool) -> SourceIdentity {
        *self.left.timeline_above.borrow_mut() = Some(TimelineAbove { name: theirs.name.clone(), is_live });
        identity(presented, theirs, is_live)
    }

    /// Receives one timeline. True when it is written no more and is here to its end; false when a stop was requested.
    fn receive_timeline(
        &self,
        copy: &mut HeldCopy,
        presented: &SourceIdentity,
        above: &Descriptions,
        at: usize,
        is_itself: bool,
    ) -> Result<bool, AttemptError> {
        let (theirs, is_live) = (&above.timelines[at], at == above.live);
        let source = self.choose(presented, theirs, is_live);
        if is_itself && is_untold(copy) && above.may_have_more(at) {
            self.unless_lasting(&AboveError::PastNotKnown(theirs.name.clone()))?;
        }
        let begin = match (is_itself, &theirs.extent) {
            (false, _) => self.place(copy, &source)?,
            (true, None) if is_live && theirs.unreadable.is_some() => {
                return Err(AboveError::unreadable(theirs).into());
            }
            (true, None) if is_live => return Err(AboveError::Nothing.into()),
            (true, None) => return Ok(true),
            (true, Some(extent)) if !is_live && is_before_unbegun(copy, extent)? => return Ok(true),
            (true, Some(extent)) => match copy.end().filter(|_| !is_untold(copy)) {
                Some(end) => {
                    self.check_continuity(copy, &source)?;
                    end
                }
                None => {
                    self.describe_untold(copy, presented, above, at)?;
                    copy.end().unwrap_or_else(|| Position::new(extent.first.as_str(), 4))
                }
            },
        };
        let connection = self.connect_only()?;
        let error = match self.session_at(connection, copy, &source, &begin) {
            Ok(()) => return Ok(false),
            Err(error) => error,
        };
        let has_all = match &theirs.extent {
            Some(extent) if !is_live => {
                // What of it is inside a transaction there is cut on both sides, unless a file was begun behind it.
                let is_at_end = |end: Position| *end.file == *extent.last && end.offset <= extent.end;
                copy.end().is_some_and(is_at_end) || is_before_unbegun(copy, extent)?
            }
            _ => false,
        };
        match error {
            AttemptError::Session(SessionError::EndOfDump) if has_all => Ok(true),
            AttemptError::Session(SessionError::Closed | SessionError::EndOfDump) => {
                Err(AboveError::Moved.into())
            }
            error => Err(self.examine(copy, &source, &begin, error)),
        }
    }

    /// The newest timeline, of which nothing has arrived, is described as it is there by now: files may have been purged since.
    fn describe_untold(
        &self,
        copy: &mut HeldCopy,
        presented: &SourceIdentity,
        above: &Descriptions,
        at: usize,
    ) -> Result<(), AttemptError> {
        let theirs = &above.timelines[at];
        let (Some(timeline), Some(info)) = (copy.timeline(), &theirs.info) else { return Ok(()) };
        if timeline.end().is_some() || timeline.info.purged.len() == info.purged.len() {
            return Ok(());
        }
        let mut purged = info.purged.clone();
        purged.iter_mut().for_each(|line| line.removed = true);
        let mut info = Timeline { purged, ..timeline.info.clone() };
        // A copy that begins takes what is left; one that has a history goes on behind a gap only where that is wanted.
        if !info.previous.is_empty() {
            let source = identity(presented, theirs, true);
            let doubt = above.may_have_more(at).then(|| AboveError::PastNotKnown(theirs.name.clone()));
            let before = Before { doubt, ..Before::default() };
            info.missing = self.missing_below(copy, &source, &before, &info)?;
        }
        Ok(copy.describe_anew(info)?)
    }

    /// Begins one of theirs: as it began there, where what is here came before it there, too; else as that of a server that is
    /// followed, which is then received. `at` is which of theirs the newest one here is. False when a stop was requested.
    fn begin_as_above(
        &self,
        copy: &mut HeldCopy,
        presented: &SourceIdentity,
        above: &Descriptions,
        both: &Both<'_>,
        at: Option<usize>,
        begins: usize,
    ) -> Result<bool, AttemptError> {
        let wants_all = matches!(self.upstream.config.start, Start::Resume | Start::Earliest);
        if both.own.is_empty() && !wants_all {
            return self.receive_timeline(copy, presented, above, above.live, false);
        }
        let theirs = &above.timelines[begins];
        let info = theirs.info.as_ref().filter(|_| at.is_some() || both.own.is_empty());
        let Some(info) = info else {
            return self.receive_timeline(copy, presented, above, begins, false);
        };
        // Of the one before it nothing may be left but what an archive has.
        let left = at.filter(|at| above.timelines[*at].extent.is_none());
        let unknown = [Some(begins), left].into_iter().flatten().find(|of| above.may_have_more(*of));
        let unread = both.unread(at, begins);
        let doubt = unknown.map(|of| AboveError::PastNotKnown(above.timelines[of].name.clone()));
        let doubt = doubt.or_else(|| unread.map(AboveError::unreadable));
        if let Some(doubt) = &doubt {
            self.unless_lasting(doubt)?;
        }
        let source = self.choose(presented, theirs, begins == above.live);
        let completed = self.complete_before(copy, &source, BEFORE_MAX)?;
        if completed.something {
            return Err(AttemptError::Completed);
        }
        let mut info = both.description(info, at);
        let left = left.and_then(|left| above.timelines[left].info.as_ref());
        let before = Before { left, is_unread: unread.is_some(), doubt };
        if at.is_some() {
            info.missing = self.missing_below(copy, &source, &before, &info)?;
        }
        if let Some(doubt) = &before.doubt {
            self.tell(format!(
                "this copy goes on with {} without what the binlogd above cannot give: {doubt}",
                theirs.name
            ));
        }
        self.begin(copy, info, theirs.number(), &completed)?;
        Ok(true)
    }
}

/// Whether nothing has arrived of the newest timeline by which its file could be known.
fn is_untold(copy: &HeldCopy) -> bool {
    copy.timeline().is_some_and(OpenTimeline::is_untold)
}

/// Whether the last file there is here to its end, and one was begun behind it, as there, of which nothing is here.
fn is_before_unbegun(copy: &HeldCopy, extent: &Extent) -> Result<bool, CopyError> {
    let is_it = |at: Position| *at.file == *extent.last && at.offset == extent.end;
    Ok(copy.before_untold()?.is_some_and(|(at, _)| is_it(at)))
}

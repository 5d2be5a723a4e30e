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
use crate::attempt::ask::{Attempt, TimelineAbove};
use crate::attempt::attempt_error::{AttemptError, told};
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use crate::attempt::open_timeline::OpenTimeline;
use crate::peers::BEFORE_MAX;
use crate::session::SessionError;
use binlog::Position;
use binlog::folder::timelines;
use binlog::timeline::described::{Described, Descriptions};
use binlog::timeline::extent::{Extent, extents_on_disk};
use binlog::timeline::{Reason, Timeline};
use binlog::writer::LogError;
use codec::BinlogName;
use codec::gtid::GtidState;
use config::{OnGap, Start};
use source::complaint::ER_FATAL_READING_BINLOG;
use source::identify::SourceIdentity;
use source::link::{End, Link};
use source::look::{Compared, Ours};
use std::path::PathBuf;
use wire::WireError;

/// A timeline of this copy.
#[derive(Debug, Clone)]
struct Own {
    folder: PathBuf,
    name: String,
    info: Timeline,
    extent: Option<Extent>,
}

/// What a timeline of the binlogd above is to the newest one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kin {
    /// The same one.
    Itself(usize),
    /// Of the same server: what is here and what is there is compared as with that server.
    Server(usize),
    /// Nothing that is known.
    None,
}

/// Both sides, but for the newest timeline here.
struct Both<'a> {
    /// All of this copy, the one that is written last.
    own: &'a [Own],
    theirs: &'a [Described],
    /// For each of theirs, which of the older ones here it is.
    known: Vec<Option<usize>>,
}

impl<'a> Both<'a> {
    /// Finds out which of theirs are here, by their records, and of the others by files that one server has made in one second.
    fn new(own: &'a [Own], theirs: &'a [Described]) -> Both<'a> {
        let older = &own[..own.len().saturating_sub(1)];
        let mut known: Vec<Option<usize>> =
            theirs.iter().map(|their| older.iter().position(|own| own.is(their))).collect();
        for at in 0..theirs.len() {
            let is_free = |index: &usize| !known.contains(&Some(*index));
            let found =
                (0..older.len()).filter(is_free).find(|index| older[*index].shares_a_file(&theirs[at]));
            known[at] = known[at].or(found);
        }
        Both { own, theirs, known }
    }

    /// Those that may be the newest one here, by their servers and their files: first those that are no older one here; each time
    /// the oldest first, because a fork begins with a file of the timeline that it leaves.
    fn candidates(&self, newest: &Own) -> Vec<usize> {
        let may_be = |index: &usize| match (&newest.extent, &self.theirs[*index].extent) {
            (Some(own), Some(theirs)) => own.may_be(theirs),
            _ => false,
        };
        let mut found: Vec<usize> = (0..self.theirs.len()).filter(may_be).collect();
        found.sort_by_key(|index| self.known[*index].is_some());
        found
    }

    /// One of the same server, where none is the same timeline. One here of which nothing has arrived goes on with what the one before it
    /// did; another one of which no file is left there, with the first that was written later.
    fn of_server(&self, newest: &Own, candidates: &[usize]) -> Kin {
        let of_server = |index: &usize| self.theirs[*index].server_uuid() == newest.info.server_uuid;
        let all = || (0..self.theirs.len()).filter(of_server);
        let found = match &newest.extent {
            None => {
                let before = self.own.iter().position(|own| own.name == newest.info.previous);
                let same = all().find(|index| before.is_some() && self.known[*index] == before);
                same.or_else(|| all().find(|index| self.known[*index].is_none()))
                    .or_else(|| all().next_back())
            }
            Some(own) => candidates.last().copied().or_else(|| {
                let is_later = |extent: &Extent| extent.last_made >= own.last_made;
                all().find(|index| self.theirs[*index].extent.as_ref().is_some_and(is_later))
            }),
        };
        found.map_or(Kin::None, Kin::Server)
    }

    /// The first of theirs that is not here and was begun behind `after`; without that, behind all that are here.
    fn next(&self, after: Option<usize>) -> Option<usize> {
        let behind = after.or_else(|| self.known.iter().rposition(Option::is_some));
        let from = behind.map_or(0, |behind| behind + 1);
        (from..self.theirs.len())
            .find(|index| self.known[*index].is_none() && !self.theirs[*index].is_pending)
    }

    /// The description of one of theirs, as it stands here. `newest` is which of theirs the newest one here is.
    fn description(&self, info: &Timeline, newest: Option<usize>) -> Timeline {
        let mut info = info.clone();
        // Nothing of it was ever here.
        info.purged.iter_mut().for_each(|line| line.removed = true);
        let previous = self.theirs.iter().position(|their| their.name == info.previous);
        let own = match previous {
            Some(previous) if Some(previous) == newest => self.own.last(),
            Some(previous) => self.known[previous].map(|index| &self.own[index]),
            None => None,
        };
        match own {
            Some(own) => info.previous.clone_from(&own.name),
            None if !self.own.is_empty() => info.previous.clear(),
            None => {}
        }
        info
    }
}

impl Own {
    fn all(copy: &HeldCopy) -> Result<Vec<Own>, AttemptError> {
        let folder = copy.source_folder();
        let failed = |error| CopyError::Timeline { path: folder.to_owned(), error };
        let extents = extents_on_disk(copy.storage(), folder).map_err(failed)?;
        let own = |folder: PathBuf| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let info = Timeline::read(copy.storage(), &folder).map_err(failed)?;
            let extent = extents.iter().find(|extent| extent.timeline == name).cloned();
            Ok(Own { folder, name, info, extent })
        };
        timelines(copy.storage(), folder).map_err(failed)?.into_iter().map(own).collect()
    }

    /// Whether it was begun as that one, by its record.
    fn is(&self, their: &Described) -> bool {
        let is_it = |info: &Timeline| {
            info.server_uuid == self.info.server_uuid && info.began_at == self.info.began_at
        };
        !self.info.began_at.is_empty() && their.info.as_ref().is_some_and(is_it)
    }

    fn shares_a_file(&self, their: &Described) -> bool {
        matches!((&self.extent, &their.extent), (Some(own), Some(their)) if own.shares_a_file(their))
    }
}

impl Attempt<'_> {
    /// Receives what the binlogd above has, until a stop is requested. `presented` is what it says of itself.
    pub(crate) fn mirror(
        &self,
        copy: &mut HeldCopy,
        presented: &SourceIdentity,
        above: &Descriptions,
    ) -> Result<(), AttemptError> {
        let theirs = &above.timelines;
        // Each turn comes to the end of one timeline. What has changed above meanwhile ends a session, and the next attempt asks anew.
        for _ in 0..=2 * theirs.len() {
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
            }
            let begins = match (next, at) {
                (Some(next), _) => next,
                (None, Some(_)) => match both.known[above.live] {
                    Some(back) => {
                        let source = identity(presented, &theirs[above.live], true);
                        self.go_back_to(copy, &source, &own[back].folder)?;
                        continue;
                    }
                    None => above.live,
                },
                (None, None) => {
                    let newest = own.last().map_or_else(String::new, |own| own.name.clone());
                    return Err(AboveError::Lacks(newest).into());
                }
            };
            if !self.begin_as_above(copy, presented, above, &both, at, begins)? {
                return Ok(());
            }
        }
        Err(AboveError::Moved.into())
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
        for at in &candidates {
            if self.has_our_end(copy, presented, &both.theirs[*at])? {
                return Ok(Kin::Itself(*at));
            }
        }
        Ok(both.of_server(newest, &candidates))
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
        let begin = match (is_itself, &theirs.extent) {
            (false, _) => self.place(copy, &source)?,
            (true, None) if is_live => return Err(AboveError::Nothing.into()),
            (true, None) => return Ok(true),
            (true, Some(extent)) => match copy.end().filter(|_| !is_untold(copy)) {
                Some(end) => {
                    self.check_continuity(copy, &source)?;
                    end
                }
                None => {
                    self.describe_untold(copy, presented, theirs)?;
                    copy.end().unwrap_or_else(|| Position::new(extent.first.as_str(), 4))
                }
            },
        };
        let connection = self.connect_only()?;
        let error = match self.session_at(connection, copy, &source, &begin) {
            Ok(()) => return Ok(false),
            Err(error) => error,
        };
        let has_all = |extent: &Extent| {
            copy.end().is_some_and(|end| *end.file == *extent.last && end.offset <= extent.end)
        };
        match error {
            AttemptError::Session(SessionError::EndOfDump)
                if !is_live && theirs.extent.as_ref().is_some_and(has_all) =>
            {
                Ok(true)
            }
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
        theirs: &Described,
    ) -> Result<(), AttemptError> {
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
            info.missing = self.missing_below(copy, &source, None, &info)?;
        }
        Ok(copy.describe_anew(info)?)
    }

    /// What was purged above before it came here, for the record of the timeline that `begins`: of that one, and of the one that was
    /// received last, of which nothing is `left` there.
    ///
    /// # Errors
    /// [`AttemptError::Gap`] where that is to stop this copy; the peers are asked first.
    fn missing_below(
        &self,
        copy: &mut HeldCopy,
        source: &SourceIdentity,
        left: Option<&Timeline>,
        begins: &Timeline,
    ) -> Result<String, AttemptError> {
        let holding = copy.holding();
        let held = holding.as_ref().map(|holding| holding.gtids.clone()).unwrap_or_default();
        let end = holding.and_then(|holding| holding.end);
        let Some(missing) = never_came(left, begins, &held, end.as_ref()) else {
            return Ok(begins.missing.clone());
        };
        self.complete_before_gap(copy, source)?;
        if self.upstream.config.on_gap != OnGap::Record {
            let needed = end.map_or_else(|| begins.first_file.clone(), |end| end.to_string());
            let oldest = begins.purged.last().map_or(&begins.first_file, |line| &line.through);
            return Err(AttemptError::Gap {
                needed,
                oldest: format!("behind {oldest}"),
                missing: told(&missing),
            });
        }
        let mut all = GtidState::parse(begins.server_kind, &begins.missing).unwrap_or_default();
        // Sets of two kinds of server are of two histories.
        Ok(if all.union_with(&missing).is_ok() { all.to_record() } else { missing.to_record() })
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
        let source = self.choose(presented, theirs, begins == above.live);
        let completed = self.complete_before(copy, &source, BEFORE_MAX)?;
        if completed.something {
            return Err(AttemptError::Completed);
        }
        let mut info = both.description(info, at);
        if let Some(at) = at {
            let left = above.timelines[at].info.as_ref().filter(|_| above.timelines[at].extent.is_none());
            info.missing = self.missing_below(copy, &source, left, &info)?;
        }
        self.begin(copy, info, theirs.number(), &completed)?;
        Ok(true)
    }
}

/// GTIDs that were purged above and are not `held` here: of the timeline that `begins`, and of the one that is written here up to `end`,
/// of which nothing is `left` above. Empty where something is lacking and nobody knows which; `None` where nothing is.
fn never_came(
    left: Option<&Timeline>,
    begins: &Timeline,
    held: &GtidState,
    end: Option<&Position>,
) -> Option<GtidState> {
    let mut missing: Option<GtidState> = None;
    for (info, is_new) in left.map(|left| (left, false)).into_iter().chain([(begins, true)]) {
        let Some(line) = info.purged.last() else { continue };
        let purged = GtidState::parse(info.server_kind, &line.gtids).unwrap_or_default();
        let lacking = match info.reason {
            // The same numbers mean other transactions.
            Reason::First | Reason::SourceReset | Reason::Stranger if is_new => purged.clone(),
            _ if is_new => purged.subtract(&held.subtract(&info.lacked())),
            _ => purged.subtract(held),
        };
        let number = |name: &str| BinlogName::parse(name).map(|name| name.number()).ok();
        let is_behind = || end.is_some_and(|end| number(&end.file) < number(&line.through));
        if lacking.is_empty() && (!purged.is_empty() || !(is_new || is_behind())) {
            continue;
        }
        // Sets of two kinds of server are of two histories.
        let is_added = missing.as_mut().is_some_and(|all| all.union_with(&lacking).is_ok());
        if !is_added {
            missing = Some(lacking);
        }
    }
    missing
}

/// Whether nothing has arrived of the newest timeline by which its file could be known.
fn is_untold(copy: &HeldCopy) -> bool {
    copy.timeline().is_some_and(OpenTimeline::is_untold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::purge::purged::Purged;
    use binlog::testing::first_timeline;
    use codec::ServerKind;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    /// By its number, its server, when it was begun, and `first made last made` of its files.
    fn described(number: u32, uuid: &str, began_at: &str, files: &str) -> Described {
        let name = format!("{number:04}-{uuid}");
        let extent =
            (!files.is_empty()).then(|| format!("{name} {files} 500").replace(' ', "\t").parse().unwrap());
        let info = Timeline { began_at: began_at.into(), ..first_timeline(uuid) };
        Described { name, extent, is_pending: false, info: Some(info) }
    }

    fn own(number: u32, uuid: &str, began_at: &str, files: &str) -> Own {
        let Described { name, extent, info, .. } = described(number, uuid, began_at, files);
        Own { folder: name.clone().into(), name, info: info.unwrap(), extent }
    }

    #[test]
    fn an_empty_copy_begins_with_the_first_and_goes_on_one_by_one() {
        let theirs = [
            described(3, A, "t1", "b.000001 10 b.000004 40"),
            described(4, B, "t2", ""),
            described(5, B, "t3", "b.000001 50 b.000001 50"),
        ];
        assert_eq!(Both::new(&[], &theirs).next(None), Some(0));
        let mut copy = vec![own(3, A, "t1", "b.000001 10 b.000002 20")];
        assert_eq!(Both::new(&copy, &theirs).next(Some(0)), Some(1), "one without files, too");
        copy.push(own(4, B, "t2", ""));
        let both = Both::new(&copy, &theirs);
        assert_eq!((both.known.clone(), both.next(Some(1))), (vec![Some(0), None, None], Some(2)));
        let mut pending = theirs.clone();
        pending[2].is_pending = true;
        assert_eq!(Both::new(&copy, &pending).next(Some(1)), None, "nothing of it was published");
    }

    /// It came from the server itself, before.
    #[test]
    fn what_was_begun_elsewhere_is_known_by_its_files_and_a_fork_is_not_taken_for_what_it_leaves() {
        let theirs = [
            described(1, A, "t1", "b.000001 10 b.000005 50"),
            described(2, A, "t2", "b.000005 50 b.000006 70"),
        ];
        let copy = [own(1, A, "x1", "b.000001 10 b.000005 50"), own(2, A, "x2", "b.000005 50 b.000006 70")];
        let both = Both::new(&copy[..1], &theirs);
        assert_eq!(both.candidates(&copy[0]), [0, 1], "the bytes tell, from the oldest on");
        let both = Both::new(&copy, &theirs);
        assert_eq!((both.known.clone(), both.candidates(&copy[1])), (vec![Some(0), None], vec![1, 0]));
        assert_eq!(both.next(Some(1)), None);
        let other = [described(1, B, "t1", "b.000001 10 b.000005 50")];
        let both = Both::new(&copy, &other);
        assert!(both.candidates(&copy[1]).is_empty() && both.of_server(&copy[1], &[]) == Kin::None);
        assert_eq!(both.next(None), Some(0), "it is followed as a server is");
    }

    #[test]
    fn what_is_gone_above_is_a_gap_there_and_not_an_older_history() {
        let theirs = [
            described(1, A, "t1", "b.000007 70 b.000009 90"),
            described(2, A, "t2", "b.000001 95 b.000002 99"),
        ];
        let copy = [own(1, A, "x1", "b.000001 10 b.000003 30")];
        let both = Both::new(&copy, &theirs);
        assert!(both.candidates(&copy[0]).is_empty());
        assert_eq!(both.of_server(&copy[0], &[]), Kin::Server(0));
        let ahead = [own(2, A, "x2", "b.000001 97 b.000003 98")];
        let behind = [described(1, A, "t1", "b.000007 70 b.000009 90")];
        assert_eq!(Both::new(&ahead, &behind).of_server(&ahead[0], &[]), Kin::None, "it waits");
    }

    #[test]
    fn a_description_names_the_timelines_that_are_here() {
        let mut theirs = vec![described(1, A, "t1", "b.000001 10 b.000004 40"), described(2, B, "t2", "")];
        let (previous, info) = (theirs[0].name.clone(), theirs[1].info.as_mut().unwrap());
        (info.previous, info.reason) = (previous, Reason::SourceChanged);
        let info = theirs[1].info.clone().unwrap();
        let copy = [own(7, A, "t1", "b.000001 10 b.000004 40")];
        let previous = |own: &[Own], newest| Both::new(own, &theirs).description(&info, newest).previous;
        assert_eq!(previous(&copy, Some(0)), copy[0].name);
        assert_eq!(previous(&[], None), theirs[0].name, "as it is there");
        assert_eq!(previous(&[own(7, B, "x", "")], Some(1)), "", "the one before it here");
    }

    #[test]
    fn what_was_purged_above_before_it_came_here_is_a_gap() {
        let set = |last: u32| GtidState::parse(ServerKind::MySql, &format!("{A}:1-{last}")).unwrap();
        let timeline = |reason, through: &str, gtids: &str| {
            let line = Purged {
                from: "b.000001".into(),
                through: through.into(),
                files: 1,
                bytes: 1,
                gtid_before: None,
                gtids: gtids.into(),
                at: String::new(),
                why: String::new(),
                removed: true,
            };
            let purged = if through.is_empty() { Vec::new() } else { vec![line] };
            Timeline { reason, purged, ..first_timeline(A) }
        };
        let gtids = |last: u32| set(last).to_record();
        let whole = timeline(Reason::SourceChanged, "", "");
        let end = Position::new("b.000003", 700);
        let never = |left: Option<&Timeline>, begins: &Timeline, held: u32| {
            never_came(left, begins, &set(held), Some(&end)).map(|missing| missing.to_record())
        };
        assert_eq!(never(None, &whole, 5), None);
        let left = timeline(Reason::First, "b.000004", &gtids(9));
        assert_eq!(never(Some(&left), &whole, 9), None, "it came before it was purged");
        assert_eq!(never(Some(&left), &whole, 5), Some(format!("{A}:6-9")));
        let begins = timeline(Reason::SourceChanged, "b.000002", &gtids(12));
        assert_eq!(never(Some(&left), &begins, 5), Some(format!("{A}:6-12")));
        let reset = timeline(Reason::SourceReset, "b.000001", &gtids(2));
        assert_eq!(never(None, &reset, 9), Some(format!("{A}:1-2")), "the same numbers, other transactions");
        let fork =
            Timeline { source_lacks: format!("{A}:4-9"), ..timeline(Reason::Fork, "b.000004", &gtids(5)) };
        assert_eq!(never(None, &fork, 9), Some(format!("{A}:4-5")), "the source has given them anew");
        // Without GTIDs the names tell.
        let (behind, level) =
            (timeline(Reason::First, "b.000004", ""), timeline(Reason::First, "b.000003", ""));
        assert_eq!(
            never_came(Some(&behind), &whole, &GtidState::default(), Some(&end)),
            Some(GtidState::default())
        );
        assert_eq!(never_came(Some(&level), &whole, &GtidState::default(), Some(&end)), None);
    }
}

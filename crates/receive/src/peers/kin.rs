//! Which timelines of a binlogd above are those of this copy, and which comes next.

use crate::attempt::attempt_error::AttemptError;
use crate::attempt::copy::HeldCopy;
use crate::attempt::copy_error::CopyError;
use binlog::folder::timelines;
use binlog::timeline::Timeline;
use binlog::timeline::described::Described;
use binlog::timeline::extent::{Extent, extents_on_disk};
use codec::BinlogName;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// A timeline of this copy.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) folder: PathBuf,
    pub(super) name: String,
    pub(super) info: Timeline,
    pub(super) extent: Option<Extent>,
}

/// What a timeline of the binlogd above is to the newest one here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kin {
    /// The same one.
    Itself(usize),
    /// Of the same server: what is here and what is there is compared as with that server.
    Server(usize),
    /// Nothing that is known.
    None,
}

/// Both sides, but for the newest timeline here.
pub(super) struct Both<'a> {
    /// All of this copy, the one that is written last.
    pub(super) own: &'a [Own],
    pub(super) theirs: &'a [Described],
    /// For each of theirs, which of the older ones here it is.
    pub(super) known: Vec<Option<usize>>,
}

impl<'a> Both<'a> {
    /// Finds out which of theirs are here, by their records, and of the others by files that one server has made in one second.
    pub(super) fn new(own: &'a [Own], theirs: &'a [Described]) -> Both<'a> {
        let older = &own[..own.len().saturating_sub(1)];
        let mut known: Vec<Option<usize>> = theirs
            .iter()
            .map(|their| older.iter().position(|own| own.is(their) || own.is_named(their)))
            .collect();
        for (index, own) in older.iter().enumerate() {
            if known.contains(&Some(index)) {
                continue;
            }
            // Two of one server share the file in which the later one begins; and one here that was begun behind a gap is a part of one
            // there that has its record already.
            let shares = (0..theirs.len()).rev().filter(|at| own.shares_a_file(&theirs[*at]));
            let nearest = shares.max_by_key(|at| (own.nearness(&theirs[*at]), known[*at].is_none()));
            if let Some(at) = nearest.filter(|at| known[*at].is_none()) {
                known[at] = Some(index);
            }
        }
        Both { own, theirs, known }
    }

    /// Those that may be the newest one here, by their servers and their files: first those that are no older one here; each time
    /// the oldest first, because a fork begins with a file of the timeline that it leaves.
    pub(super) fn candidates(&self, newest: &Own) -> Vec<usize> {
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
    pub(super) fn of_server(&self, newest: &Own, candidates: &[usize]) -> Kin {
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

    /// The first of theirs that is not here, was begun behind `after` and can be read; without that, behind all that are here.
    pub(super) fn next(&self, after: Option<usize>) -> Option<usize> {
        let behind = after.or_else(|| self.known.iter().rposition(Option::is_some));
        let from = behind.map_or(0, |behind| behind + 1);
        let may_be = |index: &usize| {
            let their = &self.theirs[*index];
            self.known[*index].is_none() && !their.is_pending && their.unreadable.is_none()
        };
        (from..self.theirs.len()).find(may_be)
    }

    /// The one that cannot be read and may be the newest one here all the same. `at` has the end of that: where the file of this end is
    /// the one that it begins with, so may have the timeline that it has left. Without `at` none has it: compared with another one of
    /// its server, it would be taken for what that server has lost.
    pub(super) fn may_be_unread(&self, newest: &Own, at: Option<usize>) -> Option<usize> {
        let begins_with = |at: usize, last: &str| {
            let number = |name: &str| BinlogName::parse(name).map(|name| name.number()).ok();
            self.theirs[at].info.as_ref().is_none_or(|info| number(last) <= number(&info.first_file))
        };
        let older = match (at, &newest.extent) {
            (Some(at), Some(own)) if !begins_with(at, &own.last) => 0,
            (Some(at), _) => at,
            (None, _) => self.theirs.len(),
        };
        let may_be =
            |their: &Described| their.unreadable.is_some() && their.server_uuid() == newest.info.server_uuid;
        (0..older).find(|index| self.known[*index].is_none() && may_be(&self.theirs[*index]))
    }

    /// The first of theirs that cannot be read, and of which something may be lacking here when `begins` is begun behind `after`; or the
    /// one before `begins`, where nobody knows which one that is here.
    pub(super) fn unread(&self, after: Option<usize>, begins: usize) -> Option<&Described> {
        let from = after.or_else(|| self.known.iter().rposition(Option::is_some)).unwrap_or(0);
        let lacks = |index: &usize| Some(*index) == after || self.known[*index].is_none();
        let previous = self.theirs[begins].info.as_ref().and_then(|info| self.named(&info.previous));
        let mut unread = (from..begins).chain(previous).filter(lacks).map(|index| &self.theirs[index]);
        unread.find(|their| their.unreadable.is_some())
    }

    /// An older one here of which there is more there, by its record, though it is written no more: its server was back there while another
    /// one was received here. Not one of the `whole`, which were received to their end just now. The index is of theirs, the folder here.
    pub(super) fn cut_short(&self, live: usize, whole: &[usize]) -> Option<(usize, &Path)> {
        let short = |at: usize| {
            let (own, their) = (&self.own[self.known[at]?], &self.theirs[at]);
            let there = their.extent.as_ref().filter(|_| own.is(their))?;
            let is_more = match &own.extent {
                // What was purged there meanwhile is a gap, behind which another timeline has begun here.
                Some(here) => {
                    there.cmp_end(&here.last, here.end) == Some(Ordering::Greater)
                        && there.may_have(&here.last)
                }
                // Nothing of it had come there yet; or here nothing is left of it.
                None => own.info.purged.is_empty(),
            };
            is_more.then_some((at, &*own.folder))
        };
        (0..self.theirs.len()).filter(|at| *at != live && !whole.contains(at)).find_map(short)
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.theirs.iter().position(|their| their.name == name)
    }

    /// The description of one of theirs, as it stands here. `newest` is which of theirs the newest one here is.
    pub(super) fn description(&self, info: &Timeline, newest: Option<usize>) -> Timeline {
        let mut info = info.clone();
        // Nothing of it was ever here.
        info.purged.iter_mut().for_each(|line| line.removed = true);
        let own = match self.named(&info.previous) {
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
    pub(super) fn all(copy: &HeldCopy) -> Result<Vec<Own>, AttemptError> {
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
    pub(super) fn is(&self, their: &Described) -> bool {
        let is_it = |info: &Timeline| {
            info.server_uuid == self.info.server_uuid && info.began_at == self.info.began_at
        };
        !self.info.began_at.is_empty() && their.info.as_ref().is_some_and(is_it)
    }

    /// Whether it has the name of that one, of which nothing else can be told: where its number was free it was taken.
    fn is_named(&self, their: &Described) -> bool {
        their.unreadable.is_some() && their.info.is_none() && their.name == self.name
    }

    fn shares_a_file(&self, their: &Described) -> bool {
        matches!((&self.extent, &their.extent), (Some(own), Some(their)) if own.shares_a_file(their))
    }

    fn nearness(&self, their: &Described) -> Option<(bool, u64)> {
        Some(self.extent.as_ref()?.nearness(their.extent.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::purge::purged::Purged;
    use binlog::testing::first_timeline;
    use binlog::timeline::Reason;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    /// By its number, its server, when it was begun, and `first made last made` of its files.
    fn described(number: u32, uuid: &str, began_at: &str, files: &str) -> Described {
        let name = format!("{number:04}-{uuid}");
        let extent =
            (!files.is_empty()).then(|| format!("{name} {files} 500").replace(' ', "\t").parse().unwrap());
        let info = Timeline { began_at: began_at.into(), ..first_timeline(uuid) };
        Described { name, extent, is_pending: false, info: Some(info), unreadable: None }
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
        let mut unread = theirs.clone();
        (unread[1].unreadable, unread[1].info) = (Some("no".into()), None);
        let both = Both::new(&copy[..1], &unread);
        assert_eq!(both.next(Some(0)), Some(2), "the others are taken");
        assert!(both.unread(Some(0), 2).is_some() && both.unread(Some(0), 1).is_none());
        assert!(
            Both::new(&[], &unread).unread(None, 2).is_some()
                && Both::new(&[], &theirs).unread(None, 2).is_none()
        );
        // A fork begins with a file of the timeline that it leaves, and so do both have the end of a copy in that file.
        let mut forked = vec![unread[1].clone(), described(5, B, "t3", "b.000001 50 b.000002 60")];
        let in_file = |files| own(9, B, "x", files);
        let may_be_first =
            |theirs: &[Described], own: &Own, at| Both::new(&[], theirs).may_be_unread(own, at).is_some();
        let (first, second) = (in_file("b.000001 50 b.000001 50"), in_file("b.000001 50 b.000002 60"));
        assert!(may_be_first(&forked, &first, Some(1)) && !may_be_first(&forked, &second, Some(1)));
        assert!(may_be_first(&forked, &second, None));
        forked[0].unreadable = None;
        assert!(!may_be_first(&forked, &first, Some(1)) && !may_be_first(&forked, &second, None));
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

    /// The server was back above, and has lost its tail meanwhile.
    #[test]
    fn a_part_of_one_timeline_is_not_taken_for_the_next_one_of_its_server() {
        let theirs = [
            described(2, A, "t2", "b.000005 50 b.000012 120"),
            described(3, B, "t3", "b.000011 115 b.000011 115"),
            described(4, A, "t4", "b.000012 120 b.000017 170"),
        ];
        let last = own(4, B, "t3", "b.000011 115 b.000011 115");
        let behind_gap = own(3, A, "x", "b.000005 50 b.000012 120");
        let copy = [own(2, A, "t2", "b.000001 10 b.000001 10"), behind_gap, last.clone()];
        let both = Both::new(&copy, &theirs);
        assert_eq!((both.known.clone(), both.next(Some(1))), (vec![Some(0), None, None], Some(2)));
        assert!(both.cut_short(2, &[]).is_none(), "behind a gap");
        let short = [own(2, A, "t2", "b.000005 50 b.000007 70"), copy[2].clone()];
        let both = Both::new(&short, &theirs);
        assert_eq!(both.cut_short(2, &[]).map(|(at, _)| at), Some(0), "its server was back there");
        assert!(both.cut_short(2, &[0]).is_none() && both.cut_short(0, &[]).is_none());
        let mut empty = [own(2, A, "t2", ""), copy[2].clone()];
        assert_eq!(
            Both::new(&empty, &theirs).cut_short(2, &[]).map(|(at, _)| at),
            Some(0),
            "nothing had come"
        );
        empty[0].info.purged.push(Purged {
            from: "b.000005".into(),
            through: "b.000012".into(),
            files: 8,
            bytes: 4000,
            gtid_before: None,
            gtids: String::new(),
            at: String::new(),
            why: String::new(),
            removed: true,
        });
        assert!(Both::new(&empty, &theirs).cut_short(2, &[]).is_none(), "nothing is left");
        let fork = own(3, A, "x", "b.000012 120 b.000015 150");
        let copy = [own(2, A, "t2", "b.000005 50 b.000012 120"), fork, last];
        let both = Both::new(&copy, &theirs);
        assert_eq!(both.known, [Some(0), None, Some(1)]);
        assert!(both.cut_short(1, &[]).is_none(), "only what has come from there");
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
        // Nothing can be told of the one before it but its name.
        let mut unread = theirs.clone();
        (unread[0].info, unread[0].extent, unread[0].unreadable) = (None, None, Some("no".into()));
        let named = [own(1, A, "t1", ""), own(2, B, "x", "")];
        let both = Both::new(&named, &unread);
        assert!(both.description(&info, None).previous == theirs[0].name && both.unread(None, 1).is_none());
        let elsewhere = [copy[0].clone(), own(8, B, "x", "")];
        assert!(Both::new(&elsewhere, &unread).unread(Some(1), 1).is_some());
        assert_eq!(previous(&[own(7, B, "x", "")], Some(1)), "", "the one before it here");
    }
}

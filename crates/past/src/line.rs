//! The log of a source as one line of files: those of the timelines that make its history, without what a fork took from the source, and
//! without what stands twice because a timeline begins with the whole file in which the one before ends.

use binlog::timeline::{Reason, Timeline};
use codec::gtid::{GtidSet, GtidState, TransactionId};
use codec::{BinlogName, ServerKind};
use points::criteria::Criteria;
use points::transaction::Transaction;
use points::wanted_gtids::WantedGtids;
use repair::searched::{FoundAt, SearchedFile, SearchedSource, SearchedTimeline};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

/// The files of a source, in the order of its history.
pub struct Line<'a> {
    source: &'a SearchedSource,
    parts: Vec<Part<'a>>,
    /// By the number of a part and what is searched for, what the next part has too.
    again: RefCell<HashMap<(usize, String), Ids>>,
}

type Ids = Rc<HashSet<TransactionId>>;

/// What one timeline has of it.
struct Part<'a> {
    timeline: &'a SearchedTimeline,
    files: &'a [SearchedFile],
    /// What later forks took from the source.
    lost: GtidState,
    /// Why what comes before its first file is not held; `None` where the part before goes on with it.
    gap: Option<String>,
}

/// A file of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileAt {
    part: usize,
    file: usize,
}

/// A place in the line: before the transaction that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: FileAt,
    pub(crate) at: u64,
}

/// What stands beside a file.
pub(crate) enum Beside {
    File(FileAt),
    /// Nothing that is held, and why.
    Edge(String),
}

/// What is done with each transaction that is found; false ends the search.
pub(crate) type Sink<'s> = dyn FnMut(FoundAt<'_>, &Transaction) -> bool + 's;

impl<'a> Line<'a> {
    /// Of a source, up to the end of `timeline` (its number, or the name of its folder), or of the present one.
    ///
    /// # Errors
    /// In words, when there is no such timeline, or a description cannot be read.
    pub fn of(source: &'a SearchedSource, timeline: Option<&str>) -> Result<Line<'a>, String> {
        let all = &source.timelines;
        let last = match timeline {
            None => source.present()?,
            Some(wanted) => {
                let number = wanted.parse::<u32>().ok();
                let is_it = |one: &&SearchedTimeline| {
                    let own = one.name.split_once('-').and_then(|(number, _)| number.parse::<u32>().ok());
                    one.name == wanted || number.is_some() && own == number
                };
                let found = all.iter().find(is_it);
                Some(found.ok_or_else(|| {
                    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
                    format!("there is no timeline {wanted:?}; there are: {}", names.join(", "))
                })?)
            }
        };
        let names: Vec<PathBuf> = all.iter().map(|one| PathBuf::from(&one.name)).collect();
        let mut next = last.and_then(|last| all.iter().position(|one| one.name == last.name));
        let mut held: Vec<(&SearchedTimeline, Timeline)> = Vec::new();
        while let Some(at) = next.take() {
            let record = all[at].record()?;
            next = record.goes_on_with(&names[..at]);
            held.push((&all[at], record));
        }
        held.reverse();
        let line = Line { source, parts: parts(&held), again: RefCell::default() };
        if line.parts.is_empty() {
            return Err(format!("the log of {} holds nothing yet", source.name));
        }
        Ok(line)
    }

    pub(crate) fn first(&self) -> FileAt {
        FileAt { part: 0, file: 0 }
    }

    pub(crate) fn last(&self) -> FileAt {
        let part = self.parts.len() - 1;
        FileAt { part, file: self.parts[part].files.len() - 1 }
    }

    /// `0001-…/binlog.000042`.
    pub(crate) fn name(&self, file: FileAt) -> String {
        let part = &self.parts[file.part];
        format!("{}/{}", part.timeline.name, part.files[file.file].name)
    }

    pub(crate) fn searched(&self, file: FileAt) -> &'a SearchedFile {
        &self.parts[file.part].files[file.file]
    }

    /// All files of that name.
    pub(crate) fn named(&self, name: &str) -> Vec<FileAt> {
        let of = |part: usize| (0..self.parts[part].files.len()).map(move |file| FileAt { part, file });
        (0..self.parts.len()).flat_map(of).filter(|file| self.searched(*file).name == name).collect()
    }

    pub(crate) fn before(&self, file: FileAt) -> Beside {
        if let Some(why) = self.gap_before(file) {
            return Beside::Edge(why);
        }
        Beside::File(match file.file {
            0 => FileAt { part: file.part - 1, file: self.parts[file.part - 1].files.len() - 1 },
            _ => FileAt { file: file.file - 1, ..file },
        })
    }

    pub(crate) fn behind(&self, file: FileAt) -> Beside {
        let Some(next) = self.following(file) else {
            return Beside::Edge(format!("the log held ends with {}", self.name(file)));
        };
        self.gap_before(next).map_or(Beside::File(next), Beside::Edge)
    }

    /// The next file, whatever may be missing between the two.
    pub(crate) fn following(&self, file: FileAt) -> Option<FileAt> {
        let all = self.parts[file.part].files.len();
        match file.file + 1 < all {
            true => Some(FileAt { file: file.file + 1, ..file }),
            false => (file.part + 1 < self.parts.len()).then_some(FileAt { part: file.part + 1, file: 0 }),
        }
    }

    /// Why nothing is known of what came just before a file.
    pub(crate) fn gap_before(&self, file: FileAt) -> Option<String> {
        let part = &self.parts[file.part];
        if file.file == 0 {
            let begins = || format!("the log held begins with {}", self.name(file));
            return part.gap.clone().or_else(|| (file.part == 0).then(begins));
        }
        let (before, name) = (&part.files[file.file - 1].name, &part.files[file.file].name);
        let follows = BinlogName::parse(before).is_ok_and(|one| one.successor().as_deref() == Some(name));
        (!follows).then(|| format!("a file is missing between {before} and {name} of {}", part.timeline.name))
    }

    /// What of a file is searched for, without what is no history or stands in the next part too.
    pub(crate) fn each(&self, file: FileAt, criteria: &Criteria, sink: &mut Sink<'_>) -> Result<(), String> {
        let again = self.again(file.part, criteria)?;
        let lost = &self.parts[file.part].lost;
        self.each_copy(file, criteria, &mut |at, transaction| {
            let is_left_out = transaction.id.is_some_and(|id| again.contains(&id) || lost.contains(&id));
            is_left_out || sink(at, transaction)
        })
    }

    /// All of a file that is searched for.
    pub(crate) fn each_copy(
        &self,
        file: FileAt,
        criteria: &Criteria,
        sink: &mut Sink<'_>,
    ) -> Result<(), String> {
        let (timeline, searched) = (self.parts[file.part].timeline, self.searched(file));
        let failed = |error: &dyn std::fmt::Display| searched.failed(timeline, error);
        let (mut opened, mut error) = (None, None);
        let found = searched.search(criteria, &mut |transaction| {
            let file = match &mut opened {
                Some(file) => file,
                none => match searched.open() {
                    Ok(file) => none.insert(file),
                    Err(why) => {
                        error = Some(failed(&why));
                        return false;
                    }
                },
            };
            sink(FoundAt { source: self.source, timeline, searched, file: &**file }, transaction)
        });
        match (found, error) {
            (_, Some(error)) => Err(error),
            (Err(error), _) => Err(failed(&error)),
            (Ok(None), _) => Err(failed(&"it was purged meanwhile: ask again")),
            (Ok(Some(_)), None) => Ok(()),
        }
    }

    /// The transactions of a part that the first file of the next one has too.
    fn again(&self, part: usize, criteria: &Criteria) -> Result<Ids, String> {
        if part + 1 >= self.parts.len() {
            return Ok(Rc::default());
        }
        let key = (part, format!("{:?}", criteria.tables));
        if let Some(known) = self.again.borrow().get(&key) {
            return Ok(known.clone());
        }
        let mut found = HashSet::new();
        self.each_copy(FileAt { part: part + 1, file: 0 }, criteria, &mut |_, transaction| {
            found.extend(transaction.id);
            true
        })?;
        Ok(self.again.borrow_mut().entry(key).or_insert(Rc::new(found)).clone())
    }

    /// Where a transaction counts that was found there: in the next part, where that has it too.
    pub(crate) fn counted(&self, place: Place, id: Option<TransactionId>) -> Result<Place, String> {
        let Some(id) = id.filter(|_| place.file.part + 1 < self.parts.len()) else { return Ok(place) };
        let file = FileAt { part: place.file.part + 1, file: 0 };
        let (mut counted, criteria) = (place, Criteria { gtids: Some(only(id)), ..Criteria::default() });
        self.each_copy(file, &criteria, &mut |_, transaction| {
            counted = Place { file, at: transaction.at };
            false
        })?;
        Ok(counted)
    }
}

/// A set of one GTID.
fn only(id: TransactionId) -> WantedGtids {
    match id {
        TransactionId::Mysql(gtid) => {
            let mut set = GtidSet::new();
            set.insert(gtid);
            WantedGtids::Mysql(set)
        }
        TransactionId::Mariadb(gtid) => WantedGtids::Mariadb(vec![gtid]),
    }
}

fn parts<'a>(held: &[(&'a SearchedTimeline, Timeline)]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut waiting = None;
    for (number, (timeline, record)) in held.iter().enumerate() {
        let gap = if number == 0 { None } else { gap(timeline, record, &held[number - 1].0.name) }
            .or(waiting.take());
        let files = match held.get(number + 1) {
            Some((_, next)) => &timeline.files[..superseded_at(timeline, record, next)],
            None => &timeline.files[..],
        };
        if files.is_empty() {
            waiting = gap;
            continue;
        }
        let mut lost = GtidState::empty(record.server_kind);
        for (_, later) in &held[number + 1..] {
            // A set of the other kind of server, from before a migration, says nothing about this one.
            let _ = lost.union_with(&later.lacked());
        }
        parts.push(Part { timeline, files, lost, gap });
    }
    parts
}

/// Why a timeline does not go on with the one before; as `serve::history::History::goes_on_by_position`.
fn gap(timeline: &SearchedTimeline, record: &Timeline, before: &str) -> Option<String> {
    // After a MariaDB that was killed while it wrote, nothing is missing but half an event that never counted.
    let is_whole = record.server_kind == ServerKind::MariaDb && !record.unreadable.is_empty();
    let is_gap = record.reason == Reason::Gap && !is_whole || !record.missing.is_empty();
    let is_purged = timeline.files.first().is_some_and(|first| first.name != record.first_file);
    (is_gap || is_purged)
        .then(|| format!("transactions between {before} and {} are not held (a gap)", timeline.name))
}

/// From which of its files on a timeline is no history, because the next one of the same server has them in another form.
fn superseded_at(timeline: &SearchedTimeline, record: &Timeline, next: &Timeline) -> usize {
    let all = timeline.files.len();
    let Ok(first) = BinlogName::parse(&next.first_file) else { return all };
    let is_taken_back = |file: &SearchedFile| {
        BinlogName::parse(&file.name).is_ok_and(|name| name.base() == first.base() && name >= first)
    };
    match record.server_uuid == next.server_uuid {
        true => timeline.files.iter().position(is_taken_back).unwrap_or(all),
        false => all,
    }
}

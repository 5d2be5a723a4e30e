//! From where to where: the first walk, which shows that what is asked for can be written.

use super::choice::{Choice, Counts, Judge};
use super::error::NoCut;
use super::tour::{Executed, Place, Start, Visitor, tour};
use crate::history::{CHOICES_MAX, Copied, CopiedFile, Shown, Until, Watch};
use codec::event::FormatDescription;
use codec::gtid::{GtidState, TransactionId};
use config::{Point, PointPlace};
use points::transaction::Transaction;
use points::walk::{Options, Walk};

const FROM: &str = "--from";
const UNTIL: &str = "--until";

/// What is asked for.
#[derive(Debug)]
pub struct Request {
    /// Where it begins; `None` for the copy's beginning.
    pub from: Option<Until>,
    /// Where it ends.
    pub until: Until,
    /// What of that.
    pub choice: Choice,
}

/// A part of the history that can be written.
#[derive(Debug)]
pub struct Span {
    /// The first transaction behind `--from`.
    pub(super) start: Start,
    /// File and offset of the first that is behind `--until`; `None` where the copy ends before.
    pub(super) end: Option<(usize, u64)>,
    /// What was executed before the first one that is written; `None` where the log does not speak of GTIDs.
    pub(super) before: Option<GtidState>,
    /// How much is written.
    pub counts: Counts,
    /// The first that is written.
    pub first: Shown,
    /// The last that is written.
    pub last: Shown,
    /// XA transactions that are written up to their first half only.
    pub prepared: Vec<String>,
}

impl Span {
    /// Finds it. `progress` is told the bytes that were walked, and those that there are at most.
    ///
    /// # Errors
    /// Why nothing can be written.
    pub fn find(
        copied: &Copied,
        request: &Request,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Span, NoCut> {
        let files = copied.files().map_err(NoCut::Copy)?;
        let file = match &request.from {
            Some(from) => first_needed(copied, &files, from)?,
            None => 0,
        };
        let all = files.iter().skip(file).map(|file| file.end).sum();
        let mut finder = Finder {
            request,
            from: None,
            until: None,
            early: Watch::new(&request.until, &GtidState::empty(copied.kind)),
            has_passed: false,
            start: None,
            end: None,
            judge: Judge::new(&request.choice),
            before: None,
            format: None,
            written: None,
            shown: None,
            seen: None,
            from_choices: Choices::default(),
            until_choices: Choices::default(),
        };
        let start = Start { file, at: 0, executed: None };
        tour(copied, &files, &start, &mut finder, &mut |walked| progress(walked, all))?;
        finder.finish()
    }
}

/// The last file before which nothing of the point was executed: the point is not before it.
fn first_needed(copied: &Copied, files: &[CopiedFile], from: &Until) -> Result<usize, NoCut> {
    let (Until::Before(point) | Until::After(point)) = from else { return Ok(0) };
    if let PointPlace::Position(position) = &point.place {
        let found = files.iter().rposition(|file| *file.name == *position.file);
        return found.ok_or_else(|| NoCut::NoFile { flag: FROM, name: position.file.to_string() });
    }
    if matches!(point.place, PointPlace::Time(_)) {
        return Ok(0);
    }
    let mut number = files.len();
    while number > 1 {
        number -= 1;
        let comes_later = before(copied, &files[number])?.is_some_and(|before| match from {
            Until::Before(_) => !names_some_of(point, &before),
            _ => lacks_some_of(&before, point),
        });
        if comes_later {
            let first = files.iter().position(|file| file.timeline == files[number].timeline).unwrap_or(0);
            if first == 0 || knows_what_was_before(copied, files, first)? {
                return Ok(number);
            }
            number = first;
        }
    }
    Ok(0)
}

/// What a file says was executed before; `None` where it does not, or has not begun.
fn before(copied: &Copied, file: &CopiedFile) -> Result<Option<GtidState>, NoCut> {
    let opened = copied.read(file).map_err(NoCut::Copy)?;
    let walk = Walk::open(&*opened, file.end, Options::default());
    Ok(walk.ok().and_then(|walk| walk.gtids_before().cloned()))
}

/// Whether the first file of a timeline names what the timeline before has. The log of a replica that became the source does not, where
/// the replica did not log what it applied (`log_replica_updates`, `log_slave_updates`).
fn knows_what_was_before(copied: &Copied, files: &[CopiedFile], first: usize) -> Result<bool, NoCut> {
    let (there, here) = (before(copied, &files[first - 1])?, before(copied, &files[first])?);
    Ok(match (there, here) {
        (Some(there), Some(here)) => !there.is_empty() && here.contains_state(&there),
        _ => false,
    })
}

fn names_some_of(point: &Point, executed: &GtidState) -> bool {
    match (&point.place, executed) {
        (PointPlace::Gtids(wanted), GtidState::Mysql(set)) => !wanted.intersect(set).is_empty(),
        (PointPlace::Mariadb(list), GtidState::Mariadb(_)) => {
            list.iter().any(|gtid| executed.contains(&TransactionId::Mariadb(*gtid)))
        }
        _ => false,
    }
}

fn lacks_some_of(before: &GtidState, point: &Point) -> bool {
    match (&point.place, before) {
        (PointPlace::Gtids(wanted), GtidState::Mysql(set)) => !wanted.subtract(set).is_empty(),
        (PointPlace::Mariadb(list), GtidState::Mariadb(_)) => {
            list.iter().any(|gtid| !before.contains(&TransactionId::Mariadb(*gtid)))
        }
        _ => false,
    }
}

/// Transactions that a statement may mean, but for the first.
#[derive(Default)]
struct Choices {
    first: Option<Shown>,
    others: Vec<Shown>,
    count: u64,
}

impl Choices {
    fn add(&mut self, until: &Until, place: Place<'_>, transaction: &Transaction) {
        if let Until::BeforeStatement(statement) = until
            && statement.is_in(transaction)
        {
            self.count += 1;
            if self.others.len() < CHOICES_MAX {
                self.others.push(Shown::of(place.file, transaction));
            }
        }
    }

    fn check(self, flag: &'static str, point: &Until) -> Result<(), NoCut> {
        if self.count == 0 {
            return Ok(());
        }
        let choices = self.first.into_iter().chain(self.others).collect();
        Err(NoCut::Ambiguous { flag, point: point.to_string(), choices, count: self.count + 1 })
    }
}

/// Over the first walk.
struct Finder<'a> {
    request: &'a Request,
    from: Option<Watch<'a>>,
    /// From the beginning on.
    until: Option<Watch<'a>>,
    /// Before the beginning, to tell that the end is there.
    early: Watch<'a>,
    has_passed: bool,
    start: Option<Start>,
    end: Option<(usize, u64)>,
    judge: Judge<'a>,
    before: Option<GtidState>,
    /// That of the file that is walked.
    format: Option<FormatDescription>,
    /// That of the file of the first that is written.
    written: Option<FormatDescription>,
    /// The first and the last that are written.
    shown: Option<(Shown, Shown)>,
    /// The last one that was walked.
    seen: Option<Shown>,
    from_choices: Choices,
    until_choices: Choices,
}

impl Finder<'_> {
    /// Whether the part has begun; it may begin with this one.
    fn has_begun(
        &mut self,
        place: Place<'_>,
        transaction: &Transaction,
        executed: &Executed,
    ) -> Result<bool, NoCut> {
        if let Some(from) = &self.request.from {
            if self.start.is_some() {
                self.from_choices.add(from, place, transaction);
                return Ok(true);
            }
            can_be_told(FROM, from, place, transaction)?;
            let watch = self.from.get_or_insert_with(|| Watch::new(from, &executed.state));
            if !watch.ends_before(&place.file.name, transaction) {
                self.has_passed |= self.early.ends_before(&place.file.name, transaction);
                return Ok(false);
            }
            self.from_choices.first = Some(Shown::of(place.file, transaction));
        }
        if self.start.is_none() {
            self.start =
                Some(Start { file: place.number, at: transaction.at, executed: Some(executed.clone()) });
            self.until = Some(Watch::new(&self.request.until, &executed.state));
        }
        Ok(true)
    }

    /// Of a statement there may be others behind it.
    fn may_stop(&self) -> bool {
        let is_statement = |point: &Until| matches!(point, Until::BeforeStatement(_));
        !is_statement(&self.request.until) && !self.request.from.as_ref().is_some_and(is_statement)
    }

    fn finish(self) -> Result<Span, NoCut> {
        let Request { from, until, .. } = self.request;
        if let Some(from) = from {
            self.from_choices.check(FROM, from)?;
        }
        self.until_choices.check(UNTIL, until)?;
        let last = self.seen.map(Box::new);
        let Some(start) = self.start else {
            let is_reached = self.from.is_some_and(|watch| watch.is_reached_by_end());
            return Err(match from.as_ref().filter(|_| !is_reached) {
                Some(from) => NoCut::NotReached { flag: FROM, point: from.to_string(), last },
                None => NoCut::Nothing { left_out: 0 },
            });
        };
        let is_reached = self.end.is_some() || self.until.is_some_and(|watch| watch.is_reached_by_end());
        if !is_reached {
            let point = until.to_string();
            // What stands in files that were not walked was executed before.
            let is_executed = match (until, &start.executed) {
                (Until::Before(until) | Until::After(until), Some(executed)) => {
                    names_some_of(until, &executed.state)
                }
                _ => false,
            };
            return Err(match self.has_passed || is_executed {
                true => NoCut::EndsFirst { point },
                false => NoCut::NotReached { flag: UNTIL, point, last },
            });
        }
        let counts = self.judge.counts;
        let Some((first, last)) = self.shown else {
            return Err(NoCut::Nothing { left_out: counts.left_out });
        };
        let (end, before) = (self.end, self.before);
        Ok(Span { start, end, before, counts, first, last, prepared: self.judge.prepared() })
    }
}

/// Whether a transaction is what a point names can be told only where it could be looked at.
fn can_be_told(
    flag: &'static str,
    point: &Until,
    place: Place<'_>,
    transaction: &Transaction,
) -> Result<(), NoCut> {
    match &transaction.unread {
        Some(why) if matches!(point, Until::BeforeStatement(_)) => {
            let shown = Box::new(Shown::of(place.file, transaction));
            Err(NoCut::Unread { flag, shown, why: why.clone() })
        }
        _ => Ok(()),
    }
}

/// One log has one format description: mysqlbinlog reads a second one in the middle, but makes a statement of it that a server
/// refuses where a GTID was just used (error 1837).
fn same_form(
    written: &FormatDescription,
    format: &FormatDescription,
    place: Place<'_>,
    transaction: &Transaction,
) -> Result<(), NoCut> {
    let change = if written.server_version != format.server_version {
        format!("the server's version from {} to {}", written.server_version, format.server_version)
    } else if written.checksum != format.checksum {
        format!("binlog_checksum from {:?} to {:?}", written.checksum, format.checksum)
    } else if written.post_header_lens != format.post_header_lens {
        "other events".to_owned()
    } else {
        return Ok(());
    };
    Err(NoCut::OtherForm { file: place.file.name.to_string(), at: transaction.at, change })
}

impl Visitor for Finder<'_> {
    fn file(&mut self, _: Place<'_>, format: &FormatDescription) -> Result<(), NoCut> {
        self.format = Some(format.clone());
        Ok(())
    }

    fn gap(&mut self, gap: NoCut) -> Result<(), NoCut> {
        if self.start.is_some() && self.end.is_none() { Err(gap) } else { Ok(()) }
    }

    fn transaction(
        &mut self,
        place: Place<'_>,
        transaction: &Transaction,
        executed: &Executed,
    ) -> Result<bool, NoCut> {
        self.seen = Some(Shown::of(place.file, transaction));
        if !self.has_begun(place, transaction, executed)? {
            return Ok(true);
        }
        let until = &self.request.until;
        if self.end.is_some() {
            self.until_choices.add(until, place, transaction);
            return Ok(true);
        }
        can_be_told(UNTIL, until, place, transaction)?;
        let watch = self.until.as_mut().expect("it is there from the beginning on");
        if watch.ends_before(&place.file.name, transaction) {
            self.until_choices.first.clone_from(&self.seen);
            self.end = Some((place.number, transaction.at));
            return Ok(!self.may_stop());
        }
        if self.judge.takes(transaction) {
            let seen = Shown::of(place.file, transaction);
            // Once a file: what comes behind it is of the same form.
            if let Some(format) = self.format.take() {
                match &self.written {
                    None => self.written = Some(format),
                    Some(written) => same_form(written, &format, place, transaction)?,
                }
            }
            match &mut self.shown {
                Some((_, last)) => *last = seen,
                None => {
                    self.before = executed.is_stated.then(|| executed.state.clone());
                    self.shown = Some((seen.clone(), seen));
                }
            }
        }
        Ok(true)
    }

    fn file_ends(&mut self, _: Place<'_>) -> Result<(), NoCut> {
        Ok(())
    }
}

//! What is between a server and the point to which it is to be brought.
//!
//! All of it is walked before anything is changed: so it is known that nothing is missing, how much there is, and what stands on
//! both sides of the point.

pub(in crate::restore) mod legs;
pub(in crate::restore) mod no_course;
pub(in crate::restore) mod skip;
pub(in crate::restore) mod stretch;

use super::begin::{Begin, gtids_before, in_file};
use crate::history::{CHOICES_MAX, Copied, CopiedFile, Shown, Until, Watch};
use crate::restore::course::no_course::NoCourse;
use crate::restore::course::skip::Skip;
use crate::restore::course::stretch::Stretch;
use binlog::storage::ReadFile;
use codec::gtid::GtidState;
use points::transaction::Transaction;
use points::walk::{Options, Walk, WalkError};
use source::identify::SourceIdentity;
use std::collections::BTreeSet;

/// The way from the target to the point.
#[derive(Debug, Clone)]
pub struct Course {
    /// The last transaction that is applied in the end; `None` when there is none before the point.
    pub last: Option<Shown>,
    /// The first that is not; `None` where the point is the end of the copy.
    pub first_left_out: Option<Shown>,
    /// What the target is to have executed in the end.
    pub at_the_point: GtidState,
    /// What of that it lacks.
    pub lacked: GtidState,
    /// How many transactions that are.
    pub transactions: u64,
    /// Their bytes in the log.
    pub bytes: u64,
    /// `server_id`s of those who made them.
    pub server_ids: BTreeSet<u32>,
    /// Versions of the servers whose log that is.
    pub versions: BTreeSet<String>,
    /// XA transactions that are prepared at the point, and neither committed nor rolled back before it.
    pub prepared: Vec<String>,
    /// What is to be passed over, in the order of the log.
    pub skipped: Vec<Shown>,
    /// By which positions, for a server without GTIDs.
    pub stretch: Option<Stretch>,
}

/// Takes a transaction that lies on the way, and its file.
pub type OnTheWay<'a> = dyn FnMut(&CopiedFile, &Transaction) + 'a;

/// Over one walk.
struct Search<'a> {
    begin: Begin<'a>,
    until: &'a Until,
    skip: &'a [Skip],
    watch: Watch<'a>,
    /// Executed up to where the walk is.
    state: GtidState,
    course: Course,
    /// What a statement means, and the target has executed.
    had: Option<Shown>,
    /// What a statement may mean, but for the first.
    choices: Vec<Shown>,
    count: u64,
    /// Of the file that is walked.
    version: String,
    /// Is shown each transaction on the way.
    on_the_way: &'a mut OnTheWay<'a>,
}

impl Course {
    /// Finds it. `progress` is told the bytes that were walked and those that there are at most.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find(
        copied: &Copied,
        begin: Begin<'_>,
        until: &Until,
        skip: &[Skip],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Course, NoCourse> {
        Course::find_showing(copied, begin, until, skip, (progress, &mut |_, _| ()))
    }

    /// As [`find`](Self::find). Each transaction that lies between is shown too, in the order of the log: it is one walk for both.
    ///
    /// # Errors
    /// Why there is none; some were shown then.
    pub fn find_showing(
        copied: &Copied,
        begin: Begin<'_>,
        until: &Until,
        skip: &[Skip],
        (progress, on_the_way): (&mut dyn FnMut(u64, u64), &mut OnTheWay<'_>),
    ) -> Result<Course, NoCourse> {
        let files = copied.files().map_err(NoCourse::Copy)?;
        let first = begin.first_file(copied, &files)?;
        let all: u64 = files[first..].iter().map(|file| file.end).sum();
        let empty = GtidState::empty(copied.kind);
        let course = Course {
            last: None,
            first_left_out: None,
            at_the_point: empty.clone(),
            lacked: empty.clone(),
            transactions: 0,
            bytes: 0,
            server_ids: BTreeSet::new(),
            versions: BTreeSet::new(),
            prepared: Vec::new(),
            skipped: Vec::new(),
            stretch: begin.position().map(|at| Stretch::new(at.clone())),
        };
        let before = match files.get(first) {
            Some(file) => gtids_before(copied, file)?,
            None => None,
        };
        let state = before.unwrap_or(empty);
        let watch = Watch::new(until, &state);
        let (had, choices) = (None, Vec::new());
        let version = String::new();
        let count = 0;
        let mut search =
            Search { begin, until, skip, watch, state, course, had, choices, count, version, on_the_way };
        let mut walked = 0;
        for (place, file) in files[first..].iter().enumerate() {
            if let (Some(why), true, true) = (file.parted, place > 0, begin.position().is_some()) {
                return Err(NoCourse::Parted { path: file.path.clone(), why });
            }
            let is_enough = search
                .file(copied, file, &mut |at| progress(walked + at, all))
                .map_err(|error| in_file(file, error))?;
            if is_enough? {
                break;
            }
            walked += file.end;
        }
        // The point may be in files of which the target has everything.
        let is_at_the_beginning = search.is_found() && search.course.last.is_none();
        if is_at_the_beginning || (!search.is_found() && !search.watch.is_reached_by_end()) {
            search.had = search.had.take().or(passed(copied, &files[..first], until)?);
        }
        if is_at_the_beginning && let Some(had) = search.had.take() {
            return Err(NoCourse::Beyond { shown: Box::new(had), point: until.to_string() });
        }
        search.finish()
    }
}

/// The point in files of which the target has everything.
fn passed(copied: &Copied, files: &[CopiedFile], until: &Until) -> Result<Option<Shown>, NoCourse> {
    let mut watch = Watch::new(until, &GtidState::empty(copied.kind));
    for file in files {
        let opened = open(copied, file)?;
        let in_file = |error| in_file(file, error);
        let mut walk = Walk::open(&*opened, file.end, Options::default()).map_err(in_file)?;
        while let Some(transaction) = walk.next_transaction().map_err(in_file)? {
            if watch.ends_before(&file.name, transaction) {
                return Ok(Some(Shown::of(file, transaction)));
            }
        }
    }
    Ok(None)
}

fn open(copied: &Copied, file: &CopiedFile) -> Result<Box<dyn ReadFile>, NoCourse> {
    copied.read(file).map_err(NoCourse::Copy)
}

impl Search<'_> {
    /// Walks one file; true when nothing more need be.
    fn file(
        &mut self,
        copied: &Copied,
        file: &CopiedFile,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Result<bool, NoCourse>, WalkError> {
        let opened = match open(copied, file) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let mut walk = Walk::open(&*opened, file.end, Options::default())?;
        self.version.clone_from(&walk.format().server_version);
        if let Some(before) = walk.gtids_before()
            && !self.is_found()
        {
            self.state = before.clone();
        }
        if let Some(stretch) = self.course.stretch.as_mut().filter(|_| self.course.first_left_out.is_none()) {
            stretch.enters(file, walk.begins_at());
        }
        while let Some(transaction) = walk.next_transaction()? {
            // A later fork has taken it from the source, and the port does not send it.
            if transaction.id.is_some_and(|id| file.lost.contains(&id)) {
                continue;
            }
            match self.transaction(file, transaction) {
                Ok(false) => {}
                enough => return Ok(enough),
            }
            progress(transaction.end);
        }
        Ok(Ok(false))
    }

    fn is_found(&self) -> bool {
        self.course.first_left_out.is_some()
    }

    fn transaction(&mut self, file: &CopiedFile, transaction: &Transaction) -> Result<bool, NoCourse> {
        let is_had = self.begin.has(file, transaction);
        if let Until::BeforeStatement(statement) = self.until {
            if !is_had && let Some(why) = transaction.unread.as_ref().filter(|_| !self.is_found()) {
                let shown = Box::new(Shown::of(file, transaction));
                return Err(NoCourse::Unread { shown, why: why.clone() });
            }
            if self.is_found() {
                if !is_had && statement.is_in(transaction) {
                    self.count += 1;
                    if self.choices.len() < CHOICES_MAX {
                        self.choices.push(Shown::of(file, transaction));
                    }
                }
                return Ok(false);
            }
        }
        let ends = self.watch.ends_before(&file.name, transaction);
        if ends && is_had && matches!(self.until, Until::BeforeStatement(_)) {
            // Another one is meant; where there is none, the target is past the point.
            self.had.get_or_insert_with(|| Shown::of(file, transaction));
        } else if ends {
            self.course.first_left_out = Some(Shown::of(file, transaction));
            // Of a statement there may be others.
            return Ok(!matches!(self.until, Until::BeforeStatement(_)));
        }
        if let Some(id) = transaction.id {
            let _ = self.state.insert(id);
        }
        if !is_had {
            self.applied(file, transaction)?;
        }
        self.prepared(transaction);
        self.course.last = Some(Shown::of(file, transaction));
        Ok(false)
    }

    fn applied(&mut self, file: &CopiedFile, transaction: &Transaction) -> Result<(), NoCourse> {
        let shown = || Box::new(Shown::of(file, transaction));
        let course = &mut self.course;
        match (transaction.id, &mut course.stretch) {
            (Some(id), None) => {
                let _ = course.lacked.insert(id);
            }
            (None, Some(stretch)) => stretch.goes_to(&file.name, transaction.end),
            (None, None) => return Err(NoCourse::Anonymous { shown: shown() }),
            (Some(_), Some(_)) => return Err(NoCourse::HasGtid { shown: shown() }),
        }
        course.transactions += 1;
        course.bytes += transaction.size();
        course.server_ids.insert(transaction.server_id);
        if !course.versions.contains(&self.version) {
            course.versions.insert(self.version.clone());
        }
        let skipped = &course.skipped;
        let is_meant = |skip: &&Skip| {
            skip.is_meant(&file.name, transaction) && !skipped.iter().any(|other| skip.is_shown(other))
        };
        if self.skip.iter().any(|skip| is_meant(&skip)) {
            course.skipped.push(*shown());
        }
        (self.on_the_way)(file, transaction);
        Ok(())
    }

    fn prepared(&mut self, transaction: &Transaction) {
        use points::transaction::Kind;
        let Some(xid) = &transaction.xid else { return };
        match transaction.kind() {
            Kind::XaPrepare => self.course.prepared.push(xid.clone()),
            Kind::XaCommit | Kind::XaRollback => self.course.prepared.retain(|other| other != xid),
            _ => {}
        }
    }

    fn finish(mut self) -> Result<Course, NoCourse> {
        let point = self.until.to_string();
        if self.count > 0 {
            let first = self.course.first_left_out.take();
            let choices = first.into_iter().chain(self.choices).collect();
            return Err(NoCourse::Ambiguous { point, choices, count: self.count + 1 });
        }
        if !self.is_found() && !self.watch.is_reached_by_end() {
            return Err(match self.had {
                Some(had) => NoCourse::Beyond { shown: Box::new(had), point },
                None => NoCourse::NotReached { point, last: self.course.last.map(Box::new) },
            });
        }
        if self.course.skipped.len() < self.skip.len() {
            let is_there = |skip: &&Skip| self.course.skipped.iter().any(|shown| skip.is_shown(shown));
            if let Some(other) = self.skip.iter().find(|skip| !is_there(skip)) {
                return Err(NoCourse::NotToBeSkipped(other.clone()));
            }
        }
        if let Begin::Gtids(target) = self.begin {
            self.is_whole(target, point)?;
        }
        self.course.at_the_point = self.state;
        Ok(self.course)
    }

    /// Nothing is missing between the target and the point, and the target has nothing else.
    fn is_whole(&mut self, target: &SourceIdentity, point: String) -> Result<(), NoCourse> {
        let more = target.executed.subtract(&self.state);
        if !more.is_empty() {
            // What is at the point in the history is no stranger's.
            let first = self.course.first_left_out.take();
            let is_beyond = first.as_ref().and_then(|shown| shown.id).is_some_and(|id| target.has(&id));
            return Err(match first.filter(|_| is_beyond) {
                Some(shown) => NoCourse::Beyond { shown: Box::new(shown), point },
                None => NoCourse::Foreign { gtids: more },
            });
        }
        let missing = target.lacks(&self.state).subtract(&self.course.lacked);
        if !missing.is_empty() {
            let target_is_empty = target.executed.is_empty();
            return Err(NoCourse::Missing { gtids: missing, target_is_empty });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

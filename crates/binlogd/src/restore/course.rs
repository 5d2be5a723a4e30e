//! What is between a server and the point to which it is to be brought.
//!
//! All of it is walked before anything is changed: so it is known that nothing is missing, how much there is, and what stands on
//! both sides of the point.

use crate::history::{CHOICES_MAX, Copied, CopiedFile, NoCopy, Shown, Until, Watch, shortened};
use crate::upstream::identify::SourceIdentity;
use codec::ServerKind;
use codec::gtid::GtidState;
use log::storage::ReadFile;
use points::transaction::Transaction;
use points::walk::{Options, Walk, WalkError};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

/// The way from the target to the point.
#[derive(Debug)]
pub(crate) struct Course {
    /// The last transaction that is applied in the end; `None` when there is none before the point.
    pub(crate) last: Option<Shown>,
    /// The first that is not; `None` where the point is the end of the copy.
    pub(crate) first_left_out: Option<Shown>,
    /// What the target is to have executed in the end.
    pub(crate) at_the_point: GtidState,
    /// What of that it lacks.
    pub(crate) lacked: GtidState,
    /// How many transactions that are.
    pub(crate) transactions: u64,
    /// Their bytes in the log.
    pub(crate) bytes: u64,
    /// `server_id`s of those who made them.
    pub(crate) server_ids: BTreeSet<u32>,
    /// XA transactions that are prepared at the point, and neither committed nor rolled back before it.
    pub(crate) prepared: Vec<String>,
}

/// Why there is no way.
#[derive(Debug)]
pub(crate) enum NoCourse {
    /// The copy cannot be read.
    Copy(NoCopy),
    /// A file of it is damaged, or cannot be read.
    Walk { path: PathBuf, error: WalkError },
    /// The copy does not have something that the target needs.
    Missing { gtids: GtidState, target_is_empty: bool },
    /// The target has executed more than the history up to the point.
    Beyond {
        /// The first transaction that it has and is not to have.
        shown: Box<Shown>,
        point: String,
    },
    /// The target has executed what is in no file of the copy.
    Foreign { gtids: GtidState },
    /// The copy does not come to the point.
    NotReached { point: String, last: Option<Box<Shown>> },
    /// Several transactions are meant.
    Ambiguous { point: String, choices: Vec<Shown>, count: u64 },
    /// The transaction at the point has no GTID.
    Anonymous { shown: Box<Shown> },
    /// What a transaction does could not be looked at, and the point is found by that.
    Unread { shown: Box<Shown>, why: String },
}

impl std::error::Error for NoCourse {}

impl fmt::Display for NoCourse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCourse::Copy(error) => error.fmt(f),
            NoCourse::Walk { path, error } => write!(f, "{}: {error}", path.display()),
            NoCourse::Missing { gtids, target_is_empty: true } => write!(
                f,
                "the target is empty, and the copy does not begin with the first transaction of its source: {} is in no file of it. \
                 Restore a backup first, with its GTIDs (gtid_purged; on MariaDB gtid_slave_pos), then do this again",
                shortened(&gtids.to_line())
            ),
            NoCourse::Missing { gtids, .. } => write!(
                f,
                "the history has a gap between the target and the point: {} was executed by the source, the target does not have it, \
                 and no file of the copy holds it. Take a later backup, or a copy or an archive that reaches further back",
                shortened(&gtids.to_line())
            ),
            NoCourse::Beyond { shown, point } => write!(
                f,
                "the target is past the point already ({point}): it has executed what was to be left out, {shown}. Nothing is undone by \
                 going on: restore a backup that was made earlier"
            ),
            NoCourse::Foreign { gtids } => {
                let forget = match gtids.kind() {
                    ServerKind::MySql => {
                        "RESET BINARY LOGS AND GTIDS (MySQL before 8.4: RESET MASTER) and set them again"
                    }
                    ServerKind::MariaDb => "RESET MASTER, which leaves gtid_slave_pos as it is",
                };
                write!(
                    f,
                    "the target has executed {}, which is in no file of the copy: it is another server, or something was written to it \
                     after its backup was restored. Restore the backup again and write nothing; or, where that was only an account or \
                     the load of a dump, {forget}",
                    shortened(&gtids.to_line())
                )
            }
            NoCourse::NotReached { point, last: Some(last) } => write!(
                f,
                "the copy does not come to the point ({point}): its last transaction is {last}. Where all of it is wanted, say --until end"
            ),
            NoCourse::NotReached { point, last: None } => write!(
                f,
                "the copy does not come to the point ({point}): it holds nothing that the target lacks"
            ),
            NoCourse::Ambiguous { point, choices, count } => {
                write!(
                    f,
                    "{point} may be {count} transactions; name the GTID of the one that is meant, --until GTID:"
                )?;
                choices.iter().try_for_each(|choice| write!(f, "\n  {choice}"))
            }
            NoCourse::Anonymous { shown } => write!(
                f,
                "{shown}: it has no GTID, and a server is restored by GTIDs: the source has gtid_mode = OFF. Apply the files by \
                 position with mysqlbinlog"
            ),
            NoCourse::Unread { shown, why } => write!(
                f,
                "{shown}: what it does cannot be looked at ({why}), so it may be what is meant or not. Name the point by its GTID"
            ),
        }
    }
}

/// Over one walk.
struct Search<'a> {
    target: &'a SourceIdentity,
    until: &'a Until,
    watch: Watch<'a>,
    /// Executed up to where the walk is.
    state: GtidState,
    course: Course,
    /// What a statement means, and the target has executed.
    had: Option<Shown>,
    /// What a statement may mean, but for the first.
    choices: Vec<Shown>,
    count: u64,
}

impl Course {
    /// Finds it. `progress` is told the bytes that were walked and those that there are at most.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn find(
        copied: &Copied,
        target: &SourceIdentity,
        until: &Until,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Course, NoCourse> {
        let files = copied.files().map_err(NoCourse::Copy)?;
        let first = first_needed(copied, &files, target)?;
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
            prepared: Vec::new(),
        };
        let before = match files.get(first) {
            Some(file) => before(copied, file)?,
            None => None,
        };
        let state = before.unwrap_or(empty);
        let watch = Watch::new(until, &state);
        let mut search =
            Search { target, until, watch, state, course, had: None, choices: Vec::new(), count: 0 };
        let mut walked = 0;
        for file in &files[first..] {
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

fn in_file(file: &CopiedFile, error: WalkError) -> NoCourse {
    NoCourse::Walk { path: file.path.clone(), error }
}

/// The last file before which nothing was executed that the target does not have: everything that it lacks comes behind.
fn first_needed(copied: &Copied, files: &[CopiedFile], target: &SourceIdentity) -> Result<usize, NoCourse> {
    for (place, file) in files.iter().enumerate().rev() {
        if before(copied, file)?.is_some_and(|before| target.lacks(&before).is_empty()) {
            return Ok(place);
        }
    }
    Ok(0)
}

/// What was executed before a file, by its own word.
fn before(copied: &Copied, file: &CopiedFile) -> Result<Option<GtidState>, NoCourse> {
    let opened = open(copied, file)?;
    let walk = Walk::open(&*opened, file.end, Options::default()).map_err(|error| in_file(file, error))?;
    Ok(walk.gtids_before().cloned())
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
        if let Some(before) = walk.gtids_before()
            && !self.is_found()
        {
            self.state = before.clone();
        }
        while let Some(transaction) = walk.next_transaction()? {
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
        let is_had = transaction.id.is_some_and(|id| self.target.has(&id));
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
        let Some(id) = transaction.id else {
            if is_had || !self.target.has_gtids {
                return Ok(false);
            }
            return Err(NoCourse::Anonymous { shown: Box::new(Shown::of(file, transaction)) });
        };
        let _ = self.state.insert(id);
        let course = &mut self.course;
        if !is_had {
            course.transactions += 1;
            course.bytes += transaction.size();
            course.server_ids.insert(transaction.server_id);
            let _ = course.lacked.insert(id);
        }
        self.prepared(transaction);
        self.course.last = Some(Shown::of(file, transaction));
        Ok(false)
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
        let more = self.target.executed.subtract(&self.state);
        if !more.is_empty() {
            // What is at the point in the history is no stranger's.
            let first = self.course.first_left_out.take();
            let is_beyond = first.as_ref().and_then(|shown| shown.id).is_some_and(|id| self.target.has(&id));
            return Err(match first.filter(|_| is_beyond) {
                Some(shown) => NoCourse::Beyond { shown: Box::new(shown), point },
                None => NoCourse::Foreign { gtids: more },
            });
        }
        let missing = self.target.lacks(&self.state).subtract(&self.course.lacked);
        if !missing.is_empty() {
            let target_is_empty = self.target.executed.is_empty();
            return Err(NoCourse::Missing { gtids: missing, target_is_empty });
        }
        self.course.at_the_point = self.state;
        Ok(self.course)
    }
}

#[cfg(test)]
mod tests;

//! The transactions of a history, each once, over files and timelines.

use super::error::NoCut;
use crate::history::{Copied, CopiedFile};
use binlog::storage::ReadFile;
use codec::event::FormatDescription;
use codec::gtid::GtidState;
use points::transaction::Transaction;
use points::walk::{Options, Walk, WalkError};

/// Where a tour is.
#[derive(Debug, Clone)]
pub(super) struct Executed {
    /// What the source had executed, as far as its log says so.
    pub(super) state: GtidState,
    /// The same where the timeline begins: a new source's files may begin with what the old one's have too.
    at_timeline: GtidState,
    /// The log speaks of GTIDs at all.
    pub(super) is_stated: bool,
}

/// A file on the way.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Its number in the list.
    pub(super) number: usize,
    pub(super) file: &'a CopiedFile,
    pub(super) opened: &'a dyn ReadFile,
}

/// Who is shown the transactions.
pub(super) trait Visitor {
    /// A file begins.
    ///
    /// # Errors
    /// As it likes.
    fn file(&mut self, place: Place<'_>, format: &FormatDescription) -> Result<(), NoCut>;

    /// A gap before a file; an error where it matters.
    ///
    /// # Errors
    /// Why it does.
    fn gap(&mut self, gap: NoCut) -> Result<(), NoCut>;

    /// A transaction that is history. `executed` is what was executed before it. False ends the tour.
    ///
    /// # Errors
    /// As it likes.
    fn transaction(
        &mut self,
        place: Place<'_>,
        transaction: &Transaction,
        executed: &Executed,
    ) -> Result<bool, NoCut>;

    /// The file's transactions are over, or the tour.
    ///
    /// # Errors
    /// As it likes.
    fn file_ends(&mut self, place: Place<'_>) -> Result<(), NoCut>;
}

/// From where on, and what was executed before.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// Number of the file.
    pub(super) file: usize,
    /// Where a transaction begins in it; 0 for the first.
    pub(super) at: u64,
    /// What was executed before; by the file's own word where it is not given.
    pub(super) executed: Option<Executed>,
}

/// Shows all transactions from a place on. `progress` is told the bytes that were walked.
///
/// # Errors
/// Of the visitor, or of a file.
pub(super) fn tour(
    copied: &Copied,
    files: &[CopiedFile],
    start: &Start,
    visitor: &mut dyn Visitor,
    progress: &mut dyn FnMut(u64),
) -> Result<(), NoCut> {
    let mut executed = start.executed.clone();
    let mut walked = 0;
    for (number, file) in files.iter().enumerate().skip(start.file) {
        let is_first = number == start.file;
        let opened = copied.read(file).map_err(NoCut::Copy)?;
        let options = Options { verifies: true, ..Options::default() };
        let mut walk = match Walk::open(&*opened, file.end, options) {
            // The file that was begun last.
            Err(WalkError::NotBegun) if number + 1 == files.len() => break,
            walk => walk.map_err(|error| in_file(file, error))?,
        };
        let is_new_timeline = !is_first && files[number - 1].timeline != file.timeline;
        let mut now = match executed.take() {
            Some(executed) if is_first => executed,
            Some(mut executed) => {
                if let Some(gap) = go_on(&mut executed, file, &walk) {
                    visitor.gap(gap)?;
                }
                if is_new_timeline {
                    executed.at_timeline = executed.state.clone();
                }
                executed
            }
            None => {
                let empty = GtidState::empty(walk.format().server_kind());
                let state = walk.gtids_before().cloned();
                Executed {
                    is_stated: state.is_some(),
                    state: state.unwrap_or(empty.clone()),
                    at_timeline: empty,
                }
            }
        };
        if is_first && start.at > 0 {
            walk.seek(start.at);
        }
        let place = Place { number, file, opened: &*opened };
        visitor.file(place, walk.format())?;
        while let Some(transaction) = walk.next_transaction().map_err(|error| in_file(file, error))? {
            if transaction.id.is_some_and(|id| file.lost.contains(&id) || now.at_timeline.contains(&id)) {
                continue;
            }
            if !visitor.transaction(place, transaction, &now)? {
                return visitor.file_ends(place);
            }
            if let Some(id) = transaction.id {
                let _ = now.state.insert(id);
            }
            progress(walked + transaction.end);
        }
        visitor.file_ends(place)?;
        walked += file.end;
        executed = Some(now);
    }
    Ok(())
}

/// Takes in what the next file says of before; what is missing between.
fn go_on(executed: &mut Executed, file: &CopiedFile, walk: &Walk<'_>) -> Option<NoCut> {
    let name = format!("{} of {}", file.name, file.timeline);
    if walk.format().server_kind() != executed.state.kind() {
        *executed = Executed {
            state: GtidState::empty(walk.format().server_kind()),
            at_timeline: GtidState::empty(walk.format().server_kind()),
            is_stated: false,
        };
        return Some(NoCut::OtherKind { file: name });
    }
    let parted = file.parted.map(|why| NoCut::Parted { file: name.clone(), why });
    let Some(before) = walk.gtids_before() else { return parted };
    executed.is_stated = true;
    let missing = before.subtract(&executed.state);
    if before.contains_state(&executed.state) {
        executed.state = before.clone();
    } else {
        let _ = executed.state.union_with(before);
    }
    if !missing.is_empty() {
        return Some(NoCut::Gap { file: name, gtids: missing });
    }
    // Where no GTID was given, none can be missing.
    parted.filter(|_| executed.state.is_empty())
}

fn in_file(file: &CopiedFile, error: WalkError) -> NoCut {
    NoCut::Walk { path: file.path.clone(), error }
}

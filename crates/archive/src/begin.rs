//! A copy that begins from the archive: on an empty disk, with what it takes to go on at the source where the archive ends.
//!
//! What is made is what a [purge](binlog::purge) would have left that took all it may: of the present history the newest files, which
//! recovery and the comparison with the source read, and those of which forks took something from the source that it does not have
//! yet. Everything else is recorded as purged and stays in the archive, older timelines as a whole.
//!
//! # The order of steps
//!
//! ```text
//! .NNNN-….archived, each file synced and compared ─► the list of these ─► their names, the newest first ─► no list
//! ```
//!
//! While there is no list nothing has the name of a timeline, and the next start begins again with what it finds. From the list on
//! nothing is asked of the archive any more, and [`finish`] does the rest, also for who has no archive by then. The newest timeline
//! gets its name first: no moment shows an older one as the last.

use crate::chain::ChainError;
use crate::chain::history::{Archived, ArchivedFile, History};
use crate::fetch::{FetchError, Part, fetch_into, is_of};
use crate::reader::{ReadError, Reader};
use crate::segment::OpenError;
use binlog::folder::{by_number, timeline_number};
use binlog::purge::needs::newest_kept;
use binlog::storage::{Kind, Storage};
use binlog::timeline::Timeline;
use binlog::timeline::held::{HeldTimeline, lost_gtids};
use binlog::timeline::index::replace_file;
use codec::gtid::GtidState;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The timelines that are to get their names, one a line, the newest first.
const LIST_FILE: &str = "from-archive";

/// Stands behind the name of a timeline that has not got it yet.
const UNFINISHED: &str = ".archived";

/// Where a copy goes on that has begun from the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Name of the newest timeline, here and in the archive.
    pub timeline: String,
    /// Its last file; empty when it has none yet.
    pub file: String,
    /// Where that ends.
    pub offset: u64,
    /// GTIDs executed up to there.
    pub gtids: String,
    /// How many timelines there are, with those of which nothing was fetched.
    pub timelines: usize,
    /// How many files were fetched.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Why a copy could not begin from the archive. Nothing has begun, and it may be tried again.
#[derive(Debug)]
pub enum BeginError {
    /// What the archive has cannot be told.
    Chain(ChainError),
    /// It cannot be fetched, or not be written.
    Fetch(FetchError),
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BeginError::Chain(error) => error.fmt(f),
            BeginError::Fetch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BeginError {}

impl From<ChainError> for BeginError {
    fn from(error: ChainError) -> BeginError {
        BeginError::Chain(error)
    }
}

impl From<FetchError> for BeginError {
    fn from(error: FetchError) -> BeginError {
        BeginError::Fetch(error)
    }
}

impl BeginError {
    /// True when none of the private keys opens what is needed.
    pub fn lacks_key(&self) -> bool {
        matches!(self, BeginError::Fetch(FetchError::Read(ReadError::Open(OpenError::NoIdentity { .. }))))
    }

    /// The disk's reason, when it is the disk that fails.
    pub fn of_disk(&self) -> Option<&io::Error> {
        match self {
            BeginError::Fetch(FetchError::Write(_, error)) => Some(error),
            _ => None,
        }
    }
}

/// What stands in a source's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    /// A copy.
    Copy,
    /// No timeline; the folder may be missing. A copy may begin in it.
    Nothing,
    /// Everything that is needed of the archive, and not all names: [`finish`] is to be called, whether there is an archive or not.
    Unfinished,
}

/// Looks into a source's folder.
///
/// # Errors
/// When it cannot be read: whether it is a copy is not known then.
pub fn look(storage: &dyn Storage, folder: &Path) -> io::Result<There> {
    if storage.exists(&folder.join(LIST_FILE))? {
        return Ok(There::Unfinished);
    }
    match by_number(storage, folder) {
        Ok(found) if !found.is_empty() => Ok(There::Copy),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(There::Nothing),
    }
}

/// Finishes what an earlier process has begun. The caller holds the lock of the folder, in which [`look`] has found that.
///
/// # Errors
/// When the disk does not do it. The folder is no copy before this has succeeded.
pub fn finish(storage: &dyn Storage, folder: &Path) -> io::Result<()> {
    let path = folder.join(LIST_FILE);
    let list = storage.read_to_string(&path)?;
    for name in list.lines() {
        let (from, to) = (unfinished(folder, name), folder.join(name));
        if storage.exists(&from)? && !storage.exists(&to)? {
            storage.rename(&from, &to)?;
            storage.sync_dir(folder)?;
        }
    }
    // A crash may have come between a name and its sync.
    storage.sync_dir(folder)?;
    storage.remove_file(&path)?;
    storage.sync_dir(folder)
}

/// Begins the copy of `source` in `folder`, in which there is [nothing](There::Nothing), and whose lock the caller holds. `None`: the
/// archive has nothing of this source, and neither has the folder. `told` is told what is fetched, before it is.
///
/// # Errors
/// When nothing has begun. Tried again, it goes on with what was fetched.
pub fn begin(
    reader: &Reader,
    storage: &dyn Storage,
    folder: &Path,
    source: &str,
    at_once: usize,
    told: &dyn Fn(&Begun),
) -> Result<Option<Begun>, BeginError> {
    let mut chain = reader.chain(source)?;
    chain.check_whole(&*reader.store)?;
    chain.check_signed()?;
    let parts = plan(chain.history()).map_err(FetchError::Wanted)?;
    let Some(newest) = parts.last() else { return Ok(None) };
    let last = newest.archived.files.last();
    let begun = Begun {
        timeline: newest.timeline.clone(),
        file: last.map(|file| file.name.clone()).unwrap_or_default(),
        offset: last.map_or(0, |file| file.end()),
        gtids: last.map(|file| file.gtids.clone()).unwrap_or_default(),
        timelines: parts.len(),
        files: parts.iter().map(|part| part.files().len()).sum(),
        bytes: parts.iter().map(Part::bytes).sum(),
    };
    told(&begun);
    let write = |error| FetchError::Write(folder.to_owned(), error);
    for part in &parts {
        let path = unfinished(folder, &part.timeline);
        clear(storage, &path, part).map_err(|error| FetchError::Write(path.clone(), error))?;
        let lacking = fetch_into(reader, storage, &path, part, at_once, &|_| {})?;
        if let Some((_, error)) = lacking.into_iter().next() {
            return Err(FetchError::Read(error).into());
        }
    }
    let names: String = parts.iter().rev().map(|part| format!("{}\n", part.timeline)).collect();
    replace_file(storage, &folder.join(LIST_FILE), names.as_bytes()).map_err(write)?;
    finish(storage, folder).map_err(write)?;
    Ok(Some(begun))
}

fn unfinished(folder: &Path, timeline: &str) -> PathBuf {
    folder.join(format!(".{timeline}{UNFINISHED}"))
}

/// Removes what an earlier try has left and this one does not want: the archive may have gone on meanwhile.
fn clear(storage: &dyn Storage, path: &Path, part: &Part) -> io::Result<()> {
    let left = match storage.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        left => left?,
    };
    for entry in left.iter().filter(|entry| entry.kind == Kind::File) {
        if !entry.name.to_str().is_some_and(|name| is_of(part, name)) {
            storage.remove_file(&path.join(&entry.name))?;
        }
    }
    Ok(())
}

/// A timeline of the archive.
struct Line<'a> {
    archived: &'a Arc<Archived>,
    /// The name as a folder, and the record.
    held: HeldTimeline,
    /// Place of the first file that is wanted.
    from: usize,
}

/// What is to be fetched of each timeline, in the order of their numbers; of most of them nothing.
///
/// # Errors
/// In words, when a record of the archive cannot be read.
pub fn plan(history: &History) -> Result<Vec<Part>, String> {
    let mut lines = Vec::new();
    for (name, archived) in &history.timelines {
        let info =
            Timeline::parse(&archived.record).map_err(|error| format!("the record of {name}: {error}"))?;
        let held = HeldTimeline { folder: PathBuf::from(name), info };
        lines.push(Line { archived, held, from: archived.files.len() });
    }
    lines.sort_by_key(|line| line.held.folder.to_str().and_then(timeline_number));
    let present = present(&lines);
    want_newest(&mut lines, &present);
    want_lost(&mut lines, &present);
    let part = |line: Line<'_>| Part {
        timeline: line.held.folder.to_string_lossy().into_owned(),
        files: line.from..line.archived.files.len(),
        archived: line.archived.clone(),
    };
    Ok(lines.into_iter().map(part).collect())
}

/// The timelines that the newest one goes on with, and itself: places, the newest first. As
/// [`present_history`](binlog::timeline::held::present_history) has it of a copy.
fn present(lines: &[Line<'_>]) -> Vec<usize> {
    let folders: Vec<&Path> = lines.iter().map(|line| &*line.held.folder).collect();
    let mut next = lines.len().checked_sub(1);
    let mut found = Vec::new();
    while let Some(at) = next {
        found.push(at);
        next = lines[at].held.info.goes_on_with(&folders[..at]);
    }
    found
}

/// What recovery, the comparison with the source, and readers need.
fn want_newest(lines: &mut [Line<'_>], present: &[usize]) {
    let Some(newest) = present.first() else { return };
    let mut wanted = newest_kept(lines[*newest].archived.files.len());
    for at in present {
        let line = &mut lines[*at];
        let files = wanted.min(line.archived.files.len());
        line.from = line.archived.files.len() - files;
        wanted -= files;
    }
}

/// What forks took from the source, and the source does not have by the word of its newest file: `binlogd rescue` hands that over.
fn want_lost(lines: &mut [Line<'_>], present: &[usize]) {
    let Some((newest, older)) = present.split_first() else { return };
    let kind = lines[*newest].held.info.server_kind;
    let parse = |text: &str| GtidState::parse(kind, text).unwrap_or_else(|_| GtidState::empty(kind));
    let history: Vec<HeldTimeline> = present.iter().rev().map(|at| lines[*at].held.clone()).collect();
    let executed = lines[*newest].archived.files.last().map(|last| parse(&last.gtids)).unwrap_or_default();
    let lost = lost_gtids(&history, kind).subtract(&executed);
    if lost.is_empty() {
        return;
    }
    for at in older {
        let line = &mut lines[*at];
        let files = &line.archived.files;
        // Less of it is lacking behind the file than before it.
        let has_lost = |place: usize| {
            let before = stated_before(files, place).map(parse).unwrap_or_default();
            lost.subtract(&before) != lost.subtract(&parse(&files[place].gtids))
        };
        line.from = (0..line.from).find(|place| has_lost(*place)).unwrap_or(line.from);
    }
}

/// What was executed before a file.
fn stated_before(files: &[Arc<ArchivedFile>], place: usize) -> Option<&str> {
    let stated = files[place].gtids_before.as_deref();
    stated.or_else(|| Some(&*files[place.checked_sub(1)?].gtids))
}

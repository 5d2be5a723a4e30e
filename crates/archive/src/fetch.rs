//! Files back from the store, into a folder that is then a copy like any other: verified, resumable, several segments at a time.
//!
//! A file is written under another name until the last byte of it is compared with its commit and synced, so whatever has its
//! name is whole. What an interrupted run has of a file is compared once more, and continued.

use crate::chain::commit::Segment;
use crate::chain::history::{Archived, ArchivedFile, History};
use crate::names;
use crate::reader::{ReadError, Reader};
use binlog::purge::purged::Purged;
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::index;
use binlog::timeline::{TIMELINE_FILE, Timeline};
use codec::BinlogName;
use codec::gtid::GtidState;
use codec::rows::hex;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// Stands behind the name of a file that is not whole yet.
const UNFINISHED: &str = ".fetching";

/// The `why` of files that stayed in the archive.
const NOT_FETCHED: &str = "stays in the archive";

/// The `why` where retention took files of the archive, too.
const EXPIRED: &str = "not in the archive any more, or not fetched";

/// Which files are wanted: those between two bounds, both with the file that they lie in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only this timeline, by its name in the archive.
    pub timeline: Option<String>,
    /// From here on.
    pub from: Option<Bound>,
    /// Up to here.
    pub until: Option<Bound>,
}

/// A place in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A file by its name.
    File(String),
    /// A moment by the source's clock, in seconds since 1970.
    Time(i64),
    /// The file in which the last of these was executed.
    Gtids(String),
}

/// Why files could not be fetched.
#[derive(Debug)]
pub enum FetchError {
    /// The store, or what it gave.
    Read(ReadError),
    /// The folder.
    Write(PathBuf, io::Error),
    /// The archive does not have what is wanted, or its record cannot be used; in words.
    Wanted(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Read(error) => error.fmt(f),
            FetchError::Write(path, error) => write!(f, "{}: {error}", path.display()),
            FetchError::Wanted(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for FetchError {}

impl From<ReadError> for FetchError {
    fn from(error: ReadError) -> FetchError {
        FetchError::Read(error)
    }
}

/// What is to be fetched of one timeline.
#[derive(Debug, Clone)]
pub struct Part {
    /// The timeline's name in the archive.
    pub timeline: String,
    /// All of it.
    pub archived: Arc<Archived>,
    /// Places of the wanted files in it.
    pub files: std::ops::Range<usize>,
}

impl Part {
    /// The wanted files.
    pub fn files(&self) -> &[Arc<ArchivedFile>] {
        &self.archived.files[self.files.clone()]
    }

    /// Plain bytes of the wanted files.
    pub fn bytes(&self) -> u64 {
        self.files().iter().map(|file| file.end()).sum()
    }
}

/// Finds the files that are wanted, timeline by timeline.
///
/// # Errors
/// In words, when there are none, or a bound cannot be found.
pub fn plan(history: &History, wanted: &Wanted) -> Result<Vec<Part>, FetchError> {
    let mut parts = Vec::new();
    let chosen = |name: &String| wanted.timeline.as_ref().is_none_or(|wanted| wanted == name);
    if let Some(timeline) = wanted.timeline.as_ref().filter(|name| !history.timelines.contains_key(*name)) {
        let there: Vec<&str> = history.timelines.keys().map(String::as_str).collect();
        let text = format!("the archive has no timeline {timeline}; it has {}", there.join(", "));
        return Err(FetchError::Wanted(text));
    }
    for (timeline, archived) in history.timelines.iter().filter(|(name, _)| chosen(name)) {
        let from = match &wanted.from {
            None => Some(0),
            Some(bound) => first(archived, bound)?,
        };
        let until = match &wanted.until {
            None => Some(archived.files.len()),
            Some(bound) => first(archived, bound)?.map(|last| (last + 1).min(archived.files.len())),
        };
        // A bound that is a file or a GTID names one timeline; the others are not wanted.
        let (Some(from), Some(until)) = (from, until) else { continue };
        if from < until {
            let (timeline, archived) = (timeline.clone(), archived.clone());
            parts.push(Part { timeline, archived, files: from..until });
        }
    }
    if parts.is_empty() {
        return Err(FetchError::Wanted("the archive has no file between these bounds".into()));
    }
    Ok(parts)
}

/// The file of a timeline in which a bound lies; `None` when it lies in none.
pub(crate) fn first(archived: &Archived, bound: &Bound) -> Result<Option<usize>, FetchError> {
    match bound {
        Bound::File(name) => Ok(archived.files.iter().position(|file| file.name == *name)),
        Bound::Time(at) => {
            // Times jump back, and a file has what was begun before its last event.
            let found = archived.files.iter().position(|file| i64::from(file.last_time) >= *at);
            Ok(Some(found.unwrap_or(archived.files.len())))
        }
        Bound::Gtids(text) => {
            let record = Timeline::parse(&archived.record).map_err(FetchError::Wanted)?;
            let wanted = GtidState::parse(record.server_kind, text)
                .map_err(|error| FetchError::Wanted(format!("{text:?} is no set of GTIDs: {error}")))?;
            let has = |file: &Arc<ArchivedFile>| {
                GtidState::parse(record.server_kind, &file.gtids)
                    .is_ok_and(|executed| wanted.subtract(&executed).is_empty())
            };
            let before = archived.files.first().and_then(|file| file.gtids_before.as_ref());
            let before = before.and_then(|text| GtidState::parse(record.server_kind, text).ok());
            if before.is_some_and(|before| wanted.subtract(&before).is_empty()) {
                return Ok(None);
            }
            Ok(archived.files.iter().position(has))
        }
    }
}

/// What came of a part.
#[derive(Debug)]
pub struct Fetched {
    /// The timeline's folder.
    pub folder: PathBuf,
    /// Files that were not fetched, for an object of them is gone or damaged: timeline and name, and which.
    pub lacking: Vec<(String, ReadError)>,
}

/// Fetches one part into `<folder>/<timeline>`, which is made. `progress` is told plain bytes as they are safe.
///
/// # Errors
/// When the store does not answer, no key opens a segment, or the disk does not take it. Running it again goes on.
pub fn fetch(
    reader: &Reader,
    storage: &dyn Storage,
    folder: &Path,
    part: &Part,
    at_once: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Fetched, FetchError> {
    let timeline = folder.join(&part.timeline);
    left_alone(storage, &timeline, part)?;
    let lacking = fetch_into(reader, storage, &timeline, part, at_once, progress)?;
    Ok(Fetched { folder: timeline, lacking })
}

/// As [`fetch`], into `timeline` itself, whatever its name is; gives the files that were not fetched.
///
/// # Errors
/// As [`fetch`].
pub(crate) fn fetch_into(
    reader: &Reader,
    storage: &dyn Storage,
    timeline: &Path,
    part: &Part,
    at_once: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<(String, ReadError)>, FetchError> {
    make_timeline(storage, timeline, part)?;
    let (mut names, mut lacking) = (Vec::new(), Vec::new());
    for file in part.files() {
        match fetch_file(reader, storage, timeline, file, at_once, progress) {
            Ok(()) => names.push(file.name.clone()),
            Err(FetchError::Read(error)) if error.is_damage() => {
                lacking.push((format!("{}/{}", part.timeline, file.name), error));
            }
            Err(error) => return Err(error),
        }
    }
    index::write(storage, timeline, &names).map_err(|error| FetchError::Write(timeline.to_owned(), error))?;
    Ok(lacking)
}

/// The names that [`fetch_into`] gives to what it makes in a timeline's folder, while it works and at the end.
pub(crate) fn is_of(part: &Part, name: &str) -> bool {
    let of_file = name.strip_suffix(UNFINISHED).unwrap_or(name);
    [TIMELINE_FILE, index::INDEX_FILE].contains(&name) || part.files().iter().any(|file| file.name == of_file)
}

/// What stands in the folder must be what is fetched: files of others would be in no index, and gone from the record.
fn left_alone(storage: &dyn Storage, path: &Path, part: &Part) -> Result<(), FetchError> {
    let there = match binlog::timeline::files::binlog_files(storage, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there.map_err(|error| FetchError::Write(path.to_owned(), error))?,
    };
    match there.iter().find(|name| !part.files().iter().any(|file| file.name == **name)) {
        None => Ok(()),
        Some(other) => Err(FetchError::Wanted(format!(
            "{} has {other}, which is not among the files that are wanted: fetch into another folder",
            path.display()
        ))),
    }
}

/// Makes the timeline's folder with its record, in which stands what stays in the archive.
fn make_timeline(storage: &dyn Storage, path: &Path, part: &Part) -> Result<(), FetchError> {
    let mut record = Timeline::parse(&part.archived.record)
        .map_err(|error| FetchError::Wanted(format!("the record of {}: {error}", part.timeline)))?;
    record.purged = stays(part, &record).into_iter().collect();
    let write = |error| FetchError::Write(path.to_owned(), error);
    binlog::folder::make_folder(storage, path).map_err(write)?;
    let text = record.to_text().map_err(FetchError::Wanted)?;
    index::replace_file(storage, &path.join(TIMELINE_FILE), text.as_bytes()).map_err(write)
}

/// What stands before the wanted files, as a record of what was purged has it.
#[allow(clippy::disallowed_methods, reason = "a record for people")]
fn stays(part: &Part, record: &Timeline) -> Option<Purged> {
    let before = &part.archived.files[..part.files.start];
    let expired = Some(&part.archived.expired).filter(|name| !name.is_empty());
    let through = before.last().map(|file| file.name.clone()).or_else(|| expired.cloned())?;
    let first = before.first().filter(|_| expired.is_none());
    let files = count(&record.first_file, &through).unwrap_or(before.len() as u64);
    Some(Purged {
        from: record.first_file.clone(),
        through,
        files,
        bytes: before.iter().map(|file| file.end()).sum(),
        gtid_before: first.and_then(|file| file.gtids_before.clone()),
        gtids: before
            .last()
            .map(|file| file.gtids.clone())
            .or_else(|| part.files().first().and_then(|file| file.gtids_before.clone()))?,
        at: jiff::Timestamp::now().to_string(),
        why: if expired.is_some() { EXPIRED } else { NOT_FETCHED }.into(),
        removed: true,
    })
}

/// How many files there are from one to another of the same series, both with.
fn count(first: &str, last: &str) -> Option<u64> {
    let (first, last) = (BinlogName::parse(first).ok()?, BinlogName::parse(last).ok()?);
    let is_series = first.base() == last.base();
    is_series.then(|| last.number().checked_sub(first.number())).flatten().map(|count| count + 1)
}

fn fetch_file(
    reader: &Reader,
    storage: &dyn Storage,
    timeline: &Path,
    file: &ArchivedFile,
    at_once: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<(), FetchError> {
    let path = timeline.join(&file.name);
    let write = |error| FetchError::Write(path.clone(), error);
    if storage.look(&path).is_ok_and(|found| found.len == file.end()) {
        progress(file.end());
        return Ok(());
    }
    let segments = reader.segments(file)?;
    if let Ok(found) = storage.look(&path)
        && !is_beginning(storage, &path, found.len, &segments).map_err(write)?
    {
        return Err(FetchError::Wanted(format!(
            "{} is there with {} bytes, and the archive has {} of it: it was not fetched from there as it is, and is left as it is. \
             Fetch into another folder",
            path.display(),
            found.len,
            file.end()
        )));
    }
    let mut name = file.name.clone();
    name.push_str(UNFINISHED);
    let unfinished = timeline.join(name);
    let out = match storage.open(&unfinished) {
        Ok(out) => out,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            storage.create(&unfinished).map_err(write)?
        }
        Err(error) => return Err(write(error)),
    };
    let mut whole = Sha256::new();
    let done = already(&*out, &segments, &mut whole).map_err(write)?;
    progress(segments[..done].last().map_or(0, |segment| segment.to));
    for batch in segments[done..].chunks(at_once.max(1)) {
        for (segment, plain) in batch.iter().zip(get(reader, batch)?) {
            out.write_all_at(&mut [IoSlice::new(&plain)], segment.from).map_err(write)?;
            whole.update(&plain);
            progress(segment.len());
        }
    }
    let sha256 = hex(&whole.finalize());
    if let Some(seal) = file.sealed.as_ref().filter(|seal| seal.sha256 != sha256) {
        return Err(FetchError::Wanted(format!(
            "{}: its segments are as they were uploaded, and together have SHA-256 {sha256}; the archive says {}. Please report this",
            file.name, seal.sha256
        )));
    }
    out.truncate(file.end()).map_err(write)?;
    out.sync_data().map_err(write)?;
    drop(out);
    storage.rename(&unfinished, &path).map_err(write)?;
    storage.sync_dir(timeline).map_err(write)
}

/// Whether a file that is there is what the archive had of it once: nothing is lost with it.
fn is_beginning(storage: &dyn Storage, path: &Path, len: u64, segments: &[Segment]) -> io::Result<bool> {
    let there = storage.open_read(path)?;
    let whole = segments.iter().filter(|segment| segment.to <= len).count();
    let end = segments.last().map_or(0, |last| last.to);
    Ok(len <= end && already(&*there, segments, &mut Sha256::new())? == whole)
}

/// How many segments an earlier run has left whole.
fn already(out: &dyn ReadFile, segments: &[Segment], whole: &mut Sha256) -> io::Result<usize> {
    let mut buffer = Vec::new();
    for (place, segment) in segments.iter().enumerate() {
        buffer.resize(segment.len() as usize, 0);
        let read = out.read_full_at(&mut buffer, segment.from)?;
        if read < buffer.len() || names::sha256(&buffer) != segment.sha256 {
            return Ok(place);
        }
        whole.update(&buffer);
    }
    Ok(segments.len())
}

/// Segments side by side.
fn get(reader: &Reader, batch: &[Segment]) -> Result<Vec<Vec<u8>>, ReadError> {
    let (first, others) = match batch.split_first() {
        Some(split) => split,
        None => return Ok(Vec::new()),
    };
    thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|segment| scope.spawn(|| reader.segment(segment))).collect();
        let mut plain = vec![reader.segment(first)?];
        for other in others {
            // A panic is an error of ours, and goes on here.
            plain.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(plain)
    })
}

//! Whether everything of a finished file is in the store: seen there, and not only sent.
//!
//! An upload ends with a store's word that it has taken an object. Before the same bytes are given up elsewhere the store is
//! asked for what it has: one listing of the file's objects, the object that says which they are, and one of them read back.

use crate::chain::ChainError;
use crate::chain::commit::Segment;
use crate::chain::history::{ArchivedFile, History};
use crate::chain::mapping::{LocalTimeline, MappingError, Others, archived_name};
use crate::names;
use crate::reader::{ReadError, Reader};
use crate::segment::check_stored;
use crate::store::{Meta, StoreError};
use crate::upkeep::scrub::{Finding, index_text, missing};
use crate::writer::local::head;
use binlog::storage::Storage;
use binlog::timeline::Timeline;
use binlog::timeline::files::timeline_files;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Looks for the objects of a file: each must be listed with its length, and the one that `chosen` comes to, any number, must be
/// what was uploaded. No private key is needed. Empty when everything is there.
///
/// # Errors
/// When the store does not answer.
pub fn look(
    reader: &Reader,
    source: &str,
    timeline: &str,
    file: &ArchivedFile,
    chosen: u64,
) -> Result<Vec<Finding>, StoreError> {
    let listed = reader.store.list(&names::file(source, timeline, &file.name), None)?;
    let listed: BTreeMap<&str, &Meta> = listed.iter().map(|meta| (&*meta.name, meta)).collect();
    let whole = format!("{timeline}/{}", file.name);
    let range = |segment: &Segment| Some(format!("{whole} {}..{}", segment.from, segment.to));
    let mut findings = Vec::new();
    if let Some(seal) = &file.sealed
        && let Some(text) = missing(&listed, &seal.list, None)
    {
        findings.push(Finding { what: seal.list.clone(), range: Some(whole.clone()), text });
    }
    let segments = match reader.segments(file) {
        Ok(segments) => segments,
        Err(ReadError::Store(error)) if !error.is_missing() => return Err(error),
        Err(error) => {
            let what = file.index().map_or(String::new(), |index| index.object.clone());
            findings.push(Finding { what, range: Some(whole), text: index_text(&error) });
            return Ok(findings);
        }
    };
    for segment in &*segments {
        if let Some(text) = missing(&listed, &segment.object, Some(segment.stored)) {
            findings.push(Finding { what: segment.object.clone(), range: range(segment), text });
        }
    }
    let count = segments.len() as u64;
    if findings.is_empty() && count > 0 {
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of segments")]
        let segment = &segments[(chosen % count) as usize];
        let stored = reader.store.get(&segment.object).map_err(ReadError::Store);
        let text = match stored.and_then(|stored| check_stored(segment, &stored).map_err(ReadError::Open)) {
            Ok(()) => return Ok(findings),
            Err(ReadError::Store(error)) if !error.is_missing() => return Err(error),
            Err(error) => error.to_string(),
        };
        findings.push(Finding { what: segment.object.clone(), range: range(segment), text });
    }
    Ok(findings)
}

/// A number to choose by that nobody foresees.
///
/// # Panics
/// When the system gives no random bytes.
pub fn any() -> u64 {
    getrandom::u64().expect("the system gives random bytes")
}

/// A file of a copy, as it is given up: the folder of its timeline, and its name.
pub type Place<'a> = (&'a Path, &'a str);

/// Why the files of a copy cannot be looked for.
#[derive(Debug)]
pub enum LookError {
    /// The archive cannot be read.
    Chain(ChainError),
    /// The copy cannot be, in words.
    Copy(String),
}

impl fmt::Display for LookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookError::Chain(error) => error.fmt(f),
            LookError::Copy(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for LookError {}

impl From<ChainError> for LookError {
    fn from(error: ChainError) -> LookError {
        LookError::Chain(error)
    }
}

impl From<StoreError> for LookError {
    fn from(error: StoreError) -> LookError {
        LookError::Chain(error.into())
    }
}

/// The first of some files of a stopped copy that the archive of `source` does not have as it is here, and why; `None` when it
/// has them all. `folders` are all timelines of the copy. Files that have expired are none that it lacks.
///
/// # Errors
/// When the archive or the copy cannot be read.
pub fn first_lacking(
    reader: &Reader,
    storage: &dyn Storage,
    source: &str,
    folders: &[PathBuf],
    files: &[Place<'_>],
) -> Result<Option<(usize, String)>, LookError> {
    let chain = reader.chain(source)?;
    let history = chain.history();
    let names = archived_names(reader, history, storage, folders)?;
    for (at, (folder, name)) in files.iter().enumerate() {
        let timeline = names.get(*folder).map_or("", String::as_str);
        let archived = history.timelines.get(timeline);
        let Some(file) = archived.and_then(|archived| archived.file(name)) else {
            let there =
                timeline_files(storage, folder).map_err(|e| LookError::Copy(format!("{name}: {e}")))?;
            let place = there.iter().position(|other| other == name).unwrap_or(there.len());
            if archived.is_some_and(|archived| archived.has_let_go(&there[place..])) {
                continue;
            }
            return Ok(Some((at, "the archive does not have it".to_owned())));
        };
        if let Some(why) = differs(storage, &folder.join(name), file)? {
            return Ok(Some((at, why)));
        }
        if let Some(finding) = look(reader, source, timeline, file, any())?.first() {
            return Ok(Some((at, format!("what the archive has of it is damaged: {finding}"))));
        }
    }
    Ok(None)
}

/// What the archive calls the timelines of a copy.
fn archived_names(
    reader: &Reader,
    history: &History,
    storage: &dyn Storage,
    folders: &[PathBuf],
) -> Result<BTreeMap<PathBuf, String>, LookError> {
    let in_folder =
        |folder: &Path, error: std::io::Error| LookError::Copy(format!("{}: {error}", folder.display()));
    let mut names: BTreeMap<PathBuf, String> = BTreeMap::new();
    let began = |other: &PathBuf| Some(Timeline::read(storage, other).ok()?.began_at);
    for folder in folders {
        let files = timeline_files(storage, folder).map_err(|error| in_folder(folder, error))?;
        let local = LocalTimeline::read(storage, folder, &files).map_err(LookError::Copy)?;
        let others = Others {
            names: names.values().cloned().collect(),
            began_at: folders.iter().filter(|other| *other != folder).filter_map(began).collect(),
        };
        let mut segments = |file: &ArchivedFile| reader.segments(file);
        let name =
            archived_name(history, &mut segments, storage, &local, &others).map_err(|error| match error {
                MappingError::Copy(error) => in_folder(folder, error),
                MappingError::Archive(ReadError::Store(error)) => error.into(),
                MappingError::Archive(error) => LookError::Copy(error.to_string()),
            })?;
        names.insert(folder.clone(), name);
    }
    Ok(names)
}

/// Whether the archive's file is another one than that on this disk, or not all of it.
fn differs(
    storage: &dyn Storage,
    path: &Path,
    file: &Arc<ArchivedFile>,
) -> Result<Option<String>, LookError> {
    let in_file = |error: std::io::Error| LookError::Copy(format!("{}: {error}", path.display()));
    let len = storage.look(path).map_err(in_file)?.len;
    let head = head(storage, path, u64::MAX).map_err(in_file)?;
    Ok(match () {
        () if head.is_some_and(|head| head != file.head) => {
            Some("the archive has another file of this name".to_owned())
        }
        () if len != file.end() => {
            Some(format!("the archive has {} bytes of it, and here it has {len}", file.end()))
        }
        () if file.sealed.is_none() => {
            Some("the archive does not have it as a finished file that was compared".to_owned())
        }
        () => None,
    })
}

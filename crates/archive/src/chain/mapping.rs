//! Which timeline of the archive a timeline of the copy is.
//!
//! Each copy numbers its timelines by itself, and two copies of one source may have begun at different files. What tells that
//! two timelines are one is a file that both have, made by the server in the same moment: its format description is the same.

use crate::chain::commit::Segment;
use crate::chain::history::{Archived, ArchivedFile, History};
use crate::names;
use crate::reader::ReadError;
use crate::writer::local::{head, read_range};
use binlog::folder::timeline_number;
use binlog::storage::{ReadFile, Storage};
use binlog::timeline::Timeline;
use codec::gtid::{GtidSet, GtidState, Uuid};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why it cannot be told which timeline it is.
#[derive(Debug)]
pub(crate) enum MappingError {
    /// A file of the copy cannot be read.
    Copy(io::Error),
    /// The archive does not give the segments of a file, with which it is to be compared.
    Archive(ReadError),
}

impl From<io::Error> for MappingError {
    fn from(error: io::Error) -> MappingError {
        MappingError::Copy(error)
    }
}

/// Gives the segments of an archived file, as [`read_segments`](crate::reader::read_segments) does.
pub(crate) type Segments<'a> = dyn FnMut(&ArchivedFile) -> Result<Arc<[Segment]>, ReadError> + 'a;

/// A timeline of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalTimeline {
    /// Its folder.
    pub folder: PathBuf,
    /// Names of its files, in order.
    pub files: Vec<String>,
    /// Its description, without what was purged on this machine.
    pub description: Timeline,
    /// As in the folder's name.
    pub server_uuid: String,
    /// When it began, by this machine's clock.
    pub began_at: String,
}

impl LocalTimeline {
    /// Reads what is known of the timeline in `folder`, which has `files`.
    ///
    /// # Errors
    /// In words, when its description cannot be read.
    pub(crate) fn read(
        storage: &dyn Storage,
        folder: &Path,
        files: &[String],
    ) -> Result<LocalTimeline, String> {
        let mut timeline = Timeline::read(storage, folder).map_err(|error| error.to_string())?;
        timeline.purged.clear();
        Ok(LocalTimeline {
            folder: folder.to_owned(),
            files: files.to_vec(),
            server_uuid: timeline.server_uuid.clone(),
            began_at: timeline.began_at.clone(),
            description: timeline,
        })
    }

    /// `timeline.toml` as the archive has it. `names` are what the archive calls the timelines of the copy, by their folders: it may
    /// number the one before otherwise.
    ///
    /// # Errors
    /// In words; for a description that was read, never.
    pub(crate) fn record(&self, names: &[(PathBuf, String)]) -> Result<String, String> {
        let mut description = self.description.clone();
        let before = names.iter().find(|(folder, _)| folder.ends_with(&description.previous));
        if let Some((_, name)) = before.filter(|_| !description.previous.is_empty()) {
            description.previous.clone_from(name);
        }
        description.to_text()
    }

    /// Whether a timeline of the archive was begun by this copy.
    pub(crate) fn has_begun(&self, archived: &Archived) -> bool {
        Timeline::parse(&archived.record).is_ok_and(|record| record.began_at == self.began_at)
    }

    fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// Whether a timeline that is new to an archive is of a source that has nothing to do with what the archive has: then two sources
/// have one name. In words, what the archive has. A server is known again by its UUID, and by those in the GTIDs that it has
/// executed; where there are none, as with MariaDB, nothing is said.
pub fn is_foreign(history: &History, server_uuid: &str, executed: &GtidState) -> Option<String> {
    let uuids = |set: &GtidSet| set.iter().map(|(uuid, ..)| uuid).collect::<BTreeSet<Uuid>>();
    let GtidState::Mysql(executed) = executed else { return None };
    let ours = uuids(executed).into_iter().chain(server_uuid.parse().ok()).collect::<BTreeSet<Uuid>>();
    let files = history.timelines.values().filter_map(|archived| archived.files.last());
    let mut theirs: BTreeSet<Uuid> =
        files.filter_map(|file| file.gtids.parse().ok()).flat_map(|set: GtidSet| uuids(&set)).collect();
    if executed.is_empty() || theirs.is_empty() {
        return None;
    }
    let records = history.timelines.values().filter_map(|archived| Timeline::parse(&archived.record).ok());
    theirs.extend(records.filter_map(|record| record.server_uuid.parse::<Uuid>().ok()));
    if !ours.is_disjoint(&theirs) {
        return None;
    }
    Some(theirs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}

/// The other timelines of the copy, none of which a timeline can be as well. A fork on the same server begins with a file that the
/// timeline before it has, too, and only its end is another one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Others {
    /// What the archive calls those that were looked at.
    pub names: Vec<String>,
    /// When they began.
    pub began_at: Vec<String>,
}

impl Others {
    fn have(&self, name: &String, archived: &Archived) -> bool {
        let began = Timeline::parse(&archived.record).map(|record| record.began_at);
        self.names.contains(name) || began.is_ok_and(|began| self.began_at.contains(&began))
    }
}

/// The name that the timeline has in the archive, or is to get: its own, where that is free and comes last there.
///
/// # Errors
/// When a file of the copy, or what the archive has of it, cannot be read.
pub(crate) fn archived_name(
    history: &History,
    segments: &mut Segments<'_>,
    storage: &dyn Storage,
    local: &LocalTimeline,
    others: &Others,
) -> Result<String, MappingError> {
    let same_server = |name: &str| name.split_once('-').is_some_and(|(_, uuid)| uuid == local.server_uuid);
    for (name, archived) in history.timelines.iter().rev().filter(|(name, _)| same_server(name)) {
        if !others.have(name, archived) && is_same(archived, segments, storage, local)? {
            return Ok(name.clone());
        }
    }
    let newest = history.timelines.keys().filter_map(|name| timeline_number(name)).max().unwrap_or(0);
    match timeline_number(local.name()) {
        Some(number) if number > newest => Ok(local.name().to_owned()),
        _ => Ok(format!("{:04}-{}", newest + 1, local.server_uuid)),
    }
}

/// Whether the last piece that both have of a file is the same.
fn ends_alike(segments: &[Segment], file: &dyn ReadFile) -> io::Result<bool> {
    let size = file.size()?;
    let Some(last) = segments.iter().rev().find(|segment| segment.to <= size) else {
        return Ok(true);
    };
    let mut plain = Vec::new();
    read_range(file, last.from, last.to, &mut plain)?;
    Ok(names::sha256(&plain) == last.sha256)
}

fn is_same(
    archived: &Archived,
    segments: &mut Segments<'_>,
    storage: &dyn Storage,
    local: &LocalTimeline,
) -> Result<bool, MappingError> {
    // Of one copy, whatever was purged there since.
    if local.has_begun(archived) {
        return Ok(true);
    }
    // Of another copy. From the newest file on: it is on both most of the time.
    for file in archived.files.iter().rev() {
        if local.files.contains(&file.name) {
            // A file that has only begun here says nothing yet, and the one before it does.
            let path = local.folder.join(&file.name);
            let Some(ours) = head(storage, &path, u64::MAX)? else { continue };
            if ours != file.head {
                return Ok(false);
            }
            let segments = segments(file).map_err(MappingError::Archive)?;
            return Ok(ends_alike(&segments, &*storage.open_read(&path)?)?);
        }
    }
    Ok(false)
}

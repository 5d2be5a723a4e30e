//! Which timeline of the archive a timeline of the copy is.
//!
//! Each copy numbers its timelines by itself, and two copies of one source may have begun at different files. What tells that
//! two timelines are one is a file that both have, made by the server in the same moment: its format description is the same.

use crate::history::{Archived, History};
use crate::local::head;
use log::folder::timeline_number;
use log::storage::Storage;
use log::timeline::Timeline;
use std::io;
use std::path::{Path, PathBuf};

/// A timeline of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTimeline {
    /// Its folder.
    pub folder: PathBuf,
    /// Names of its files, in order.
    pub files: Vec<String>,
    /// `timeline.toml` as the archive has it: without what was purged on this machine.
    pub record: String,
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
    pub fn read(storage: &dyn Storage, folder: &Path, files: &[String]) -> Result<LocalTimeline, String> {
        let mut timeline = Timeline::read(storage, folder).map_err(|error| error.to_string())?;
        timeline.purged.clear();
        Ok(LocalTimeline {
            folder: folder.to_owned(),
            files: files.to_vec(),
            record: timeline.to_text()?,
            server_uuid: timeline.server_uuid,
            began_at: timeline.began_at,
        })
    }

    fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

/// The name that the timeline has in the archive, or is to get: its own, where that is free and comes last there.
///
/// # Errors
/// When a file of the copy cannot be read.
pub fn archived_name(history: &History, storage: &dyn Storage, local: &LocalTimeline) -> io::Result<String> {
    let same_server = |name: &str| name.split_once('-').is_some_and(|(_, uuid)| uuid == local.server_uuid);
    for (name, archived) in history.timelines.iter().rev().filter(|(name, _)| same_server(name)) {
        if is_same(archived, storage, local)? {
            return Ok(name.clone());
        }
    }
    let newest = history.timelines.keys().filter_map(|name| timeline_number(name)).max().unwrap_or(0);
    match timeline_number(local.name()) {
        Some(number) if number > newest => Ok(local.name().to_owned()),
        _ => Ok(format!("{:04}-{}", newest + 1, local.server_uuid)),
    }
}

fn is_same(archived: &Archived, storage: &dyn Storage, local: &LocalTimeline) -> io::Result<bool> {
    // Of one copy, whatever was purged there since.
    if Timeline::parse(&archived.record).is_ok_and(|record| record.began_at == local.began_at) {
        return Ok(true);
    }
    // Of another copy. From the newest file on: it is on both most of the time.
    for file in archived.files.iter().rev() {
        if local.files.contains(&file.name) {
            // A file that has only begun here says nothing yet, and the one before it does.
            let Some(ours) = head(storage, &local.folder.join(&file.name), u64::MAX)? else { continue };
            return Ok(ours == file.head);
        }
    }
    Ok(false)
}

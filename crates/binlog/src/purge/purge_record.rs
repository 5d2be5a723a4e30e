//! The record of a purge in `timeline.toml`, and what follows from it: a file that is recorded as purged is none of the copy's
//! any more, in the folder or not.
//!
//! The record comes first and is durable before a file is removed, so that a crash leaves at worst files that nobody counts and
//! whoever opens the copy next removes. The other way round it would leave a hole that looks like damage.

use super::purged::Purged;
use crate::storage::Storage;
use crate::timeline::TIMELINE_FILE;
use crate::timeline::index::replace_file;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// So many lines are kept; then the two oldest become one. A file that is purged every few minutes for years must not make
/// a description of megabytes, which each reader reads.
const LINES_MAX: usize = 32;

const HEADER: &str = "[[purged]]";

/// The part of `timeline.toml` that a purge writes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    #[serde(default)]
    purged: Vec<Purged>,
}

/// What was purged from the timeline in `folder`, the oldest first; nothing where the description cannot be read, which is told
/// elsewhere.
pub fn read(storage: &dyn Storage, folder: &Path) -> Vec<Purged> {
    let Ok(text) = storage.read_to_string(&folder.join(TIMELINE_FILE)) else { return Vec::new() };
    // Most timelines have none, and are asked often.
    if !text.contains(HEADER) {
        return Vec::new();
    }
    toml::from_str::<Record>(&text).map(|record| record.purged).unwrap_or_default()
}

/// Adds lines, durably. The rest of the file stays as it is, comments too.
///
/// # Errors
/// When the description cannot be read, understood or written; it is then as it was, or has the new lines.
pub(crate) fn add(storage: &dyn Storage, folder: &Path, new: Vec<Purged>) -> io::Result<()> {
    change(storage, folder, |lines| {
        lines.extend(new);
        shorten(lines);
    })
}

/// Notes, durably, that the files of all lines are removed.
///
/// # Errors
/// As [`add`].
pub(crate) fn mark_removed(storage: &dyn Storage, folder: &Path) -> io::Result<()> {
    change(storage, folder, |lines| lines.iter_mut().for_each(|line| line.removed = true))
}

fn change(storage: &dyn Storage, folder: &Path, change: impl FnOnce(&mut Vec<Purged>)) -> io::Result<()> {
    let path = folder.join(TIMELINE_FILE);
    let named =
        |kind, error: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {error}", path.display()));
    let damaged = |error: &dyn std::fmt::Display| named(io::ErrorKind::InvalidData, error);
    let text = storage.read_to_string(&path).map_err(|error| named(error.kind(), &error))?;
    if is_kept_from_within(&text) {
        return Err(damaged(&KEPT_FROM_WITHIN));
    }
    let mut record: Record = toml::from_str(&text).map_err(|error| damaged(&error))?;
    change(&mut record.purged);
    // What was executed up to the end of the newest covers the others, and each set may be long: who opens the copy, and who begins
    // its next file, reads them all.
    if let Some((_, earlier)) = record.purged.split_last_mut() {
        earlier.iter_mut().for_each(|line| line.gtids.clear());
    }
    let head: Vec<&str> = text.lines().take_while(|line| line.trim() != HEADER).collect();
    let lines = toml::to_string(&record).map_err(io::Error::other)?;
    let changed = format!("{}\n\n{lines}", head.join("\n").trim_end());
    if without_record(&text).map_err(|error| damaged(&error))?
        != without_record(&changed).map_err(io::Error::other)?
    {
        return Err(damaged(&format!(
            "something else stands behind the first {HEADER}; move it to the top of the file"
        )));
    }
    replace_file(storage, &path, changed.as_bytes())
}

/// What is wrong where [`is_kept_from_within`].
pub(crate) const KEPT_FROM_WITHIN: &str = "kept_from stands behind [[purged]], so that it is a part of that and says nothing; move it \
                                           to the top of the file";

/// Whether an operator has appended `kept_from` to a description that ends with the record of a purge.
pub(crate) fn is_kept_from_within(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    let lines = table.get("purged").and_then(toml::Value::as_array);
    lines.into_iter().flatten().any(|line| line.get("kept_from").is_some())
}

/// Everything that a purge must leave as it is.
fn without_record(text: &str) -> Result<toml::Table, toml::de::Error> {
    let mut table: toml::Table = text.parse()?;
    table.remove("purged");
    Ok(table)
}

fn shorten(lines: &mut Vec<Purged>) {
    let mut at = 0;
    while lines.len() > LINES_MAX && at + 1 < lines.len() {
        match lines[at].with(&lines[at + 1]) {
            Some(both) => drop(lines.splice(at..at + 2, [both])),
            None => at += 1, // The series was renamed in between.
        }
    }
}

//! Files that an operator moved away, as he wrote into `timeline.toml`.

use super::super::storage::Storage;
use super::super::timeline::TIMELINE_FILE;
use super::report::{Problem, whole};
use crate::purge::purged::Purged;
use codec::BinlogName;
use serde::Deserialize;
use std::path::Path;

/// The one key that binlogd never writes itself: `kept_from = "mysql-bin.000042"`. Everything before that file was moved
/// away on purpose.
#[derive(Deserialize)]
struct Record {
    kept_from: Option<String>,
}

/// The first file that is kept; `None` when none was moved away, or the description cannot be read, which is told elsewhere.
pub fn kept_from(storage: &dyn Storage, folder: &Path) -> Option<String> {
    let text = storage.read_to_string(&folder.join(TIMELINE_FILE)).ok()?;
    toml::from_str::<Record>(&text).ok()?.kept_from
}

/// Takes the names out of the index that were moved away. What is no name moves none.
pub(crate) fn without_moved(listed: &mut Vec<String>, present: &[String], kept_from: &str) {
    let Ok(kept_from) = BinlogName::parse(kept_from) else { return };
    let was_moved = |name: &str| BinlogName::parse(name).is_ok_and(|name| kept_from.is_after(&name));
    listed.retain(|name| present.contains(name) || !was_moved(name));
}

/// Whether files were purged since those before `kept_from` were moved away.
pub(super) fn is_purged_behind(kept_from: &str, purged: &[Purged]) -> bool {
    purged.iter().any(|line| line.covers(kept_from))
}

/// What was purged, as binlogd has recorded it, held against the files: they begin with the one that follows.
pub(super) fn judge_purged(files: &[String], purged: &[Purged]) -> Result<Option<String>, Problem> {
    let Some(last) = purged.last() else { return Ok(None) };
    let count: u64 = purged.iter().map(|line| line.files).sum();
    let through = &last.through;
    let note = format!("{count} files were purged, up to {through} on {} ({})", last.at, last.why);
    let Some(first) = files.first() else { return Ok(Some(note)) };
    match (BinlogName::parse(first), BinlogName::parse(through)) {
        (Ok(first), Ok(through))
            if first.base() == through.base() && through.successor().as_deref() != Some(first.as_str()) =>
        {
            Err(whole(format!(
                "{TIMELINE_FILE} says that the files up to {through} were purged, but {first} is the first file here: those in \
                 between are missing"
            )))
        }
        _ => Ok(Some(note)),
    }
}

/// What the record says, held against the files: what is kept must be there.
pub(super) fn judge(files: &[String], kept_from: &str) -> Result<String, Problem> {
    let from = BinlogName::parse(kept_from)
        .map_err(|error| whole(format!("{TIMELINE_FILE} says a wrong name (kept_from): {error}")))?;
    let first = files.first();
    match first.map(|first| BinlogName::parse(first)) {
        Some(Ok(first)) if first == from || from.is_after(&first) => {
            Ok(format!("the files before {from} were moved away, as {TIMELINE_FILE} says (kept_from)"))
        }
        _ => Err(whole(format!(
            "{TIMELINE_FILE} says that the files from {from} on are kept (kept_from), but {} is the first file here",
            first.map_or("none", String::as_str)
        ))),
    }
}

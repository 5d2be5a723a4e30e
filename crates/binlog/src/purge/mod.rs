//! Purging: whole sealed files, the oldest first, with a record of them.
//!
//! # What may go
//!
//! All files of all timelines of a source stand in one order, the oldest first, the live one last. A purge takes files from
//! the front of that order and stops at the first one that nobody wants gone or that somebody [needs](needs::Need), so there is
//! never a hole in a history. Of each history the copy itself needs the newest two files (a live file without a transaction says
//! nothing of the history; the one before it does), and what forks took from the source as long as that is not handed back or
//! settled. Of the present one, also the end of the timeline before while the newest one has no more than one file.
//!
//! Older histories are those before a reset, and those of strangers. Nobody reads across from one history to another, so a purge
//! passes over their ends and goes on behind them; who wants these gone moves the timeline's folder away.
//!
//! # The order of steps
//!
//! ```text
//! timeline.toml: [[purged]] lines ─► binlog.index ─► the files, the oldest first ─► the folder's sync ─► removed = true
//! ```
//!
//! From the first step on the files are none of the copy's, wherever a crash comes: [`timeline_files`]
//! leaves them out, and opening the copy, or the next purge, removes them ([`unfinished`]). Once that is done the record says so,
//! and no file of such a name is removed again: an operator has put it there. The index of the timeline that is
//! written belongs to the thread that writes it, which leaves out what is recorded as purged when it begins its next file;
//! nobody waits for anybody.
//!
//! | file | what it decides |
//! |---|---|
//! | `purge/order.rs` | all files of a source in one order, and when each was sealed |
//! | `purge/plan.rs` | which files go, and why the others stay |
//! | `purge/needs.rs` | what the copy itself needs |
//! | `purge/unfinished.rs` | files of a purge that was interrupted |
//! | `purge/lock.rs` | who may purge: one at a time |
//! | `purge/reserve.rs` | space for the record on a full disk |

pub mod lock;
pub mod needs;
pub mod order;
pub mod plan;
pub mod purge_record;
pub mod purged;
pub mod reserve;
pub mod unfinished;

use super::storage::Storage;
use crate::forks::transactions::stated_before;
use crate::purge::purged::Purged;
use crate::timeline::files::timeline_files;
use crate::timeline::index;
use crate::timeline::offline::gtids_until;
use codec::BinlogName;
use jiff::Timestamp;
use order::LogFile;
use std::io;
use std::path::Path;

/// Who may write the indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexes {
    /// The caller holds the lock of the source's folder: nobody writes to it.
    Ours,
    /// Another thread of this process receives: the index of the timeline that is written is left to it.
    OfOlderTimelines,
}

/// Purges `files`, the oldest of the source in their order as a [plan](plan::Plan) gives them, and records who wanted that, and
/// when. The caller holds the [`PurgeLock`](lock::PurgeLock) of the source since before it made the plan: the record is read,
/// changed and written as a whole.
///
/// # Errors
/// When a step fails. What was recorded by then is purged, and its files are removed by the next purge or start.
pub fn carry_out(
    storage: &dyn Storage,
    files: &[&LogFile],
    why: &str,
    at: Timestamp,
    indexes: Indexes,
) -> io::Result<()> {
    record(storage, files, why, at, indexes)?;
    let source = files.first().and_then(|file| file.folder.parent());
    source.map_or(Ok(()), |source| unfinished::finish(storage, source).map(drop))
}

/// The first half of [`carry_out`]: the record, from which on the files are none of the copy's. [`unfinished::finish`] is the other.
///
/// # Errors
/// As [`carry_out`].
pub fn record(
    storage: &dyn Storage,
    files: &[&LogFile],
    why: &str,
    at: Timestamp,
    indexes: Indexes,
) -> io::Result<()> {
    for of_timeline in files.chunk_by(|a, b| a.folder == b.folder) {
        let Some(first) = of_timeline.first() else { continue };
        let folder = &first.folder;
        let lines = lines(storage, folder, of_timeline, why, at)?;
        purge_record::add(storage, folder, lines)?;
        if indexes == Indexes::Ours || !first.is_of_present {
            index::write_beside(storage, folder, &timeline_files(storage, folder)?)?;
        }
    }
    Ok(())
}

/// The record of files of one timeline: a line for each series of names.
fn lines(
    storage: &dyn Storage,
    folder: &Path,
    files: &[&LogFile],
    why: &str,
    at: Timestamp,
) -> io::Result<Vec<Purged>> {
    let names = timeline_files(storage, folder)?;
    let base = |file: &LogFile| BinlogName::parse(&file.name).map(|name| name.base().to_owned()).ok();
    let is_first_ever = purge_record::read(storage, folder).is_empty();
    let mut lines: Vec<Purged> = Vec::new();
    for of_series in files.chunk_by(|a, b| base(a) == base(b)) {
        let (Some(first), Some(last)) = (of_series.first(), of_series.last()) else { continue };
        let gtid_before = match is_first_ever && lines.is_empty() {
            true => stated_before(storage, &folder.join(&first.name))?,
            false => None,
        };
        let gtids = gtids_at_end(storage, folder, &names, &last.name)?;
        lines.push(Purged {
            from: first.name.clone(),
            through: last.name.clone(),
            files: of_series.len() as u64,
            bytes: of_series.iter().map(|file| file.bytes).sum(),
            gtid_before: gtid_before.map(|set| set.to_record()),
            gtids: gtids.map(|set| set.to_record()).unwrap_or_default(),
            at: at.to_string(),
            why: why.to_owned(),
            removed: false,
        });
    }
    Ok(lines)
}

/// GTIDs executed up to the end of a file: as the next one states them, or as its own transactions tell.
fn gtids_at_end(
    storage: &dyn Storage,
    folder: &Path,
    names: &[String],
    name: &str,
) -> io::Result<Option<codec::gtid::GtidState>> {
    let Some(at) = names.iter().position(|known| known == name) else {
        let what = format!("{} is not there any more", folder.join(name).display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    };
    if let Some(next) = names.get(at + 1)
        && let Some(stated) = stated_before(storage, &folder.join(next))?
    {
        return Ok(Some(stated));
    }
    gtids_until(storage, folder, &names[..=at], u64::MAX)
}

#[cfg(test)]
mod tests;

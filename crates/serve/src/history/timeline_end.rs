//! The end of a timeline that is written no more, and what its files have.

use super::head::Head;
use super::look::{Look, NoPlace};
use crate::history::FileId;
use binlog::forks::Losses;
use binlog::scan::scan_file;
use binlog::timeline::offline::{ResumePoint, resume_point};
use codec::Position;
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtidState};

/// The end of the timeline of a file, and what was executed there. Reads the timeline's last file.
pub(crate) fn end_of_timeline(
    look: &Look<'_>,
    file: FileId,
) -> Result<Option<(Position, GtidState)>, NoPlace> {
    let folder = look.history.folder(file);
    let point = resume_point(look.storage, folder).map_err(|error| look.failed(file, error))?;
    Ok(point.map(|ResumePoint { position, gtids }| (position, gtids)))
}

/// What was executed when the last file of a timeline that is history was at its end.
pub(crate) fn executed_at_end(look: &Look<'_>, last: FileId) -> Result<GtidState, NoPlace> {
    if let Some(path) = look.history.superseded_after(last) {
        let head = Head::read(look.storage, &path, u64::MAX).map_err(|error| look.failed(last, error))?;
        if let Some(before) = head.gtids_before {
            return Ok(before);
        }
    }
    let empty = GtidState::empty(look.kind());
    Ok(end_of_timeline(look, last)?.map_or(empty, |(_, gtids)| gtids))
}

/// Where a fork took a timeline's end from the source of a later one, which is MariaDB.
#[derive(Debug)]
pub(crate) struct Parting {
    /// The file with the first transaction that was taken, or that may have been.
    pub(crate) file: FileId,
    /// Where that one begins.
    pub(crate) offset: u64,
    /// What was executed before it.
    pub(crate) executed: MariadbGtidState,
}

/// Where the timeline of a file is history no more; `None` where all of its files are. Files before that one may have been purged
/// since the list was read, for a reader keeps those from its own on: they are passed over, as by a list that is read anew.
pub(crate) fn parting(look: &Look<'_>, of: FileId) -> Result<Option<Parting>, NoPlace> {
    if look.history.lost_after(of, ServerKind::MariaDb).is_empty() {
        return Ok(None);
    }
    let later = look.history.held_after(of);
    let losses = Losses::of(look.storage, look.folder, &later, ServerKind::MariaDb)
        .map_err(|error| look.failed_folder(error))?;
    let Some(losses) = losses else { return Ok(None) };
    for file in look.history.of_timeline(of) {
        let is_there = look.storage.exists(&look.history.path(file));
        if file < of && !is_there.map_err(|error| look.failed(file, error))? {
            continue;
        }
        let after = match look.history.next_of_timeline(file) {
            Some(next) => look.gtids_before(next)?,
            None => Some(executed_at_end(look, file)?),
        };
        if !losses.may_hold_lost(look.gtids_before(file)?.as_ref(), after.as_ref()) {
            continue;
        }
        let head = look.head(file)?;
        let found = head.find(look.end_of(file)?, |id| losses.took(id));
        let Some(offset) = found.map_err(|error| look.failed(file, error))? else { continue };
        let scanned = scan_file(&*head.file, offset, |_| {}).map_err(|error| look.failed(file, error))?;
        let executed = match scanned.gtids {
            GtidState::Mariadb(state) => state,
            GtidState::Mysql(_) => MariadbGtidState::new(),
        };
        return Ok(Some(Parting { file, offset, executed }));
    }
    Ok(None)
}

/// Whether a file has transactions that a fork took from the source, or comes behind such. Where that cannot be told, it does.
pub(crate) fn holds_lost(look: &Look<'_>, file: FileId) -> Result<bool, NoPlace> {
    let lost = look.history.lost_after(file, look.kind());
    if lost.is_empty() {
        return Ok(false);
    }
    let GtidState::Mysql(lost) = lost else {
        return Ok(parting(look, file)?.is_some_and(|parting| file >= parting.file));
    };
    let after = match look.history.next_of_timeline(file) {
        Some(next) => look.gtids_before(next)?,
        None => Some(executed_at_end(look, file)?),
    };
    match (look.gtids_before(file)?, after) {
        (Some(GtidState::Mysql(before)), Some(GtidState::Mysql(after))) => {
            Ok(!after.subtract(&before).intersect(&lost).is_empty())
        }
        _ => Ok(true),
    }
}

/// What the files of a timeline and of those after it say that was executed, by the time of its end.
pub(crate) fn state_at_end(look: &Look<'_>, file: FileId) -> Result<MariadbGtidState, NoPlace> {
    match executed_at_end(look, look.history.last_of_timeline(file))? {
        GtidState::Mariadb(state) => Ok(state),
        GtidState::Mysql(_) => Ok(MariadbGtidState::new()),
    }
}

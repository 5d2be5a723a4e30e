//! The end of a timeline that is written no more, and what its files have.

use super::head::Head;
use super::history::FileId;
use super::look::{Look, NoPlace};
use codec::Position;
use codec::gtid::{GtidState, MariadbGtidState};
use log::offline::{ResumePoint, resume_point};

/// The end of the timeline of a file, and what was executed there. Reads the timeline's last file.
pub(super) fn end_of_timeline(
    look: &Look<'_>,
    file: FileId,
) -> Result<Option<(Position, GtidState)>, NoPlace> {
    let folder = look.history.folder(file);
    let point = resume_point(look.storage, folder).map_err(|error| look.failed(file, error))?;
    Ok(point.map(|ResumePoint { position, gtids }| (position, gtids)))
}

/// What was executed when the last file of a timeline that is history was at its end.
pub(super) fn executed_at_end(look: &Look<'_>, last: FileId) -> Result<GtidState, NoPlace> {
    if let Some(path) = look.history.superseded_after(last) {
        let head = Head::read(look.storage, &path, u64::MAX).map_err(|error| look.failed(last, error))?;
        if let Some(before) = head.gtids_before {
            return Ok(before);
        }
    }
    let empty = GtidState::empty(look.kind());
    Ok(end_of_timeline(look, last)?.map_or(empty, |(_, gtids)| gtids))
}

/// Whether a file has transactions that a fork took from the source. Where that cannot be told, it does.
pub(super) fn holds_lost(look: &Look<'_>, file: FileId) -> Result<bool, NoPlace> {
    let lost = look.history.lost_after(file, look.kind());
    if lost.is_empty() {
        return Ok(false);
    }
    let GtidState::Mysql(lost) = lost else { return Ok(true) };
    let after = match look.history.next_of_timeline(file) {
        Some(next) => look.head(next)?.gtids_before,
        None => Some(executed_at_end(look, file)?),
    };
    match (look.head(file)?.gtids_before, after) {
        (Some(GtidState::Mysql(before)), Some(GtidState::Mysql(after))) => {
            Ok(!after.subtract(&before).intersect(&lost).is_empty())
        }
        _ => Ok(true),
    }
}

/// What the files of a timeline and of those after it say that was executed, by the time of its end.
pub(super) fn state_at_end(look: &Look<'_>, file: FileId) -> Result<MariadbGtidState, NoPlace> {
    match executed_at_end(look, look.history.last_of_timeline(file))? {
        GtidState::Mariadb(state) => Ok(state),
        GtidState::Mysql(_) => Ok(MariadbGtidState::new()),
    }
}

//! Which backup leads to a point: by the catalogue where that knows, and in the end by a walk of the log itself.

use super::no_server::{Hear, NoServer};
use archive::chain::backup::BackupPoint;
use archive::chain::history::ArchivedBackup;
use archive::upkeep::catalogue;
use archive::upkeep::catalogue::{Listed, Log, Reach};
use codec::gtid::{GtidState, MariadbGtidState};
use config::PointPlace;
use repair::history::{Copied, Until};
use repair::restore::{Course, NoCourse, NoRestore, ahead};
use std::sync::Arc;

/// A backup, and the log between it and the point.
#[derive(Debug)]
pub struct Chosen {
    /// The backup.
    pub backup: Arc<ArchivedBackup>,
    /// What is applied to it.
    pub course: Course,
}

/// The newest of these backups that leads to the point; with `id` that one. Where the log is not the archive's (`is_archived`), what the
/// archive has of it says nothing.
///
/// # Errors
/// In words, why none does.
pub fn choose(
    listed: &[Listed],
    id: Option<&str>,
    (copied, is_archived): (&Copied, bool),
    until: &Until,
    hear: &mut Hear<'_>,
) -> Result<Chosen, NoServer> {
    let refused = |text: String| Err(NoServer::Refused(text));
    if let Some(id) = id {
        let Some(listed) = listed.iter().find(|listed| listed.backup.record.id == id) else {
            return refused(format!("the archive has no backup {id}: binlogd backups lists what there is"));
        };
        let course = leads(listed, (copied, is_archived), until, hear)?;
        return Ok(Chosen { backup: listed.backup.clone(), course });
    }
    // Cheap where the catalogue knows the order; a statement is found by a walk alone.
    let mut candidates: Vec<&Listed> = listed.iter().rev().collect();
    if let Some(reach) = reach(until).filter(|_| is_archived) {
        let newest = catalogue::choose(listed, &reach).map_err(NoServer::Refused)?;
        let at = candidates.iter().position(|one| std::ptr::eq(*one, newest)).unwrap_or(0);
        candidates.drain(..at);
    }
    let mut why_not = Vec::new();
    for listed in candidates {
        match leads(listed, (copied, is_archived), until, hear) {
            Ok(course) => return Ok(Chosen { backup: listed.backup.clone(), course }),
            // An older one may still lead there. Whatever else is wrong is wrong for an older one too.
            Err(NoServer::Restore(NoRestore::Course(why))) if matches!(*why, NoCourse::Beyond { .. }) => {
                why_not.push(format!("{}: it is of later than the point", listed.backup.record.id));
            }
            Err(NoServer::Refused(why)) => why_not.push(format!("{}: {why}", listed.backup.record.id)),
            Err(error) => return Err(error),
        }
    }
    if why_not.is_empty() {
        return refused("the archive has no backup of this source: binlogd backup makes one".to_owned());
    }
    refused(format!("no backup leads there. {}", why_not.join(". ")))
}

/// The way of a backup to the point, by the log.
fn leads(
    listed: &Listed,
    (copied, is_archived): (&Copied, bool),
    until: &Until,
    hear: &mut Hear<'_>,
) -> Result<Course, NoServer> {
    let record = &listed.backup.record;
    if let (Log::Lacking(why), true) = (&listed.log, is_archived) {
        return Err(NoServer::Refused(why.clone()));
    }
    let at = backup_at(&record.point);
    match ahead(copied, &at, true, until, hear) {
        // Of a server without GTIDs. One with GTIDs that had executed nothing tells a place in its log alone, too.
        Err(NoRestore::Backup(_)) if record.point.gtids.is_empty() => {
            Ok(ahead(copied, &at, false, until, hear)?)
        }
        Err(NoRestore::Course(why))
            if record.point.gtids.is_empty() && matches!(*why, NoCourse::Anonymous { .. }) =>
        {
            Ok(ahead(copied, &at, false, until, hear)?)
        }
        found => Ok(found?),
    }
}

/// A backup's point as it is given to a restore.
pub(crate) fn backup_at(point: &BackupPoint) -> String {
    match &*point.gtids {
        "" => format!("{}:{}", point.file, point.position),
        gtids => gtids.to_owned(),
    }
}

/// The point in the catalogue's words; `None` where a walk alone finds it.
pub(crate) fn reach(until: &Until) -> Option<Reach> {
    let point = match until {
        Until::End => return Some(Reach::End),
        Until::BeforeStatement(_) | Until::Executed(_) => return None,
        Until::Before(point) | Until::After(point) => point,
    };
    Some(match &point.place {
        PointPlace::Time(micros) => Reach::Time(*micros),
        PointPlace::Position(position) => Reach::Position(position.clone()),
        PointPlace::Gtids(set) => Reach::Gtids(GtidState::Mysql(set.clone())),
        PointPlace::Mariadb(list) => {
            let mut state = MariadbGtidState::new();
            list.iter().for_each(|id| state.insert(*id));
            Reach::Gtids(GtidState::Mariadb(state))
        }
    })
}

//! What a backup needs to get to a point, before any server has it.

use super::backup::{BackupAt, told};
use super::begin::Begin;
use super::course::Course;
use super::no_restore::NoRestore;
use crate::hear::{Event, Hear};
use crate::history::{Copied, Until};
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtidState};
use source::identify::{SourceIdentity, SourceSemiSync};

/// What is between a backup and the point, where the server that it will be in goes by GTIDs or, without `has_gtids`, by positions.
/// `backup_at` is written as for [`super::Request::backup_at`].
///
/// # Errors
/// Why there is no way: [`super::NoCourse::Beyond`] where the backup is of later than the point.
pub fn ahead(
    copied: &Copied,
    backup_at: &str,
    has_gtids: bool,
    until: &Until,
    hear: &mut Hear<'_>,
) -> Result<Course, NoRestore> {
    let backup = BackupAt::parse(backup_at, copied.kind).map_err(NoRestore::BackupAt)?;
    let mut walked = |bytes, of| hear(Event::Walked { bytes, of });
    if !has_gtids {
        let at = backup.position(copied)?;
        return Ok(Course::find(copied, Begin::Position(&at), until, &[], &mut walked)?);
    }
    let empty = server_of(copied.kind);
    let identity = told(&empty, &backup.gtids(copied)?)?.unwrap_or(empty);
    Ok(Course::find(copied, Begin::Gtids(&identity), until, &[], &mut walked)?)
}

/// A server that has executed nothing.
fn server_of(kind: ServerKind) -> SourceIdentity {
    SourceIdentity {
        version: String::new(),
        kind,
        server_id: 0,
        uuid: String::new(),
        has_gtids: true,
        executed: GtidState::empty(kind),
        applied: MariadbGtidState::new(),
        purged: GtidState::empty(kind),
        semi_sync: SourceSemiSync::Absent,
        is_read_only: false,
        galera: None,
        knows_checksums: true,
    }
}

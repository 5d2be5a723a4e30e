//! The backup from which a table is brought to a point.

use super::followed::Followed;
use super::scan::Scan;
use crate::new_server::choose::reach;
use archive::chain::backup::{BackupRecord, Stream};
use archive::upkeep::catalogue::{Listed, Reach, choose};
use codec::gtid::{GtidState, MariadbGtidState};
use codec::{Position, ServerKind};
use repair::history::{Copied, Until};
use repair::restore::{Begin, Course, NoCourse};
use source::identify::{SourceIdentity, SourceSemiSync};

/// The newest dump that leads to the point, and the log behind it.
///
/// # Errors
/// In words: why no dump leads there, or what in the log cannot be followed.
pub(super) fn chosen<'a>(
    listed: &'a [Listed],
    copied: &Copied,
    until: &Until,
    followed: &Followed,
    tell: &dyn Fn(&str),
) -> Result<(&'a Listed, Followed, Scan, Course), String> {
    let dumps: Vec<Listed> =
        listed.iter().filter(|one| one.backup.record.stream == Stream::Sql).cloned().collect();
    let reach = reach(until).unwrap_or(Reach::End);
    let mut left = dumps.len();
    loop {
        let found = choose(&dumps[..left], &reach).map_err(|why| match choose(listed, &reach) {
            Ok(other) => format!(
                "{why}. Of backup {} by {} nobody can take one table: bring it back on a server of its own (binlogd restore --new), and dump \
                 the table there",
                other.backup.record.id, other.backup.record.tool
            ),
            Err(_) => why,
        })?;
        let record = &found.backup.record;
        tell(&format!("backup {} by {}: the log from {} on is walked", record.id, record.tool, record.point));
        let mut all = followed.clone();
        match scanned(copied, record, until, &mut all)? {
            Ok((scan, course)) => {
                let found = listed.iter().find(|one| one.backup.record.id == record.id);
                let found = found.ok_or("the backup is not listed any more")?;
                return Ok((found, all, scan, course));
            }
            // A statement that comes before this backup may come behind an older one.
            Err(NoCourse::Beyond { .. } | NoCourse::NotReached { .. })
                if matches!(until, Until::BeforeStatement(_)) && left > 1 =>
            {
                left = dumps.iter().position(|one| one.backup.record.id == record.id).unwrap_or(0);
                if left == 0 {
                    return Err(format!("no backup is of before the point: {until}"));
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn scanned(
    copied: &Copied,
    record: &BackupRecord,
    until: &Until,
    followed: &mut Followed,
) -> Result<Result<(Scan, Course), NoCourse>, String> {
    let before = followed.clone();
    match begin(record, false, |begin| Scan::make(copied, begin, until, followed))? {
        // A server with GTIDs that had executed nothing tells a place in its log alone.
        Err(NoCourse::HasGtid { .. }) => {
            *followed = before;
            begin(record, true, |begin| Scan::make(copied, begin, until, followed))
        }
        found => Ok(found),
    }
}

/// A server that has what the backup holds, and nothing else.
fn executed(record: &BackupRecord) -> Result<SourceIdentity, String> {
    let kind = record.server_kind;
    let gtids = GtidState::parse(kind, &record.point.gtids).map_err(|error| error.to_string())?;
    let applied = match &gtids {
        GtidState::Mysql(_) => MariadbGtidState::new(),
        GtidState::Mariadb(state) => state.clone(),
    };
    Ok(SourceIdentity {
        version: record.server_version.clone(),
        kind,
        server_id: 0,
        uuid: record.server_uuid.clone(),
        has_gtids: true,
        executed: gtids,
        applied,
        purged: GtidState::empty(kind),
        semi_sync: SourceSemiSync::Absent,
        is_read_only: false,
        galera: None,
        knows_checksums: true,
    })
}

/// Whether a server is older than the one that was backed up.
pub(super) fn is_older(target: &str, backup: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> {
        version.split(|one: char| !one.is_ascii_digit()).map_while(|part| part.parse().ok()).take(3).collect()
    };
    numbers(target) < numbers(backup)
}

/// `8.0.31` of one kind, for people.
pub(super) fn shown(kind: ServerKind, version: &str) -> String {
    if version.to_lowercase().contains("mariadb") { version.to_owned() } else { format!("{kind} {version}") }
}

/// Where the log behind a backup begins, for as long as `walk` takes. With `by_gtids` a backup that tells none has executed nothing.
pub(super) fn begin<T>(
    record: &BackupRecord,
    by_gtids: bool,
    walk: impl FnOnce(Begin<'_>) -> Result<T, String>,
) -> Result<T, String> {
    if record.point.gtids.is_empty() && !by_gtids {
        let position = Position::new(record.point.file.clone(), record.point.position);
        return walk(Begin::Position(&position));
    }
    walk(Begin::Gtids(&executed(record)?))
}

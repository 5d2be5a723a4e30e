//! The `[drill]` table: when the way back is tried, and with what.

use super::super::document::{Document, Item};
use super::super::entry::{FromItem, Wrong};
use super::super::error::Findings;
use super::super::key::ReloadEffect::Restart;
use super::super::key::{DAY, Key, Kind, MINUTE, Section, implied, unset};
use super::super::table::{table, words};
use super::archive::ArchiveConfig;
use jiff::civil;
use std::path::PathBuf;
use std::time::Duration;

table! {
    /// A drill each night: for each archived source a backup and the log behind it are brought back in a
    /// throw-away server, and compared. Without this table nothing is drilled.
    struct DrillConfig, DrillKeys for Section::Drill, Restart;

    /// When it begins each day, in local time; one source after the other.
    at: civil::Time = unset("\"03:30\"");
    /// Program of the throw-away server, of the kind and version of the sources.
    server: PathBuf = unset("\"/usr/sbin/mysqld\"");
    /// Folder in which the data are while it lasts; drill in data_dir where it is not given. It needs room for
    /// the data of a source.
    work: Option<PathBuf> = unset("\"/var/lib/binlogd/drill\"");
    /// From which backup.
    backup: DrillBackup = implied("\"newest\"", "\"random\"");
    /// Most memory of the throw-away server; 2GiB where it is not given.
    memory: u64 = implied("\"2GiB\"", "\"4GiB\"");
    /// Longest time for one source, 4h where it is not given. A drill that takes longer is ended, and has
    /// failed.
    time_limit: Duration = implied("\"4h\"", "\"8h\"").lasting(MINUTE, DAY);
}

words! {
    /// From which backup a drill begins.
    enum DrillBackup {
        /// the newest that has its log
        Newest = "newest",
        /// any that has its log, another one each time
        Random = "random",
    }
}

/// A time of day, as `03:30` or `03:30:15`.
impl FromItem for civil::Time {
    const KIND: Kind = Kind::TIME_OF_DAY;

    fn read(_: &Key, item: &Item) -> Result<civil::Time, Wrong> {
        let text = item.text().ok_or(Wrong::Refused)?;
        let parsed =
            civil::Time::strptime("%H:%M", text).or_else(|_| civil::Time::strptime("%H:%M:%S", text));
        parsed.map_err(|_| Wrong::Refused)
    }
}

/// Reads the table; `Some(None)` where there is none. `archive` is `None` where that is wrong already.
pub(super) fn build(
    document: &Document,
    archive: Option<&Option<ArchiveConfig>>,
    findings: &mut Findings,
) -> Option<Option<DrillConfig>> {
    let table = document.one(Section::Drill);
    if table.items.is_empty() {
        return Some(None);
    }
    if let Some(None) = archive {
        let text = "[drill] means nothing without url in [archive]: backups are in the archive";
        findings.error(&table.place, text);
    }
    DrillKeys::read(&table, findings).whole().map(Some)
}

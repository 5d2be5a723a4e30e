//! The `[backup]` table: how long backups in the archive stay.

use super::super::document::Document;
use super::super::error::Findings;
use super::super::key::ReloadEffect::Restart;
use super::super::key::{Section, unset};
use super::super::table::table;
use super::archive::ArchiveConfig;
use super::source::SourceKeys;
use archive::upkeep::keep::Keep;

table! {
    /// Backups of the sources in the archive: see binlogd backup.
    #[derive(Default)]
    struct BackupConfig, BackupKeys for Section::Backup, Restart;

    /// Of the backups whose log is whole, the newest of each of so many days, weeks, months and years (d, w, m,
    /// y; UTC) that have one stay. binlogd deletes the others, and the log before the oldest that stays; never
    /// what a backup needs that stays. Without it all backups stay, and each keeps the log behind it. With it the
    /// credentials of the archive need the right to delete.
    keep: Option<Keep> = unset("\"7d 4w 12m\"").flag("backup-keep");
}

/// Reads the table. `keep` means nothing where nothing is archived; `archive` is `None` where that is wrong already.
pub(super) fn build(
    document: &Document,
    archive: Option<&Option<ArchiveConfig>>,
    sources: &[SourceKeys],
    findings: &mut Findings,
) -> Option<BackupConfig> {
    let keys = BackupKeys::read(&document.one(Section::Backup), findings);
    if keys.keep.given.is_some()
        && let Some(archive) = archive
        && let Some(wrong) = contradicts(archive.as_ref(), sources)
    {
        keys.keep.relation(wrong, findings);
    }
    keys.whole()
}

fn contradicts(archive: Option<&ArchiveConfig>, sources: &[SourceKeys]) -> Option<&'static str> {
    let Some(archive) = archive else {
        return Some("keep in [backup] means nothing without url in [archive]: backups are in the archive");
    };
    if sources.iter().all(|source| source.archive.value == Some(false)) {
        return Some("keep in [backup] means nothing where every [[source]] has archive = false");
    }
    archive.single_writer.then_some(
        "keep in [backup] and single_writer = true in [archive] exclude each other: who keeps the archive up and who deletes from it are \
         two writers. Leave keep out, and run binlogd prune --keep-backups while binlogd is stopped",
    )
}

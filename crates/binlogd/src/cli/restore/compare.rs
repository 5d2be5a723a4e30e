//! Whether the target was written to after its backup was restored.

use super::super::opened_history::{OpenedHistory, text};
use super::super::rescue_guard::{Compare, Guard};
use binlog::storage::Storage;
use binlog::timeline::held::HeldGtids;
use repair::history::Copied;
use repair::rescue::Compared;
use repair::restore::Target;
use wire::ConnectOptions;

/// What is done where the target has something else under a GTID of the source.
const WRITTEN_TO: &str = "Nothing was applied. The server was written to after its backup was restored, and gave the source's GTIDs, \
                          because it has the source's UUID, or on MariaDB the server_id. Restore the backup again, remove its auto.cnf, and \
                          let nobody write to it. Where that was only the load of a dump, RESET BINARY LOGS AND GTIDS (MariaDB, and \
                          MySQL before 8.4: RESET MASTER) forgets it; then tell it what it has, by --backup-at if it does not know. Where it is only what an earlier restore was told to pass over (--skip), say --compare none";

/// Finds a GTID under which something else stands on the target, as happens to a physical backup that was written to: it has the
/// source's UUID. Of an archive only the files at the end of what the target has are read for that.
///
/// # Errors
/// With both versions.
pub(super) fn compare(
    from: &OpenedHistory,
    target: &Target,
    host: &str,
    options: &ConnectOptions,
    compare: Compare,
) -> Result<(), String> {
    if target.identity.executed.is_empty() {
        return Ok(());
    }
    let Copied { folder, kind, storage, .. } = &from.copied;
    let source: (&dyn Storage, _) = (&**storage, folder.as_path());
    let Some(held) = HeldGtids::read(source.0, folder, *kind).map_err(text)? else { return Ok(()) };
    let guard = Guard { options, host: host.to_owned(), compare, allow_writers: true, quiet: true };
    guard.compare_before(source, &held, &target.identity, (false, WRITTEN_TO), &mut Compared::default())
}

//! The `[retention]` table: when old files are deleted.

use super::super::key::ReloadEffect::AtOnce;
use super::super::key::{MINUTE, Section, TEN_YEARS, default, ms, unset};
use super::super::table::table;
use std::time::Duration;

table! {
    /// When old files are deleted, of each source. Without a rule nothing is ever deleted. What somebody
    /// still needs stays whatever the rules say: binlogd purge --dry-run tells.
    #[derive(Copy, Default)]
    struct RetentionConfig, RetentionKeys for Section::Retention, AtOnce;

    /// Delete files that the source sealed longer ago than this: when, its own clock says; how long ago, that
    /// of this machine.
    max_age: Option<Duration> = unset("\"30d\"").flag("retention-max-age").lasting(MINUTE, TEN_YEARS);
    /// Delete the oldest file as long as the files of the source are larger than this together.
    max_bytes: Option<u64> = unset("\"500GiB\"").flag("retention-max-bytes");
    /// Delete the oldest file as long as the source has more files than this.
    max_files: Option<u32> = unset("1000").flag("retention-max-files").range(2, 10_000_000);
    /// A slot whose reader has been away longer than this keeps nothing: a reader that nobody remembers must
    /// not fill the disk. Only time in which binlogd serves counts.
    slot_max_age: Duration = default("\"7d\"").flag("retention-slot-max-age").lasting(MINUTE, TEN_YEARS);
    /// A slot whose reader is behind by more than this keeps nothing.
    slot_max_bytes: Option<u64> = unset("\"100GiB\"").flag("retention-slot-max-bytes");
    /// A slot keeps what its reader was sent within this time before its place too, and 16 MiB: what was sent
    /// may be lost on the way, and a replica with relay_log_recovery asks again, after a crash, for what it
    /// had not applied. Give more than your replicas lag. 0s keeps the file before the place and no more.
    slot_margin: Duration = default("\"1h\"").flag("retention-slot-margin").lasting(ms(0), TEN_YEARS);
}

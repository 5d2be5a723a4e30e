//! The command line of `binlogd row`.

use super::super::args::past::PastArgs;
use clap::Args;

/// The arguments of `binlogd row`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Nothing is restored: the row is what the last change before the point left, or what the first one behind it found. Blocks of the log \
without a change of the table are passed over by the search indexes. A point is a time (local where it names no zone), a GTID, FILE:POSITION \
or a statement; 'before', which is meant where nothing is said, leaves its transaction out, 'after' takes it in.

The key is that of the primary key at the point: --key 42, or a column and its value for each, as --key region=eu --key id=42. Names of columns \
stand in the log with binlog_row_metadata = FULL; otherwise --schema asks a server, or columns are named by their numbers, as --key @1=42.

  binlogd row /var/lib/binlogd shop.orders --key 42 --at '2026-03-01 15:09'
  binlogd row /var/lib/binlogd shop.orders --key 42 --at 'before DROP TABLE shop.orders'
  binlogd row s3://bucket/binlogs shop.orders --key 42 --history --limit 10

Exit codes: 0 the log tells, 1 the log does not tell, or there is a doubt, 2 the command line is wrong.")]
pub(crate) struct RowArgs {
    #[command(flatten)]
    pub(super) past: PastArgs,
    /// The row's primary key: one value, or COLUMN=VALUE for each column
    #[arg(long, value_name = "VALUE", required = true)]
    pub(super) key: Vec<String>,
    /// List what became of it, the newest first, up to the point
    #[arg(long)]
    pub(super) history: bool,
    /// With --history: so many changes at most, and all of the last one's transaction; 0 for all
    #[arg(long, value_name = "N", default_value_t = 100, requires = "history")]
    pub(super) limit: u64,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

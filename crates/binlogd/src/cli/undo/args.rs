//! The command line of `binlogd undo`.

use super::super::args::search::SearchArgs;
use super::super::args::server::ServerFlags;
use super::super::args::store::StoreArgs;
use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use std::path::PathBuf;
use wire::Secret;

const FIND_HINT: &str = "write the options of binlogd find by themselves, as: binlogd undo DATA_DIR --table shop.orders --kind delete";

/// The arguments of `binlogd undo`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
What is taken back is asked for as with binlogd find: all transactions that are found, whole, the last first. Look at them with binlogd \
show. The script is one transaction: each statement names the whole row as it was left, and where there is not exactly one such row the \
script stops and nothing is changed. With --into binlogd runs it there, after a question, and looks first, without a lock, whether each row \
is as it was left: --plan only looks, --leave-out-changed takes back the others.

Refused are definitions (DDL), statements in the place of rows, rows that the log has not in full (binlog_row_image other than FULL, \
partial JSON), rows behind which a statement may have changed the columns of their table, GTIDs that the copy does not have, and, where a \
server is asked, tables with triggers, without transactions, and with foreign keys whose work does not stand in the log or would be done anew.

  binlogd undo /var/lib/binlogd --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 > undo.sql
  binlogd undo /var/lib/binlogd --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --into mysql://root@db1

Exit codes: 0 the script was printed, or applied, or --plan found every row as it was left, 1 a problem, or it is refused, 2 the command \
line is wrong.")]
pub(crate) struct UndoArgs {
    /// Folder of the copies: the data_dir of the configuration; or an archive, as s3://bucket/prefix
    #[arg(value_name = "DATA_DIR|URL")]
    pub(super) data_dir: PathBuf,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    /// None of ours: who expects an option for a search is told how to ask.
    #[arg(
        long,
        hide = true,
        num_args = 0,
        default_missing_value = "",
        value_parser = UnknownArgumentValueParser::suggest(FIND_HINT)
    )]
    pub(super) find: Option<String>,
    /// Refuse more transactions than so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(super) limit: u64,
    /// A server to ask for columns that the log does not name, and for triggers and foreign keys: mysql://user@host:port
    #[arg(long, value_name = "URL", conflicts_with = "into")]
    pub(super) schema: Option<Secret>,
    /// Apply it to this server, in one transaction: mysql://user@host:port
    #[arg(long, value_name = "URL")]
    pub(super) into: Option<Secret>,
    /// The columns of the tables were as they are on that server now: take their names without proof
    #[arg(long)]
    pub(super) columns_as_now: bool,
    /// Say which rows are not as these transactions left them, and change nothing; with --into or --schema
    #[arg(long)]
    pub(super) plan: bool,
    /// Take back only the rows that are as these transactions left them, and list the others; with --into or --schema
    #[arg(long, conflicts_with = "plan")]
    pub(super) leave_out_changed: bool,
    #[command(flatten)]
    pub(super) server: ServerFlags,
    /// Take back what is there where the copy does not have all of the GTIDs that --gtid names
    #[arg(long)]
    pub(super) missing_ok: bool,
    /// With --into: do not ask
    #[arg(long, requires = "into")]
    pub(super) yes: bool,
}

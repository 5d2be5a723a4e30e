//! What `binlogd-bench restore` is asked for.

use crate::common::Common;
use std::fmt;
use std::path::PathBuf;

/// Arguments of `binlogd-bench restore`.
#[derive(Debug, Clone, clap::Args)]
pub struct RestoreArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Transactions to apply: about so many, of four changed rows each.
    #[arg(long, default_value_t = 40_000)]
    pub transactions: usize,
    /// Sessions that make them, each in its own rows.
    #[arg(long, default_value_t = 8)]
    pub sessions: usize,
    /// Threads that apply.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 8])]
    pub workers: Vec<u32>,
    /// What the restored server makes durable.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Durability::Relaxed, Durability::Full])]
    pub durability: Vec<Durability>,
    /// The servers: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts them.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
}

/// What the restored server makes durable. That is its operator's to decide; binlogd changes nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Nothing before the end, as is sensible for a server that can be restored again.
    Relaxed,
    /// Each transaction.
    Full,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Relaxed => "relaxed",
            Durability::Full => "full",
        })
    }
}

impl Durability {
    /// In words.
    pub(super) fn settings(self) -> &'static str {
        match self {
            Durability::Relaxed => "sync_binlog = 0, innodb_flush_log_at_trx_commit = 0",
            Durability::Full => "sync_binlog = 1, innodb_flush_log_at_trx_commit = 1",
        }
    }

    /// Its options.
    pub(super) fn options(self) -> Vec<String> {
        let common = ["--innodb-buffer-pool-size=512M"];
        let rest: &[&str] = match self {
            Durability::Relaxed => &["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"],
            Durability::Full => &["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"],
        };
        common.iter().chain(rest).map(|option| (*option).to_owned()).collect()
    }
}

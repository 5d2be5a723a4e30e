//! What `binlogd-bench serve` is asked for.

use crate::common::Common;
use std::fmt;
use std::path::PathBuf;

/// Arguments of `binlogd-bench serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// GiB of binary log to make and to send: ordinary transactions, as in `catchup`.
    #[arg(long, default_value_t = 1.0)]
    pub gib: f64,
    /// GiB of small transactions of about 400 bytes.
    #[arg(long, default_value_t = 0.1)]
    pub small_gib: f64,
    /// Readers at once, where it is many.
    #[arg(long, default_value_t = 20)]
    pub readers: usize,
    /// Readers at once at the live end, where it is very many.
    #[arg(long, default_value_t = 100)]
    pub crowd: usize,
    /// Readers that only wait.
    #[arg(long, default_value_t = 500)]
    pub idle: usize,
    /// Groups in a round at the live end, each of one transaction of 600 bytes.
    #[arg(long, default_value_t = 2000)]
    pub groups: usize,
    /// The source: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts it.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Pull, Part::Replica, Part::Live, Part::Idle])]
    pub parts: Vec<Part>,
}

/// What can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// A backlog, beside the source.
    Pull,
    /// A replica that catches up, beside the source.
    Replica,
    /// The live end.
    Live,
    /// Readers that wait.
    Idle,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Pull => "pull",
            Part::Replica => "replica",
            Part::Live => "live",
            Part::Idle => "idle",
        })
    }
}

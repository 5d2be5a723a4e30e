//! What `binlogd-bench quorum` is asked for.

use crate::common::Common;
use std::path::PathBuf;

/// Arguments of `binlogd-bench quorum`.
#[derive(Debug, Clone, clap::Args)]
pub struct QuorumArgs {
    /// Common ones. The folders of the binlogds are in `--dir`.
    #[command(flatten)]
    pub common: Common,
    /// The source: a name of `scripts/servers list`, a MySQL 8.0.26 or newer, or a MariaDB.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts it.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// Where the source's files are, if not in `--dir`. Where a sync costs nothing, such as /dev/shm, the receivers alone are seen.
    #[arg(long)]
    pub source_dir: Option<PathBuf>,
    /// Clients that commit at once, each beside the others.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8])]
    pub clients: Vec<usize>,
    /// Microseconds that every message between two machines takes longer, each way.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 100, 500])]
    pub delays: Vec<u64>,
    /// Seconds of one measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
}

//! What `binlogd-bench archive` is asked for.

use crate::common::Common;
use std::path::PathBuf;

/// Arguments of `binlogd-bench archive`.
#[derive(Debug, Clone, clap::Args)]
pub struct ArchiveArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// GiB of binary log to make and to archive: ordinary transactions, as in `catchup`.
    #[arg(long, default_value_t = 1.0)]
    pub gib: f64,
    /// Make rows that nothing can compress in the place of ordinary ones.
    #[arg(long)]
    pub noise: bool,
    /// Level of zstd, for everybody.
    #[arg(long, default_value_t = 1)]
    pub level: u32,
    /// Sources of one binlogd whose memory is measured.
    #[arg(long, default_value_t = 4)]
    pub memory_sources: usize,
    /// The source: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts it.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// The script that starts the store and knows where `zstd`, `age` and `aws` are.
    #[arg(long, default_value = "scripts/stores")]
    pub stores_script: PathBuf,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Speed, Part::Memory, Part::Read])]
    pub parts: Vec<Part>,
}

/// What can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Bytes a second, beside `zstd | age | aws s3 cp`.
    Speed,
    /// Memory of a binlogd that archives for several sources, beside the same one without an archive.
    Memory,
    /// Bytes a second to a reader, from the archive and from the disk.
    Read,
}

impl ArchiveArgs {
    /// How many sources are to have a copy of the log.
    pub(super) fn sources(&self) -> usize {
        if self.parts.contains(&Part::Memory) { self.memory_sources.max(1) } else { 1 }
    }
}

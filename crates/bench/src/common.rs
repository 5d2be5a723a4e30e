//! What every benchmark needs.

use anyhow::bail;
use rig::machine;
use std::path::PathBuf;

/// Arguments of every benchmark.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// The binary under test, built for release.
    #[arg(long, default_value = "target/release/binlogd")]
    pub binlogd: PathBuf,
    /// How often everything is measured.
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, default_value = "target")]
    pub dir: PathBuf,
}

impl Common {
    /// Looks whether it can begin, and prints what it is measured on.
    ///
    /// # Errors
    /// When binlogd was not built, or the disk cannot be written.
    pub fn begin(&self) -> anyhow::Result<()> {
        if !self.binlogd.is_file() {
            bail!(
                "{} is not there: build it with `cargo build --release`, or name it with --binlogd",
                self.binlogd.display()
            );
        }
        if cfg!(debug_assertions) {
            eprintln!(
                "this benchmark was built without --release: the source is then slower than it should be"
            );
        }
        machine::print(&self.dir)
    }
}

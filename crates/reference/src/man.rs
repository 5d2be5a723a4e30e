//! Man pages.

use std::path::Path;

use anyhow::Context;

/// Writes `binlogd.1` and one page a verb into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(binlogd::cli::command(), folder)
        .with_context(|| format!("cannot write man pages into {}", folder.display()))
}

//! Completions of shells.

use std::path::Path;

use anyhow::Context;
use clap_complete::{Shell, generate_to};

/// Writes `binlogd.bash`, `_binlogd` and `binlogd.fish` into `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut binlogd::cli::command(), "binlogd", folder)
            .with_context(|| format!("cannot write completions of {shell} into {}", folder.display()))?;
    }
    Ok(())
}

//! Where sysbench is.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program's path, from `scripts/servers`, which fetches it first where it is missing.
///
/// # Errors
/// When it cannot be had.
pub fn program(scripts: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new(scripts).arg("sysbench").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", scripts.display()))?;
    if !output.status.success() {
        bail!("sysbench could not be fetched");
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

//! The Go command, which builds programs that measurements compare with or load by.

use crate::program::last_lines;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the Go command in `folder`, and returns what it printed.
///
/// # Errors
/// When Go is missing or the command fails; the error holds its last words.
pub fn go<S: AsRef<OsStr>>(folder: &Path, words: impl IntoIterator<Item = S>) -> anyhow::Result<String> {
    let mut command = Command::new("go");
    // The Go that is here, whatever a module would prefer to download.
    command
        .args(words)
        .current_dir(folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .stdin(Stdio::null());
    let output = command.output().context("cannot run go; is it installed?")?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", last_lines(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8(output.stdout)?)
}

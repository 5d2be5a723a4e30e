//! The Go command, which builds programs that measurements compare with or load by.

use anyhow::{Context, bail};
use rig::process::last_lines;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program in Go, built on demand from the version that its go.mod pins; its go.sum holds the checksums.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<'a> {
    /// Its name, which is that of its folder too.
    pub name: &'a str,
    /// Its package.
    pub package: &'a str,
    /// go.mod of the module that it is built in.
    pub go_mod: &'a str,
    /// go.sum of that module.
    pub go_sum: &'a str,
    /// What else goes into it: another recipe makes another program.
    pub recipe: &'a str,
}

impl Pinned<'_> {
    /// Builds it below `dir` unless it is there, and returns the program. `prepare` is told the folder of the module before
    /// the program is built in it.
    ///
    /// # Errors
    /// When Go is missing or too old, the module cannot be had or is not what is expected, or `prepare` fails.
    pub fn build(
        &self,
        dir: &Path,
        prepare: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<PathBuf> {
        let folder = dir.join(self.name);
        std::fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        let (program, recipe) = (folder.join(self.name), folder.join("recipe"));
        let wanted = [self.go_mod, self.go_sum, self.recipe].concat();
        if program.is_file() && std::fs::read_to_string(&recipe).is_ok_and(|made| made == wanted) {
            return Ok(program);
        }
        let work = tempfile::Builder::new().prefix("build-").tempdir_in(&folder)?;
        std::fs::write(work.path().join("go.mod"), self.go_mod)?;
        std::fs::write(work.path().join("go.sum"), self.go_sum)?;
        prepare(work.path())?;
        let built = work.path().join("program");
        let words = ["build".as_ref(), "-o".as_ref(), built.as_os_str(), OsStr::new(self.package)];
        go(work.path(), words)?;
        std::fs::rename(&built, &program)?;
        std::fs::write(&recipe, wanted)?;
        Ok(program)
    }
}

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

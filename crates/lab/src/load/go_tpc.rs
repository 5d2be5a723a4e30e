//! go-tpc, built on demand from the version that `crates/lab/go-tpc/go.mod` pins.
//!
//! The download is checked against go.sum, and what is there with Go's checksum database. It is 1.0.5: of the releases
//! that were tried it is the latest whose checksum that database had. One file of ours is added to it: go-tpc itself
//! takes a password in its arguments only, where every account of the machine sees it.

use crate::lab::Skip;
use anyhow::Context;
use rig::go::go;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "github.com/pingcap/go-tpc/cmd/go-tpc";
const GO_MOD: &str = include_str!("../../go-tpc/go.mod");
const GO_SUM: &str = include_str!("../../go-tpc/go.sum");
/// What is added to the program.
const ADDED: &str = include_str!("../../go-tpc/password_of_environment.go");
/// The environment variable that holds the password of the account, as that file has it.
pub const PASSWORD_VARIABLE: &str = "GO_TPC_PASSWORD";

/// Its version, as go.mod has it.
pub fn version() -> &'static str {
    let pin = GO_MOD.lines().find_map(|line| line.trim().strip_prefix("github.com/pingcap/go-tpc "));
    pin.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default()
}

/// Builds it below `dir` unless it is there, and returns the program.
///
/// # Errors
/// [`Skip`] when Go is missing; other errors when it is too old, or the module cannot be had or is not what is expected.
pub fn build(dir: &Path, say: fn(&str)) -> anyhow::Result<PathBuf> {
    let folder = dir.join("go-tpc");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let (program, recipe) = (folder.join("go-tpc"), folder.join("recipe"));
    // Another recipe makes another program.
    let wanted = format!("{GO_MOD}{GO_SUM}{ADDED}");
    if program.is_file() && std::fs::read_to_string(&recipe).is_ok_and(|made| made == wanted) {
        return Ok(program);
    }
    need_go()?;
    say(&format!("building go-tpc {}", version()));
    let work = tempfile::Builder::new().prefix("build-").tempdir_in(&folder)?;
    std::fs::write(work.path().join("go.mod"), GO_MOD)?;
    std::fs::write(work.path().join("go.sum"), GO_SUM)?;
    // Copies the sources, after a check against go.sum, to where a file can be added.
    go(work.path(), ["mod", "vendor"])?;
    let main = work.path().join("vendor").join(PROGRAM);
    std::fs::write(main.join("password_of_environment.go"), ADDED)
        .with_context(|| format!("adding to {}", main.display()))?;
    let built = work.path().join("program");
    go(work.path(), [OsStr::new("build"), OsStr::new("-o"), built.as_os_str(), OsStr::new(PROGRAM)])?;
    std::fs::rename(&built, &program)?;
    std::fs::write(&recipe, wanted)?;
    Ok(program)
}

fn need_go() -> anyhow::Result<()> {
    let mut command = Command::new("go");
    command.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Skip::lacks(
            "go-tpc, the load of this study, is built with Go, which is missing: install Go 1.24 or later \
             (https://go.dev/dl) so that the command go is found, and try again",
        )
        .into()),
        other => other.map(|_| ()).context("cannot run go"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_pinned_one_and_its_checksum_is_known() {
        assert_eq!(version(), "v1.0.5");
        let sums: Vec<&str> =
            GO_SUM.lines().filter(|line| line.starts_with("github.com/pingcap/go-tpc v1.0.5 h1:")).collect();
        assert_eq!(sums.len(), 1);
        assert!(ADDED.contains(&format!("{PASSWORD_VARIABLE:?}")));
    }
}

//! go-tpc, built on demand from the version that `crates/lab/go-tpc/go.mod` pins.
//!
//! The download is checked against go.sum, and what is there with Go's checksum database. It is 1.0.5: of the releases
//! that were tried it is the latest whose checksum that database had. One file of ours is added to it: go-tpc itself
//! takes a password in its arguments only, where every account of the machine sees it.

use crate::go::{Pinned, go};
use crate::lab::Skip;
use anyhow::Context;
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
    let pinned = Pinned { name: "go-tpc", package: PROGRAM, go_mod: GO_MOD, go_sum: GO_SUM, recipe: ADDED };
    pinned.build(dir, |work| {
        need_go()?;
        say(&format!("building go-tpc {}", version()));
        // Copies the sources, after a check against go.sum, to where a file can be added.
        go(work, ["mod", "vendor"])?;
        let main = work.join("vendor").join(PROGRAM);
        std::fs::write(main.join("password_of_environment.go"), ADDED)
            .with_context(|| format!("adding to {}", main.display()))
    })
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

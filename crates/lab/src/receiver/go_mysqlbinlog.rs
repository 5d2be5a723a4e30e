//! go-mysqlbinlog, built on demand from the version that `crates/lab/go-mysqlbinlog/go.mod` pins.
//!
//! Up to 1.13.0 at least, it asks only for the old name of the source's semi-sync variable. MySQL 8.4 and later know
//! only the new one, and it then goes on without acknowledging, saying so in its log alone. The copy that is built here
//! knows both names; nothing else in it is changed.

use crate::go::{Pinned, go};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

const MODULE: &str = "github.com/go-mysql-org/go-mysql";
const PROGRAM: &str = "github.com/go-mysql-org/go-mysql/cmd/go-mysqlbinlog";
const GO_MOD: &str = include_str!("../../go-mysqlbinlog/go.mod");
const GO_SUM: &str = include_str!("../../go-mysqlbinlog/go.sum");

/// The file of the module that is repaired, and each text in it with what takes its place.
const REPAIRED_FILE: &str = "replication/binlogsyncer.go";
const REPAIRED: [(&str, &str); 2] = [
    (
        "SHOW VARIABLES LIKE 'rpl_semi_sync_master_enabled';",
        "SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled');",
    ),
    ("SET @rpl_semi_sync_slave = 1;", "SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1;"),
];

/// Builds it below `target` unless it is there, and returns the program.
///
/// # Errors
/// When Go is missing or too old, or the module cannot be had or is not what is expected.
pub fn build(target: &Path) -> anyhow::Result<PathBuf> {
    let recipe = format!("{REPAIRED_FILE}{REPAIRED:?}");
    let pinned =
        Pinned { name: "go-mysqlbinlog", package: PROGRAM, go_mod: GO_MOD, go_sum: GO_SUM, recipe: &recipe };
    pinned.build(target, |work| {
        // Checks the download against go.sum.
        let answer = go(work, ["mod", "download", "-json", MODULE])?;
        let answer: serde_json::Value =
            serde_json::from_str(&answer).context("what `go mod download` printed")?;
        let module = answer["Dir"].as_str().context("`go mod download` named no folder")?;
        copy(Path::new(module), &work.join("go-mysql"))?;
        repair(&work.join("go-mysql").join(REPAIRED_FILE))?;
        go(work, ["mod", "edit", "-replace", &format!("{MODULE}=./go-mysql")]).map(|_| ())
    })
}

/// Copies a folder's files without their modes: those of Go's cache are read-only.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::write(&target, std::fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn repair(file: &Path) -> anyhow::Result<()> {
    let mut text = std::fs::read_to_string(file)?;
    for (old, new) in REPAIRED {
        if text.matches(old).count() != 1 {
            bail!(
                "{REPAIRED_FILE} of {MODULE} does not hold {old:?} once: the pinned version is another one"
            );
        }
        text = text.replace(old, new);
    }
    Ok(std::fs::write(file, text)?)
}

//! go-mysqlbinlog, built on demand from the version that `crates/rig/go-mysqlbinlog/go.mod` pins.
//!
//! Up to 1.13.0 at least, it asks only for the old name of the source's semi-sync variable. MySQL 8.4 and later know
//! only the new one, and it then goes on without acknowledging, saying so in its log alone. The copy that is built here
//! knows both names; nothing else in it is changed.

use crate::go::go;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const MODULE: &str = "github.com/go-mysql-org/go-mysql";
const PROGRAM: &str = "github.com/go-mysql-org/go-mysql/cmd/go-mysqlbinlog";
const GO_MOD: &str = include_str!("../go-mysqlbinlog/go.mod");
const GO_SUM: &str = include_str!("../go-mysqlbinlog/go.sum");

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
    let folder = target.join("go-mysqlbinlog");
    std::fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let (program, recipe) = (folder.join("go-mysqlbinlog"), folder.join("recipe"));
    // Whatever goes into the program: another recipe makes another program.
    let wanted = format!("{GO_MOD}{GO_SUM}{REPAIRED_FILE}{REPAIRED:?}");
    if program.is_file() && std::fs::read_to_string(&recipe).is_ok_and(|made| made == wanted) {
        return Ok(program);
    }
    let work = tempfile::Builder::new().prefix("build-").tempdir_in(&folder)?;
    std::fs::write(work.path().join("go.mod"), GO_MOD)?;
    std::fs::write(work.path().join("go.sum"), GO_SUM)?;
    // Checks the download against go.sum.
    let answer = go(work.path(), ["mod", "download", "-json", MODULE])?;
    let answer: serde_json::Value =
        serde_json::from_str(&answer).context("what `go mod download` printed")?;
    let module = answer["Dir"].as_str().context("`go mod download` named no folder")?;
    copy(Path::new(module), &work.path().join("go-mysql"))?;
    repair(&work.path().join("go-mysql").join(REPAIRED_FILE))?;
    go(work.path(), ["mod", "edit", "-replace", &format!("{MODULE}=./go-mysql")])?;
    let built = work.path().join("program");
    go(work.path(), [OsStr::new("build"), OsStr::new("-o"), built.as_os_str(), OsStr::new(PROGRAM)])?;
    std::fs::rename(&built, &program)?;
    std::fs::write(&recipe, wanted)?;
    Ok(program)
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

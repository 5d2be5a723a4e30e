//! Tells the program which commit it is of, for `binlogd --version`.
//!
//! In this order: `BINLOGD_COMMIT` in the environment (what a packager says, such as `1a2b3c4d5e6f 2026-01-31`); the
//! repository that this folder is a part of; `commit.txt`, which `git archive` fills in. There is no time of the build
//! in it: the same commit gives the same bytes.
//!
//! A development build asks nobody, because a new commit would then build everything anew.

use std::path::Path;
use std::process::Command;

/// Digits of a commit that are shown.
const DIGITS: usize = 12;
/// What git puts in the place of this is the commit; untouched, the file is one of a repository.
const UNTOUCHED: &str = "$Format";
/// Of the repository's root: what the program is made of. A change here makes a release `-dirty`.
const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "crates/admin",
    "crates/archive",
    "crates/backup",
    "crates/binlogd",
    "crates/codec",
    "crates/config",
    "crates/daemon",
    "crates/binlog",
    "crates/platform",
    "crates/past",
    "crates/points",
    "crates/quorum",
    "crates/receive",
    "crates/repair",
    "crates/serve",
    "crates/setup",
    "crates/source",
    "crates/status",
    "crates/wire",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.txt");
    println!("cargo::rerun-if-env-changed=BINLOGD_COMMIT");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let given = variable("BINLOGD_COMMIT");
    let commit = if !given.trim().is_empty() {
        given.trim().to_owned()
    } else if variable("PROFILE") == "debug" {
        "development build".to_owned()
    } else {
        of_repository().or_else(of_archive).unwrap_or_else(|| "commit not known".to_owned())
    };
    println!("cargo::rustc-env=BINLOGD_BUILD={commit}, {}", variable("TARGET"));
}

/// `1a2b3c4d5e6f 2026-01-31`, with `-dirty` behind the commit when a source differs from it.
fn of_repository() -> Option<String> {
    let root = Path::new("../..").canonicalize().ok()?;
    // A source archive that was unpacked inside of another repository is not of that one's commits.
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for file in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = root.join(git(&root, &["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    let said = git(&root, &["log", "-1", "--format=%H %cd", "--date=format:%Y-%m-%d"])?;
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    let dirty = !git(&root, &status)?.is_empty();
    shown(&said, if dirty { "-dirty" } else { "" })
}

/// What `git archive` wrote.
fn of_archive() -> Option<String> {
    let text = std::fs::read_to_string("commit.txt").ok()?;
    if text.starts_with(UNTOUCHED) { None } else { shown(&text, "") }
}

fn shown(commit_and_date: &str, mark: &str) -> Option<String> {
    let mut words = commit_and_date.split_whitespace();
    let (commit, date) = (words.next()?, words.next()?);
    Some(format!("{}{mark} {date}", commit.get(..DIGITS)?))
}

/// What git says, without the end of the line; `None` when there is no git, or the command fails.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    // A hook that builds has set variables that name its own repository.
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

//! What git tracks. Each clone carries large files for ever, so each has a reason; results and databases are no sources. A folder
//! with many files side by side has no order that a reader sees.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A larger file needs a place in [`LARGE`].
const BYTES_MAX: u64 = 256 * 1024;

/// As in scripts/lines.
const FOLDER_FILES_MAX: usize = 15;

/// Larger files, each with the reason why it is in the tree: none today.
const LARGE: &[(&str, &str)] = &[];

/// Endings of what programs leave behind.
const LEFT_BEHIND: &[&str] = &[".sqlite", ".sqlite-wal", ".sqlite-shm", ".sqlite.lock", ".profraw"];

/// What is wrong with a file of this name and size.
fn complaint(name: &str, bytes: u64) -> Option<String> {
    if LEFT_BEHIND.iter().any(|ending| name.ends_with(ending)) {
        return Some(format!("{name} is left behind by a program: remove it from the tree"));
    }
    let is_known = LARGE.iter().any(|(known, _)| *known == name);
    (bytes > BYTES_MAX && !is_known).then(|| {
        format!("{name} has {bytes} bytes, more than {BYTES_MAX}: make it by a command, or name it here with a reason")
    })
}

/// The folder that holds the whole project.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The files that git tracks, with their bytes, but for those that are removed and not yet committed; none in a tree without its
/// history.
fn tracked() -> BTreeMap<String, u64> {
    if !root().join(".git").exists() {
        return BTreeMap::new();
    }
    let listed = Command::new("git").arg("-C").arg(root()).args(["ls-files", "-z"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let size = |name: &str| root().join(name).symlink_metadata().ok().map(|found| found.len());
    let files: BTreeMap<String, u64> =
        names.split_terminator('\0').filter_map(|name| Some((name.to_owned(), size(name)?))).collect();
    assert!(files.contains_key("Cargo.toml"));
    files
}

/// Folders with more files side by side than [`FOLDER_FILES_MAX`], and how many each has.
fn full_folders<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<&'a str, usize> {
    let mut files = BTreeMap::new();
    for name in names {
        *files.entry(name.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    files.retain(|_, count| *count > FOLDER_FILES_MAX);
    files
}

#[test]
fn no_large_file_is_tracked_without_a_reason() {
    let files = tracked();
    let is_tracked = |name: &str| files.is_empty() || files.contains_key(name);
    assert!(LARGE.iter().all(|(known, _)| is_tracked(known)), "a file of LARGE is not there any more");
    let complaints: Vec<String> = files.iter().filter_map(|(name, bytes)| complaint(name, *bytes)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn no_folder_has_too_many_files_side_by_side() {
    let files = tracked();
    let full = full_folders(files.keys());
    assert!(full.is_empty(), "more than {FOLDER_FILES_MAX} files: group them by theme: {full:?}");
}

#[test]
fn a_full_folder_is_found() {
    let names: Vec<String> = (0..=FOLDER_FILES_MAX).map(|at| format!("a/b/{at}.rs")).collect();
    assert_eq!(full_folders(names.iter()), BTreeMap::from([("a/b", FOLDER_FILES_MAX + 1)]));
    assert!(full_folders(names[1..].iter()).is_empty());
}

#[test]
fn a_large_file_and_a_database_are_refused() {
    assert_eq!(complaint("docs/a.md", BYTES_MAX), None);
    assert!(complaint("docs/a.md", BYTES_MAX + 1).unwrap().contains("262145 bytes"));
    for name in ["binlogd-lab.sqlite", "binlogd-lab.sqlite.lock", "docs/x.sqlite-wal"] {
        assert!(complaint(name, 0).is_some(), "{name}");
    }
}

//! Large files in the tree. Each clone carries them for ever, so each has a reason; results and databases are no sources.

use std::path::Path;
use std::process::Command;

/// A larger file needs a place in [`LARGE`].
const BYTES_MAX: u64 = 256 * 1024;

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

#[test]
fn no_large_file_is_tracked_without_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    if !root.join(".git").exists() {
        return; // A tree without its history: nothing is tracked.
    }
    let listed = Command::new("git").arg("-C").arg(root).args(["ls-files", "-z"]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let names: Vec<&str> = names.split_terminator('\0').collect();
    assert!(names.contains(&"Cargo.toml"));
    assert!(LARGE.iter().all(|(known, _)| names.contains(known)), "a file of LARGE is not there any more");
    // What is removed and not yet committed is not there.
    let size = |name: &str| root.join(name).symlink_metadata().map_or(0, |found| found.len());
    let complaints: Vec<String> = names.iter().filter_map(|name| complaint(name, size(name))).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_large_file_and_a_database_are_refused() {
    assert_eq!(complaint("docs/a.md", BYTES_MAX), None);
    assert!(complaint("docs/a.md", BYTES_MAX + 1).unwrap().contains("262145 bytes"));
    for name in ["binlogd-lab.sqlite", "binlogd-lab.sqlite.lock", "docs/x.sqlite-wal"] {
        assert!(complaint(name, 0).is_some(), "{name}");
    }
}

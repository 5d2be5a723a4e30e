//! The lab and the benchmarks drive the daemon from outside. They must not become a part of it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names of the packages in the tree of `package`, with features that nobody has to ask for.
fn tree(package: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--package", package, "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_daemon_depends_on_neither_the_lab_nor_the_benchmarks_nor_what_they_alone_need() {
    let daemon = tree("binlogd");
    assert!(daemon.iter().any(|name| name == "binlogd-codec"), "this is not the daemon's tree: {daemon:?}");
    for foreign in [
        "binlogd-lab",
        "binlogd-bench",
        "binlogd-rig",
        "binlogd-scripted-source",
        "rusqlite",
        "libsqlite3-sys",
    ] {
        assert!(!daemon.iter().any(|name| name == foreign), "the daemon depends on {foreign}");
    }
    // The same question about the lab has the other answer, so it can be answered.
    let lab = tree("binlogd-lab");
    assert!(lab.iter().any(|name| name == "binlogd-rig") && lab.iter().any(|name| name == "rusqlite"));
}

/// From what is measured to what is shown of it; each uses what stands before it and nothing behind it.
const DIRECTION: [&str; 6] = ["point", "outline", "reference", "parts", "study", "report"];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn what_is_measured_knows_nothing_of_what_is_shown() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut wrong, mut uses) = (Vec::new(), 0);
    for (rank, module) in DIRECTION.iter().enumerate() {
        let (folder, mut files) = (src.join(module), Vec::new());
        match folder.is_dir() {
            true => sources(&folder, &mut files),
            false => files.push(src.join(format!("{module}.rs"))),
        }
        let is_test = |file: &PathBuf| file.ends_with("tests.rs") || file.ends_with("example.rs");
        for file in files.iter().filter(|file| !is_test(file)) {
            let text = std::fs::read_to_string(file).expect("a source");
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for (other, name) in DIRECTION.iter().enumerate() {
                let count = code.matches(&format!("crate::{name}")).count();
                uses += count;
                if count > 0 && other > rank {
                    wrong.push(format!("{} uses {name}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(uses > 50, "only {uses} uses were seen");
}

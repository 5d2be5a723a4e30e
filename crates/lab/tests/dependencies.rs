//! The lab and the benchmarks drive the daemon from outside. They must not become a part of it.

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

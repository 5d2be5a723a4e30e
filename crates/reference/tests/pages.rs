//! What the program writes, looked at as it lies in the folders that the packages are made of.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn write(what: &str, place: &Path) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd-reference")).arg(what).arg(place).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn there_is_a_page_for_each_verb_and_one_for_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    write("man", folder.path());
    let pages = names(folder.path());
    let command = binlogd::cli::command();
    let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    assert!(verbs.contains(&"run") && verbs.contains(&"health"), "{verbs:?}");
    for verb in verbs {
        assert!(pages.contains(&format!("binlogd-{verb}.1")), "{verb}: {pages:?}");
    }
    assert!(pages.contains("binlogd.1"));
    let configuration = std::fs::read_to_string(folder.path().join("binlogd.toml.5")).unwrap();
    assert!(configuration.contains("data_dir") && configuration.contains("[[source]]"));
    // Two builds of one version have one page.
    let page = std::fs::read_to_string(folder.path().join("binlogd.1")).unwrap();
    assert!(page.contains(env!("CARGO_PKG_VERSION")) && !page.contains("development build"), "{page}");
}

#[test]
fn there_are_completions_for_three_shells_and_an_example() {
    let folder = tempfile::tempdir().unwrap();
    write("completions", folder.path());
    let expected = ["_binlogd", "binlogd.bash", "binlogd.fish"].map(str::to_owned);
    assert_eq!(names(folder.path()), BTreeSet::from(expected));
    let file = folder.path().join("binlogd.toml.example");
    write("example", &file);
    assert_eq!(std::fs::read_to_string(file).unwrap(), binlogd::cli::example());
}

//! Between crates the compiler holds who may use whom. Here is what it cannot say: no circle of files within a crate, one crate
//! that parses without bounds, tools that no test of the product builds, and what a release is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use super::circles::circles;
use super::imports::{Name, Sources, crates};

/// Files that need each other today, by crate: none. A circle that is not here fails, and so does one that has grown, has
/// become smaller or is gone: then its entry is to be changed or taken out.
const CIRCLES: &[(&str, &[&str])] = &[];

/// The sources of each crate, by its folder.
static SOURCES: LazyLock<BTreeMap<String, Sources>> = LazyLock::new(|| {
    let library = |folder: &str| match folder {
        "bench" | "lab" | "reference" => format!("binlogd_{folder}"),
        folder => folder.replace('-', "_"),
    };
    manifests()
        .into_keys()
        .map(|folder| (folder.clone(), Sources::read(&folder, &library(&folder))))
        .collect()
});

/// The manifest of each crate, by its folder.
fn manifests() -> BTreeMap<String, toml::Table> {
    let folders = std::fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().path());
    let manifest = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        Some((folder.file_name()?.to_str()?.to_owned(), text.parse().unwrap()))
    };
    folders.filter_map(manifest).collect()
}

/// All crates of the project that one is built from, itself too.
fn linked(manifests: &BTreeMap<String, toml::Table>, folder: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([folder.to_owned()]);
    for below in project_crates(&manifests[folder], "dependencies") {
        all.extend(linked(manifests, &below));
    }
    all
}

fn file_name(module: &Name) -> String {
    if module.is_empty() { "lib".to_owned() } else { module.join("::") }
}

/// The crates of the project in one table of a manifest, by their folders.
fn project_crates(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let dependencies = manifest.get(table).and_then(toml::Value::as_table).into_iter().flatten();
    let folder_of = |package: &str| package.strip_prefix("binlogd-").unwrap_or(package).to_owned();
    let is_ours = |package: &&String| *package == "binlogd" || package.starts_with("binlogd-");
    dependencies.map(|(package, _)| package).filter(is_ours).map(|package| folder_of(package)).collect()
}

/// A test of the product that needed its benchmarks would build the product twice.
#[test]
fn tests_of_the_product_need_no_tools() {
    let manifests = manifests();
    for folder in linked(&manifests, "binlogd") {
        let for_tests = project_crates(&manifests[&folder], "dev-dependencies");
        for tool in ["bench", "lab", "reference"] {
            assert!(!for_tests.contains(tool), "the tests of {folder} use {tool}");
        }
    }
}

/// `binlogd --version` says `-dirty` when a source of the program differs from its commit.
#[test]
fn a_release_looks_at_every_crate_that_it_links() {
    let script = include_str!("../../build.rs");
    for folder in linked(&manifests(), "binlogd") {
        assert!(script.contains(&format!("\"crates/{folder}\"")), "build.rs does not name crates/{folder}");
    }
}

#[test]
fn one_crate_knows_what_parses_without_bounds() {
    for (folder, sources) in SOURCES.iter().filter(|(folder, _)| *folder != "wire") {
        for (file, named) in &sources.files {
            let is_used = named.iter().any(|name| name[0] == "mysql_common");
            assert!(!is_used, "{folder}, {}: mysql_common belongs in wire", file_name(file));
        }
    }
}

#[test]
fn no_file_is_in_a_circle_that_is_not_known() {
    let circles_of = |(folder, sources): (&String, &Sources)| -> Vec<(String, Vec<String>)> {
        let circles = circles(&sources.edges());
        let names = circles.iter().map(|circle| circle.iter().map(file_name).collect::<Vec<_>>());
        names.map(|circle| (folder.clone(), circle)).collect()
    };
    let found: BTreeSet<_> = SOURCES.iter().flat_map(circles_of).collect();
    let text = |name: &str| name.to_owned();
    let known: BTreeSet<_> = CIRCLES
        .iter()
        .map(|(folder, circle)| (text(folder), circle.iter().map(|name| text(name)).collect::<Vec<_>>()))
        .collect();
    let lines = |circles: Vec<&(String, Vec<String>)>| -> String {
        circles.iter().map(|(folder, circle)| format!("    ({folder:?}, &{circle:?}),\n")).collect()
    };
    let (new, gone) = (lines(found.difference(&known).collect()), lines(known.difference(&found).collect()));
    assert!(
        new.is_empty() && gone.is_empty(),
        "circles of files, found and not in CIRCLES:\n{new}in CIRCLES and not found any more:\n{gone}\
         A circle that became smaller gets its new line. One that is new or has grown is to be opened instead: let what \
         both need stand below both."
    );
}

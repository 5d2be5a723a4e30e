//! Who may import whom: between crates, and between the modules of one. The tables below are the rules; the manifests
//! and the names in the sources are held against them. What stands in a table and is needed no more fails too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::circles::circles;
use super::imports::{Name, Sources, crates};

/// Crate by its folder, its name in code, and the crates of the project that it may link. The lab and the benchmarks
/// measure from outside and are linked into nothing.
const LINKED: &[(&str, &str, &[&str])] = &[
    ("archive", "archive", &["codec", "log"]),
    ("codec", "codec", &[]),
    ("log", "log", &["codec", "platform"]),
    ("platform", "platform", &[]),
    ("points", "points", &["codec", "log"]),
    ("wire", "wire", &["codec"]),
    ("binlogd", "binlogd", &["archive", "codec", "log", "platform", "points", "wire"]),
    ("scripted-source", "scripted_source", &["codec"]),
    ("rig", "rig", &["codec", "wire"]),
    ("bench", "binlogd_bench", &["codec", "log", "points", "rig", "scripted-source", "wire"]),
    ("lab", "binlogd_lab", &["binlogd", "codec", "rig", "wire"]),
    ("reference", "binlogd_reference", &["binlogd"]),
];

/// Who measures the built binary, and the modules of its library that he may use all the same: its own words for a
/// source's address and for sizes, and what is measured without the rest.
const MEASURED_FROM_OUTSIDE: &[(&str, &[&str])] = &[("lab", &["cli", "config"])];

/// Module, and the modules and crates of the project that it may name. `codec` and crates of others are free to all,
/// except that mysql_common stays in `wire`. That `log` and `wire` name nothing of this crate is held by the compiler.
const ALLOWED: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    (
        "cli",
        &[
            "admin",
            "archive",
            "cli",
            "config",
            "cut",
            "daemon",
            "detail",
            "doctor",
            "history",
            "log",
            "own_session",
            "points",
            "rescue",
            "restore",
            "retention",
            "setup",
            "status",
            "undo",
            "upstream",
            "wire",
        ],
    ),
    (
        "daemon",
        &[
            "admin",
            "archive",
            "config",
            "log",
            "platform",
            "points",
            "retention",
            "serve",
            "status",
            "upstream",
            "wire",
        ],
    ),
    ("upstream", &["config", "log", "status", "upstream", "wire"]),
    ("admin", &["admin", "config", "status", "wire"]),
    ("doctor", &["config", "doctor", "wire"]),
    ("setup", &["config", "doctor", "setup", "wire"]),
    // `upstream` knows how to ask a server who it is and what it has executed.
    ("rescue", &["detail", "log", "own_session", "points", "rescue", "undo", "upstream", "wire"]),
    ("own_session", &["wire"]),
    // The history is the one that readers are served.
    ("history", &["config", "history", "log", "points", "serve"]),
    ("detail", &["detail", "log", "points", "wire"]),
    ("undo", &["detail", "own_session", "points", "undo", "wire"]),
    ("cut", &["config", "cut", "history", "log", "points"]),
    // A port of its own, for one target; what is left on that is noted as a rescue notes it.
    (
        "restore",
        &[
            "config",
            "history",
            "log",
            "own_session",
            "points",
            "rescue",
            "restore",
            "retention",
            "serve",
            "status",
            "upstream",
            "wire",
        ],
    ),
    // Never `upstream`: the two meet in the log.
    ("serve", &["config", "log", "retention", "serve", "status", "wire"]),
    // Whoever needs files tells it so; it knows nobody of them.
    ("retention", &["config", "log", "retention", "status"]),
    // The keys of `wire`, and of `archive`, appear in the configuration as they are.
    ("config", &["archive", "config", "wire"]),
    ("status", &["config", "status"]),
    // What the pages of reference are written from; no module uses it.
    ("reference", &["admin", "config", "reference", "status"]),
];

/// Files that need each other today, by crate: none. A circle that is not here fails, and so does one that has grown, has
/// become smaller or is gone: then its entry is to be changed or taken out.
const CIRCLES: &[(&str, &[&str])] = &[];

/// The sources of each crate, by its folder.
static SOURCES: LazyLock<BTreeMap<&str, Sources>> =
    LazyLock::new(|| LINKED.iter().map(|(folder, name, _)| (*folder, Sources::read(folder, name))).collect());

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

/// What is there and not allowed, and what is allowed and not there.
fn compare(what: &str, found: &BTreeSet<String>, allowed: &[&str], wrong: &mut Vec<String>) {
    for one in found.iter().filter(|one| !allowed.contains(&one.as_str())) {
        wrong.push(format!("{what} uses {one}, which its line in this test does not allow"));
    }
    for one in allowed.iter().filter(|one| !found.contains(**one)) {
        wrong.push(format!("{what} uses {one} no more: take it out of its line in this test"));
    }
}

#[test]
fn crates_link_only_what_is_below_them() {
    let mut wrong = Vec::new();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let manifest: toml::Table = manifest.parse().unwrap();
        let folder = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for table in ["target", "build-dependencies"] {
            assert!(!manifest.contains_key(table), "{folder}: this test does not read [{table}]");
        }
        let linked = project_crates(&manifest, "dependencies");
        let line = LINKED.iter().find(|(known, ..)| *known == folder);
        compare(&folder, &linked, line.map_or(&[], |(.., may)| *may), &mut wrong);
        let for_tests = project_crates(&manifest, "dev-dependencies");
        // A test of the product that needed its benchmarks would build the product twice.
        for above in ["bench", "lab"].iter().filter(|above| for_tests.contains(**above)) {
            wrong.push(format!("the tests of {folder} use {above}"));
        }
        folders.insert(folder);
    }
    compare(
        "this test",
        &folders,
        &LINKED.iter().map(|(folder, ..)| *folder).collect::<Vec<_>>(),
        &mut wrong,
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `binlogd --version` says `-dirty` when a source of the program differs from its commit.
#[test]
fn a_release_looks_at_every_crate_that_it_links() {
    let script = include_str!("../../build.rs");
    let (_, _, linked) = LINKED.iter().find(|(folder, ..)| *folder == "binlogd").expect("binlogd");
    for folder in linked.iter().chain(["binlogd"].iter()) {
        assert!(script.contains(&format!("\"crates/{folder}\"")), "build.rs does not name crates/{folder}");
    }
}

#[test]
fn modules_name_only_what_is_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut wrong = BTreeSet::new();
    for (file, named) in &SOURCES["binlogd"].files {
        // The root of the library holds the modules and uses none.
        let Some(module) = file.first() else { continue };
        let Some(may) = allowed.get(module.as_str()) else {
            wrong.insert(format!("{module} is not in the table of this test"));
            continue;
        };
        for name in named {
            // Of the crate itself the second word counts, the module.
            let other = if name[0] == "crate" { name.get(1) } else { name.first() };
            let Some(other) = other.map(String::as_str) else { continue };
            let is_ruled = if name[0] == "crate" {
                allowed.contains_key(other)
            } else {
                LINKED.iter().any(|(_, of, _)| *of == other)
            };
            if is_ruled && other != "codec" && other != module && !may.contains(&other) {
                wrong.insert(format!("{} names {}", file_name(file), name.join("::")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_crate_knows_what_parses_without_bounds() {
    for (folder, sources) in SOURCES.iter().filter(|(folder, _)| **folder != "wire") {
        for (file, named) in &sources.files {
            let is_used = named.iter().any(|name| name[0] == "mysql_common");
            assert!(!is_used, "{folder}, {}: mysql_common belongs in wire", file_name(file));
        }
    }
}

#[test]
fn what_is_measured_from_outside_is_hardly_linked() {
    let mut wrong = Vec::new();
    for (folder, may) in MEASURED_FROM_OUTSIDE {
        let named = SOURCES[folder].files.values().flatten().filter(|name| name[0] == "binlogd");
        let modules = named.filter_map(|name| name.get(1).cloned()).collect();
        compare(folder, &modules, may, &mut wrong);
    }
    assert!(wrong.is_empty(), "of the library binlogd: {wrong:#?}");
}

#[test]
fn no_file_is_in_a_circle_that_is_not_known() {
    let circles_of = |(folder, sources): (&&'static str, &Sources)| -> Vec<(String, Vec<String>)> {
        let circles = circles(&sources.edges());
        let names = circles.iter().map(|circle| circle.iter().map(file_name).collect::<Vec<_>>());
        names.map(|circle| ((*folder).to_owned(), circle)).collect()
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

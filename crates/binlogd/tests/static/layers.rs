//! Who may import whom. The table below is the rule; the `use` lines and paths of the sources are held against it.

use std::collections::BTreeMap;
use std::path::Path;

/// Module, and the modules and crates of the project that it may name. `codec` and crates of others are free to all, except that
/// mysql_common stays in `wire`. That `log` and `wire` name nothing of this crate is held by the compiler.
const ALLOWED: &[(&str, &[&str])] = &[
    ("main", &["cli"]),
    ("cli", &["admin", "cli", "config", "daemon", "doctor", "log", "rescue", "status", "upstream", "wire"]),
    ("daemon", &["admin", "config", "log", "status", "upstream", "wire"]),
    ("upstream", &["config", "log", "status", "upstream", "wire"]),
    ("admin", &["admin", "status"]),
    ("doctor", &["config", "doctor", "wire"]),
    // `upstream` knows how to ask a server who it is and what it has executed.
    ("rescue", &["log", "rescue", "upstream", "wire"]),
    // The keys of `wire` appear in the configuration as they are.
    ("config", &["config", "wire"]),
    ("status", &["config", "status"]),
];

/// Crates of the project whose use the table rules too.
const CRATES: [&str; 2] = ["log", "wire"];

/// All Rust files in a folder and those in it.
pub(crate) fn rust_files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Modules that the code names as `crate::module` or `binlogd::module`, and crates that it names, comments left out.
fn named_modules(code: &str) -> Vec<String> {
    let mut named = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for prefix in ["crate::", "binlogd::"] {
            for (at, _) in line.match_indices(prefix) {
                let word: String = line[at + prefix.len()..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                named.push(word);
            }
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for name in CRATES {
            let is_first = |at: usize| !line[..at].ends_with(is_part);
            if line.match_indices(&format!("{name}::")).any(|(at, _)| is_first(at)) {
                named.push(name.to_owned());
            }
        }
    }
    named
}

#[test]
fn modules_name_only_what_is_below_them() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&root).unwrap();
        let module = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = module.trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let Some(may) = allowed.get(module) else {
            wrong.push(format!("{module} is not in the table of this test"));
            continue;
        };
        let code = std::fs::read_to_string(&file).unwrap();
        // Tests may use what they need; product code is above them.
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
        for name in named_modules(code) {
            let is_ruled = allowed.contains_key(name.as_str()) || CRATES.contains(&name.as_str());
            if is_ruled && name != module && !may.contains(&name.as_str()) {
                wrong.push(format!("{} names {name}", relative.display()));
            }
        }
        if code.contains("mysql_common") {
            wrong.push(format!("{} uses mysql_common, which belongs in wire", relative.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_check_sees_paths_and_ignores_comments() {
    let code = "use log::writer;\n    // wire::Tcp is not used\nfn f() { crate::status::x(); a::log::y(); catalog::z(); }";
    assert_eq!(named_modules(code), ["log", "status"]);
}

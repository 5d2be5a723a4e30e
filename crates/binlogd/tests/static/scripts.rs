//! Scripts. None writes into a pipe whose reader goes before the writer does: with `pipefail`, which all of them set, a writer
//! that ends with SIGPIPE makes a failure of a success, and only now and then. And `make test` leaves no target of tests out, and the
//! units of systemd run nothing that may not be there.

use std::path::{Path, PathBuf};

/// A program, and whether it leaves early with these arguments.
type Reader = (&'static str, fn(&str) -> bool);

/// Readers that leave when they have seen enough, each with the words of its arguments that say so; none: always.
const LEAVE_EARLY: &[Reader] = &[
    ("head", |_| true),
    // GNU's grep leaves at its first find when its output is thrown away, too.
    ("grep", |arguments| has_flag(arguments, &['q', 'm', 'l']) || arguments.contains(">/dev/null")),
    ("sed", |arguments| {
        let script = arguments.trim_end_matches(['\'', '"', ')', ';', '}', ' ']);
        script.ends_with('q') && !script.ends_with("\\q")
    }),
    ("awk", |arguments| arguments.contains("exit")),
    ("read", |_| true),
];

/// Whether one of the short options stands in a word, or its long form.
fn has_flag(arguments: &str, flags: &[char]) -> bool {
    arguments.split_whitespace().take_while(|word| word.starts_with('-')).any(|word| {
        match word.strip_prefix("--") {
            Some(long) => ["quiet", "silent", "max-count", "files-with-matches"]
                .iter()
                .any(|name| long.starts_with(name)),
            None => word.contains(flags),
        }
    })
}

/// The programs behind the pipes of a line that leave early. What `|| true` follows may.
fn early_readers(line: &str) -> Vec<&str> {
    let line = line.trim();
    if line.starts_with('#') || line.ends_with("|| true") {
        return Vec::new();
    }
    let pipes = line.match_indices('|').filter(|(at, _)| {
        let is_alone = |at: usize| line.as_bytes().get(at) != Some(&b'|');
        is_alone(at + 1) && (*at == 0 || is_alone(at - 1))
    });
    let commands =
        pipes.map(|(at, _)| line[at + 1..].trim_start_matches('&').split('|').next().unwrap_or_default());
    commands
        .filter_map(|command| {
            let words = command.split_whitespace().skip_while(|word| word.contains('=') || *word == "env");
            let program = words.clone().next()?;
            let arguments = command.split_once(program)?.1;
            let early = LEAVE_EARLY.iter().find(|(name, _)| *name == program)?;
            early.1(arguments).then_some(program)
        })
        .collect()
}

/// Every script of the repository, and the Makefile.
fn scripts() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("Makefile"), root.join(".ci/run")];
    super::imports::files(&root.join("scripts"), &mut found);
    found
}

#[test]
fn no_script_pipes_into_what_leaves_early() {
    let mut wrong = Vec::new();
    for path in scripts() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for program in early_readers(line) {
                wrong.push(format!(
                    "{}:{}: {program} behind a pipe: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "the writer may end with SIGPIPE: {wrong:#?}");
}

#[test]
fn the_check_knows_who_leaves_early() {
    let early = [
        "tail -c +1 log | grep -q ready",
        "x | grep -F -m1 ready",
        "x | LC_ALL=C grep ready >/dev/null",
        "x | sort | head -n 1",
        "x 2>&1 | sed -n '/a/,/b/p;/b/q'",
        "x | awk '/a/ { print; exit }'",
        "x | read -r line",
    ];
    for line in early {
        assert_eq!(early_readers(line).len(), 1, "{line}");
    }
    let late = [
        "# x | head",
        "x || head file",
        "x | head -3 || true",
        "x | grep -c ready",
        "grep -q ready file || x",
        "x | while read -r line; do y; done",
        "x | tail -n 1 | sed 's/q/p/'",
        "x | awk -F'|' '{ print $1 }'",
    ];
    for line in late {
        assert_eq!(early_readers(line), [""; 0], "{line}");
    }
}

/// The Makefile names the targets of tests by where cargo looks for them. What a manifest could say besides, none does.
#[test]
fn targets_of_tests_are_where_make_test_looks() {
    let mut seen = 0;
    for folder in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
        let folder = folder.unwrap().path();
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        seen += 1;
        assert!(!folder.join("examples").exists(), "{}: make test builds no examples", folder.display());
        assert!(manifest["package"].get("autotests").is_none(), "{}: autotests", folder.display());
        for test in manifest.get("test").and_then(|tests| tests.as_array()).into_iter().flatten() {
            let name = test["name"].as_str().unwrap();
            let keys: Vec<_> = test.as_table().unwrap().keys().collect();
            assert_eq!(keys, ["harness", "name"], "{}: {name}", folder.display());
        }
    }
    assert!(seen > 5, "{seen} crates");
}

/// A minimal Debian has no `/bin/kill`: it is of procps, which no package of ours needs.
#[test]
fn units_run_binlogd_and_the_shell_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let mut found = 0;
    for unit in std::fs::read_dir(folder).unwrap() {
        let path = unit.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| line.starts_with("Exec")) {
            let (_, command) = line.split_once('=').unwrap();
            let ours = ["/usr/local/bin/binlogd ", "/bin/sh -c 'kill -HUP "];
            assert!(ours.iter().any(|one| command.starts_with(one)), "{}: {line}", path.display());
            found += 1;
        }
    }
    assert_eq!(found, 3);
}

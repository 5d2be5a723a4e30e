//! What the promise rests on and no type can say: the few places at which a position may be called safe, an acknowledgement be
//! made, and a file be cut, renamed or removed. Who adds one has to say so here, and will be asked why.

use super::imports::rust_files;
use std::path::Path;

/// Code, and how often it stands where in the product.
const PLACES: &[(&str, &[(&str, usize)])] = &[
    // Its declaration, and the branch for `fsync_mode = 0`.
    ("accepted_unsynced", &[("log/lib.rs", 1), ("receive/sink/mod.rs", 1)]),
    // Their declarations; who did the work makes them, `SafeHere` from one of the two.
    ("Written(", &[("log/lib.rs", 1), ("log/writer.rs", 1)]),
    ("Durable(", &[("log/lib.rs", 1), ("log/writer.rs", 1)]),
    ("SafeHere(", &[("log/lib.rs", 3)]),
    // What others have made durable is what they say, and nothing else.
    ("Confirmed(", &[("log/lib.rs", 1), ("log/confirmations.rs", 1)]),
    // What is safe here alone, or the smaller of that and of what others have: `ack_after_replicas` decides, in one place.
    ("Safe(", &[("log/lib.rs", 4)]),
    (".alone()", &[("receive/sink/downstream.rs", 2)]),
    (".and_there(", &[("receive/sink/downstream.rs", 1)]),
    // One way to an acknowledgement.
    ("semi_sync_acknowledgement(", &[("receive/sink/acknowledge.rs", 1)]),
    ("acknowledger.pay(", &[("receive/sink/acknowledgements.rs", 1)]),
    // What nobody's configuration but the operator's sets.
    // How far readers may read: the second of these.
    (
        "FsyncMode::WriteThenAcknowledge =>",
        &[("status/ladder.rs", 1), ("receive/sink/mod.rs", 1), ("receive/sink/held.rs", 1)],
    ),
    ("WriteThenAcknowledge = \"0\"", &[("config/tables/source.rs", 1)]),
    ("=> FsyncMode::WriteThenAcknowledge", &[("status/monitor/mod.rs", 1)]),
    // A write of the journal is durable when it returns: a file opened for that, by nobody else.
    ("storage.open_synced(", &[("log/activity.rs", 1), ("log/journal/mod.rs", 1)]),
    // A live file is cut at its last boundary, by its writer or by the recovery; there also one without its magic.
    (
        "file.truncate(",
        &[("log/activity.rs", 1), ("log/posix_file.rs", 1), ("log/recover.rs", 2), ("log/writer.rs", 1)],
    ),
    ("set_len(", &[("log/posix_file.rs", 1)]),
    // Unfinished files, marks, search indexes, what rescue has noted, slots, the space kept for a record; and binary logs in one place, when they are recorded as purged.
    (
        ".remove_file(",
        &[
            ("log/activity.rs", 1),
            ("log/index.rs", 1),
            ("log/journal/mod.rs", 3),
            // Passes it on, for storages of tests and benchmarks.
            ("log/posix_instead.rs", 1),
            ("log/purge/reserve.rs", 1),
            ("log/purge/unfinished.rs", 1),
            ("log/recover.rs", 1),
            ("log/search_index.rs", 1),
            ("repair/rescue/restore.rs", 1),
            ("serve/retention/slots.rs", 1),
        ],
    ),
    ("remove_dir", &[]),
    // What was unfinished gets its name; a journal that somebody has cut is put aside.
    (
        "storage.rename(",
        &[("log/activity.rs", 1), ("log/index.rs", 1), ("log/journal/mod.rs", 2), ("log/timeline.rs", 1)],
    ),
    // All that is kept goes through the storage, so that the simulation sees it. Besides: locks, the admin server's address, and
    // the configuration and password that setup writes before there is a copy, and what `cat --output` writes for somebody else:
    // whole and never over another file.
    (
        "OpenOptions::new(",
        &[
            ("admin/address.rs", 1),
            ("cli/cat.rs", 1),
            ("log/lock.rs", 2),
            ("log/posix.rs", 3),
            ("setup/write.rs", 1),
        ],
    ),
    ("fs::write(", &[("log/lock.rs", 1)]),
    ("fs::rename(", &[("admin/address.rs", 1), ("log/posix.rs", 1)]),
    (
        "fs::remove_file(",
        &[("admin/address.rs", 4), ("cli/cat.rs", 1), ("log/posix.rs", 1), ("setup/write.rs", 3)],
    ),
    ("File::create", &[]),
    ("File::options(", &[]),
    ("fs::copy(", &[]),
    // Unlike a rename it fails where the name is taken.
    ("hard_link", &[("cli/cat.rs", 1), ("setup/write.rs", 2)]),
    ("create_dir_all", &[]),
];

/// The crates that the program is made of. `archive` and `codec` are left out.
const SHIPPED: &[&str] = &[
    "admin", "binlogd", "config", "log", "points", "receive", "repair", "serve", "setup", "source", "status",
    "wire",
];

/// Lines of a file that are neither comments nor tests.
fn product_lines(code: &str) -> Vec<&str> {
    let code = code.split("\n#[cfg(test)]\n").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect()
}

/// How often `word` stands in the code, but not as the end of a longer word.
fn count(code: &str, word: &str) -> usize {
    let is_whole = |at: usize| {
        !word.starts_with(char::is_alphanumeric)
            || !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    };
    code.match_indices(word).filter(|(at, _)| is_whole(*at)).count()
}

/// The line that opens the block in which the line number `at` stands.
fn opener<'a>(lines: &[&'a str], at: usize) -> &'a str {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let before = lines[..at].iter().rev();
    before.copied().find(|line| !line.is_empty() && indent(line) < indent(lines[at])).unwrap_or_default()
}

/// Each file of the product's source, by its path, with what is neither comment nor test.
fn product() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut product = Vec::new();
    for name in SHIPPED {
        let root = crates.join(name).join("src");
        let prefix = if *name == "binlogd" { "" } else { name };
        let mut files = Vec::new();
        rust_files(&root, &mut files);
        let is_test = |path: &Path| {
            let below = path.strip_prefix(&root).unwrap();
            below.ends_with("tests.rs")
                || below.starts_with("testing")
                || below.iter().any(|part| part == "tests")
        };
        for path in files.iter().filter(|path| !is_test(path)) {
            let name = Path::new(prefix).join(path.strip_prefix(&root).unwrap());
            let code = product_lines(&std::fs::read_to_string(path).unwrap()).join("\n");
            product.push((name.to_str().unwrap().to_owned(), code));
        }
    }
    product
}

#[test]
fn what_the_promise_rests_on_stands_where_it_is_known_to() {
    let product = product();
    let mut wrong = Vec::new();
    for (word, known) in PLACES {
        for (file, code) in &product {
            let expected = known.iter().find(|(place, _)| place == file).map_or(0, |(_, count)| *count);
            let found = count(code, word);
            if found != expected {
                wrong.push(format!("{file}: {word:?} stands there {found} times, not {expected}"));
            }
        }
        for (place, _) in known.iter().filter(|(place, _)| !product.iter().any(|(file, _)| file == place)) {
            wrong.push(format!("{place} is named by this test and is not there"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `fsync_mode = 0` alone acknowledges what is only written.
#[test]
fn what_no_sync_has_covered_is_called_safe_in_one_branch() {
    let (_, code) = product().into_iter().find(|(file, _)| file == "receive/sink/mod.rs").unwrap();
    let lines: Vec<&str> = code.lines().collect();
    let calls = (0..lines.len()).filter(|at| lines[*at].contains("accepted_unsynced"));
    for at in calls {
        assert_eq!(opener(&lines, at).trim(), "match self.options.fsync_mode {", "{}", lines[at]);
        let arm =
            "FsyncMode::WriteThenAcknowledge => log.written().map(|written| written.accepted_unsynced()),";
        assert_eq!(lines[at].trim(), arm);
    }
}

#[test]
fn the_check_counts_calls_and_ignores_comments_and_tests() {
    let code = "// Safe(1)\nfn f() {\n    if a {\n        Safe(x); Unsafe(y)\n    }\n}\n#[cfg(test)]\nmod tests { Safe(z) }";
    let lines = product_lines(code);
    assert_eq!((count(&lines.join("\n"), "Safe("), lines.len()), (1, 5));
    assert_eq!(opener(&lines, 2).trim(), "if a {");
}

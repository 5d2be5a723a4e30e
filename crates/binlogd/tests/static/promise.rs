//! What the promise rests on and no type can say: the few places at which a position may be called safe, an acknowledgement be
//! made, and a file be cut, renamed or removed. Who adds one has to say so here, and will be asked why.

use super::imports::rust_files;
use std::path::Path;

/// What cuts a file; what cuts a list has no result, and is not counted.
const CUT: &str = ".truncate(";

/// Code, and how often it stands where in the product.
const PLACES: &[(&str, &[(&str, usize)])] = &[
    // Its declaration, and the branch for `fsync_mode = 0`.
    ("accepted_unsynced", &[("binlog/lib.rs", 1), ("receive/sink/mod.rs", 1)]),
    // Their declarations; who did the work makes them, `SafeHere` from one of the two.
    ("Written(", &[("binlog/lib.rs", 1), ("binlog/writer/mod.rs", 1)]),
    ("Durable(", &[("binlog/lib.rs", 1), ("binlog/writer/mod.rs", 1)]),
    ("SafeHere(", &[("binlog/lib.rs", 3)]),
    // What others have made durable is what they say, and nothing else.
    ("Confirmed(", &[("binlog/lib.rs", 1), ("binlog/writer/confirmations.rs", 1)]),
    // What is safe here alone, or the smaller of that and of what others have: `ack_after_replicas` decides, in one place.
    ("Safe(", &[("binlog/lib.rs", 4)]),
    (".alone()", &[("receive/sink/downstream.rs", 2)]),
    (".and_there(", &[("receive/sink/downstream.rs", 1)]),
    // One way to an acknowledgement.
    ("semi_sync_acknowledgement(", &[("codec/packet/semi_sync.rs", 1), ("receive/sink/acknowledge.rs", 1)]),
    ("acknowledger.pay(", &[("receive/sink/acknowledgements.rs", 1)]),
    // What nobody's configuration but the operator's sets.
    // How far readers may read: the second of these.
    (
        "FsyncMode::WriteThenAcknowledge =>",
        &[("status/ladder/mod.rs", 1), ("receive/sink/mod.rs", 1), ("receive/sink/held.rs", 1)],
    ),
    ("WriteThenAcknowledge = \"0\"", &[("config/tables/source.rs", 1)]),
    ("=> FsyncMode::WriteThenAcknowledge", &[("status/monitor/mod.rs", 1)]),
    // A write of the journal is durable when it returns: a file opened for that, by nobody else.
    ("storage.open_synced(", &[("binlog/storage/activity.rs", 1), ("binlog/journal/mod.rs", 1)]),
    // A live file is cut at its last boundary, by its writer or by the recovery; there also one without its magic. What is
    // fetched from an archive is cut at its length there, before it gets its name.
    (
        CUT,
        &[
            ("archive/fetch.rs", 1),
            // Of a new server: how it begins, and how it is reached.
            ("backup/new_server/folder.rs", 1),
            // What is written for somebody else, and a lock's own text.
            ("cli/args/output_file.rs", 1),
            ("binlog/storage/lock.rs", 1),
            ("binlog/storage/activity.rs", 1),
            ("binlog/storage/posix_file.rs", 1),
            ("binlog/recover.rs", 2),
            ("binlog/writer/mod.rs", 1),
        ],
    ),
    ("set_len(", &[("binlog/storage/posix_file.rs", 1)]),
    // Unfinished files, marks, search indexes, what rescue has noted, slots, the space kept for a record; and binary logs in one place, when they are recorded as purged.
    (
        ".remove_file(",
        &[
            // The record that a copy begins from the archive, when all is there; what of such a beginning is given up.
            ("archive/begin.rs", 2),
            // Blocks of files that were read from the archive.
            ("archive/past/cache.rs", 3),
            // Passes it on.
            ("archive/past/mod.rs", 1),
            ("binlog/storage/activity.rs", 1),
            ("binlog/timeline/index.rs", 1),
            ("binlog/journal/mod.rs", 3),
            ("binlog/purge/reserve.rs", 1),
            ("binlog/purge/unfinished.rs", 1),
            ("binlog/recover.rs", 1),
            ("binlog/search_index.rs", 1),
            ("repair/rescue/hold/restore.rs", 1),
            ("serve/retention/slots.rs", 1),
        ],
    ),
    // Of a new server: what was fetched for it, and what was for the time being. Of a clone of ours: it, and what a killed run left. Of a
    // drill: all of it.
    (
        "remove_dir",
        &[("backup/new_server/folder.rs", 2), ("backup/take/clone.rs", 2), ("backup/drill/work.rs", 4)],
    ),
    // What was unfinished gets its name, what comes from an archive too; a journal that somebody has cut is put aside.
    (
        ".rename(",
        &[
            ("archive/begin.rs", 1),
            ("archive/fetch.rs", 1),
            // Blocks of files that were read from the archive.
            ("archive/past/cache.rs", 1),
            // Passes it on.
            ("archive/past/mod.rs", 1),
            ("binlog/storage/activity.rs", 1),
            ("binlog/timeline/index.rs", 1),
            ("binlog/journal/mod.rs", 2),
            ("binlog/timeline/mod.rs", 1),
            // The memory of a node that has left its quorum, by a person's word.
            ("quorum/node/file.rs", 1),
        ],
    ),
    // All that is kept goes through the storage, so that the simulation sees it. Besides: locks, the admin server's address, and
    // the configuration and password that setup writes before there is a copy, and what `cat --output` writes for somebody else:
    // whole and never over another file.
    (
        "OpenOptions::new(",
        &[
            ("admin/address.rs", 1),
            // In the folder of a new server; the mark of a drill's.
            ("backup/new_server/folder.rs", 1),
            ("backup/drill/work.rs", 1),
            ("cli/args/output_file.rs", 1),
            ("binlog/storage/lock.rs", 2),
            ("binlog/storage/posix.rs", 3),
            ("setup/write.rs", 1),
        ],
    ),
    // Of a clone: what the server that is started on it does first.
    ("fs::write(", &[("binlog/storage/lock.rs", 1), ("backup/take/clone.rs", 1)]),
    ("fs::rename(", &[("admin/address.rs", 1), ("binlog/storage/posix.rs", 1)]),
    (
        "fs::remove_file(",
        &[
            ("admin/address.rs", 4),
            // Of a new server: how it began, and the mark of what is not whole.
            ("backup/new_server/folder.rs", 2),
            // What is in a drill's folder.
            ("backup/drill/work.rs", 1),
            ("archive/store/remote/folder.rs", 2),
            ("cli/args/output_file.rs", 1),
            ("binlog/storage/posix.rs", 1),
            ("setup/write.rs", 3),
        ],
    ),
    ("File::create", &[]),
    // An archive that is a folder: an object of it, hidden until it is whole.
    ("File::options(", &[("archive/store/remote/folder.rs", 1)]),
    ("fs::copy(", &[]),
    // Unlike a rename it fails where the name is taken.
    (
        "hard_link",
        &[("archive/store/remote/folder.rs", 1), ("cli/args/output_file.rs", 1), ("setup/write.rs", 2)],
    ),
    ("create_dir_all", &[]),
];

/// Crates of which nothing is shipped.
const TOOLING: &[&str] = &["bench", "lab", "reference", "rig", "scripted-source"];

/// Lines of a file that are neither comments nor tests.
fn product_lines(code: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            pass_item(line, &mut lines);
        } else if !line.trim_start().starts_with("//") {
            kept.push(line);
        }
    }
    kept
}

/// Passes over the item that follows an attribute: one line, or the lines to the bracket that closes as deep as the attribute.
fn pass_item<'a>(attribute: &str, lines: &mut impl Iterator<Item = &'a str>) {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut is_begun = false;
    for line in lines {
        let is_attribute = line.trim_start().starts_with("#[") || (!is_begun && line.trim() == ")]");
        let is_one_line = !is_begun && line.ends_with([';', '}']);
        let closes = ["}", "];", ");"].contains(&line.trim()) && depth(line) == depth(attribute);
        if is_one_line || closes {
            return;
        }
        is_begun |= !is_attribute && depth(line) == depth(attribute);
    }
}

/// How often `word` stands in the code, but not as the end of a longer word.
fn count(code: &str, word: &str) -> usize {
    let is_whole = |at: usize| {
        !word.starts_with(char::is_alphanumeric)
            || !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
    };
    let is_meant = |at: usize| word != CUT || is_heeded(&code[at + word.len()..]);
    code.match_indices(word).filter(|(at, _)| is_whole(*at) && is_meant(*at)).count()
}

/// Whether the result of a call with arguments is looked at; `rest` begins with these. What cuts a list has no result, and is a
/// statement.
fn is_heeded(rest: &str) -> bool {
    let mut depth = 1;
    let end = rest.find(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    });
    end.is_some_and(|end| end > 0 && !rest[end + 1..].trim_start().starts_with(';'))
}

/// The line that opens the block in which the line number `at` stands.
fn opener<'a>(lines: &[&'a str], at: usize) -> &'a str {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let before = lines[..at].iter().rev();
    before.copied().find(|line| !line.is_empty() && indent(line) < indent(lines[at])).unwrap_or_default()
}

/// The crates that are shipped, by their folders.
fn shipped() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names = std::fs::read_dir(crates).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !TOOLING.contains(&name.as_str())).collect()
}

/// Each file of the product's source, by its path, with what is neither comment nor test.
fn product() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut product = Vec::new();
    for name in shipped() {
        let root = crates.join(&name).join("src");
        let prefix = if name == "binlogd" { "" } else { &name };
        let mut files = Vec::new();
        rust_files(&root, &mut files);
        let is_test = |path: &Path| {
            let below = path.strip_prefix(&root).unwrap();
            below.ends_with("tests.rs")
                || below.starts_with("testing")
                || below.starts_with("testing.rs")
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

/// clippy refuses what goes past the doors to the disk and to the clock (clippy.toml), and what ends a thread without a reason.
#[test]
fn every_shipped_crate_has_the_lints_of_the_house() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lints = "#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]";
    for name in shipped() {
        let code = std::fs::read_to_string(crates.join(&name).join("src/lib.rs")).unwrap();
        assert!(code.contains(lints), "crates/{name}/src/lib.rs has not {lints}");
    }
}

#[test]
fn the_check_counts_calls_and_ignores_comments_and_tests() {
    let code = "// Safe(1)\n#[cfg(test)]\nmod tests;\nfn f() {\n    if a {\n        Safe(x); Unsafe(y)\n    }\n}\n\
                #[cfg(test)]\nmod more {\n    Safe(z)\n}\nfn g() {}";
    let lines = product_lines(code);
    assert_eq!((count(&lines.join("\n"), "Safe("), lines.len()), (1, 6));
    assert_eq!(opener(&lines, 2).trim(), "if a {");
    assert_eq!(
        count("list.truncate(f(a)); file.truncate(f(b))?; file\n    .truncate(c)\n    .map_err(d)", CUT),
        2
    );
}

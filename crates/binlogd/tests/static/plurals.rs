//! No message says "1 transactions": a count and its noun come from `counted` (`status/units/mod.rs`), where that can be reached.

use crate::imports::{crates, rust_files};

/// Crates below the one that has `counted`, and those that are no part of the product.
const OTHERS: [&str; 11] = [
    "archive",
    "bench",
    "binlog",
    "codec",
    "lab",
    "platform",
    "points",
    "reference",
    "rig",
    "scripted-source",
    "wire",
];

const NOUNS: [&str; 9] =
    ["GTIDs", "files", "objects", "problems", "rows", "snapshots", "statements", "timelines", "transactions"];

/// What is always of several, and columns of a table.
const SEVERAL: [&str; 3] = ["may be {count} transactions", "may open {limit} files", "{:>12}"];

/// A placeholder, a blank and a noun for several; none behind "of", as in "1 of 1 files", and none for a limit, which is a constant.
fn is_found(line: &str) -> bool {
    line.match_indices("} ").any(|(at, _)| {
        let noun: String = line[at + 2..].chars().take_while(char::is_ascii_alphabetic).collect();
        let Some(begin) = line[..at].rfind('{') else { return false };
        let is_value = !line[begin..at].contains(|one: char| one.is_ascii_uppercase());
        NOUNS.contains(&noun.as_str()) && is_value && !line[..begin].ends_with("of ")
    })
}

#[test]
fn a_count_and_its_noun_agree() {
    let mut paths = Vec::new();
    rust_files(crates(), &mut paths);
    let mut found = Vec::new();
    for path in paths {
        let name = path.strip_prefix(crates()).unwrap().display().to_string();
        let is_ours =
            name.contains("/src/") && !OTHERS.iter().any(|other| name.starts_with(&format!("{other}/")));
        if !is_ours || name.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (text, _) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let lines =
            text.lines().filter(|line| is_found(line) && !SEVERAL.iter().any(|one| line.contains(one)));
        found.extend(lines.map(|line| format!("{name}: {}", line.trim())));
    }
    assert!(found.is_empty(), "use counted(count, noun):\n{}", found.join("\n"));
}

#[test]
fn a_count_beside_a_noun_is_found() {
    for (line, is) in [
        ("\"{} transactions\"", true),
        ("\"left: {left_out} rows\"", true),
        ("\"{done} of {all} files\"", false),
        ("\"more than {FILES_MAX} files\"", false),
        ("\"{} filesystems\"", false),
    ] {
        assert_eq!(is_found(line), is, "{line}");
    }
}

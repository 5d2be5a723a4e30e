//! The index against the folder.

use super::report::{Problem, whole};
use crate::timeline::index::INDEX_FILE;
use codec::BinlogName;

/// The files to walk, and what their names alone tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// All names in order, those of missing files included.
    pub(super) files: Vec<String>,
    pub(super) problems: Vec<Problem>,
    pub(super) notes: Vec<String>,
}

/// Holds the names in the index against those in the folder, which come sorted by number.
pub(super) fn compare(listed: &[String], present: &[String]) -> Order {
    let (mut problems, mut notes) = (Vec::new(), Vec::new());
    let mut files = Vec::new();
    for name in listed {
        match BinlogName::parse(name) {
            Ok(name) if files.contains(&name) => {
                problems.push(whole(format!("{INDEX_FILE} lists {name} twice")));
            }
            Ok(name) => files.push(name),
            Err(error) => problems.push(whole(format!("{INDEX_FILE} lists a wrong name: {error}"))),
        }
    }
    sort_if_disordered(&mut files, &mut problems);
    let after_newest_listed = files.last().and_then(BinlogName::successor);
    let unlisted = present.iter().filter(|name| !listed.contains(name));
    for name in unlisted.filter_map(|name| BinlogName::parse(name).ok()) {
        let later = files.iter().position(|file| file.is_after(&name));
        files.insert(later.unwrap_or(files.len()), name);
        let begun_last = after_newest_listed.as_deref() == Some(name.as_str());
        if begun_last || (listed.is_empty() && present.len() == 1) {
            // Between the two steps of beginning a file, or after a crash there.
            notes.push(format!("{name} is not in {INDEX_FILE} yet"));
        } else {
            problems.push(whole(format!("{name} is in the folder, but not in {INDEX_FILE}")));
        }
    }
    holes(&files, &mut problems, &mut notes);
    Order { files: files.iter().map(ToString::to_string).collect(), problems, notes }
}

/// Reports names whose numbers do not grow, and goes on in the order of the numbers.
fn sort_if_disordered(files: &mut [BinlogName<'_>], problems: &mut Vec<Problem>) {
    let disordered: Vec<Problem> = files
        .windows(2)
        .filter(|pair| pair[0].is_after(&pair[1]))
        .map(|pair| whole(format!("{INDEX_FILE} lists {} after {}", pair[1], pair[0])))
        .collect();
    if !disordered.is_empty() {
        files.sort();
        problems.extend(disordered);
    }
}

fn holes(files: &[BinlogName<'_>], problems: &mut Vec<Problem>, notes: &mut Vec<String>) {
    for pair in files.windows(2) {
        let (name, next) = (pair[0], pair[1]);
        if name.base() != next.base() {
            notes.push(format!("{name} is followed by {next}: the source's log_bin was renamed"));
            continue;
        }
        let first = name.successor().unwrap_or_default();
        let what = match next.number().saturating_sub(name.number()) {
            0 | 1 => continue,
            2 => format!("{first} is missing between {name} and {next}"),
            gap => format!("{} files, {first} the first, are missing between {name} and {next}", gap - 1),
        };
        problems.push(whole(what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn told(listed: &str, present: &str) -> (String, Vec<String>, Vec<String>) {
        let order = compare(&names(listed), &names(present));
        let problems = order.problems.iter().map(ToString::to_string).collect();
        (order.files.join(" "), problems, order.notes)
    }

    #[test]
    fn what_agrees_is_in_order() {
        assert_eq!(told("b.1 b.2 b.3", "b.1 b.2 b.3"), ("b.1 b.2 b.3".to_owned(), vec![], vec![]));
        assert_eq!(told("b.999999 b.1000000", "b.999999 b.1000000").1, Vec::<String>::new());
        assert_eq!(told("", ""), (String::new(), vec![], vec![]));
    }

    #[test]
    fn every_disagreement_is_told() {
        for (listed, present, files, expected) in [
            ("b.2 b.1", "b.1 b.2", "b.1 b.2", "binlog.index lists b.1 after b.2"),
            ("b.1 b.1", "b.1", "b.1", "binlog.index lists b.1 twice"),
            ("b.1 b.3", "b.1 b.2 b.3", "b.1 b.2 b.3", "b.2 is in the folder, but not in binlog.index"),
            ("b.2", "b.1 b.2", "b.1 b.2", "b.1 is in the folder, but not in binlog.index"),
            ("b.1 b.3", "b.1 b.3", "b.1 b.3", "b.2 is missing between b.1 and b.3"),
            ("b.1 b.9", "b.1 b.9", "b.1 b.9", "7 files, b.2 the first, are missing between b.1 and b.9"),
            (
                "b.1 ../b.2",
                "b.1",
                "b.1",
                "binlog.index lists a wrong name: \"../b.2\" is no name of a binary log: a bare file name of at most 512 bytes \
                 that ends in a dot and a number",
            ),
        ] {
            let (walked, problems, _) = told(listed, present);
            assert_eq!(
                (walked.as_str(), problems),
                (files, vec![expected.to_owned()]),
                "{listed} | {present}"
            );
        }
    }

    #[test]
    fn a_file_that_has_just_begun_need_not_be_listed() {
        assert_eq!(told("b.1", "b.1 b.2").1, Vec::<String>::new());
        assert_eq!(told("b.1", "b.1 b.2").2, ["b.2 is not in binlog.index yet"]);
        assert_eq!(told("", "b.7").2, ["b.7 is not in binlog.index yet"]);
        assert_eq!(told("", "b.7 b.8").1.len(), 2);
    }

    #[test]
    fn a_renamed_series_is_no_hole() {
        let (files, problems, notes) = told("a.7 b.1", "b.1 a.7");
        assert_eq!((files.as_str(), problems.len()), ("a.7 b.1", 0));
        assert_eq!(notes, ["a.7 is followed by b.1: the source's log_bin was renamed"]);
    }
}

//! The index against the folder.

use super::super::index::INDEX_FILE;
use super::{Problem, whole};

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
    let mut order = Order::default();
    for name in listed {
        if order.files.contains(name) {
            order.problems.push(whole(format!("{INDEX_FILE} lists {name} twice")));
        } else if parts(name).is_none() || name.contains('/') {
            order
                .problems
                .push(whole(format!("{INDEX_FILE} lists {name:?}, which is no name of a binary log")));
        } else {
            order.files.push(name.clone());
        }
    }
    sort_if_disordered(&mut order);
    let newest_listed = order.files.last().cloned();
    for name in present.iter().filter(|name| !listed.contains(name)) {
        let later = order.files.iter().position(|file| is_after(file, name));
        match later {
            Some(index) => order.files.insert(index, name.clone()),
            None => order.files.push(name.clone()),
        }
        let begun_last = newest_listed.as_ref().map(|newest| successor(newest)) == Some(Some(name.clone()));
        if begun_last || (listed.is_empty() && present.len() == 1) {
            // Between the two steps of beginning a file, or after a crash there.
            order.notes.push(format!("{name} is not in {INDEX_FILE} yet"));
        } else {
            order.problems.push(whole(format!("{name} is in the folder, but not in {INDEX_FILE}")));
        }
    }
    holes(&mut order);
    order
}

/// Reports names whose numbers do not grow, and goes on in the order of the numbers.
fn sort_if_disordered(order: &mut Order) {
    let disordered: Vec<String> = order
        .files
        .windows(2)
        .filter(|pair| is_after(&pair[0], &pair[1]))
        .map(|pair| format!("{INDEX_FILE} lists {} after {}", pair[1], pair[0]))
        .collect();
    if !disordered.is_empty() {
        order.files.sort_by_key(|name| parts(name).map(|(base, number)| (number, base.to_owned())));
        order.problems.extend(disordered.into_iter().map(whole));
    }
}

fn holes(order: &mut Order) {
    for pair in order.files.windows(2) {
        let (Some((base, number)), Some((next_base, next))) = (parts(&pair[0]), parts(&pair[1])) else {
            continue;
        };
        if base != next_base {
            order
                .notes
                .push(format!("{} is followed by {}: the source's log_bin was renamed", pair[0], pair[1]));
            continue;
        }
        let first = successor(&pair[0]).unwrap_or_default();
        let what = match next.saturating_sub(number) {
            0 | 1 => continue,
            2 => format!("{first} is missing between {} and {}", pair[0], pair[1]),
            gap => format!(
                "{} files, {first} the first, are missing between {} and {}",
                gap - 1,
                pair[0],
                pair[1]
            ),
        };
        order.problems.push(whole(what));
    }
}

/// Whether both are of one series and `name` has the greater number.
pub(super) fn is_after(name: &str, than: &str) -> bool {
    match (parts(name), parts(than)) {
        (Some((base, number)), Some((other_base, other))) => base == other_base && number > other,
        _ => false,
    }
}

/// The name of the file that follows: the number counted up, at least as many digits.
pub(super) fn successor(name: &str) -> Option<String> {
    let (base, number) = parts(name)?;
    let width = name.len() - base.len() - 1;
    Some(format!("{base}.{:0width$}", number.checked_add(1)?))
}

fn parts(name: &str) -> Option<(&str, u64)> {
    let (base, number) = name.rsplit_once('.')?;
    let digits = !base.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((base, number.parse().ok().filter(|_| digits)?))
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
            ("b.1 ../b.2", "b.1", "b.1", "binlog.index lists \"../b.2\", which is no name of a binary log"),
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

    #[test]
    fn successors() {
        for (name, next) in [("b.000001", "b.000002"), ("b.999999", "b.1000000"), ("x.y.09", "x.y.10")] {
            assert_eq!(successor(name).as_deref(), Some(next));
        }
        for name in ["b", "b.", ".1", "b.1x", "b.18446744073709551615", "b.99999999999999999999"] {
            assert_eq!(successor(name), None, "{name}");
        }
    }
}

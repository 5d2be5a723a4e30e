//! Parts of small histories, byte for byte.

use super::{Choice, NoCut, Request, Span, write};
use crate::history::{Copied, Until};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
use binlog::timeline::{Reason, Timeline};
use codec::event::BINLOG_MAGIC;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OTHER: &str = "cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd";

fn timeline(dir: &Path, number: u32, info: Timeline) -> PathBuf {
    info.create(&PosixStorage, dir, number).unwrap()
}

fn begun(before: &str) -> FileBuilder {
    let set = if before.is_empty() { String::new() } else { format!("{SERVER_UUID}:{before}") };
    FileBuilder::new().previous_gtids(&set)
}

/// Transactions 1 and 2 in the first file, 3 and 4 in the second, which begins behind `before`.
fn copy(before: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let folder = timeline(dir.path(), 1, first_timeline(SERVER_UUID));
    let first = begun("").transaction(1, 90).transaction(2, 50).rotate("b.000002").finish();
    std::fs::write(folder.join("b.000001"), first).unwrap();
    let second = begun(before).transaction(3, 70).transaction(4, 2_000_000).finish();
    std::fs::write(folder.join("b.000002"), second).unwrap();
    dir
}

fn point(text: &str) -> Until {
    Until::parse(text, &|_| None).unwrap()
}

fn gtid(number: u64) -> String {
    format!("{SERVER_UUID}:{number}")
}

fn cut(dir: &Path, from: Option<&str>, until: &str) -> Result<Vec<u8>, NoCut> {
    let copied = Copied::open("orders", dir, Arc::new(PosixStorage), None).unwrap();
    let request = Request { from: from.map(point), until: point(until), choice: Choice::default() };
    let span = Span::find(&copied, &request, &mut |_, _| ())?;
    let mut out = Vec::new();
    write(&copied, &request, &span, &mut out, &mut |_| ())?;
    Ok(out)
}

/// Of the head of a log, the flag that servers set in PREVIOUS_GTIDS, so that older readers pass it over.
fn flagged(log: &[u8]) -> Vec<u8> {
    let mut log = log.to_vec();
    let at = FileBuilder::new().len();
    let size = u32::from_le_bytes(log[at + 9..at + 13].try_into().unwrap()) as usize;
    log[at + 17] |= 0x80;
    let checksum = crc32fast::hash(&log[at..at + size - 4]);
    log[at + size - 4..at + size].copy_from_slice(&checksum.to_le_bytes());
    log
}

/// Behind the head, the events of a file: of those that transactions consist of.
fn transactions(log: &[u8]) -> Vec<u8> {
    assert_eq!(log[..4], BINLOG_MAGIC);
    let (mut at, mut found) = (4, Vec::new());
    while at < log.len() {
        let size = u32::from_le_bytes(log[at + 9..at + 13].try_into().unwrap()) as usize;
        let event = &log[at..at + size];
        let covered = &event[..size - 4];
        assert_eq!(event[size - 4..], crc32fast::hash(covered).to_le_bytes(), "a valid checksum");
        if matches!(event[4], 2 | 16 | 30 | 33) {
            found.extend_from_slice(event);
        }
        at += size;
    }
    found
}

#[test]
fn a_part_has_one_head_and_the_bytes_of_the_files() {
    let dir = copy("1-2");
    let (second, fourth) = (gtid(2), gtid(4));
    let first = begun("").transaction(1, 90).transaction(2, 50).finish();
    let last = begun("1-2").transaction(3, 70).finish();
    // The second transaction of the first file, and the first of the second.
    let head = begun("1").finish();
    let taken = first.len() - begun("").transaction(1, 90).len();
    let expected = [&head, &first[first.len() - taken..], &last[begun("1-2").len()..]].concat();
    assert_eq!(cut(dir.path(), Some(&second), &fourth).unwrap(), flagged(&expected));
    assert_eq!(
        cut(dir.path(), Some("b.000001:5"), "end").unwrap().len(),
        cut(dir.path(), None, "end").unwrap().len()
    );
    let all = cut(dir.path(), None, "end").unwrap();
    assert!(all.starts_with(&flagged(&begun("").finish())) && all.len() > 2_000_000);
    let of_second = cut(dir.path(), Some(&format!("after {second}")), "end").unwrap();
    assert!(of_second.starts_with(&flagged(&last)), "what was executed before is what the file says");
    let by_place = cut(dir.path(), Some("b.000002:4"), &format!("after {}", gtid(3))).unwrap();
    assert_eq!(by_place, flagged(&last));
}

#[test]
fn a_point_that_is_not_there_and_a_gap_are_refused() {
    let dir = copy("1-2");
    let refused = |from: Option<&str>, until: &str| cut(dir.path(), from, until).unwrap_err().to_string();
    let later = refused(None, &gtid(9));
    assert!(later.contains("does not come to --until") && later.contains(&gtid(4)), "{later}");
    let first = refused(Some(&gtid(4)), &gtid(2));
    assert!(first.contains("comes before --from"), "{first}");
    assert!(refused(Some("b.000009:4"), "end").contains("has no file b.000009"));
    assert!(refused(Some(&gtid(3)), &gtid(3)).contains("no transaction between"));
    // Rows that cannot be read may be what a statement means.
    let unread = refused(None, "before DELETE FROM shop.orders");
    assert!(unread.contains("cannot be looked at"), "{unread}");

    let dir = copy("1-2:77");
    let gap = cut(dir.path(), None, "end").unwrap_err().to_string();
    assert!(gap.contains("a gap before b.000002") && gap.contains(&gtid(77)), "{gap}");
    cut(dir.path(), None, &gtid(2)).unwrap();
    cut(dir.path(), Some(&gtid(3)), "end").unwrap();
}

#[test]
fn damage_is_found_before_anything_is_written() {
    let dir = copy("1-2");
    let path = dir.path().join(format!("0001-{SERVER_UUID}")).join("b.000001");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = begun("").transaction(1, 90).len() - 60;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = cut(dir.path(), None, "end").unwrap_err().to_string();
    assert!(error.contains("b.000001: it is damaged at"), "{error}");
}

/// A failover: the new source has 1 to 3, of which its first file repeats 3, and not 4, which the old one took with it.
#[test]
fn what_a_fork_repeats_or_took_back_is_not_written_twice_or_at_all() {
    let dir = copy("1-2");
    let fork = Timeline {
        reason: Reason::Fork,
        previous: format!("0001-{SERVER_UUID}"),
        gtid_before: format!("{SERVER_UUID}:1-2"),
        source_lacks: gtid(4),
        ..first_timeline(OTHER)
    };
    let folder = timeline(dir.path(), 2, fork);
    let again = begun("1-2").transaction(3, 70).transaction(5, 30).finish();
    std::fs::write(folder.join("b.000001"), &again).unwrap();
    let found = transactions(&cut(dir.path(), None, "end").unwrap());
    let first = transactions(&begun("").transaction(1, 90).transaction(2, 50).finish());
    let mut expected = first;
    expected.extend(transactions(&begun("1-2").transaction(3, 70).finish()));
    expected.extend(&again[begun("1-2").transaction(3, 70).len()..]);
    assert_eq!(found.len(), expected.len());
    // The position in a header is that of the event's own file.
    assert!(found == expected);
}

/// A replica that does not log what it applies becomes the source: its files do not say what was before.
#[test]
fn a_beginning_is_found_before_a_source_that_does_not_name_it() {
    let dir = copy("1-2");
    let next = Timeline {
        reason: Reason::SourceChanged,
        previous: format!("0001-{SERVER_UUID}"),
        gtid_before: format!("{SERVER_UUID}:1-4"),
        ..first_timeline(OTHER)
    };
    let folder = timeline(dir.path(), 2, next);
    std::fs::write(folder.join("b.000001"), begun("").transaction(5, 30).rotate("b.000002").finish())
        .unwrap();
    std::fs::write(folder.join("b.000002"), begun("5").transaction(6, 30).finish()).unwrap();
    let all = transactions(&cut(dir.path(), None, "end").unwrap());
    let behind = |number: u64| transactions(&cut(dir.path(), Some(&gtid(number)), "end").unwrap());
    assert!(behind(1) == all);
    for number in 2..=6 {
        let found = behind(number);
        assert!(found.len() < behind(number - 1).len() && all.ends_with(&found), "from {number}");
    }
}

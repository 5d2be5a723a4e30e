use super::*;
use crate::recover::{Tail, recover, recover_watched};
use crate::scan::{FileScan, scan_file};
use crate::storage::posix::PosixStorage;
use crate::testing::{FileBuilder, NOW, SERVER_UUID};
use proptest::prelude::*;
use std::fs::File;
use std::path::PathBuf;

const NAME: &str = "b.000001";

/// A source's folder with one timeline whose live file holds `bytes`.
fn source(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let timeline = dir.path().join("0001-u");
    std::fs::create_dir(&timeline).unwrap();
    std::fs::write(timeline.join(NAME), bytes).unwrap();
    (dir, timeline)
}

fn scan(bytes: &[u8]) -> FileScan {
    let (_dir, timeline) = source(bytes);
    scan_file(&File::open(timeline.join(NAME)).unwrap(), u64::MAX, |_| {}).unwrap()
}

/// What a walk of `bytes` finds.
fn known(bytes: &[u8]) -> Known {
    let found = scan(bytes);
    Known {
        offset: found.boundary,
        tail_start: found.tail_start,
        last_timestamp: found.last_timestamp,
        gtids: found.gtids_in_file(),
    }
}

fn mark(timeline: &Path, writer: &mut MarkWriter, known: &Known) {
    let file = File::open(timeline.join(NAME)).unwrap();
    writer.write(&PosixStorage, timeline, NAME, &file, known).unwrap();
}

/// Where recovery goes on to read events, and what it finds: position, GTIDs, tail, time of the last event.
fn recovered(timeline: &Path, beginning: usize) -> (u64, (u64, String, u64, u32)) {
    let mut first = None;
    let found = recover_watched(&PosixStorage, timeline, Tail::SaveAside(NOW), &mut |at, _| {
        if at > beginning as u64 {
            first.get_or_insert(at);
        }
        Ok(())
    })
    .unwrap();
    let live = found.live.unwrap();
    (first.unwrap_or(live.len), (live.len, found.gtids.to_line(), live.tail_start, live.last_timestamp))
}

#[test]
fn the_walk_begins_at_the_mark_and_finds_the_same() {
    let holes: Vec<String> = (0..50_000).map(|n| (n * 2 + 1).to_string()).collect();
    let builder = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:{}", holes.join(":")));
    let beginning = builder.len();
    let builder = builder.transaction(200_000, 100).transaction(200_002, 100);
    let marked = builder.len();
    let whole = builder.transaction(200_004, 50).finish();
    for len in [marked, marked + 70, whole.len()] {
        let (dir, timeline) = source(&whole[..len]);
        let (from, without) = recovered(&timeline, beginning);
        assert!(from < marked as u64);
        std::fs::write(timeline.join(NAME), &whole[..len]).unwrap();
        mark(&timeline, &mut Marks::default().writer(), &known(&whole[..marked]));
        let size = std::fs::metadata(dir.path().join(MARK_FILE)).unwrap().len();
        assert!(size < 33_000, "what was executed before the file is not repeated in {size} bytes");
        let (from, with) = recovered(&timeline, beginning);
        assert!(from >= marked as u64, "{from}");
        assert_eq!(with, without);
    }
}

#[test]
fn a_set_that_is_large_has_a_slot_of_its_own_and_one_that_is_too_large_none() {
    let (dir, timeline) = source(&FileBuilder::new().previous_gtids("").finish());
    let bytes = std::fs::read(timeline.join(NAME)).unwrap();
    let mut writer = Marks::default().writer();
    for (intervals, is_held) in [(50_000u64, true), (400_000, false)] {
        let mut set = codec::gtid::GtidSet::new();
        (0..intervals).for_each(|n| {
            set.insert_interval(SERVER_UUID.parse().unwrap(), Default::default(), n * 2 + 1, n * 2 + 1);
        });
        let known = Known { gtids: set.into(), ..known(&bytes) };
        mark(&timeline, &mut writer, &known);
        let marks = Marks::read(&PosixStorage, dir.path());
        let found = marks.known("0001-u", NAME, &File::open(timeline.join(NAME)).unwrap(), u64::MAX).unwrap();
        assert_eq!(found == Some(&known), is_held);
    }
}

#[test]
fn a_mark_that_the_file_does_not_bear_out_is_not_believed_and_goes() {
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
    let short = builder.len();
    let whole = builder.transaction(2, 100).finish();
    let mut other = whole.clone();
    other[short - 10] ^= 1;
    let others_name = [("0002-u", NAME), ("0001-u", "b.000002")];
    for bytes in [&whole[..short], &other, b"\xfebin", b""] {
        let (dir, timeline) = source(&whole);
        mark(&timeline, &mut Marks::default().writer(), &known(&whole));
        std::fs::write(timeline.join(NAME), bytes).unwrap();
        let expected = scan(bytes);
        let (from, found) = recovered(&timeline, 0);
        assert!(from < short as u64 || expected.boundary <= short as u64);
        assert_eq!(found.0, expected.boundary.max(4));
        // Otherwise it would be believed of what comes in the place of what was cut.
        assert!(!dir.path().join(MARK_FILE).exists());
    }
    for (timeline_name, name) in others_name {
        let (dir, timeline) = source(&whole);
        let file = File::open(timeline.join(NAME)).unwrap();
        let elsewhere = dir.path().join(timeline_name);
        Marks::default().writer().write(&PosixStorage, &elsewhere, name, &file, &known(&whole)).unwrap();
        assert!(recovered(&timeline, 0).0 < short as u64);
        assert!(!dir.path().join(MARK_FILE).exists());
    }
    // The whole timeline was removed, and another one of its name begins.
    let (dir, timeline) = source(&whole);
    mark(&timeline, &mut Marks::default().writer(), &known(&whole));
    std::fs::remove_file(timeline.join(NAME)).unwrap();
    assert!(recover(&PosixStorage, &timeline, Tail::SaveAside(NOW)).unwrap().live.is_none());
    assert!(!dir.path().join(MARK_FILE).exists());
}

#[test]
fn the_newest_whole_mark_counts() {
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
    let first = known(&builder.finish());
    let whole = FileBuilder::new().previous_gtids("").transaction(1, 100).transaction(2, 100).finish();
    let second = known(&whole);
    let (dir, timeline) = source(&whole);
    let mut writer = Marks::default().writer();
    mark(&timeline, &mut writer, &first);
    mark(&timeline, &mut writer, &second);
    let path = dir.path().join(MARK_FILE);
    let bytes = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(timeline.join(NAME)).unwrap();
        let marks = Marks::read(&PosixStorage, dir.path());
        marks.known("0001-u", NAME, &file, whole.len() as u64).unwrap().cloned()
    };
    assert_eq!(read(&bytes), Some(second.clone()));
    // The second has an even number and stands first.
    let mut torn = bytes.clone();
    torn[30] ^= 1;
    assert_eq!(read(&torn), Some(first));
    assert_eq!(read(&bytes[..100]), None);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Marks::read(&PosixStorage, dir.path()).writer().number, 3);
}

proptest! {
    /// No change of any byte makes a mark say something else.
    #[test]
    fn a_damaged_mark_is_none(at in 0usize..140, bit in 0u8..8) {
        let whole = FileBuilder::new().previous_gtids("").transaction(1, 100).finish();
        let (dir, timeline) = source(&whole);
        let written = known(&whole);
        mark(&timeline, &mut Marks::default().writer(), &written);
        let path = dir.path().join(MARK_FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        let begin = bytes.iter().position(|byte| *byte != 0).unwrap();
        let at = (begin + at).min(bytes.len() - 1);
        bytes[at] ^= 1 << bit;
        std::fs::write(&path, bytes).unwrap();
        let marks = Marks::read(&PosixStorage, dir.path());
        let file = File::open(timeline.join(NAME)).unwrap();
        let found = marks.known("0001-u", NAME, &file, whole.len() as u64).unwrap();
        // Bytes 53 to 55 mean nothing, and are covered all the same.
        prop_assert_eq!(found, None);
    }
}

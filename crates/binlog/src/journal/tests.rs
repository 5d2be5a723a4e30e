use super::*;
use crate::storage::posix::PosixStorage;
use crate::testing::FaultyStorage;
use std::sync::atomic::Ordering;

/// A source's folder with an empty journal, and a file with its magic only.
fn folder() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("0001-u")).unwrap();
    std::fs::write(dir.path().join("0001-u/b.000001"), codec::event::BINLOG_MAGIC).unwrap();
    let mut journal = Journal::create(&PosixStorage, dir.path()).unwrap();
    journal.begin_file("0001-u", "b.000001", 4);
    (dir, journal)
}

fn open(dir: &tempfile::TempDir) -> (io::Result<Option<Journal>>, Vec<String>) {
    let mut remarks = Vec::new();
    (Journal::open(&PosixStorage, dir.path(), Timestamp::now(), &mut remarks), remarks)
}

#[test]
fn there_is_none_until_it_is_made_and_it_is_made_once() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(open(&dir), (Ok(None), remarks) if remarks.is_empty()));
    std::fs::write(dir.path().join("journal.tmp"), "of a crash").unwrap();
    Journal::create(&PosixStorage, dir.path()).unwrap();
    assert_eq!(std::fs::metadata(dir.path().join(JOURNAL_FILE)).unwrap().len(), JOURNAL_LEN);
    assert_eq!(Journal::create(&PosixStorage, dir.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(matches!(open(&dir), (Ok(Some(_)), remarks) if remarks.is_empty()));
}

#[test]
fn a_full_disk_leaves_no_half_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    storage.writes_until_failure.store(3, Ordering::Relaxed);
    assert!(Journal::create(&storage, dir.path()).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn damage_of_its_beginning_is_told_and_nothing_is_guessed() {
    let (dir, _) = folder();
    let path = dir.path().join(JOURNAL_FILE);
    let sound = std::fs::read(&path).unwrap();
    let mut damaged = sound.clone();
    damaged[20] ^= 1;
    for bytes in [&damaged[..], &sound[..sound.len() - BLOCK], b""] {
        std::fs::write(&path, bytes).unwrap();
        let error = open(&dir).0.unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains("keep a copy"), "{error}");
    }
}

/// What stands in it may be acknowledged and nowhere else.
#[test]
fn one_of_a_later_form_is_refused_and_left_as_it_is() {
    let (dir, journal) = folder();
    drop(journal);
    let path = dir.path().join(JOURNAL_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] = 2;
    std::fs::write(&path, &bytes).unwrap();
    let error = open(&dir).0.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let said = error.to_string();
    assert!(said.contains("journal: format 2, and binlogd 0.") && said.contains("later version"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_file_that_is_gone_or_cut_from_outside_is_told() {
    let (dir, mut journal) = folder();
    for bytes in [&b"one"[..], &b"two"[..]] {
        journal.stage(bytes);
        journal.commit().unwrap();
        journal.restart(journal.staging.end());
    }
    let path = dir.path().join(JOURNAL_FILE);
    let bytes = std::fs::read(&path).unwrap();
    let log = dir.path().join("0001-u/b.000001");
    std::fs::write(&log, b"b").unwrap();
    let (opened, remarks) = open(&dir);
    assert!(opened.is_ok() && remarks[0].contains("was cut from outside"), "{remarks:?}");
    std::fs::write(&path, bytes).unwrap();
    std::fs::remove_file(&log).unwrap();
    let (opened, remarks) = open(&dir);
    assert!(opened.is_ok() && remarks[0].contains("the file is gone"), "{remarks:?}");
    let kept = std::fs::read_dir(dir.path()).unwrap().flatten();
    let kept = kept.filter(|file| file.file_name().to_string_lossy().starts_with("journal.kept-")).count();
    assert!(kept == 2 && remarks[1].contains("a copy of the journal is kept"), "{kept} copies, {remarks:?}");
}

#[test]
fn a_torn_record_is_not_put_back() {
    let (dir, mut journal) = folder();
    journal.stage(b"whole");
    journal.commit().unwrap();
    let lacking = waiting(&PosixStorage, dir.path()).unwrap().unwrap();
    assert_eq!((lacking.file.as_str(), lacking.bytes), ("0001-u/b.000001", 5));
    journal.restart(9);
    journal.stage(&[7; 2 * BLOCK]);
    journal.commit().unwrap();
    let path = dir.path().join(JOURNAL_FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3 * BLOCK..4 * BLOCK].fill(0); // The second block of the second record did not reach the disk.
    std::fs::write(&path, bytes).unwrap();
    open(&dir).0.unwrap();
    assert_eq!(std::fs::read(dir.path().join("0001-u/b.000001")).unwrap(), b"\xfebinwhole");
    assert_eq!(waiting(&PosixStorage, dir.path()).unwrap(), None);
}

/// A start finds nothing to put back; then the first record is torn by a crash.
#[test]
fn what_is_not_needed_any_more_does_not_come_back_when_the_next_record_is_torn() {
    let (dir, mut journal) = folder();
    journal.stage(b"of a transaction that was cut");
    journal.commit().unwrap();
    for _ in 0..2 {
        drop(open(&dir).0.unwrap());
    }
    let log = dir.path().join("0001-u/b.000001");
    std::fs::write(&log, codec::event::BINLOG_MAGIC).unwrap();
    let path = dir.path().join(JOURNAL_FILE);
    let before = std::fs::read(&path).unwrap();
    let mut journal = open(&dir).0.unwrap().unwrap();
    journal.begin_file("0001-u", "b.000001", 4);
    journal.stage(b"next");
    journal.commit().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let written = (0..bytes.len()).find(|at| bytes[*at] != before[*at]).unwrap() / BLOCK * BLOCK;
    bytes[written + 20..written + BLOCK].fill(0xaa);
    std::fs::write(&path, bytes).unwrap();
    let (opened, remarks) = open(&dir);
    assert!(opened.is_ok() && remarks.is_empty(), "{remarks:?}");
    assert_eq!(std::fs::read(&log).unwrap(), codec::event::BINLOG_MAGIC);
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    let (dir, mut journal) = folder();
    journal.begin_file("..", "b.000001", 4);
    journal.stage(b"x");
    journal.commit().unwrap();
    let error = open(&dir).0.unwrap_err().to_string();
    assert!(error.contains("names"), "{error}");
}

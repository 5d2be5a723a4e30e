use super::super::recover::{Tail, recover};
use super::*;
use crate::storage::activity::WatchedStorage;
use crate::storage::posix::PosixStorage;
use crate::testing::FaultyStorage;
use crate::testing::{FileBuilder, NOW};
use std::sync::atomic::Ordering;

fn writer(storage: &FaultyStorage, dir: &Path) -> LogWriter {
    let recovered = recover(&PosixStorage, dir, Tail::SaveAside(NOW)).unwrap();
    LogWriter::new(Arc::new(storage.clone()), dir, recovered, None)
}

/// A writer of the timeline `0001-u` in `source`, with a journal and a file `b.000001` that holds its magic only.
fn journaled(storage: &FaultyStorage, source: &Path) -> LogWriter {
    let timeline = source.join("0001-u");
    std::fs::create_dir(&timeline).unwrap();
    let mut log = writer(storage, &timeline);
    log.use_journal().unwrap();
    log.begin_file("b.000001").unwrap();
    log
}

/// What a start after a crash makes of the folder: the live file's content, and what was said.
fn after_a_crash(source: &Path) -> (Vec<u8>, Vec<String>) {
    let mut remarks = Vec::new();
    Journal::open(&PosixStorage, source, NOW, &mut remarks).unwrap().unwrap();
    (std::fs::read(source.join("0001-u/b.000001")).unwrap(), remarks)
}

fn ladder(log: &LogWriter) -> (u64, u64) {
    (log.written().unwrap().position().offset, log.durable().unwrap().position().offset)
}

#[test]
fn files_follow_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = writer(&FaultyStorage::sound(), dir.path());
    assert_eq!((log.written(), log.durable()), (None, None));
    log.begin_file("mysql-bin.000007").unwrap();
    let file = FileBuilder::new().previous_gtids("").transaction(1, 30).finish();
    log.append(&mut [IoSlice::new(&file[4..60]), IoSlice::new(&file[60..])]).unwrap();
    assert_eq!(log.written().unwrap().position().offset, file.len() as u64);
    assert_eq!(log.durable().unwrap().position().offset, 4);
    log.begin_file("mysql-bin.000008").unwrap();
    assert_eq!(std::fs::read(dir.path().join("mysql-bin.000007")).unwrap(), file);
    assert_eq!(index::read(&PosixStorage, dir.path()).unwrap(), ["mysql-bin.000007", "mysql-bin.000008"]);
    assert!(matches!(log.begin_file("mysql-bin.000007"), Err(LogError::FileExists(_))));
}

#[test]
fn no_sync_is_issued_that_another_covers() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = writer(&storage, dir.path());
    log.begin_file("b.1").unwrap();
    log.append(&mut [IoSlice::new(b"x")]).unwrap();
    let before = storage.syncs.load(Ordering::Relaxed);
    for _ in 0..3 {
        log.sync().unwrap();
        assert_eq!(ladder(&log), (5, 5));
    }
    assert_eq!(storage.syncs.load(Ordering::Relaxed) - before, 1);
}

#[test]
fn after_a_failed_sync_nothing_becomes_durable() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = writer(&storage, dir.path());
    log.begin_file("b.1").unwrap();
    log.append(&mut [IoSlice::new(b"x")]).unwrap();
    storage.syncs_until_failure.store(0, Ordering::Relaxed);
    assert!(matches!(log.sync(), Err(LogError::Io { action: "sync", .. })));
    // The device would answer the next sync with success; it must not be asked.
    assert!(matches!(log.sync(), Err(LogError::Latched)));
    assert!(matches!(log.append(&mut [IoSlice::new(b"y")]), Err(LogError::Latched)));
    assert!(matches!(log.begin_file("b.2"), Err(LogError::Latched)));
    assert_eq!(log.durable().unwrap().position().offset, 4);
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = writer(&storage, dir.path());
    log.begin_file("b.000001").unwrap();
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 30);
    let boundary = builder.len();
    let file = builder.transaction(2, 300).finish();
    log.append(&mut [IoSlice::new(&file[4..boundary])]).unwrap();
    storage.writes_until_failure.store(0, Ordering::Relaxed);
    let error = log.append(&mut [IoSlice::new(&file[boundary..])]).unwrap_err();
    assert!(error.is_full_disk(), "{error}");
    drop(log);
    let recovered = recover(&PosixStorage, dir.path(), Tail::Discard).unwrap();
    assert_eq!(recovered.resume_at().unwrap().offset, boundary as u64);
}

#[test]
fn a_commit_is_one_durable_write_and_the_file_follows() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = journaled(&storage, dir.path());
    let before = storage.syncs.load(Ordering::Relaxed);
    assert!(log.commit([&b"one"[..], &b"two"[..]].into_iter()).unwrap());
    assert_eq!((ladder(&log), storage.syncs.load(Ordering::Relaxed) - before), ((10, 10), 1));
    assert_eq!(std::fs::read(dir.path().join("0001-u/b.000001")).unwrap(), BINLOG_MAGIC);
    log.write_behind().unwrap();
    log.append(&mut [IoSlice::new(b"begun ")]).unwrap();
    assert_eq!(ladder(&log), (16, 10));
    assert!(log.commit([&b"ended"[..]].into_iter()).unwrap());
    log.write_behind().unwrap();
    assert!(log.commit(std::iter::empty()).unwrap(), "nothing is left to do");
    assert_eq!((ladder(&log), storage.syncs.load(Ordering::Relaxed) - before), ((21, 21), 2));
    let content = [&BINLOG_MAGIC[..], b"onetwobegun ended"].concat();
    assert_eq!(std::fs::read(dir.path().join("0001-u/b.000001")).unwrap(), content);
    let file = dir.path().join("0001-u/b.000001");
    for lost in [4, 6, 10, 14, 20] {
        // What the page cache held is lost with the machine.
        let cut = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
        cut.set_len(lost).unwrap();
        let journal = std::fs::read(dir.path().join("journal")).unwrap();
        let (found, remarks) = after_a_crash(dir.path());
        assert_eq!(found, content, "{lost} bytes were left");
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        std::fs::write(dir.path().join("journal"), journal).unwrap(); // As it was, for the next round.
    }
    assert_eq!(after_a_crash(dir.path()), (content.clone(), vec![]), "nothing was lost");
    cut_file(&file, 6);
    assert_eq!(after_a_crash(dir.path()).0.len(), 6, "what was put back once is not put back again");
}

fn cut_file(path: &Path, len: u64) {
    std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn a_crash_before_the_file_has_the_bytes_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = journaled(&storage, dir.path());
    assert!(log.commit([&b"acknowledged"[..]].into_iter()).unwrap());
    storage.writes_until_failure.store(0, Ordering::Relaxed);
    let error = log.write_behind().unwrap_err();
    assert!(error.is_full_disk(), "{error}");
    assert!(matches!(log.commit(std::iter::empty()), Err(LogError::Latched)));
    assert!(log.take_journal().is_none());
    assert_eq!(after_a_crash(dir.path()).0, [&BINLOG_MAGIC[..], b"acknowledged"].concat());
}

#[test]
fn a_failed_write_of_the_journal_makes_nothing_durable() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = journaled(&storage, dir.path());
    storage.syncs_until_failure.store(0, Ordering::Relaxed);
    assert!(matches!(log.commit([&b"x"[..]].into_iter()), Err(LogError::Io { .. })));
    assert_eq!(ladder(&log), (4, 4));
    assert!(matches!(log.write_behind(), Err(LogError::Latched)));
}

#[test]
fn what_is_too_much_for_the_journal_is_synced_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = journaled(&FaultyStorage::sound(), dir.path());
    let much = vec![7; super::super::journal::record::RECORD_LEN_MAX];
    assert!(!log.commit([&much[..]].into_iter()).unwrap());
    log.append(&mut [IoSlice::new(&much)]).unwrap();
    assert!(!log.commit([&b"end"[..]].into_iter()).unwrap(), "its beginning is in no record");
    log.append(&mut [IoSlice::new(b"end")]).unwrap();
    log.sync().unwrap();
    assert!(log.commit([&b"next"[..]].into_iter()).unwrap());
    log.write_behind().unwrap();
    let (found, _) = after_a_crash(dir.path());
    assert_eq!(found.len(), 4 + much.len() + 7);
}

#[test]
fn the_journal_gets_its_space_back_from_the_background_sync() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = journaled(&storage, dir.path());
    let group = [3; 5000];
    let mut background = 0;
    for _ in 0..3 * super::super::journal::JOURNAL_LEN / 8192 {
        assert!(log.commit([&group[..]].into_iter()).unwrap(), "the journal is full");
        log.write_behind().unwrap();
        if log.wants_background_sync() {
            background += u64::from(log.begin_background_sync().unwrap().is_some());
            while log.end_background_sync().unwrap().is_none() {
                std::thread::yield_now();
            }
        }
    }
    assert!((4..9).contains(&background), "{background}");
    let len = log.written().unwrap().position().offset;
    drop(log);
    cut_file(&dir.path().join("0001-u/b.000001"), len - 4 * 5000);
    assert_eq!(after_a_crash(dir.path()).0.len() as u64, len, "the newest records are there");
}

/// A sync of MiBs at once would hold up the journal's writes on the same disk.
#[test]
fn the_file_goes_to_the_disk_in_pieces_while_acknowledgements_wait_for_the_journal() {
    const GROUP: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let begun = || std::mem::take(&mut *storage.writebacks.lock().unwrap());
    let commit = |log: &mut LogWriter, groups: u64| {
        for _ in 0..groups {
            assert!(log.commit([&[2; GROUP as usize][..]].into_iter()).unwrap());
            log.write_behind().unwrap();
        }
    };
    // One follows the other from the page of `from` on, in whole pages, as soon as there are 256 KiB.
    let pieces_from = |from: u64| {
        let pieces = begun();
        let mut at = from - from % 4096;
        for piece in &pieces {
            assert_eq!(piece.start, at, "{pieces:?}");
            let len = piece.end - piece.start;
            assert!(len % 4096 == 0 && (256 << 10..(256 << 10) + GROUP).contains(&len), "{pieces:?}");
            at = piece.end;
        }
        pieces.len()
    };
    // Looked at from outside, as the daemon's is.
    let watched = Arc::new(WatchedStorage::new(storage.clone(), Arc::default()));
    let timeline = dir.path().join("0001-u");
    std::fs::create_dir(&timeline).unwrap();
    let recovered = recover(&PosixStorage, &timeline, Tail::SaveAside(NOW)).unwrap();
    let mut log = LogWriter::new(watched, &timeline, recovered, None);
    log.begin_file("b.000001").unwrap();
    log.append(&mut [IoSlice::new(&[1; 300_000])]).unwrap();
    log.write_behind().unwrap();
    log.sync().unwrap();
    assert!(begun().is_empty(), "nobody waits");

    log.use_journal().unwrap();
    commit(&mut log, 60);
    assert_eq!(pieces_from(300_004), 2);
    // On its way is not there: only a sync says so, and until then the journal keeps the bytes.
    assert_eq!(log.synced().unwrap().1, 300_004);
    assert!(log.begin_background_sync().unwrap().is_some());
    log.finish_background_sync().unwrap();
    commit(&mut log, 27);
    assert_eq!(pieces_from(900_004), 1, "what was synced is on the disk");
    log.cut_to(1_000_000).unwrap();
    commit(&mut log, 27);
    assert_eq!(pieces_from(1_000_000), 1, "the end was cut");
    log.begin_file("b.000002").unwrap();
    commit(&mut log, 27);
    assert_eq!(pieces_from(4), 1, "another file");

    log.leave_journal();
    log.append(&mut [IoSlice::new(&[3; 300_000])]).unwrap();
    log.write_behind().unwrap();
    assert!(begun().is_empty(), "nobody waits any more");
}

#[test]
fn a_full_journal_falls_back_to_a_sync_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = journaled(&FaultyStorage::sound(), dir.path());
    let group = [3; 5000];
    let mut committed = 0;
    while log.commit([&group[..]].into_iter()).unwrap() {
        log.write_behind().unwrap();
        committed += 1;
    }
    assert!(committed > super::super::journal::JOURNAL_LEN / 8192 - 3, "{committed}");
    log.append(&mut [IoSlice::new(&group)]).unwrap();
    log.sync().unwrap();
    assert!(log.commit([&group[..]].into_iter()).unwrap());
}

#[test]
fn a_failed_background_sync_latches() {
    let dir = tempfile::tempdir().unwrap();
    let storage = FaultyStorage::sound();
    let mut log = journaled(&storage, dir.path());
    assert!(log.commit([&b"acknowledged"[..]].into_iter()).unwrap());
    log.write_behind().unwrap();
    storage.syncs_until_failure.store(0, Ordering::Relaxed);
    assert_eq!(log.begin_background_sync().unwrap(), Some(12));
    assert!(log.is_syncing() && log.begin_background_sync().unwrap().is_none());
    // Who syncs for himself learns of it too, before his own sync could succeed without the bytes.
    assert!(matches!(log.begin_file("b.000002"), Err(LogError::Io { action: "sync", .. })));
    assert!(matches!(log.end_background_sync(), Ok(None)));
    assert!(matches!(log.append(&mut [IoSlice::new(b"x")]), Err(LogError::Latched)));
}

#[test]
fn what_was_cut_or_sealed_is_not_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = journaled(&FaultyStorage::sound(), dir.path());
    assert!(log.commit([&b"kept, dropped"[..]].into_iter()).unwrap());
    log.write_behind().unwrap();
    log.cut_to(8).unwrap();
    assert_eq!(after_a_crash(dir.path()), ([&BINLOG_MAGIC[..], b"kept"].concat(), vec![]));
    assert!(log.commit([&b" sealed"[..]].into_iter()).unwrap());
    log.write_behind().unwrap();
    log.begin_file("b.000002").unwrap();
    cut_file(&dir.path().join("0001-u/b.000001"), 5);
    assert_eq!(after_a_crash(dir.path()).0.len(), 5);
    assert!(log.commit([&b"in the second"[..]].into_iter()).unwrap());
    drop(log);
    after_a_crash(dir.path());
    assert_eq!(std::fs::read(dir.path().join("0001-u/b.000002")).unwrap().len(), 17);
}

#[test]
fn a_file_that_has_lost_its_name_is_not_synced_for_safe() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("0001-u/b.000001", |path| std::fs::remove_file(path).unwrap()),
        ("0001-u/b.000001", |path| std::fs::rename(path, path.with_extension("away")).unwrap()),
        ("0001-u/b.000001", |path| {
            std::fs::copy(path, path.with_extension("copy")).unwrap();
            std::fs::rename(path.with_extension("copy"), path).unwrap();
        }),
        ("journal", |path| std::fs::remove_file(path).unwrap()),
    ];
    for (name, harm) in harms {
        for in_background in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let mut log = journaled(&FaultyStorage::sound(), dir.path());
            assert!(log.commit([&b"acknowledged"[..]].into_iter()).unwrap());
            log.write_behind().unwrap();
            harm(&dir.path().join(name));
            let error = match in_background {
                true => log.begin_background_sync().map(|_| ()).unwrap_err(),
                false => log.begin_file("b.000002").unwrap_err(),
            };
            assert!(matches!(&error, LogError::Displaced(path) if path.ends_with(name)), "{error}");
            assert!(matches!(log.append(&mut [IoSlice::new(b"x")]), Err(LogError::Latched)));
        }
    }
}

#[test]
fn a_mark_waits_for_the_sync_that_covers_it() {
    let dir = tempfile::tempdir().unwrap();
    let timeline = dir.path().join("0001-u");
    std::fs::create_dir(&timeline).unwrap();
    let mut log = writer(&FaultyStorage::sound(), &timeline);
    log.begin_file("b.000001").unwrap();
    let known = |offset| Known { offset, tail_start: 4, last_timestamp: 0, gtids: Default::default() };
    let is_marked = || dir.path().join(crate::writer::mark::MARK_FILE).exists();
    log.append(&mut [IoSlice::new(b"covered")]).unwrap();
    log.begin_background_sync().unwrap();
    log.append(&mut [IoSlice::new(b"not covered")]).unwrap();
    log.mark_when_synced(known(22));
    log.finish_background_sync().unwrap();
    assert!(!is_marked());
    log.mark(known(22));
    assert!(!is_marked(), "nor at the end of a session");
    log.sync().unwrap();
    log.mark(known(22));
    assert!(is_marked());
}

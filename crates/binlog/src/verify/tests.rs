//! Each kind of damage, made in small files, and what is said about it.

use super::super::timeline::Reason;
use super::*;
use crate::storage::posix::PosixStorage;
use crate::testing::{FileBuilder, SERVER_UUID};
use crate::timeline::index;
use codec::ServerKind;
use proptest::prelude::*;
use std::path::PathBuf;

struct Silent;

impl Progress for Silent {
    fn timeline(&mut self, _: &str, _: Option<&Timeline>, _: u64) {}
    fn offset(&mut self, _: u64) {}
    fn file(&mut self, _: &FileReport) {}
}

/// Three sealed files of two transactions each, and a live one.
struct Copy {
    _dir: tempfile::TempDir,
    folder: PathBuf,
}

const NAMES: [&str; 4] = ["b.000001", "b.000002", "b.000003", "b.000004"];

fn set(through: u64) -> String {
    if through == 0 { String::new() } else { format!("{SERVER_UUID}:1-{through}") }
}

fn sealed(index: usize) -> FileBuilder {
    let first = 2 * index as u64 + 1;
    FileBuilder::new().previous_gtids(&set(first - 1)).transaction(first, 100).transaction(first + 1, 100)
}

impl Copy {
    fn new() -> Copy {
        let dir = tempfile::tempdir().unwrap();
        let timeline = Timeline {
            began_at: "2026-01-02T03:04:05Z".into(),
            reason: Reason::First,
            server_uuid: SERVER_UUID.into(),
            server_version: "9.7.0".into(),
            server_kind: ServerKind::MySql,
            first_file: NAMES[0].into(),
            gtid_before: String::new(),
            source_lacks: String::new(),
            source_shares: String::new(),
            missing: String::new(),
            unreadable: String::new(),
            previous: String::new(),
            purged: Vec::new(),
        };
        let folder = timeline.create(&PosixStorage, dir.path(), 1).unwrap();
        let copy = Copy { _dir: dir, folder };
        for index in 0..3 {
            copy.write(NAMES[index], &sealed(index).rotate(NAMES[index + 1]).finish());
        }
        copy.write(NAMES[3], &FileBuilder::new().previous_gtids(&set(6)).transaction(7, 100).finish());
        copy.list(&NAMES);
        copy
    }

    fn list(&self, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        index::write(&PosixStorage, &self.folder, &names).unwrap();
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).unwrap()
    }

    fn verify(&self) -> TimelineReport {
        verify_timeline(&PosixStorage, &self.folder, &mut Silent)
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.folder.join(name)).unwrap();
    }

    #[track_caller]
    fn problems(&self) -> Vec<String> {
        self.verify().all_problems().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn assert_only(&self, expected: &str) {
        assert_eq!(self.problems(), [expected.to_owned()]);
    }
}

/// The format description's time of creation set, as in the first file after a server's start.
fn first_after_start(mut file: Vec<u8>) -> Vec<u8> {
    let size = u32::from_le_bytes(file[13..17].try_into().unwrap()) as usize;
    let event = &mut file[4..4 + size];
    event[19 + 52..19 + 56].copy_from_slice(&1_700_000_000u32.to_le_bytes());
    let sum = crc32fast::hash(&event[..size - 4]);
    event[size - 4..].copy_from_slice(&sum.to_le_bytes());
    file
}

#[test]
fn files_that_were_moved_away_are_no_damage_when_the_description_says_so() {
    let copy = Copy::new();
    NAMES[..2].iter().for_each(|name| copy.remove(name));
    assert_eq!(copy.problems().len(), 2, "two files that are listed and missing");
    let described = String::from_utf8(copy.read(TIMELINE_FILE)).unwrap();
    let record =
        |name: &str| copy.write(TIMELINE_FILE, format!("{described}kept_from = {name:?}\n").as_bytes());
    record(NAMES[2]);
    assert_eq!(copy.problems(), Vec::<String>::new());
    assert!(copy.verify().notes[0].contains("the files before b.000003 were moved away"));
    // As the next start writes the index.
    copy.list(&NAMES[2..]);
    assert_eq!(copy.problems(), Vec::<String>::new());
    // More is missing than it says.
    record(NAMES[1]);
    assert_eq!(copy.problems().len(), 1, "{:?}", copy.problems());
    // Written before the files are moved.
    let copy = Copy::new();
    copy.write(TIMELINE_FILE, format!("{described}kept_from = {:?}\n", NAMES[2]).as_bytes());
    assert_eq!(copy.problems(), Vec::<String>::new());
}

#[test]
fn a_sound_copy_is_clean() {
    let report = Copy::new().verify();
    assert_eq!(report.all_problems().count(), 0, "{report:?}");
    assert!(report.notes.is_empty() && report.files.iter().all(|file| file.notes.is_empty()), "{report:?}");
    let transactions: Vec<u64> = report.files.iter().map(|file| file.transactions).collect();
    assert_eq!(transactions, [2, 2, 2, 1]);
    assert_eq!(report.files[0].end, FileEnd::Rotate { next: NAMES[1].to_owned() });
    assert_eq!(report.files[3].end, FileEnd::Live { after_boundary: 0 });
}

#[test]
fn a_flipped_byte_is_damage_at_its_event() {
    let copy = Copy::new();
    let mut bytes = copy.read(NAMES[1]);
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    copy.write(NAMES[1], &bytes);
    let report = copy.verify();
    let problems: Vec<&Problem> = report.all_problems().collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].file.as_deref(), Some(NAMES[1]));
    let named = problems[0].at.unwrap() as usize;
    assert!(named <= at && at < named + 600, "{problems:?}");
    assert!(problems[0].what.contains("checksum"), "{problems:?}");
    assert_eq!(
        report.files[2].notes,
        ["its GTIDs were not compared with those of b.000002, which is damaged"]
    );
}

#[test]
fn a_truncated_sealed_file_is_damage_wherever_it_is_cut() {
    let copy = Copy::new();
    let whole = copy.read(NAMES[1]);
    for cut in 0..whole.len() {
        copy.write(NAMES[1], &whole[..cut]);
        let problems = copy.problems();
        assert!(!problems.is_empty() && problems[0].starts_with("b.000002"), "cut at {cut}: {problems:?}");
    }
    let without_rotate = sealed(1).finish();
    copy.write(NAMES[1], &without_rotate);
    copy.assert_only(&format!(
        "b.000002 at {}: it ends without ROTATE, and the source did not restart before b.000003: its end is missing",
        without_rotate.len()
    ));
}

#[test]
fn a_source_that_crashed_is_told_and_no_damage() {
    let copy = Copy::new();
    let next = first_after_start(copy.read(NAMES[2]));
    copy.write(NAMES[1], &sealed(1).finish());
    copy.write(NAMES[2], &next);
    let report = copy.verify();
    assert_eq!(report.all_problems().count(), 0, "{report:?}");
    assert_eq!(report.files[1].notes, ["it ends without ROTATE or STOP: the source crashed"]);
    let mut stump = sealed(1);
    stump.event(34, &[0; 25]);
    copy.write(NAMES[1], &stump.finish());
    let report = copy.verify();
    assert_eq!(report.all_problems().count(), 0, "{report:?}");
    assert_eq!(
        report.files[1].notes,
        ["it ends without ROTATE or STOP, 48 bytes into a transaction: the source crashed"]
    );
    let mut stopped = sealed(1);
    stopped.event(3, &[]);
    copy.write(NAMES[1], &stopped.finish());
    let report = copy.verify();
    assert_eq!((report.all_problems().count(), &report.files[1].end), (0, &FileEnd::Stop));
    assert!(report.files[1].notes.is_empty());
}

#[test]
fn a_missing_file_is_named_with_the_transactions_that_went_with_it() {
    let copy = Copy::new();
    std::fs::remove_file(copy.folder.join(NAMES[1])).unwrap();
    let gap = format!(
        "b.000003: a gap: its PREVIOUS_GTIDS holds {SERVER_UUID}:3-4, which b.000001 does not end with: transactions between \
         the two are missing"
    );
    assert_eq!(
        copy.problems(),
        ["b.000002: it is in binlog.index, but not in the folder".to_owned(), gap.clone()]
    );
    copy.list(&[NAMES[0], NAMES[2], NAMES[3]]);
    let problems = copy.problems();
    assert_eq!(problems[0], "b.000002 is missing between b.000001 and b.000003");
    assert_eq!(problems[1], "b.000001: its ROTATE event names \"b.000002\", but the next file is b.000003");
    assert_eq!(problems[2..], [gap]);
}

#[test]
fn the_first_file_must_be_the_one_that_the_timeline_began_with() {
    let copy = Copy::new();
    std::fs::remove_file(copy.folder.join(NAMES[0])).unwrap();
    copy.list(&NAMES[1..]);
    copy.assert_only(
        "timeline.toml says that it begins with b.000001, but b.000002 is the first file here: earlier files are missing",
    );
    std::fs::write(copy.folder.join(TIMELINE_FILE), "reason = 7").unwrap();
    assert!(copy.problems()[0].starts_with("timeline.toml cannot be read: "));
}

#[test]
fn unlisted_and_swapped_names_are_damage() {
    let copy = Copy::new();
    copy.list(&[NAMES[0], NAMES[2], NAMES[3]]);
    copy.assert_only("b.000002 is in the folder, but not in binlog.index");
    copy.list(&[NAMES[0], NAMES[2], NAMES[1], NAMES[3]]);
    copy.assert_only("binlog.index lists b.000002 after b.000003");
}

#[test]
fn swapped_contents_are_damage() {
    let copy = Copy::new();
    let (second, third) = (copy.read(NAMES[1]), copy.read(NAMES[2]));
    copy.write(NAMES[1], &third);
    copy.write(NAMES[2], &second);
    let problems = copy.problems();
    for expected in [
        "b.000002: its ROTATE event names \"b.000004\", but the next file is b.000003",
        "b.000002: a gap: its PREVIOUS_GTIDS holds",
        "b.000003: a repeat: its PREVIOUS_GTIDS lacks",
    ] {
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{expected}: {problems:#?}");
    }
}

#[test]
fn gtids_must_go_on_where_the_file_before_ends() {
    let copy = Copy::new();
    let first = FileBuilder::new().previous_gtids("").transaction(1, 100).rotate(NAMES[1]).finish();
    copy.write(NAMES[0], &first);
    copy.assert_only(&format!(
        "b.000002: a gap: its PREVIOUS_GTIDS holds {SERVER_UUID}:2, which b.000001 does not end with: transactions between \
         the two are missing"
    ));
    copy.write(NAMES[0], &sealed(0).transaction(9, 10).rotate(NAMES[1]).finish());
    let after_restart =
        FileBuilder::created(7).previous_gtids(&set(2)).transaction(3, 100).transaction(4, 100);
    copy.write(NAMES[1], &after_restart.rotate(NAMES[2]).finish());
    copy.assert_only(&format!(
        "b.000002: a repeat: its PREVIOUS_GTIDS lacks {SERVER_UUID}:9, which b.000001 ends with: the source may have written \
         other transactions under these GTIDs"
    ));
}

/// MySQL's bug 118797: it counts an XA COMMIT only after it has begun the next file.
#[test]
fn what_mysql_counts_too_late_is_no_damage() {
    let copy = Copy::new();
    copy.write(NAMES[0], &sealed(0).transaction(9, 10).rotate(NAMES[1]).finish());
    let counted = format!("{SERVER_UUID}:1-4:9");
    let third =
        |previous: &str| FileBuilder::new().previous_gtids(previous).transaction(5, 100).transaction(6, 100);
    let fourth = |previous: &str| FileBuilder::created(7).previous_gtids(previous).transaction(7, 100);
    let late = format!("{SERVER_UUID}:1-6:9");
    // Counted by the next file but one, by the live one, or forgotten by a crash.
    for (in_third, in_fourth) in
        [(&*counted, &*late), (&set(4), &late), (&set(4), &set(6)), (&counted, &set(6))]
    {
        copy.write(NAMES[2], &third(in_third).rotate(NAMES[3]).finish());
        copy.write(NAMES[3], &fourth(in_fourth).finish());
        let report = copy.verify();
        assert_eq!(report.all_problems().count(), 0, "{in_third} {in_fourth}: {report:#?}");
        let note = &report.files[1].notes[0];
        assert!(
            note.starts_with(&format!(
                "its PREVIOUS_GTIDS lacks {SERVER_UUID}:9, which b.000001 ends with: "
            )),
            "{note}"
        );
        assert_eq!(report.files[2].notes.len() + report.files[3].notes.len(), 0, "said once: {report:#?}");
    }

    // Forgotten, and given to another transaction.
    copy.write(NAMES[3], &fourth(&set(6)).transaction(9, 50).finish());
    copy.assert_only(&format!("b.000004: a repeat: it holds {SERVER_UUID}:9 once more, as earlier files do"));
    copy.write(NAMES[3], &fourth(&format!("{SERVER_UUID}:1-6:9-10")).finish());
    copy.assert_only(&format!(
        "b.000004: a gap: its PREVIOUS_GTIDS holds {SERVER_UUID}:10, which b.000003 does not end with: transactions between \
         the two are missing"
    ));
}

#[test]
fn a_transaction_twice_in_a_file_is_damage() {
    let copy = Copy::new();
    let builder = sealed(1).transaction(4, 100);
    let end = builder.len();
    copy.write(NAMES[1], &builder.transaction(3, 10).rotate(NAMES[2]).finish());
    copy.assert_only(&format!(
        "b.000002 at {end}: the transaction that ends here, {SERVER_UUID}:4, is in the log already, the first of 2 such \
         transactions"
    ));
}

#[test]
fn the_tail_of_the_live_file_may_be_half_written() {
    let copy = Copy::new();
    let builder = FileBuilder::new().previous_gtids(&set(6)).transaction(7, 100);
    let boundary = builder.len();
    let whole = builder.transaction(8, 5000).finish();
    for cut in (0..whole.len()).filter(|cut| *cut < 300 || cut % 97 == 0) {
        copy.write(NAMES[3], &whole[..cut]);
        let report = copy.verify();
        assert_eq!(report.all_problems().count(), 0, "cut at {cut}: {report:?}");
        if cut >= boundary {
            let after_boundary = (cut - boundary) as u64;
            assert_eq!(report.files[3].end, FileEnd::Live { after_boundary }, "cut at {cut}");
        }
    }
}

#[test]
fn damage_in_the_live_file_is_told_with_what_a_start_would_do() {
    let copy = Copy::new();
    let builder = FileBuilder::new().previous_gtids(&set(6)).transaction(7, 100);
    let boundary = builder.len();
    let mut bytes = builder.transaction(8, 5000).finish();
    bytes[boundary + 30] ^= 1;
    copy.write(NAMES[3], &bytes);
    let report = copy.verify();
    let problems: Vec<&Problem> = report.all_problems().collect();
    assert_eq!((problems.len(), problems[0].at), (1, Some(boundary as u64)));
    assert!(report.files[3].notes[0].contains(&format!("its last boundary is {boundary}")), "{report:?}");
    // A length that reaches past the end looks like an event that is still being written.
    bytes[boundary + 30] ^= 1;
    bytes[boundary + 11] = 1;
    copy.write(NAMES[3], &bytes);
    let problems = copy.problems();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with(&format!("b.000004 at {boundary}: the event ends at ")), "{problems:?}");
}

#[test]
fn a_live_file_may_have_ended_with_the_next_one_not_begun() {
    let copy = Copy::new();
    std::fs::remove_file(copy.folder.join(NAMES[3])).unwrap();
    copy.list(&NAMES[..3]);
    let report = copy.verify();
    assert_eq!((report.all_problems().count(), report.files.len()), (0, 3));
    copy.write(NAMES[2], &sealed(2).rotate("b.000009").finish());
    copy.assert_only("b.000003: its ROTATE event names \"b.000009\", which is not the next file");
}

#[test]
fn what_binlogd_leaves_is_known_and_the_rest_is_noted() {
    let copy = Copy::new();
    for name in ["b.000002.torn-20260101T000000.000000Z", "binlog.index.tmp", "notes.txt", "b.000001.gz"] {
        copy.write(name, b"x");
    }
    crate::search_index::write(&PosixStorage, &copy.folder, NAMES[0], b"x").unwrap();
    let report = copy.verify();
    assert_eq!(report.all_problems().count(), 0);
    assert_eq!(
        report.notes,
        [
            "b.000001.gz is not a file of binlogd; it was not looked at",
            "notes.txt is not a file of binlogd; it was not looked at"
        ]
    );
}

#[test]
fn an_index_that_is_gone_is_damage() {
    let copy = Copy::new();
    std::fs::remove_file(copy.folder.join(INDEX_FILE)).unwrap();
    assert_eq!(copy.problems().len(), 4);
    assert!(copy.verify().files.iter().all(|file| file.problems.is_empty()));
}

/// MariaDB's GTID_LIST, whose domains an operator may delete.
#[test]
fn mariadb_states_are_compared_by_domain() {
    let list = |state: &str| {
        let mut file = FileBuilder::new();
        let mut body = Vec::new();
        state.parse::<codec::gtid::MariadbGtidState>().unwrap().encode_gtid_list(&mut body);
        file.event(163, &body);
        file
    };
    let copy = Copy::new();
    copy.list(&NAMES[..2]);
    for name in &NAMES[2..] {
        std::fs::remove_file(copy.folder.join(name)).unwrap();
    }
    for (before, stated, problems, notes) in [
        ("0-1-5,7-1-2", "0-1-5,7-1-2", 0, 0),
        ("0-1-5,7-1-2", "0-1-5", 0, 1),
        ("0-1-5", "0-1-9", 1, 0),
        ("0-1-9", "0-1-5", 1, 0),
    ] {
        copy.write(NAMES[0], &list(before).rotate(NAMES[1]).finish());
        copy.write(NAMES[1], &list(stated).finish());
        let report = copy.verify();
        let found = (report.all_problems().count(), report.files[1].notes.len());
        assert_eq!(found, (problems, notes), "{before} {stated}: {report:?}");
    }
}

/// A file as the server with this `server_id` wrote it, under the UUID of which each byte is `uuid`, so many seconds later.
fn written_by(mut file: Vec<u8>, server_id: u32, uuid: u8, later: u32) -> Vec<u8> {
    let mut at = 4;
    while at < file.len() {
        let size = u32::from_le_bytes(file[at + 9..at + 13].try_into().unwrap()) as usize;
        let event = &mut file[at..at + size];
        let time = u32::from_le_bytes(event[..4].try_into().unwrap()) + later;
        event[..4].copy_from_slice(&time.to_le_bytes());
        event[5..9].copy_from_slice(&server_id.to_le_bytes());
        match event[4] {
            33 => event[20..36].fill(uuid),
            35 if size > 50 => event[27..43].fill(uuid),
            _ => {}
        }
        let sum = crc32fast::hash(&event[..size - 4]);
        event[size - 4..].copy_from_slice(&sum.to_le_bytes());
        at += size;
    }
    file
}

/// Files in order: name and content.
type Files<'a> = Vec<(&'a str, Vec<u8>)>;

/// The timeline of a server.
type OfServer<'a> = (&'a str, Files<'a>);

/// What the timelines of one copy tell of their writers.
fn strangers(kind: ServerKind, timelines: &[OfServer<'_>]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut reports = Vec::new();
    for (number, (server, files)) in timelines.iter().enumerate() {
        let first_file = files[0].0.to_owned();
        let info = Timeline { first_file, server_kind: kind, ..crate::testing::first_timeline(server) };
        let folder = info.create(&PosixStorage, dir.path(), number as u32 + 1).unwrap();
        let names: Vec<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
        index::write(&PosixStorage, &folder, &names).unwrap();
        files.iter().for_each(|(name, bytes)| std::fs::write(folder.join(name), bytes).unwrap());
        reports.push(verify_timeline(&PosixStorage, &folder, &mut Silent));
    }
    compare_timelines(&mut reports);
    reports.iter().flat_map(TimelineReport::all_problems).map(ToString::to_string).collect()
}

const OTHER_UUID: &str = "cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd";
const DO: &str = "docs/runbook.md says what to do (The copy is damaged)";

fn first(next: &str) -> Vec<u8> {
    sealed(0).rotate(next).finish()
}

/// The first file of another server, as its clients wrote it.
fn of_other(next: &str) -> Vec<u8> {
    written_by(first(next), 2, 0xcd, 50)
}

#[test]
fn a_file_that_stands_in_the_timeline_of_another_server_too_is_damage() {
    let ours = || vec![(NAMES[0], first(NAMES[1])), (NAMES[1], sealed(1).finish())];
    let found = strangers(
        ServerKind::MySql,
        &[(SERVER_UUID, ours()), (OTHER_UUID, vec![(NAMES[0], first(NAMES[1]))])],
    );
    let expected = format!(
        "b.000001: another server wrote it than {OTHER_UUID}: timeline 0001-{SERVER_UUID} has the same file, of server_id 1. {DO}"
    );
    assert_eq!(found, [expected]);
    // Without GTIDs too.
    let anonymous = || {
        let mut file = FileBuilder::new();
        file.event(34, &[0; 25]);
        file.event(2, &[&[0; 14][..], b"CREATE TABLE t (a INT)"].concat());
        file
    };
    let ours = vec![(NAMES[0], anonymous().rotate(NAMES[1]).finish()), (NAMES[1], anonymous().finish())];
    let theirs = vec![(NAMES[0], anonymous().rotate(NAMES[1]).finish())];
    let found = strangers(ServerKind::MySql, &[(SERVER_UUID, ours), (OTHER_UUID, theirs)]);
    assert!(found.len() == 1 && found[0].contains("another server wrote it"), "{found:?}");
}

#[test]
fn a_file_in_which_clients_of_another_server_committed_is_damage() {
    let theirs = vec![
        (NAMES[1], sealed(1).rotate(NAMES[2]).finish()),
        (NAMES[2], written_by(sealed(2).finish(), 2, 0xcd, 9)),
    ];
    let found = strangers(
        ServerKind::MySql,
        &[(SERVER_UUID, vec![(NAMES[0], first(NAMES[1]))]), (OTHER_UUID, theirs)],
    );
    let who = format!(
        "b.000002: another server wrote it than {OTHER_UUID}: clients of {SERVER_UUID} committed here, whose server_id is 1, and \
         this one's server_id is 2. {DO}"
    );
    let rotated = format!(
        "b.000003: another server wrote it: server_id 1 is expected, as of the ROTATE event that ends b.000002, and its format \
         description has 2. {DO}"
    );
    assert!(found.contains(&who) && found.contains(&rotated), "{found:#?}");
}

#[test]
fn a_file_that_is_older_than_the_one_before_and_of_another_server_is_damage() {
    let files =
        |second: Vec<u8>| vec![(NAMES[0], written_by(sealed(0).finish(), 1, 0xab, 60)), (NAMES[1], second)];
    let second = |server_id, later| {
        let file = FileBuilder::created(7).previous_gtids(&set(2)).transaction(3, 100).finish();
        strangers(ServerKind::MySql, &[(SERVER_UUID, files(written_by(file, server_id, 0xab, later)))])
    };
    assert_eq!(second(1, 70), Vec::<String>::new());
    assert_eq!(second(11, 70), Vec::<String>::new(), "server_id was changed at a restart");
    assert_eq!(second(1, 5), Vec::<String>::new(), "the clock was set back");
    let expected = format!(
        "b.000002: another server wrote it: it was begun 55 s before b.000001, the file before it, and its server_id is 11, not \
         1. {DO}"
    );
    assert_eq!(second(11, 5), [expected]);
}

#[test]
fn a_mariadb_file_of_another_server_is_damage() {
    let file = |server_id, later, transactions: u8| {
        let mut file = FileBuilder::new();
        let mut body = Vec::new();
        "0-1-5".parse::<codec::gtid::MariadbGtidState>().unwrap().encode_gtid_list(&mut body);
        file.event(163, &body);
        for sequence in 0..transactions {
            let mut gtid = [0; 19];
            gtid[0] = 6 + sequence;
            file.event(162, &gtid);
            file.event(16, &[0; 8]);
        }
        written_by(file.finish(), server_id, 0, later)
    };
    let list = |server_id, later| file(server_id, later, 1);
    let found = |theirs: Vec<u8>| {
        let ours = ("mariadb-1", vec![(NAMES[0], list(1, 0))]);
        strangers(ServerKind::MariaDb, &[ours, ("mariadb-2", vec![(NAMES[3], theirs)])])
    };
    assert_eq!(found(list(2, 9)), Vec::<String>::new());
    let problems = found(list(1, 9));
    assert_eq!(
        problems,
        [format!(
            "b.000004: another server wrote it than mariadb-2: its server_id 1 is that of mariadb-1, and this one's server_id is \
             2. {DO}"
        )]
    );
    // Nobody knows whose it is.
    assert_eq!(found(list(3, 9)), Vec::<String>::new());
    // A node of Galera has got its first file from another, and no file else.
    let found = |files: &[Vec<u8>]| {
        let ours = ("mariadb-1", vec![(NAMES[3], list(1, 0))]);
        let theirs = NAMES.into_iter().zip(files.iter().cloned()).collect();
        let mut found = strangers(ServerKind::MariaDb, &[ours, ("mariadb-2", theirs)]);
        found.retain(|problem| problem.contains("another server wrote it"));
        found
    };
    let (own, empty) = (|later| list(2, later), |later| file(1, later, 0));
    assert_eq!(found(&[empty(9), own(20)]), Vec::<String>::new());
    for (files, at) in [
        (vec![empty(9)], 1),
        (vec![own(9), empty(20)], 2),
        (vec![own(9), empty(20), own(30)], 2),
        (vec![list(1, 9), own(20)], 1),
    ] {
        let problems = found(&files);
        let strange = format!("b.00000{at}: another server wrote it than mariadb-2");
        assert!(problems.iter().any(|problem| problem.starts_with(&strange)), "{problems:#?}");
    }
}

/// What servers do and their operators: none of it is damage.
#[test]
fn what_looks_like_another_server_and_is_none_is_clean() {
    let ours = || vec![(NAMES[0], first(NAMES[1])), (NAMES[1], sealed(1).finish())];
    let stopped = |mut file: FileBuilder| {
        file.event(3, &[]);
        file.finish()
    };
    let after_start = |file: FileBuilder, server_id, uuid| {
        written_by(first_after_start(file.finish()), server_id, uuid, 60)
    };
    let cases: [(&str, Vec<OfServer<'_>>); 5] = [
        (
            "a failover, and back",
            vec![
                (SERVER_UUID, ours()),
                (OTHER_UUID, vec![(NAMES[0], of_other(NAMES[1]))]),
                (SERVER_UUID, ours()),
            ],
        ),
        (
            "server_id changed at a restart",
            vec![(
                SERVER_UUID,
                vec![(NAMES[0], stopped(sealed(0))), (NAMES[1], after_start(sealed(1), 11, 0xab))],
            )],
        ),
        (
            "auto.cnf made anew at a restart",
            vec![
                (SERVER_UUID, vec![(NAMES[0], stopped(FileBuilder::new().previous_gtids("")))]),
                (
                    OTHER_UUID,
                    vec![
                        (NAMES[0], stopped(FileBuilder::new().previous_gtids(""))),
                        (NAMES[1], after_start(sealed(0), 1, 0xcd)),
                    ],
                ),
            ],
        ),
        (
            "what a replica lacked was handed to it under its own server_id",
            vec![
                (SERVER_UUID, ours()),
                (OTHER_UUID, vec![(NAMES[0], written_by(sealed(0).finish(), 2, 0xab, 50))]),
            ],
        ),
        (
            "Group Replication commits under the group's name",
            vec![
                (SERVER_UUID, vec![(NAMES[0], written_by(sealed(0).finish(), 1, 0xee, 0))]),
                (OTHER_UUID, vec![(NAMES[0], written_by(sealed(0).finish(), 2, 0xee, 50))]),
            ],
        ),
    ];
    for (what, timelines) in &cases {
        assert_eq!(strangers(ServerKind::MySql, timelines), Vec::<String>::new(), "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No byte of a sealed file can change without being seen.
    #[test]
    fn every_change_of_a_sealed_file_is_seen(file in 0..3usize, at: prop::sample::Index, mask in 1..=255u8) {
        let copy = Copy::new();
        let mut bytes = copy.read(NAMES[file]);
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
        copy.write(NAMES[file], &bytes);
        prop_assert!(!copy.problems().is_empty(), "{} byte {at}", NAMES[file]);
    }
}

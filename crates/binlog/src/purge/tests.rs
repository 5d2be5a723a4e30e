use super::needs::{Need, NeedFrom};
use super::order::{list, sealed_at};
use super::plan::{Plan, Rules, Wanted};
use super::unfinished::{finish, remove_left};
use super::*;
use crate::recover::{Tail, recover};
use crate::storage::StorageFile;
use crate::storage::posix::PosixStorage;
use crate::testing::instead::PosixInstead;
use crate::testing::{FileBuilder, NOW, SERVER_UUID, first_timeline};
use crate::timeline::gaps::Gaps;
use crate::timeline::held::HeldGtids;
use crate::timeline::index::INDEX_FILE;
use crate::timeline::offline::resume_point;
use crate::timeline::{Reason, TIMELINE_FILE, Timeline};
use crate::verify::report::FileReport;
use crate::verify::{Progress, verify_timeline};
use crate::writer::LogWriter;
use codec::ServerKind;
use codec::gtid::MariadbGtid;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DISK: &PosixStorage = &PosixStorage;

struct Quiet;

impl Progress for Quiet {
    fn timeline(&mut self, _: &str, _: Option<&Timeline>, _: u64) {}
    fn offset(&mut self, _: u64) {}
    fn file(&mut self, _: &FileReport) {}
}

fn name(number: u64) -> String {
    format!("b.{number:06}")
}

/// A file with the transaction of its number. All of them begin at 1,700,000,000.
fn file(number: u64) -> FileBuilder {
    let before = match number {
        1 => String::new(),
        2 => format!("{SERVER_UUID}:1"),
        _ => format!("{SERVER_UUID}:1-{}", number - 1),
    };
    FileBuilder::new().previous_gtids(&before).transaction(number, 50)
}

fn put(folder: &Path, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers.clone() {
        let begun = file(number);
        let whole = if number < *numbers.end() { begun.rotate(&name(number + 1)) } else { begun };
        std::fs::write(folder.join(name(number)), whole.finish()).unwrap();
    }
    index::write(DISK, folder, &numbers.map(name).collect::<Vec<_>>()).unwrap();
}

/// One timeline with the files 1 to 6.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = first_timeline(SERVER_UUID).create(DISK, dir.path(), 1).unwrap();
    put(&folder, 1..=6);
    (dir, folder)
}

fn plan(dir: &Path, wanted: &Wanted, needs: &[Need]) -> Plan {
    Plan::make(DISK, dir, wanted, needs).unwrap()
}

fn purge(dir: &Path, wanted: &Wanted, indexes: Indexes) -> Vec<String> {
    let plan = plan(dir, wanted, &[]);
    carry_out(DISK, &plan.goes(), "a test", NOW, indexes).unwrap();
    plan.goes().iter().map(|file| file.name.clone()).collect()
}

fn to(number: u64) -> Wanted {
    Wanted::To(name(number))
}

fn files(folder: &Path) -> Vec<String> {
    timeline_files(DISK, folder).unwrap()
}

fn problems(folder: &Path) -> Vec<String> {
    let report = verify_timeline(DISK, folder, &mut Quiet);
    let of_files = report.files.iter().flat_map(|file| &file.problems);
    report.problems.iter().chain(of_files).map(|problem| problem.what.clone()).collect()
}

#[test]
fn whole_files_go_from_the_oldest_on_and_are_recorded() {
    let (dir, folder) = copy();
    let size = std::fs::metadata(folder.join(name(1))).unwrap().len();
    assert_eq!(purge(dir.path(), &to(3), Indexes::Ours), [name(1), name(2)]);
    assert_eq!(purge(dir.path(), &to(4), Indexes::Ours), [name(3)]);
    let left: Vec<String> = (4..=6).map(name).collect();
    assert_eq!((files(&folder), index::read(DISK, &folder).unwrap()), (left.clone(), left));
    assert!((1..=3).all(|number| !folder.join(name(number)).exists()));
    let info = Timeline::read(DISK, &folder).unwrap();
    let [first, second] = &info.purged[..] else { panic!("{info:?}") };
    assert_eq!((first.from.as_str(), first.through.as_str(), first.files), ("b.000001", "b.000002", 2));
    assert!(first.bytes > size && first.why == "a test" && first.removed);
    assert_eq!((first.gtid_before.as_deref(), second.gtid_before.as_deref()), (Some(""), None));
    assert_eq!(first.gtids, "", "the newest line says it for all");
    assert_eq!(second.gtids, format!("{SERVER_UUID}:1-3"));
    // Everybody finds the copy sound, and the history is what it was.
    assert_eq!(problems(&folder), Vec::<String>::new());
    let recovered = recover(DISK, &folder, Tail::SaveAside(NOW)).unwrap();
    assert_eq!((recovered.files.len(), recovered.remarks.len()), (3, 0), "{:?}", recovered.remarks);
    let held = HeldGtids::read(DISK, dir.path(), ServerKind::MySql).unwrap().unwrap();
    assert_eq!(held.all().to_line(), format!("{SERVER_UUID}:1-6"));
    assert!(Gaps::read(DISK, dir.path()).unwrap().are_none(), "what was purged was held");
    // A file in the middle that is missing is damage as before.
    std::fs::remove_file(folder.join(name(4))).unwrap();
    assert!(
        problems(&folder).iter().any(|what| what.contains("not in the folder")),
        "{:?}",
        problems(&folder)
    );
}

#[test]
fn a_first_file_that_does_not_follow_the_purged_ones_is_damage() {
    let (dir, folder) = copy();
    purge(dir.path(), &to(3), Indexes::Ours);
    std::fs::remove_file(folder.join(name(3))).unwrap();
    index::write(DISK, &folder, &(4..=6).map(name).collect::<Vec<_>>()).unwrap();
    let what = "timeline.toml says that the files up to b.000002 were purged, but b.000004 is the first file here: those in \
                between are missing";
    assert_eq!(problems(&folder), [what]);
}

#[test]
fn the_live_file_and_the_one_before_always_stay() {
    let (dir, folder) = copy();
    let plan = plan(dir.path(), &to(6), &[]);
    assert_eq!(plan.goes().len(), 4);
    let (kept, why) = plan.kept().unwrap();
    assert_eq!(kept.name, name(5));
    assert!(why[0].contains("the live file or the one before"), "{why:?}");
    assert_eq!(purge(dir.path(), &to(6), Indexes::Ours).len(), 4);
    assert!(purge(dir.path(), &to(6), Indexes::Ours).is_empty(), "nothing more may go");
    assert_eq!(files(&folder), [name(5), name(6)]);
    let missing = Plan::make(DISK, dir.path(), &to(3), &[]).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn whoever_needs_a_file_keeps_it_and_all_later_ones() {
    let (dir, folder) = copy();
    let timeline = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let need = |from| [Need { who: "a reader".to_owned(), from }];
    let place = |number, before| NeedFrom::Place { timeline: timeline.clone(), file: name(number), before };
    for (from, goes) in [
        (place(3, 0), 2),
        (place(3, 1), 1),
        (place(1, 1), 0),
        (NeedFrom::Everything, 0),
        (NeedFrom::Newest(3), 3),
        (place(77, 0), 4),
        (NeedFrom::EndOf(timeline.clone()), 4),
    ] {
        let plan = plan(dir.path(), &to(6), &need(from.clone()));
        assert_eq!(plan.goes().len(), goes, "{from:?}");
        if goes < 4 {
            assert_eq!(plan.kept().unwrap().1[0], "a reader", "{from:?}");
        }
    }
}

#[test]
fn rules_take_the_oldest_until_they_are_met() {
    let (dir, folder) = copy();
    let sizes: Vec<u64> = list(DISK, dir.path()).unwrap().iter().map(|file| file.bytes).collect();
    let began = Timestamp::from_second(1_700_000_000).unwrap();
    let goes = |rules: Rules, seconds: i64| {
        let now = began + jiff::SignedDuration::from_secs(seconds);
        plan(dir.path(), &Wanted::Rules(rules, now), &[]).goes().len()
    };
    let none = Rules::default();
    assert!(none.are_none());
    assert_eq!(goes(none, 1 << 30), 0);
    assert_eq!(goes(Rules { max_files: Some(6), ..none }, 0), 0);
    assert_eq!(goes(Rules { max_files: Some(4), ..none }, 0), 2);
    assert_eq!(goes(Rules { max_files: Some(1), ..none }, 0), 4, "two stay whatever the rules say");
    let last_three = sizes[3..].iter().sum();
    assert_eq!(goes(Rules { max_bytes: Some(last_three), ..none }, 0), 3);
    assert_eq!(goes(Rules { max_bytes: Some(last_three - 1), ..none }, 0), 4);
    let hour = Some(Duration::from_secs(3600));
    assert_eq!(
        (goes(Rules { max_age: hour, ..none }, 3600), goes(Rules { max_age: hour, ..none }, 3601)),
        (0, 4)
    );
    let before =
        |second| plan(dir.path(), &Wanted::Before(Timestamp::from_second(second).unwrap()), &[]).goes().len();
    assert_eq!((before(1_700_000_000), before(1_700_000_001)), (0, 4));
    // The age is in the bytes: a restored folder has it too.
    let all = list(DISK, dir.path()).unwrap();
    assert_eq!(sealed_at(DISK, &all, 0).unwrap(), Some(began));
    assert_eq!(sealed_at(DISK, &all, 5).unwrap(), None, "it is not sealed");
    drop(folder);
}

/// A crash leaves what the record says is gone; whoever looks does not count it, and opening removes it.
#[test]
fn a_purge_that_was_interrupted_is_finished() {
    let (dir, folder) = copy();
    let kept: Vec<Vec<u8>> =
        (1..=2).map(|number| std::fs::read(folder.join(name(number))).unwrap()).collect();
    let old_index = std::fs::read(folder.join(INDEX_FILE)).unwrap();
    purge(dir.path(), &to(3), Indexes::Ours);
    let interrupt = || {
        let path = folder.join(TIMELINE_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("removed = true"), "{text}");
        std::fs::write(&path, text.replace("removed = true", "removed = false")).unwrap();
    };
    interrupt();
    for (resurrected, with_index) in [(1..=2, true), (1..=2, false), (1..=1, true), (2..=2, true)] {
        for number in resurrected.clone() {
            std::fs::write(folder.join(name(number)), &kept[number as usize - 1]).unwrap();
        }
        if with_index {
            std::fs::write(folder.join(INDEX_FILE), &old_index).unwrap();
        }
        let left: Vec<String> = (3..=6).map(name).collect();
        assert_eq!(files(&folder), left);
        assert_eq!(problems(&folder), Vec::<String>::new());
        let recovered = recover(DISK, &folder, Tail::SaveAside(NOW)).unwrap();
        assert_eq!((&recovered.files, recovered.remarks.len()), (&left, 1), "{:?}", recovered.remarks);
        assert_eq!(index::read(DISK, &folder).unwrap(), left);
        assert!(resurrected.clone().all(|number| !folder.join(name(number)).exists()));
    }
    std::fs::write(folder.join(name(1)), &kept[0]).unwrap();
    assert_eq!((finish(DISK, dir.path()).unwrap(), finish(DISK, dir.path()).unwrap()), (1, 0));
    // Once all are removed, what is there was put back by somebody: it stays, and counts when the record is taken out.
    std::fs::write(folder.join(name(1)), &kept[0]).unwrap();
    std::fs::write(folder.join(name(2)), &kept[1]).unwrap();
    assert_eq!(finish(DISK, dir.path()).unwrap(), 0);
    assert_eq!(recover(DISK, &folder, Tail::SaveAside(NOW)).unwrap().files.len(), 4);
    assert_eq!(purge(dir.path(), &to(4), Indexes::Ours), [name(3)], "nor does a later purge take them");
    assert_eq!(files(&folder).len(), 3);
    let path = folder.join(TIMELINE_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.split("[[purged]]").next().unwrap()).unwrap();
    std::fs::write(folder.join(name(3)), file(3).rotate(&name(4)).finish()).unwrap();
    let recovered = recover(DISK, &folder, Tail::SaveAside(NOW)).unwrap();
    assert_eq!(recovered.files, (1..=6).map(name).collect::<Vec<_>>());
    assert_eq!(problems(&folder), Vec::<String>::new());
}

/// A disk on which this file cannot be removed.
#[derive(Debug)]
struct Sticky(String);

impl PosixInstead for Sticky {
    fn open_synced_file(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        PosixStorage.open_synced(path)
    }

    fn may_remove(&self, path: &Path) -> io::Result<()> {
        match path.ends_with(&self.0) {
            true => Err(io::Error::from_raw_os_error(libc::EPERM)),
            false => Ok(()),
        }
    }
}

/// `chattr +i`, or a file of somebody else's in a folder with the sticky bit.
#[test]
fn a_purged_file_that_cannot_be_removed_keeps_nobody_from_opening_the_copy() {
    let (dir, folder) = copy();
    let disk = Sticky(name(1));
    let plan = plan(dir.path(), &to(4), &[]);
    let error = carry_out(&disk, &plan.goes(), "a test", NOW, Indexes::Ours).unwrap_err().to_string();
    assert!(error.contains("b.000001"), "{error}");
    assert!(!folder.join(name(2)).exists() && !folder.join(name(3)).exists(), "the others went");
    let recovered = recover(&disk, &folder, Tail::SaveAside(NOW)).unwrap();
    assert_eq!(recovered.files, (4..=6).map(name).collect::<Vec<_>>());
    assert_eq!(recovered.remarks.len(), 1, "{:?}", recovered.remarks);
    assert!(recovered.remarks[0].contains("a file that was purged cannot be removed"), "{recovered:?}");
    assert!(remove_left(&disk, dir.path()).is_err());
    assert_eq!(remove_left(DISK, dir.path()).unwrap(), 1, "once it can");
}

/// The index of a live file belongs to who writes the file.
#[test]
fn a_writer_takes_off_what_was_purged_when_it_begins_a_file() {
    let (dir, folder) = copy();
    let recovered = recover(DISK, &folder, Tail::SaveAside(NOW)).unwrap();
    let mut writer = LogWriter::new(Arc::new(PosixStorage), &folder, recovered, None);
    purge(dir.path(), &to(4), Indexes::OfOlderTimelines);
    assert_eq!(index::read(DISK, &folder).unwrap().len(), 6, "it is the writer's");
    assert_eq!((files(&folder).len(), problems(&folder).len()), (3, 0));
    writer.begin_file(&name(7)).unwrap();
    let left: Vec<String> = (4..=7).map(name).collect();
    assert_eq!((writer.files(), index::read(DISK, &folder).unwrap()), (&left[..], left.clone()));
    let error = writer.begin_file(&name(2)).unwrap_err().to_string();
    assert!(error.contains("b.000002"), "no other file comes in the place of a purged one: {error}");
}

/// The timeline before goes file by file; its folder and its record stay, for what the history has.
#[test]
fn older_timelines_go_first_and_keep_their_record() {
    let (dir, old) = copy();
    let other = "11111111-2222-3333-4444-555555555555";
    let changed = Timeline {
        reason: Reason::SourceChanged,
        first_file: name(4),
        gtid_before: format!("{SERVER_UUID}:1-6"),
        began_at: "2023-11-14T22:13:20Z".into(),
        previous: old.file_name().unwrap().to_str().unwrap().into(),
        ..first_timeline(other)
    };
    let new = changed.create(DISK, dir.path(), 2).unwrap();
    let rules = Wanted::Rules(Rules { max_files: Some(1), ..Rules::default() }, NOW);
    assert_eq!(plan(dir.path(), &rules, &[]).goes().len(), 2, "the newest has no file: the last four stay");
    put(&new, 4..=4);
    assert_eq!(plan(dir.path(), &rules, &[]).goes().len(), 4, "it has one: the last three stay");
    put(&new, 4..=6);
    let need = |from| [Need { who: "a peer".to_owned(), from }];
    let named = old.file_name().unwrap().to_str().unwrap().to_owned();
    for from in [NeedFrom::EndOf(named), NeedFrom::EndOfOldest] {
        assert_eq!(
            plan(dir.path(), &rules, &need(from)).goes().len(),
            5,
            "its last file and all behind it stay"
        );
    }
    assert_eq!(purge(dir.path(), &rules, Indexes::OfOlderTimelines).len(), 7);
    assert_eq!((files(&old).len(), index::read(DISK, &old).unwrap().len()), (0, 0));
    assert_eq!((problems(&old), problems(&new)), (Vec::new(), Vec::new()));
    assert_eq!(resume_point(DISK, &old).unwrap(), None);
    let held = HeldGtids::read(DISK, dir.path(), ServerKind::MySql).unwrap().unwrap();
    assert_eq!(held.all().to_line(), format!("{SERVER_UUID}:1-6"));
    let info = Timeline::read(DISK, &old).unwrap();
    assert_eq!(
        info.purged_gtids().unwrap().to_line(),
        format!("{SERVER_UUID}:1-6"),
        "as its last file tells itself"
    );
}

#[test]
fn what_a_fork_took_stays_until_it_is_settled() {
    let (dir, old) = copy();
    let fork = Timeline {
        reason: Reason::Fork,
        first_file: name(5),
        gtid_before: format!("{SERVER_UUID}:1-6"),
        source_lacks: format!("{SERVER_UUID}:5-6"),
        previous: old.file_name().unwrap().to_str().unwrap().into(),
        ..first_timeline(SERVER_UUID)
    };
    let new = fork.create(DISK, dir.path(), 2).unwrap();
    for number in 5..=9 {
        let begun = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1-4"));
        let whole = if number < 9 { begun.rotate(&name(number + 1)) } else { begun };
        std::fs::write(new.join(name(number)), whole.finish()).unwrap();
    }
    let plan = plan(dir.path(), &to(9), &[]);
    let gone: Vec<_> = plan.goes().iter().map(|file| file.name.clone()).collect();
    assert_eq!(gone, (1..=4).map(name).collect::<Vec<_>>());
    let (kept, why) = plan.kept().unwrap();
    assert_eq!((kept.name.as_str(), kept.folder == old), ("b.000005", true));
    assert!(
        why.iter().any(|why| why.contains("the source lacks a transaction") && why.ends_with(":5")),
        "{why:?}"
    );
    let settlement = crate::forks::settlement::Settlement {
        at: String::new(),
        by: String::new(),
        decision: crate::forks::settlement::Decision::LossAccepted,
        gtids: format!("{SERVER_UUID}:5-6"),
        transactions: Vec::new(),
        through: 2,
        note: String::new(),
    };
    crate::forks::settlement::record(DISK, dir.path(), settlement).unwrap();
    assert_eq!(purge(dir.path(), &to(9), Indexes::Ours).len(), 9);
}

/// 1 to 6 of a first history, and files 1 to 6 of one that began anew.
fn begun_anew(reason: Reason, began_at: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (dir, old) = copy();
    let anew = Timeline {
        reason,
        first_file: name(1),
        began_at: began_at.into(),
        previous: old.file_name().unwrap().to_str().unwrap().into(),
        ..first_timeline("11111111-2222-3333-4444-555555555555")
    };
    let new = anew.create(DISK, dir.path(), 2).unwrap();
    put(&new, 1..=6);
    (dir, old, new)
}

/// The server of an older history may come back: what that ends with is then compared with it.
#[test]
fn the_end_of_an_older_history_stays_and_is_passed_over() {
    for reason in [Reason::SourceReset, Reason::Stranger] {
        let (dir, old, new) = begun_anew(reason, "2023-11-14T22:13:20Z");
        let rules = Wanted::Rules(Rules { max_files: Some(1), ..Rules::default() }, NOW);
        assert_eq!(purge(dir.path(), &rules, Indexes::OfOlderTimelines).len(), 8);
        assert_eq!(files(&old), [name(5), name(6)], "{reason:?}");
        assert_eq!(files(&new), [name(5), name(6)], "{reason:?}");
        let plan = plan(dir.path(), &rules, &[]);
        let (kept, why) = plan.kept().unwrap();
        assert!(kept.folder == new && why[0].contains("the live file"), "{kept:?}: {why:?}");
        assert!(plan.goes().is_empty() && plan.files[0].stays.as_ref().unwrap()[0].contains("older history"));
        // It is what the server finds when it goes on.
        crate::folder::make_present(DISK, dir.path(), old.file_name().unwrap().to_str().unwrap()).unwrap();
        let point = resume_point(DISK, &old).unwrap().unwrap();
        assert_eq!(point.gtids.to_line(), format!("{SERVER_UUID}:1-6"));
        assert!(purge(dir.path(), &rules, Indexes::OfOlderTimelines).is_empty());
    }
}

/// Acknowledged transactions stay until somebody decides, also when another server was followed meanwhile.
#[test]
fn what_a_fork_took_stays_behind_a_stranger_too() {
    let (dir, old) = copy();
    let named = |folder: &Path| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let fork = Timeline {
        reason: Reason::Fork,
        first_file: name(3),
        gtid_before: format!("{SERVER_UUID}:1-6"),
        source_lacks: format!("{SERVER_UUID}:3-6"),
        previous: named(&old),
        ..first_timeline(SERVER_UUID)
    };
    let forked = fork.create(DISK, dir.path(), 2).unwrap();
    let file = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1-2")).finish();
    std::fs::write(forked.join(name(3)), file).unwrap();
    let stranger = Timeline {
        reason: Reason::Stranger,
        first_file: name(1),
        previous: named(&forked),
        ..first_timeline("11111111-2222-3333-4444-555555555555")
    };
    let new = stranger.create(DISK, dir.path(), 3).unwrap();
    put(&new, 1..=6);
    let rules = Wanted::Rules(Rules { max_files: Some(1), ..Rules::default() }, NOW);
    let plan = plan(dir.path(), &rules, &[]);
    let (kept, why) = plan.kept().unwrap();
    assert_eq!((kept.folder == old, kept.name.as_str()), (true, "b.000003"), "{why:?}");
    assert!(why.iter().any(|why| why.contains("the source lacks a transaction")), "{why:?}");
    assert_eq!(purge(dir.path(), &rules, Indexes::OfOlderTimelines).len(), 6);
    assert_eq!((files(&old).len(), files(&forked).len(), files(&new).len()), (4, 1, 2));
}

/// With the server of an older timeline back, that comes last in the order, behind one that began later.
#[test]
fn the_age_of_a_file_is_not_told_by_a_timeline_that_began_before_it() {
    let (dir, old, new) = begun_anew(Reason::Stranger, "2023-11-14T22:13:20Z");
    let named = old.file_name().unwrap().to_str().unwrap().to_owned();
    let sealed = |folder: &Path| {
        let all = list(DISK, dir.path()).unwrap();
        let last = all.iter().rposition(|file| file.folder == folder).unwrap();
        sealed_at(DISK, &all, last).unwrap()
    };
    let second = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    assert_eq!(sealed(&old), second("2023-11-14T22:13:20Z"));
    crate::folder::make_present(DISK, dir.path(), &named).unwrap();
    assert_eq!((sealed(&new), sealed(&old)), (None, None), "nobody knows, and it is written");
    // Nor does it keep the age from counting for what is written now.
    let far = "2033-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(plan(dir.path(), &Wanted::Before(far), &[]).goes().len(), 8);
    // What was gone back to is sealed when that is followed, not when it was left for the first time.
    let again = Timeline {
        reason: Reason::SourceChanged,
        began_at: "2024-05-05T05:05:05Z".into(),
        previous: named,
        ..first_timeline(SERVER_UUID)
    };
    put(&again.create(DISK, dir.path(), 3).unwrap(), 7..=8);
    assert_eq!(sealed(&old), second("2024-05-05T05:05:05Z"));
    assert_eq!(sealed(&new), second("2024-05-05T05:05:05Z"));
}

#[test]
fn the_record_stays_short_and_the_rest_of_the_file_as_it_was() {
    let (dir, folder) = copy();
    put(&folder, 1..=60);
    let path = folder.join(TIMELINE_FILE);
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("# of the operator\nsomething = 1\n{before}")).unwrap();
    for number in 2..=50 {
        assert_eq!(purge(dir.path(), &to(number), Indexes::Ours).len(), 1);
    }
    let info = Timeline::read(DISK, &folder).unwrap();
    assert_eq!(info.purged.len(), 32);
    let (first, last) = (&info.purged[0], info.purged.last().unwrap());
    assert_eq!((first.from.as_str(), first.files, last.through.as_str()), ("b.000001", 18, "b.000049"));
    assert_eq!(info.purged.iter().map(|line| line.files).sum::<u64>(), 49);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&format!("# of the operator\nsomething = 1\n{}", before.trim_end())), "{text}");
    // What a purge would lose it refuses to touch.
    std::fs::write(&path, format!("{text}\n[other]\nkey = 1\n")).unwrap();
    let goes = plan(dir.path(), &to(52), &[]);
    let error = carry_out(DISK, &goes.goes(), "a test", NOW, Indexes::Ours).unwrap_err().to_string();
    assert!(error.contains("timeline.toml") && error.contains("move it to the top"), "{error}");
    assert!(folder.join(name(51)).exists(), "nothing was removed");
}

/// By hand first, then by binlogd: the later record counts.
#[test]
fn what_was_moved_away_before_is_no_damage_behind_a_purge() {
    let (dir, folder) = copy();
    let path = folder.join(TIMELINE_FILE);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("kept_from = \"{}\"\n{text}", name(2))).unwrap();
    std::fs::remove_file(folder.join(name(1))).unwrap();
    assert_eq!(problems(&folder), Vec::<String>::new());
    assert_eq!(purge(dir.path(), &to(4), Indexes::Ours), [name(2), name(3)]);
    assert_eq!(problems(&folder), Vec::<String>::new());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("kept_from"), "{text}");
    let info = Timeline::read(DISK, &folder).unwrap();
    assert_eq!(info.purged_beginning().unwrap().to_line(), format!("{SERVER_UUID}:1"));
    // And by hand once more.
    std::fs::write(
        &path,
        text.replace(&format!("kept_from = \"{}\"", name(2)), &format!("kept_from = \"{}\"", name(5))),
    )
    .unwrap();
    std::fs::remove_file(folder.join(name(4))).unwrap();
    assert_eq!(problems(&folder), Vec::<String>::new());
    // At the end of the file it belongs to the record, which the next purge would write anew without it.
    std::fs::write(&path, format!("{text}kept_from = \"{}\"\n", name(5))).unwrap();
    assert!(
        problems(&folder).iter().any(|what| what.contains("move it to the top")),
        "{:?}",
        problems(&folder)
    );
    let all = list_files(dir.path());
    let error = carry_out(DISK, &[&all[0]], "a test", NOW, Indexes::Ours).unwrap_err().to_string();
    assert!(error.contains("kept_from") && error.contains("move it to the top"), "{error}");
    assert!(folder.join(name(5)).exists());
}

/// A file that goes while it is verified is no damage.
#[test]
fn a_purge_meanwhile_is_no_damage() {
    struct Purging<'a>(&'a Path);
    impl Progress for Purging<'_> {
        fn timeline(&mut self, _: &str, _: Option<&Timeline>, _: u64) {
            assert_eq!(purge(self.0, &to(3), Indexes::Ours).len(), 2);
        }
        fn offset(&mut self, _: u64) {}
        fn file(&mut self, _: &FileReport) {}
    }
    let (dir, folder) = copy();
    let report = verify_timeline(DISK, &folder, &mut Purging(dir.path()));
    let of_files = report.files.iter().flat_map(|file| &file.problems);
    let problems: Vec<_> = report.problems.iter().chain(of_files).map(|problem| &problem.what).collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(report.files[0].notes, ["it was purged meanwhile"]);
}

/// MariaDB's sets name the newest transactions only, so what a source shares with what it lacks is told by the first file of the
/// timeline, also when that was purged.
#[test]
fn what_a_mariadb_source_shares_is_known_behind_a_purge() {
    let dir = tempfile::tempdir().unwrap();
    let list = |ids: &[(u32, u32, u64)]| {
        let mut body = (ids.len() as u32).to_le_bytes().to_vec();
        for (domain, server, sequence) in ids {
            body.extend_from_slice(&domain.to_le_bytes());
            body.extend_from_slice(&server.to_le_bytes());
            body.extend_from_slice(&sequence.to_le_bytes());
        }
        body
    };
    let mariadb = || Timeline { server_kind: ServerKind::MariaDb, ..first_timeline("mariadb-1") };
    let old = mariadb().create(DISK, dir.path(), 1).unwrap();
    let fork = Timeline {
        reason: Reason::Fork,
        gtid_before: "0-1-9".into(),
        source_lacks: "0-1-9".into(),
        previous: old.file_name().unwrap().to_str().unwrap().into(),
        ..mariadb()
    };
    let new = fork.create(DISK, dir.path(), 2).unwrap();
    for number in 1..=5 {
        let mut file = FileBuilder::new();
        file.event(163, &list(&[(0, 1, 4 + number)]));
        std::fs::write(new.join(name(number)), file.rotate(&name(number + 1)).finish()).unwrap();
    }
    let took = || {
        let losses = crate::forks::Losses::read(DISK, dir.path()).unwrap().unwrap();
        (4..=9)
            .filter(|sequence| losses.took(&format!("0-1-{sequence}").parse::<MariadbGtid>().unwrap().into()))
            .collect::<Vec<u64>>()
    };
    assert_eq!(took(), [6, 7, 8, 9]);
    let files = list_files(dir.path());
    carry_out(DISK, &files.iter().take(2).collect::<Vec<_>>(), "a test", NOW, Indexes::Ours).unwrap();
    assert_eq!(took(), [6, 7, 8, 9], "its first file is gone, and said so");
}

fn list_files(dir: &Path) -> Vec<LogFile> {
    list(DISK, dir).unwrap()
}

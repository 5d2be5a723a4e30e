//! Ways to a point, and why there is none, by small histories.

use super::{Course, NoCourse};
use crate::history::{Copied, Until};
use crate::upstream::identify::{SourceIdentity, SourceSemiSync};
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtidState};
use log::posix::PosixStorage;
use log::testing::{FileBuilder, SERVER_UUID, first_timeline};
use std::sync::Arc;

/// Transactions 11 to 13 in one file, 14 to 16 in the next, which says that `before` was executed.
fn copy(before: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), 1).unwrap();
    for (name, before, numbers) in [("b.000001", "1-10", 11..=13), ("b.000002", before, 14..=16)] {
        let begun = FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:{before}"));
        let file = numbers.fold(begun, |file, number| file.transaction(number, 100));
        std::fs::write(folder.join(name), file.finish()).unwrap();
    }
    dir
}

/// A server that has executed these.
fn target(executed: &str) -> SourceIdentity {
    SourceIdentity {
        version: "9.7.0".into(),
        kind: ServerKind::MySql,
        server_id: 1,
        uuid: SERVER_UUID.into(),
        has_gtids: true,
        executed: GtidState::parse(ServerKind::MySql, executed).unwrap(),
        applied: MariadbGtidState::new(),
        purged: GtidState::empty(ServerKind::MySql),
        semi_sync: SourceSemiSync::Absent,
        is_read_only: false,
        knows_checksums: true,
    }
}

fn ours(numbers: &str) -> String {
    format!("{SERVER_UUID}:{numbers}")
}

fn find(dir: &tempfile::TempDir, executed: &str, until: &str) -> Result<Course, NoCourse> {
    let copied = Copied::open("orders", dir.path(), Arc::new(PosixStorage), None).unwrap();
    let until = Until::parse(until, &|_| None).unwrap();
    Course::find(&copied, &target(executed), &until, &mut |_, _| ())
}

#[test]
fn everything_between_is_counted_and_both_sides_are_shown() {
    let dir = copy("1-13");
    let course = find(&dir, &ours("1-12"), &ours("15")).unwrap();
    assert_eq!((course.transactions, course.lacked.to_line()), (2, ours("13-14")));
    assert_eq!(course.at_the_point.to_line(), ours("1-14"));
    let id = |shown: Option<&crate::history::Shown>| shown.unwrap().id.unwrap().to_string();
    assert_eq!(id(course.last.as_ref()), ours("14"));
    assert_eq!(id(course.first_left_out.as_ref()), ours("15"));
    let end = find(&dir, &ours("1-12"), "end").unwrap();
    assert!(end.transactions == 4 && end.first_left_out.is_none(), "{end:?}");
    // With nothing left to do the server is where it is to be.
    for until in [ours("15"), format!("after {}", ours("14"))] {
        assert_eq!(find(&dir, &ours("1-14"), &until).unwrap().transactions, 0, "{until}");
    }
}

#[test]
fn what_no_file_holds_is_a_gap() {
    let gap = |dir: &tempfile::TempDir, executed: &str| match find(dir, executed, "end").unwrap_err() {
        NoCourse::Missing { gtids, target_is_empty } => (gtids.to_line(), target_is_empty),
        other => panic!("{other}"),
    };
    assert_eq!(gap(&copy("1-13"), &ours("1-5")), (ours("6-10"), false), "before the copy begins");
    assert_eq!(gap(&copy("1-13"), ""), (ours("1-10"), true));
    // A transaction that the second file says was executed, and the first does not hold.
    let said = format!("{SERVER_UUID}:1-13,cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd:7");
    let hole = said.strip_prefix(&format!("{SERVER_UUID}:")).unwrap();
    let (missing, _) = gap(&copy(hole), &ours("1-10"));
    assert_eq!(missing, "cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd:7");
}

#[test]
fn a_server_that_is_past_the_point_or_a_stranger_is_told_so() {
    let dir = copy("1-13");
    for (executed, until) in [("1-15", "15"), ("1-16", "12"), ("1-16", "after 14"), ("1-12", "12")] {
        let until = match until.strip_prefix("after ") {
            Some(number) => format!("after {}", ours(number)),
            None => ours(until),
        };
        let error = find(&dir, &ours(executed), &until).unwrap_err();
        assert!(matches!(error, NoCourse::Beyond { .. }), "{executed}, {until}: {error}");
    }
    let stranger = format!("{},99999999-71ca-11e1-9e33-c80aa9429562:1-2", ours("1-12"));
    let error = find(&dir, &stranger, "end").unwrap_err();
    assert!(matches!(error, NoCourse::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("99999999-71ca-11e1-9e33-c80aa9429562:1-2"), "{error}");
}

#[test]
fn a_point_that_the_copy_does_not_come_to_is_refused_with_its_end() {
    for until in [ours("99"), "b.000009:4".to_owned()] {
        let error = find(&copy("1-13"), &ours("1-12"), &until).unwrap_err();
        assert!(matches!(error, NoCourse::NotReached { .. }), "{until}: {error}");
        assert!(error.to_string().contains(&ours("16")), "{error}");
    }
}

/// The rows of these transactions cannot be read, so nobody can tell whether they are what is meant.
#[test]
fn no_statement_is_looked_for_in_what_cannot_be_read() {
    let error = find(&copy("1-13"), &ours("1-12"), "before DELETE FROM shop.orders").unwrap_err();
    assert!(matches!(error, NoCourse::Unread { .. }), "{error}");
    assert!(error.to_string().starts_with(&ours("13")), "{error}");
    assert!(error.to_string().ends_with("Name the point by its GTID"), "{error}");
}

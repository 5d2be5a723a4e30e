//! Ways to a point, and why there is none, by small histories.

use super::Course;
use crate::history::{Copied, Until};
use crate::restore::begin::Begin;
use crate::restore::course::no_course::NoCourse;
use crate::restore::tests::{built, ours, target};
use binlog::storage::posix::PosixStorage;
use binlog::testing::SERVER_UUID;
use std::sync::Arc;

/// See [`built`].
fn copy(before: &str) -> tempfile::TempDir {
    built(before).dir
}

fn find(dir: &tempfile::TempDir, executed: &str, until: &str) -> Result<Course, NoCourse> {
    let copied = Copied::open("orders", dir.path(), Arc::new(PosixStorage), None).unwrap();
    let until = Until::parse(until, &|_| None).unwrap();
    Course::find(&copied, Begin::Gtids(&target(executed)), &until, &[], &mut |_, _| ())
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

/// What a failover took from the source is no history, and the port does not send it: to wait for it would be for ever.
#[test]
fn what_a_later_timeline_lacks_is_left_out() {
    let dir = copy("1-13");
    let info = binlog::timeline::Timeline {
        reason: binlog::timeline::Reason::Fork,
        source_lacks: ours("15-16"),
        ..binlog::testing::first_timeline(OTHER)
    };
    let folder = info.create(&PosixStorage, dir.path(), 2).unwrap();
    let file = binlog::testing::FileBuilder::new().previous_gtids(&ours("1-14"));
    std::fs::write(folder.join("b.000001"), file.transaction(17, 100).finish()).unwrap();
    let course = find(&dir, &ours("1-12"), "end").unwrap();
    assert_eq!((course.transactions, course.lacked.to_line()), (3, ours("13-14:17")));
    assert_eq!(course.at_the_point.to_line(), ours("1-14:17"));
    // Who has it is no part of this history any more.
    let error = find(&dir, &ours("1-15"), "end").unwrap_err();
    assert!(matches!(error, NoCourse::Foreign { .. }), "{error}");
}

/// UUID of the server that took over.
const OTHER: &str = "99999999-71ca-11e1-9e33-c80aa9429562";

//! Places of backups, by small histories.

use super::{BackupAt, NoBackup, told};
use crate::history::Copied;
use crate::restore::tests::{Built, built, ours, target};
use binlog::storage::posix::PosixStorage;
use binlog::testing::{FileBuilder, first_timeline};
use binlog::timeline::{Reason, Timeline};
use codec::ServerKind;
use codec::gtid::GtidState;
use std::sync::Arc;

fn gtids(built: &Built, text: &str) -> Result<GtidState, NoBackup> {
    let copied = Copied::open("orders", built.dir.path(), Arc::new(PosixStorage), None).unwrap();
    BackupAt::parse(text, ServerKind::MySql).unwrap().gtids(&copied)
}

#[test]
fn each_boundary_has_its_gtids_and_nothing_else_has() {
    let built = built("1-13");
    let mut before = 10;
    for (file, boundaries) in &built.boundaries {
        for at in 4..boundaries.last().unwrap() + 2 {
            let text = format!("{file}:{at}");
            let ended = boundaries.iter().skip(1).filter(|end| **end <= at).count() as u64;
            match gtids(&built, &text) {
                Ok(found) => {
                    assert_eq!(found.to_line(), ours(&format!("1-{}", before + ended)), "{text}");
                    let is_boundary = at <= boundaries[0] || boundaries.contains(&at);
                    assert!(is_boundary, "{text} is inside a transaction");
                }
                Err(NoBackup::Inside { begins, ends, .. }) => {
                    assert!(begins < at && at < ends && boundaries.contains(&begins), "{text}");
                }
                Err(NoBackup::Beyond { end, .. }) => assert!(at > end, "{text}"),
                Err(other) => panic!("{text}: {other}"),
            }
        }
        before += boundaries.len() as u64 - 1;
    }
}

#[test]
fn a_file_that_is_not_held_is_refused_with_those_that_are() {
    let error = gtids(&built("1-13"), "b.000009:4").unwrap_err();
    assert!(error.to_string().contains("it goes from b.000001 to b.000002"), "{error}");
}

/// A server that took over has files of the same names.
#[test]
fn a_file_of_several_timelines_is_refused_and_one_of_them_can_be_chosen() {
    let built = built("1-13");
    let info = Timeline { reason: Reason::Fork, ..first_timeline(OTHER) };
    let folder = info.create(&PosixStorage, built.dir.path(), 2).unwrap();
    let file = FileBuilder::new().previous_gtids(&ours("1-16"));
    std::fs::write(folder.join("b.000001"), file.transaction(17, 100).finish()).unwrap();
    let (name, boundaries) = &built.boundaries[0];
    let at = format!("{name}:{}", boundaries[1]);
    let error = gtids(&built, &at).unwrap_err().to_string();
    assert!(error.contains("in several timelines: 0001-") && error.contains(", 0002-"), "{error}");
    assert!(error.contains("choose with --timeline"), "{error}");
    let of = |timeline: &str| {
        let copied =
            Copied::open("orders", built.dir.path(), Arc::new(PosixStorage), Some(timeline)).unwrap();
        BackupAt::parse(&at, ServerKind::MySql).unwrap().gtids(&copied)
    };
    assert_eq!(of("1").unwrap().to_line(), ours("1-11"));
    // The second ends the history of both.
    assert!(matches!(of("2"), Err(NoBackup::Files { .. })));
    // What only one of them has needs no choice.
    let (name, boundaries) = &built.boundaries[1];
    assert_eq!(gtids(&built, &format!("{name}:{}", boundaries[1])).unwrap().to_line(), ours("1-14"));
}

const OTHER: &str = "99999999-71ca-11e1-9e33-c80aa9429562";

#[test]
fn a_server_without_gtids_goes_on_at_a_boundary() {
    let built = built("1-13");
    let copied = Copied::open("orders", built.dir.path(), Arc::new(PosixStorage), None).unwrap();
    let position = |text: &str| BackupAt::parse(text, ServerKind::MySql).unwrap().position(&copied);
    let (name, boundaries) = &built.boundaries[1];
    let at = format!("{name}:{}", boundaries[2]);
    assert_eq!(position(&at).unwrap().to_string(), at);
    assert_eq!(position("nothing").unwrap().to_string(), "b.000001:4");
    assert!(matches!(position(&format!("{name}:{}", boundaries[2] - 1)), Err(NoBackup::Inside { .. })));
    assert!(matches!(position(&ours("1-12")), Err(NoBackup::NeedsPosition)));
}

#[test]
fn what_backup_tools_write_is_read() {
    let parse = |text: &str| BackupAt::parse(text, ServerKind::MySql);
    let position = parse("mysql-bin.000002:1234").unwrap();
    assert_eq!(parse("mysql-bin.000002\t1234\n").unwrap(), position);
    let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5,\n99999999-71ca-11e1-9e33-c80aa9429562:1-2";
    let only = parse(set).unwrap();
    assert_eq!(parse(&format!("mysql-bin.000002\t1234\t{set}\n")).unwrap(), only);
    assert!(matches!(&only, BackupAt::Gtids(gtids) if gtids.to_line() == set.replace('\n', "")));
    assert_eq!(parse("nothing").unwrap(), BackupAt::Gtids(GtidState::empty(ServerKind::MySql)));
    for text in ["", "mysql-bin.000002", "1234", "2026-03-01 15:00:00", "mysql-bin.000002 12 34", "0-1-5"] {
        let error = parse(text).unwrap_err();
        assert!(error.contains("is no place of a backup of MySQL"), "{text}: {error}");
    }
    let parse = |text: &str| BackupAt::parse(text, ServerKind::MariaDb);
    assert_eq!(parse("mysql-bin.000002\t1234\t0-1-5,7-1-9").unwrap(), parse("0-1-5,7-1-9").unwrap());
}

#[test]
fn only_a_server_that_has_executed_nothing_is_told() {
    let of = |text: &str| GtidState::parse(ServerKind::MySql, text).unwrap();
    let backup = of(&ours("1-12"));
    let is_told = told(&target(""), &backup).unwrap().expect("it does not know");
    assert_eq!(is_told.executed, backup);
    for knows in ["1-12", "1-14"] {
        assert!(told(&target(&ours(knows)), &backup).unwrap().is_none(), "{knows}");
    }
    for other in [ours("1-11"), "99999999-71ca-11e1-9e33-c80aa9429562:1".to_owned()] {
        let error = told(&target(&other), &backup).unwrap_err().to_string();
        assert!(error.contains("RESET BINARY LOGS AND GTIDS") && error.contains(&other), "{error}");
    }
}

#[test]
fn mariadb_goes_by_the_last_of_each_domain() {
    let of = |text: &str| GtidState::parse(ServerKind::MariaDb, text).unwrap();
    let empty =
        source::identify::SourceIdentity { kind: ServerKind::MariaDb, executed: of(""), ..target("") };
    // The second server wrote last in domain 0.
    let is_told = told(&empty, &of("0-1-5,0-2-9,7-1-3")).unwrap().unwrap();
    assert_eq!(is_told.applied.position(), "0-2-9,7-1-3");
    assert!(is_told.lacks(&of("0-1-4")).is_empty(), "a position has everything before it");
    let error = told(&is_told, &of("0-2-10")).unwrap_err().to_string();
    assert!(error.contains("RESET MASTER; SET GLOBAL gtid_slave_pos = ''"), "{error}");
}

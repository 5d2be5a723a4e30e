//! The lab's own servers: every version is spoken to in its own words.

use binlogd_bench::semisync::interrupt::Interrupt;
use binlogd_lab::model::Fact;
use binlogd_lab::server::Target;
use binlogd_lab::server::changes::{self, Changes};
use binlogd_lab::server::semi_sync::WaitPoint;
use binlogd_lab::study::Lab;
use std::path::Path;

fn lab(dir: &Path) -> Lab {
    Lab {
        binlogd: dir.join("not-started-here"),
        scripts: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers"),
        dir: dir.to_owned(),
        journals: dir.join("journals"),
        interrupt: Interrupt::default(),
        allowed_servers: Vec::new(),
        say: |_| (),
    }
}

fn value<'a>(facts: &'a [Fact], name: &str) -> Option<&'a str> {
    facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
}

/// What holds for all; the server and its facts are left for what differs.
fn in_its_own_words(name: &str, version: &str, test: impl FnOnce(&mut Target, &[Fact])) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let lab = lab(dir.path());
    let mut target = Target::start(&lab, name, dir.path().join("one"), None, &[]).expect("it starts");
    target.create_database().expect("a database");
    target.commit_probes().expect("commits");
    let place = target.begin_log().expect("a new log");
    let bytes = target.log_bytes().expect("the log's size");
    // MariaDB writes a checkpoint into the new file a moment later, and keeps the one before until then.
    assert!(bytes == place.position || target.dialect().is_mariadb(), "{bytes} {place:?}");
    target.commit_probes().expect("commits");
    assert!(target.log_end().expect("the log's end").position > place.position);

    target.set("sync_binlog", "7").expect("it is set");
    assert_eq!(target.variable("sync_binlog").expect("an answer").as_deref(), Some("7"));
    target.set("binlog_row_image", "MINIMAL").expect("it is set");
    assert_eq!(target.variable("binlog_row_image").expect("an answer").as_deref(), Some("MINIMAL"));
    assert_eq!(target.variable("no_such_variable").expect("an answer"), None);
    let facts = target.facts().expect("facts");
    assert!(value(&facts, "version").is_some_and(|found| found.starts_with(version)), "{facts:?}");
    assert_eq!(value(&facts, "sync_binlog"), Some("7"), "{facts:?}");
    assert_eq!(value(&facts, "binlog_row_image"), Some("MINIMAL"), "{facts:?}");
    let place = dir.path().display().to_string();
    assert!(facts.iter().all(|fact| !fact.value.contains(&place)), "{facts:?}");
    test(&mut target, &facts);

    // A copy of its data is another server.
    target.query(target.dialect().reset_logs()).expect("an empty log");
    target.stop().expect("it ends");
    let mut copy =
        Target::start(&lab, name, dir.path().join("two"), Some(&target), &[]).expect("a copy starts");
    target.restart(&["--sync-binlog=3".to_owned()]).expect("it starts again");
    assert_eq!(target.variable("sync_binlog").expect("an answer").as_deref(), Some("3"));
    for target in [&mut target, &mut copy] {
        target.commit_probes().expect("the table is there");
    }
}

fn has_semi_sync(target: &mut Target, _: &[Fact]) {
    target.prepare_semi_sync(WaitPoint::AfterCommit).expect("semi-sync");
    assert_eq!(target.not_in_force(false).expect("an answer"), None);
    target.set_semi_sync(true).expect("it is switched on");
    assert!(target.semi_sync().expect("counters").on);
    // Nobody is attached.
    let wrong = target.not_in_force(true).expect("an answer").expect("not in force");
    assert!(wrong.contains("counts 0 semi-sync receivers"), "{wrong}");
    target.set_semi_sync(false).expect("it is switched off");
    assert!(!target.semi_sync().expect("counters").on);
}

fn has_no_semi_sync(target: &mut Target, _: &[Fact]) {
    let error = target.prepare_semi_sync(WaitPoint::AfterSync).expect_err("no plugin");
    assert!(format!("{error:#}").contains("no semi-sync plugin"), "{error:#}");
    target.set_semi_sync(false).expect("it is off");
    target.set_semi_sync(true).expect_err("it cannot be on");
}

/// A run that is interrupted just then would otherwise leave the server with a pool of the lab's size.
fn a_pool_is_set_back_while_it_is_being_resized(name: &str) {
    const POOL: &str = "innodb_buffer_pool_size";
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let lab = lab(dir.path());
    let options = ["--innodb-buffer-pool-size=64M", "--innodb-buffer-pool-chunk-size=1M"].map(str::to_owned);
    let mut target = Target::start(&lab, name, dir.path().join("one"), None, &options).expect("it starts");
    let account = target.account().clone();
    for size in ["1073741824", "33554432"] {
        let before = changes::variable(target.session(), POOL).expect("an answer").expect("a pool");
        let mut changes =
            Changes::begin(&lab.journals, &account, target.session(), lab.say).expect("a journal");
        changes.set(target.session(), POOL, size).expect("it begins to resize");
        changes.undo().expect("it is set back");
        let after = changes::variable(target.session(), POOL).expect("an answer");
        assert_eq!(after, Some(before));
        // It could still be resized again if undoing had come too early.
        std::thread::sleep(std::time::Duration::from_secs(2));
        assert_eq!(changes::variable(target.session(), POOL).expect("an answer"), after);
    }
}

#[test]
fn a_pool_is_set_back_on_mysql() {
    a_pool_is_set_back_while_it_is_being_resized("mysql-9.7");
}

#[test]
fn a_pool_is_set_back_on_mariadb_that_resizes_in_the_background() {
    a_pool_is_set_back_while_it_is_being_resized("mariadb-10.11");
}

#[test]
fn mysql_9_7() {
    in_its_own_words("mysql-9.7", "9.7", has_semi_sync);
}

#[test]
fn mysql_8_0_31() {
    in_its_own_words("mysql-8.0.31", "8.0.31", has_no_semi_sync);
}

#[test]
fn mysql_8_0_15() {
    in_its_own_words("mysql-8.0.15", "8.0.15", has_no_semi_sync);
}

#[test]
fn mysql_5_7_22() {
    in_its_own_words("mysql-5.7.22", "5.7.22", |target, facts| {
        has_no_semi_sync(target, facts);
        assert!(value(facts, "variables").is_some_and(|text| text.contains("does not tell")), "{facts:?}");
    });
}

#[test]
fn mariadb_10_11() {
    in_its_own_words("mariadb-10.11", "10.11", has_semi_sync);
}

#[test]
fn mariadb_11_8() {
    in_its_own_words("mariadb-11.8", "11.8", has_semi_sync);
}

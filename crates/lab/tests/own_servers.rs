//! The lab's own servers: every version is spoken to in its own words.

use binlogd_lab::apart::Apart;
use binlogd_lab::interrupt::Interrupt;
use binlogd_lab::lab::Lab;
use binlogd_lab::load::sysbench::Sysbench;
use binlogd_lab::model::Fact;
use binlogd_lab::receiver::Replica;
use binlogd_lab::receiver::replica::Behaviour;
use binlogd_lab::server::changes::Changes;
use binlogd_lab::server::semi_sync::WaitPoint;
use binlogd_lab::server::sql;
use binlogd_lab::server::{Target, address, restore};
use codec::ServerKind;
use rig::server::Session;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{ConnectOptions, Secret};

fn lab(dir: &Path) -> Lab {
    Lab {
        binlogd: dir.join("not-started-here"),
        scripts: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers"),
        dir: dir.to_owned(),
        apart: Apart::default(),
        link: None,
        journals: dir.join("journals"),
        interrupt: Interrupt::default(),
        unrestored: Arc::default(),
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
    assert!(bytes == place.position || target.dialect().kind() == ServerKind::MariaDb, "{bytes} {place:?}");
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
    let mut copy = Target::start(&lab, name, dir.path().join("two"), Some(&dir.path().join("one")), &[])
        .expect("a copy starts");
    target.restart(&["--sync-binlog=3".to_owned()]).expect("it starts again");
    assert_eq!(target.variable("sync_binlog").expect("an answer").as_deref(), Some("3"));
    for target in [&mut target, &mut copy] {
        target.commit_probes().expect("the table is there");
    }
}

#[test]
fn a_server_that_has_ended_under_a_load_is_named() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let lab = lab(dir.path());
    let mut target = Target::start(&lab, "mysql-9.7", dir.path().join("one"), None, &[]).expect("it starts");
    target.create_database().expect("a database");
    let sysbench = Sysbench::new(&lab, &target, 1, 100, dir.path()).expect("sysbench");
    sysbench.prepare(&mut target, &lab.interrupt).expect("a table");
    let load = |target: &mut Target| sysbench.load(target, "oltp_point_select", 1, 1, &lab.interrupt);
    load(&mut target).expect("a load");
    let pid = target.pid().expect("a process").to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill runs");
    assert!(killed.success());
    let began = Instant::now();
    // It ends in a moment.
    let said = loop {
        let said = format!("{:#}", load(&mut target).expect_err("nobody answers"));
        if said.contains("has ended") || began.elapsed() > Duration::from_secs(60) {
            break said;
        }
    };
    assert!(said.starts_with("mysql-9.7 has ended meanwhile. Its log ends with: "), "{said}");
    assert!(said.contains("dmesg") && said.contains("sysbench failed"), "{said}");
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
        let before = sql::variable(target.session(), POOL).expect("an answer").expect("a pool");
        let mut changes = Changes::begin(&lab, &account, target.session()).expect("a journal");
        changes.set(target.session(), POOL, size).expect("it begins to resize");
        changes.undo(&mut Vec::new()).expect("it is set back");
        let after = sql::variable(target.session(), POOL).expect("an answer");
        assert_eq!(after, Some(before));
        // It could still be resized again if undoing had come too early.
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!(sql::variable(target.session(), POOL).expect("an answer"), after);
    }
}

/// One of the lab's own in the part of a user's: nobody looks at its accounts.
fn as_a_users(name: &str, test: impl FnOnce(&Lab, &mut Target, &str)) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let lab = lab(dir.path());
    let mut target = Target::start(&lab, name, dir.path().join("one"), None, &[]).expect("it starts");
    let url = address::url_without_password(target.account());
    test(&lab, &mut target, &url);
}

fn value_of(target: &mut Target, name: &str) -> String {
    target.variable(name).expect("an answer").expect("a variable")
}

fn what_the_server_has_rounded_is_set_back(name: &str) {
    as_a_users(name, |lab, target, _| {
        let before = value_of(target, "max_binlog_size");
        let account = target.account().clone();
        let mut changes = Changes::begin(lab, &account, target.session()).expect("a journal");
        for bytes in ["5000", "9000"] {
            changes.set(target.session(), "max_binlog_size", bytes).expect("it is set");
            assert_ne!(value_of(target, "max_binlog_size"), bytes);
        }
        // And what it refuses was never set.
        changes.set(target.session(), "binlog_row_image", "ALL").expect_err("there is no such value");
        let mut done = Vec::new();
        changes.undo(&mut done).expect("it is set back");
        assert_eq!(value_of(target, "max_binlog_size"), before);
        assert!(done.len() == 1 && done[0].contains("again, was 8192"), "{done:?}");
    });
}

#[test]
fn what_mysql_has_rounded_is_set_back() {
    what_the_server_has_rounded_is_set_back("mysql-9.7");
}

#[test]
fn what_mariadb_has_rounded_is_set_back() {
    what_the_server_has_rounded_is_set_back("mariadb-11.8");
}

#[test]
fn what_somebody_sets_during_the_run_is_kept() {
    as_a_users("mariadb-11.8", |lab, target, _| {
        let account = target.account().clone();
        let mut changes = Changes::begin(lab, &account, target.session()).expect("a journal");
        changes.set(target.session(), "sync_binlog", "0").expect("it is set");
        target.query("SET GLOBAL sync_binlog = 5").expect("somebody sets it");
        changes.set(target.session(), "sync_binlog", "1000").expect("it is set");
        let mut done = Vec::new();
        changes.undo(&mut done).expect("it is set back");
        assert_eq!(value_of(target, "sync_binlog"), "5");
        assert!(done.len() == 1 && done[0].contains("somebody changed sync_binlog to 5"), "{done:?}");
    });
}

/// What a run that was killed leaves, in a journal whose variable goes back to `old`.
fn leave_changed(lab: &Lab, target: &mut Target, url: &str, old: &str) {
    let answer = target.query("SELECT @@GLOBAL.server_uuid").expect("an answer");
    let identity = answer.first().expect("an identity").to_owned();
    let now = value_of(target, "sync_binlog");
    let lines = [
        format!(r#"{{"server":{{"url":"{url}","identity":"{identity}"}}}}"#),
        r#"{"database":{"name":"binlogd_lab","token":"t"}}"#.to_owned(),
        format!(r#"{{"variable":{{"name":"sync_binlog","old":"{old}","new":"{now}"}}}}"#),
    ];
    std::fs::create_dir_all(&lab.journals).expect("a folder");
    let journal = lab.journals.join("by_another_name_1.journal");
    std::fs::write(journal, lines.map(|line| line + "\n").concat()).expect("a journal");
}

#[test]
fn the_database_stays_as_a_sign_until_all_else_is_set_back() {
    as_a_users("mysql-9.7", |lab, target, url| {
        target
            .session()
            .run(&[
                "CREATE DATABASE binlogd_lab",
                "CREATE TABLE binlogd_lab.made_by_binlogd_lab (token CHAR(36) PRIMARY KEY)",
                "INSERT INTO binlogd_lab.made_by_binlogd_lab VALUES ('t')",
            ])
            .expect("a database of the lab's");
        leave_changed(lab, target, url, "nonsense");
        let error = format!("{:#}", restore(&lab.journals).expect_err("a variable cannot be set back"));
        assert!(error.contains("nonsense") && error.contains("by_another_name"), "{error}");
        target.query("SELECT * FROM binlogd_lab.made_by_binlogd_lab").expect("it is still there");

        // A second run, with the same journals and with others.
        let refused = format!("{:#}", Target::attach(lab, url).expect_err("it is not as it was"));
        assert!(refused.contains("by_another_name") && refused.contains("binlogd-lab restore"), "{refused}");
        let prefix = target.semi_sync_prefix().expect("an answer").expect("semi-sync");
        target.query(&format!("SET GLOBAL {prefix}enabled = ON")).expect("as the killed run has it");
        let elsewhere = Lab { journals: lab.dir.join("elsewhere"), ..lab.clone() };
        let refused = format!("{:#}", Target::attach(&elsewhere, url).expect_err("it is not as it was"));
        for what in ["was killed", "binlogd-lab restore where it ran", "drop the database"] {
            assert!(refused.contains(what), "{refused}");
        }
        target.query("SELECT * FROM binlogd_lab.made_by_binlogd_lab").expect("it is still there");

        target.query(&format!("SET GLOBAL {prefix}enabled = OFF")).expect("as it was");
        leave_changed(lab, target, url, "7");
        let done = restore(&lab.journals).expect("it is set back");
        assert!(done.last().is_some_and(|line| line.contains("binlogd_lab dropped")), "{done:?}");
        assert_eq!(value_of(target, "sync_binlog"), "7");
        let mut used = Target::attach(lab, url).expect("it may be used");
        let timeout = used.query("SELECT @@SESSION.wait_timeout").expect("an answer");
        assert_eq!(timeout.first(), Some("31536000"), "its lock would go with the session");
    });
}

/// Refused for that reason, with nothing changed.
fn refused(lab: &Lab, target: &mut Target, url: &str, reason: &str) {
    let error = format!("{:#}", Target::attach(lab, url).expect_err("refused"));
    assert!(error.contains(reason), "{error}");
    assert!(target.query("USE binlogd_lab").is_err());
    assert_eq!(std::fs::read_dir(&lab.journals).map_or(0, Iterator::count), 0);
}

fn commits_that_may_depend_on_semi_sync_are_left_alone(name: &str) {
    as_a_users(name, |lab, target, url| {
        let prefix = target.semi_sync_prefix().expect("an answer").expect("semi-sync");
        target.query(&format!("SET GLOBAL {prefix}enabled = ON")).expect("it is switched on");
        refused(lab, target, url, &format!("{prefix}enabled = OFF for the run"));
    });
}

#[test]
fn commits_that_may_depend_on_semi_sync_are_left_alone_on_mysql() {
    commits_that_may_depend_on_semi_sync_are_left_alone("mysql-9.7");
}

#[test]
fn commits_that_may_depend_on_semi_sync_are_left_alone_on_mariadb() {
    commits_that_may_depend_on_semi_sync_are_left_alone("mariadb-11.8");
}

#[test]
fn an_account_that_does_not_see_all_databases_is_refused() {
    as_a_users("mysql-9.7", |lab, target, url| {
        target
            .session()
            .run(&[
                "CREATE USER blind@'127.0.0.1' IDENTIFIED BY 'b'",
                "GRANT ALL ON binlogd_lab.* TO blind@'127.0.0.1'",
                "CREATE DATABASE shop",
            ])
            .expect("an account");
        refused(lab, target, &url.replace("root@", "blind:b@"), "grant it SHOW DATABASES");
    });
}

fn a_server_is_closed_to_other_users_of_the_machine(name: &str) {
    as_a_users(name, |_, target, _| {
        target.query("CREATE USER anybody@'%'").expect("an account without a password");
        let before = target.account().clone();
        target.close_to_others().expect("passwords");
        Session::connect(&before).expect_err("root has a password now");
        let anybody = ConnectOptions { user: "anybody".to_owned(), ..before };
        Session::connect(&anybody).expect_err("it is gone");
        let mut session = Session::connect(&target.account().clone()).expect("with the password");
        let open = "SELECT user, host FROM mysql.user WHERE user = 'root' AND authentication_string = ''";
        assert!(session.query(open).expect("an answer").rows.is_empty());
        // Errors quote no statement that holds a password, and no answer of the server that quotes one.
        let error = session
            .query_unquoted("ALTER USER root IDENTIFIED TO 'secret'", "ALTER USER")
            .expect_err("wrong");
        assert!(
            !format!("{error:?} {error:#}").contains("secret") && format!("{error:#}").contains("ALTER USER")
        );
        target.stop().expect("it ends");
        target.restart(&[]).expect("it starts again");
        assert!(target.facts().expect("facts").iter().all(|fact| !fact.name.contains("password")));
    });
}

#[test]
fn mysql_is_closed_to_other_users_of_the_machine() {
    a_server_is_closed_to_other_users_of_the_machine("mysql-9.7");
}

#[test]
fn mariadb_is_closed_to_other_users_of_the_machine() {
    a_server_is_closed_to_other_users_of_the_machine("mariadb-11.8");
}

fn a_replica_beside_a_users_server_is_closed(name: &str) {
    as_a_users(name, |lab, _, url| {
        let mut used = Target::attach(lab, url).expect("it may be used");
        let mut replica = Replica::beside(lab, &mut used, lab.dir.join("replica"), &[]).expect("a replica");
        let open = ConnectOptions { password: Secret::new(""), ..replica.target().account().clone() };
        Session::connect(&open).expect_err("its root has a password");
        let receives = lab
            .interrupt
            .wait(Duration::from_secs(30), || Ok(replica.not_attached()?.is_none().then_some(())));
        receives.expect("an answer").expect("it receives nevertheless");
        replica.filled(&mut used, &lab.interrupt).expect("it has all");
    });
}

#[test]
fn a_replica_beside_a_users_mysql_is_closed() {
    a_replica_beside_a_users_server_is_closed("mysql-9.7");
}

#[test]
fn a_replica_beside_a_users_mariadb_is_closed() {
    a_replica_beside_a_users_server_is_closed("mariadb-11.8");
}

/// Everybody's commits would wait the whole timeout of 10 s for it.
fn a_receiver_that_is_gone_holds_nobody_up(name: &str) {
    as_a_users(name, |lab, _, url| {
        let mut used = Target::attach(lab, url).expect("it may be used");
        let mut replica = Replica::beside(lab, &mut used, lab.dir.join("replica"), &[]).expect("a replica");
        used.prepare_semi_sync(WaitPoint::AfterSync).expect("semi-sync");
        for _ in 0..2 {
            used.set_semi_sync(true).expect("it is switched on");
            let end = used.log_end().expect("the log's end");
            let behaviour = Behaviour { sync_relay_log: 0, applying: true, semi_sync: true };
            replica.attach(&used, &end, behaviour).expect("it receives");
            let in_force = lab
                .interrupt
                .wait(Duration::from_secs(30), || Ok(used.not_in_force(true)?.is_none().then_some(())));
            in_force.expect("an answer").expect("semi-sync is in force");
            used.commit_probes().expect("commits");
            let before = used.semi_sync().expect("counters");
            assert!(before.yes_tx > 0 && before.on, "{before:?}");
            replica.detach().expect("it is gone");
            let began = Instant::now();
            used.commit_probes().expect("commits");
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        }
    });
}

#[test]
fn a_receiver_that_is_gone_holds_nobody_up_on_mysql() {
    a_receiver_that_is_gone_holds_nobody_up("mysql-9.7");
}

#[test]
fn a_receiver_that_is_gone_holds_nobody_up_on_mariadb() {
    a_receiver_that_is_gone_holds_nobody_up("mariadb-11.8");
}

#[test]
fn a_password_that_a_replica_does_not_take_is_told_before_one_is_started() {
    as_a_users("mysql-9.7", |lab, target, url| {
        let long = "p".repeat(33);
        target.query(&format!("CREATE USER dba@'127.0.0.1' IDENTIFIED BY '{long}'")).expect("an account");
        target.query("GRANT ALL ON *.* TO dba@'127.0.0.1' WITH GRANT OPTION").expect("all");
        let mut used =
            Target::attach(lab, &url.replace("root@", &format!("dba:{long}@"))).expect("it may be used");
        let error = Replica::beside(lab, &mut used, lab.dir.join("replica"), &[]).expect_err("too long");
        let error = format!("{error:#}");
        assert!(
            error.contains("at most 32") && !error.contains(&long) && !lab.dir.join("replica").exists(),
            "{error}"
        );
    });
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

//! Old files go by PURGE BINARY LOGS and by rules, what readers and slots need stays, and a kill in between leaves no hole.

use crate::common::compare::copied_files;
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{
    By, attach, checksums, client, make_account, serve_port, wait_applied, wait_io_error,
};
use crate::common::{Server, connect_options, wait_within};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use std::process::Command;
use std::time::{Duration, Instant};
use wire::{Connection, TlsMode};

const PATIENCE: Duration = Duration::from_secs(60);

/// A source whose reader has a slot, and somebody who may purge.
fn config(source: &Server, more: &str) -> String {
    let port = source.port();
    format!(
        "[[serve.user]]\nname = 'repl'\npassword = 'secret'\nslot = 'warehouse'\n\
         [[serve.user]]\nname = 'guest'\npassword = 'secret'\n\
         [[serve.user]]\nname = 'boss'\npassword = 'secret'\nprivileges = ['read', 'purge']\n\
         [retention]\nslot_margin = '0s'\n{more}\
         [[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\n"
    )
}

/// What statements give, or the error.
fn ask(server: &Server, daemon: &Daemon, user: &str, statements: &str) -> String {
    let arguments = [&format!("--user={user}"), "--batch", "--skip-column-names", "-e", statements];
    let output = client(server, "MYSQL", serve_port(daemon), &arguments);
    let text = if output.status.success() { output.stdout } else { output.stderr };
    String::from_utf8(text).unwrap()
}

fn name(number: usize) -> String {
    format!("mysql-bin.{number:06}")
}

/// So many files more, each with a transaction.
fn write_files(source: &Server, count: usize) {
    for _ in 0..count {
        source.sql("INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS");
    }
}

/// The files of the copy, by the word of the port; they must be those in the folder.
fn files(server: &Server, daemon: &Daemon) -> Vec<String> {
    let listed = ask(server, daemon, "boss", "SHOW BINARY LOGS");
    let listed: Vec<String> =
        listed.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(listed, copied_files(&daemon.timeline_dir()), "{}", daemon.log());
    listed
}

fn binlogd(arguments: &[&str], daemon: &Daemon) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.args(arguments).arg(daemon.data_dir()).env("NO_COLOR", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.success(), text)
}

fn verify(daemon: &Daemon) {
    let (sound, said) = binlogd(&["verify"], daemon);
    assert!(sound && said.contains("files were purged, up to"), "{said}");
}

/// A replica that is away keeps what it has not read; another one that comes too late is told so in the server's words.
#[test]
fn purge_keeps_what_a_slot_needs_and_a_kill_leaves_no_hole() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let source = Server::start("mysql-9.7", &[&options[..], &["--server-id=1"]].concat());
    let replica = Server::start("mysql-9.7", &[&options[..], &["--server-id=2"]].concat());
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let mut daemon = Daemon::start_from(&config(&source, ""));
    write_files(&source, 3);
    let port = serve_port(&daemon);
    daemon.wait_caught_up(&source);
    attach(&replica, port, By::Gtid, ("", 4));
    wait_applied(&replica, || binlog_end(&source), &daemon);
    replica.sql("STOP REPLICA");
    wait_within(PATIENCE, "its place is written down", || {
        daemon.data_dir().join("default/slots/warehouse.toml").exists()
            && daemon.status()["serve"]["readers"].as_array().is_some_and(Vec::is_empty)
    });
    write_files(&source, 3);
    daemon.wait_caught_up(&source);
    assert_eq!(files(&source, &daemon), (1..=7).map(name).collect::<Vec<_>>());

    let purge = |daemon: &Daemon, user: &str, file: usize| {
        ask(&source, daemon, user, &format!("PURGE BINARY LOGS TO '{}'; SHOW WARNINGS", name(file)))
    };
    let denied = purge(&daemon, "guest", 3);
    assert!(denied.contains("ERROR 1227"), "{denied}");
    let unknown = purge(&daemon, "boss", 99);
    assert!(
        unknown.contains("ERROR 1373") && unknown.contains("Target log not found in binlog index"),
        "{unknown}"
    );
    let path = daemon.config_path().to_str().unwrap().to_owned();
    let said = binlogd(&["purge", "--dry-run", "--to", &name(6), "--config", &path], &daemon).1;
    assert!(
        said.contains("slot warehouse is at mysql-bin.000004") && said.contains("2 files would go"),
        "{said}"
    );
    assert_eq!(files(&source, &daemon).len(), 7, "nothing was changed");
    let warned = purge(&daemon, "boss", 6);
    let words = [
        "Warning\t1867\tfile mysql-bin.000003 was not purged because slot warehouse",
        "purged only 2 out of 5",
    ];
    assert!(words.iter().all(|words| warned.contains(words)), "{warned}");
    let again = purge(&daemon, "boss", 6);
    assert!(again.contains("Warning\t1867") && again.contains("purged only 0 out of 3"), "{again}");
    assert_eq!(files(&source, &daemon)[0], name(3));
    let own = ask(&source, &daemon, "boss", "SELECT @@GLOBAL.gtid_purged");
    let recorded = Timeline::read(&PosixStorage, &daemon.timeline_dir()).unwrap();
    assert_eq!(recorded.purged_gtids().unwrap().to_line(), own.trim());
    verify(&daemon);

    // A reader that lacks what was purged is told what it lacks; the replica goes on.
    let late = Server::start("mysql-9.7", &[&options[..], &["--server-id=3"]].concat());
    late.sql(&format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'guest', \
         SOURCE_PASSWORD = 'secret', SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1; START REPLICA"
    ));
    let error = wait_io_error(&late);
    assert!(error.contains("1236") && error.contains("purged required binary logs"), "{error}");
    assert!(error.contains(own.trim()), "the exact set: {error}");
    replica.sql("START REPLICA");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(checksums(&replica, "d"), checksums(&source, "d"));
    wait_within(PATIENCE, "the slot is shown", || {
        let slots = &daemon.status()["serve"]["slots"];
        slots[0]["name"] == "warehouse" && slots[0]["connected"] == true && slots[0]["behind_bytes"] == 0
    });

    // A second reader by the same slot would move it past what the first one has not read.
    late.sql("STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_USER = 'repl'; START REPLICA");
    let error = wait_io_error(&late);
    assert!(error.contains("1236") && error.contains("slot warehouse is in use by connection"), "{error}");

    // Killed around purges, the copy begins later and later, and has no hole; the replica follows.
    for round in 0..3 {
        write_files(&source, 4);
        wait_applied(&replica, || binlog_end(&source), &daemon);
        let (live, first) = (binlog_end(&source).0, files(&source, &daemon).remove(0));
        wait_within(PATIENCE, "the slot has followed", || {
            daemon.status()["serve"]["slots"][0]["position"]["file"] == live.as_str()
        });
        let mut options = connect_options(&source, "boss", "secret", TlsMode::Disabled);
        options.port = serve_port(&daemon);
        let mut connection = Connection::connect(&options).expect("a connection");
        let record = daemon.timeline_dir().join("timeline.toml");
        let before = std::fs::read(&record).unwrap();
        let purging =
            std::thread::spawn(move || drop(connection.query(&format!("PURGE BINARY LOGS TO '{live}'"))));
        // As soon as it is recorded, when the files go; the last time a moment earlier or later.
        let deadline = Instant::now() + PATIENCE;
        while round < 2 && std::fs::read(&record).unwrap() == before {
            assert!(Instant::now() < deadline, "nothing is recorded\n{}", daemon.log());
        }
        daemon.kill();
        purging.join().unwrap();
        daemon.restart(&[]);
        daemon.wait_caught_up(&source);
        attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
        let left = files(&source, &daemon);
        let live = binlog_end(&source).0;
        // The place of the slot is as old as the last look, and keeps what it keeps.
        assert!(round == 2 || left[0] > first, "{left:?}");
        let last: usize = live.rsplit('.').next().unwrap().parse().unwrap();
        let held: Vec<String> = (last + 1 - left.len()..=last).map(name).collect();
        assert_eq!(left, held);
        verify(&daemon);
    }
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(checksums(&replica, "d"), checksums(&source, "d"));
    // The slot of a reader that will not come back.
    replica.sql("STOP REPLICA");
    wait_within(PATIENCE, "it is gone", || {
        let slot = &daemon.status()["serve"]["slots"][0];
        slot["connected"] == false
    });
    assert!(binlogd(&["slots"], &daemon).1.contains("warehouse"));
    let (done, said) = binlogd(&["slots", "--drop", "warehouse"], &daemon);
    assert!(done && said.contains("slot warehouse of default is removed"), "{said}");
    assert!(binlogd(&["slots"], &daemon).1.contains("no slots"));
    // Without the daemon the verb itself purges.
    write_files(&source, 3);
    daemon.wait_caught_up(&source);
    let (done, said) = binlogd(&["purge", "--to", &binlog_end(&source).0], &daemon);
    assert!(!done && said.contains("binlogd runs on this copy"), "{said}");
    daemon.terminate();
    let (done, said) = binlogd(&["purge", "--to", &binlog_end(&source).0], &daemon);
    assert!(done && said.contains("the live file or the one before"), "{said}");
    assert_eq!(copied_files(&daemon.timeline_dir()).len(), 2);
    verify(&daemon);
}

/// The rules are taken up by SIGHUP, keep what a connected reader reads, and a restart begins nothing anew.
#[test]
fn rules_delete_what_nobody_reads() {
    let source = Server::start("mariadb-11.8", &["--server-id=1"]);
    let replica = Server::start("mariadb-11.8", &["--server-id=2"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let mut daemon = Daemon::start_from(&config(&source, ""));
    write_files(&source, 6);
    daemon.wait_caught_up(&source);
    let port = serve_port(&daemon);
    assert_eq!(files(&source, &daemon).len(), 7, "without a rule nothing is deleted");
    attach(&replica, port, By::Gtid, ("", 4));
    wait_applied(&replica, || binlog_end(&source), &daemon);
    daemon.write_config(&config(&source, "max_files = 3\n"));
    daemon.reload();
    wait_within(PATIENCE, "the rule is obeyed", || copied_files(&daemon.timeline_dir()).len() == 3);
    assert_eq!(files(&source, &daemon), (5..=7).map(name).collect::<Vec<_>>());
    daemon.wait_log("by the rules of [retention]", PATIENCE);

    // What came before is known from the files that are left.
    let position = ask(&source, &daemon, "boss", &format!("SELECT BINLOG_GTID_POS('{}', 4)", name(5)));
    assert_eq!(position, source.sql(&format!("SELECT BINLOG_GTID_POS('{}', 4)", name(5))));
    write_files(&source, 2);
    wait_applied(&replica, || binlog_end(&source), &daemon);
    daemon.terminate();
    daemon.restart(&[]);
    daemon.wait_caught_up(&source);
    let port = serve_port(&daemon);
    attach(&replica, port, By::Gtid, ("", 4));
    wait_within(PATIENCE, "the rule is obeyed again", || copied_files(&daemon.timeline_dir()).len() == 3);
    assert_eq!(files(&source, &daemon)[0], name(7));
    assert_eq!(daemon.timeline_dirs().len(), 1, "{}", daemon.log());
    verify(&daemon);

    // A reader that needs what is gone is told so, and the one that was here goes on.
    let late = Server::start("mariadb-11.8", &["--server-id=3"]);
    late.sql(&format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'guest', MASTER_PASSWORD = 'secret', \
         MASTER_SSL_VERIFY_SERVER_CERT = 0, MASTER_USE_GTID = slave_pos; START SLAVE"
    ));
    let error = wait_io_error(&late);
    assert!(error.contains("1236") && error.contains("purged"), "{error}");
    source.sql("INSERT INTO d.t (v) VALUES (2)");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(checksums(&replica, "d"), checksums(&source, "d"));
}

//! Readers are served what this disk does not have any more, and notice nothing of that.

use super::place::{PATIENCE, Place, wait_archived};
use super::{MYSQL, write_by};
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{
    By, attach, checksums, client, make_account, replica_status, serve_port, wait_applied,
};
use crate::common::workload::{self, Dialect};
use crate::common::{Server, seed, wait_within};

/// Of each source only the newest files stay.
const RULES: &str = "[[serve.user]]\nname = 'repl'\npassword = 'secret'\n[retention]\nmax_files = 2\n";

/// With the key in the configuration that opens what was encrypted.
fn config(place: &Place, source: &Server) -> String {
    let archive = format!("[archive]\nidentity = ['{}']\n", place.identity().display());
    place.config(source, RULES).replace("[archive]\n", &archive)
}

/// A source with more files than its copy has, and the daemon that keeps the copy.
fn purged(source: &Server, place: &Place) -> Daemon {
    make_account(source);
    workload::run(source, "schema", &workload::schema("d", 2));
    let daemon = Daemon::start_from_in(&place.environment(), "", &config(place, source));
    write_by(source, workload::safe);
    wait_archived(&daemon, source);
    wait_within(PATIENCE, "old files go", || copied_files(&daemon.timeline_dir()).len() == 2);
    assert!(binary_logs(source).len() >= 5, "{:?}", binary_logs(source));
    daemon
}

/// A replica that has nothing gets all there ever was.
fn follows(replica: &Server, by: By, source: &Server, daemon: &Daemon) {
    let first = binary_logs(source).remove(0);
    attach(replica, serve_port(daemon), by, (&first, 4));
    wait_applied(replica, || binlog_end(source), daemon);
    assert_eq!(checksums(replica, "d"), checksums(source, "d"), "{}", daemon.log());
}

fn read_bytes(daemon: &Daemon) -> u64 {
    daemon.source()["archive"]["read_bytes"].as_u64().expect("a number")
}

/// The names of the logs, as a client of the port is told.
fn listed(server: &Server, daemon: &Daemon) -> Vec<String> {
    let arguments = ["--user=repl", "--batch", "--skip-column-names", "-e", "SHOW BINARY LOGS"];
    let output = client(server, "MYSQL", serve_port(daemon), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().filter_map(|line| Some(line.split('\t').next()?.to_owned())).collect()
}

#[test]
fn a_replica_of_mysql_reads_what_only_the_archive_has() {
    let source = Server::start("mysql-9.7", &[&MYSQL[..], &["--server-id=1"]].concat());
    let mut place = Place::s3().encrypted();
    let mut daemon = purged(&source, &place);
    assert_eq!(listed(&source, &daemon), binary_logs(&source));
    assert_eq!(read_bytes(&daemon), 0, "nobody has asked for more than names");
    for (id, by) in [(2, By::Gtid), (3, By::Position)] {
        let server_id = format!("--server-id={id}");
        let replica = Server::start("mysql-9.7", &[&MYSQL[..], &[&server_id]].concat());
        follows(&replica, by, &source, &daemon);
        // Followed to the end, it stays.
        source.sql("INSERT INTO d.t0 (k) VALUES (7)");
        wait_applied(&replica, || binlog_end(&source), &daemon);
    }
    let read = read_bytes(&daemon);
    assert!(read > 0);

    // While the archive does not answer, a replica is not refused for good.
    daemon.terminate();
    std::fs::remove_dir_all(daemon.data_dir().join("default/cache")).expect("a cache");
    place.store().stop().expect("it ends");
    daemon.restart(&[]);
    daemon.wait_caught_up(&source);
    let replica = Server::start("mysql-9.7", &[&MYSQL[..], &["--server-id=4"]].concat());
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    wait_within(PATIENCE, "the replica is told to come again", || {
        let status = replica_status(&replica);
        let of = |name: &str| status.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str());
        let is_running = of("Replica_IO_Running").is_some_and(|running| running != "No");
        assert!(is_running, "{status:?}\n{}", daemon.log());
        daemon.log().contains("its archive, which may have it, has not answered yet")
    });
    // Nor does a binlogd below take what is not known yet for purged.
    let below = format!("mysql://repl:secret@127.0.0.1:{}", serve_port(&daemon));
    let below = Daemon::start_on(&below, &["--on-gap=record"]);
    below.wait_log("its archive has not answered", PATIENCE);
    assert!(below.timeline_dirs().is_empty(), "{}", below.log());
    place.store_mut().restart().expect("a store");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    below.wait_caught_up(&source);
    assert_eq!(copied_files(&below.timeline_dir()), binary_logs(&source), "{}", below.log());
    assert_eq!(checksums(&replica, "d"), checksums(&source, "d"), "{}", daemon.log());
    place.assert_sound();
}

#[test]
fn a_replica_of_mariadb_reads_what_only_the_archive_has() {
    let source = Server::start("mariadb-11.8", &["--server-id=1"]);
    let place = Place::s3().encrypted();
    let daemon = purged(&source, &place);
    for (id, by) in [(2, By::Gtid), (3, By::Position)] {
        let server_id = format!("--server-id={id}");
        let replica = Server::start("mariadb-11.8", &[&server_id]);
        follows(&replica, by, &source, &daemon);
    }
    assert!(read_bytes(&daemon) > 0);
}

/// What no key opens is as if it were not there, and a replica is told so as by a server.
#[test]
fn without_a_key_old_files_stay_away() {
    let source = Server::start("mysql-9.7", &[&MYSQL[..], &["--server-id=1"]].concat());
    make_account(&source);
    workload::run(&source, "schema", &workload::schema("d", 2));
    let place = Place::folder().encrypted();
    let daemon = place.start(&source, RULES);
    let dialect = Dialect { gtid_consistency: true, create_select: false };
    workload::run(&source, "mixed", &workload::mixed(dialect, "d", seed(), 0, 40));
    for _ in 0..4 {
        source.sql("INSERT INTO d.t0 (k) VALUES (1); FLUSH BINARY LOGS");
    }
    wait_archived(&daemon, &source);
    wait_within(PATIENCE, "old files go", || copied_files(&daemon.timeline_dir()).len() == 2);
    let names = copied_files(&daemon.timeline_dir());
    assert_eq!(listed(&source, &daemon), names);
    let replica = Server::start("mysql-9.7", &[&MYSQL[..], &["--server-id=2"]].concat());
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    let error = crate::common::readers::wait_io_error(&replica);
    assert!(error.contains("1236") && error.contains("purged required binary logs"), "{error}");
}

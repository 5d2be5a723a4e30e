//! Replicas that have transactions which the copy has not.

use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{
    By, SERVE, account_url, attach, make_account, replica_status, serve_port, wait_applied,
};
use crate::common::{Server, wait_within};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// One that is ahead of the copy of a dead source is refused as by a server, with what it has more, and its operator sees that. One
/// that has transactions of its own is served, and the log names these.
fn ahead(name: &str, is_mysql: bool) {
    let gtids: &[&str] = if is_mysql {
        &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
    } else {
        &["--log-slave-updates=ON"]
    };
    let server = |id: &'static str| Server::start(name, &[&[id], gtids].concat());
    let (source, replica) = (server("--server-id=1"), server("--server-id=2"));
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT)");
    let mut daemon = Daemon::start_on(&account_url(&source), &SERVE);
    daemon.wait_caught_up(&source);
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    wait_applied(&replica, || binlog_end(&source), &daemon);
    let errant = if is_mysql {
        replica.sql("CREATE DATABASE errant; STOP REPLICA; START REPLICA");
        format!("{}:1 (reader ", replica.sql("SELECT @@server_uuid").trim())
    } else {
        replica.sql(
            "SET gtid_domain_id = 7; CREATE DATABASE errant; STOP SLAVE; CHANGE MASTER TO MASTER_USE_GTID = current_pos; \
             START SLAVE",
        );
        "7-2-1 (reader ".to_owned()
    };
    daemon.wait_log("a reader has transactions that are not in the history which is served", PATIENCE);
    assert!(daemon.log().contains(&errant), "{}", daemon.log());
    source.sql("INSERT INTO d.t VALUES (1)");
    wait_applied(&replica, || binlog_end(&source), &daemon);

    daemon.terminate();
    attach(&replica, source.port(), By::Gtid, ("", 4));
    source.sql("INSERT INTO d.t VALUES (2)");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    let more = if is_mysql {
        let executed = source.sql("SELECT @@GLOBAL.gtid_executed");
        let (uuid, numbers) = executed.trim().split_once(':').unwrap();
        format!("{uuid}:{}", numbers.rsplit('-').next().unwrap())
    } else {
        source.sql("SELECT @@GLOBAL.gtid_binlog_pos").trim().to_owned()
    };
    source.kill();
    daemon.restart(&SERVE);
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    let words = if is_mysql {
        format!("has more GTIDs than the source has, using the source's SERVER_UUID: {more}. ")
    } else {
        format!("requested to start from GTID {more}, which is not in the master's binlog")
    };
    let mut said = String::new();
    wait_within(PATIENCE, "the replica has stopped, and says why", || {
        let status = replica_status(&replica);
        said = format!("{status:#?}\n{}", daemon.log());
        let is = |name: &str, wanted: &str| {
            status.iter().any(|(column, value)| column.starts_with(name) && value.contains(wanted))
        };
        let stopped = is("Replica_IO_Running", "No") || is("Slave_IO_Running", "No");
        stopped && is("Last_IO_Error", &words)
    });
    assert!(daemon.log().contains(&format!("{more} (reader ")) || !is_mysql, "{said}");
    daemon.wait_log("(error 1236)", PATIENCE);
}

#[test]
fn of_a_dead_mysql() {
    ahead("mysql-9.7", true);
}

#[test]
fn of_a_dead_mariadb() {
    ahead("mariadb-11.8", false);
}

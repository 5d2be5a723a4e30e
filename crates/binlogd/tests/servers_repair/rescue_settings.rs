//! A rescue of a server that has its own settings for all sessions, and for who applies.

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::verbs::{binlogd, text};

/// None of them keeps a rescue from its work, or from seeing who else writes.
fn hostile(name: &str, of_kind: &str) {
    let options: &[&str] =
        if name.starts_with("mysql") { &[] } else { &["--server-id=1", "--binlog-format=ROW"] };
    let (source, target) =
        (Server::start(name, options), Server::start(name, &[options, &["--server-id=2"]].concat()));
    let daemon = Daemon::start(&source, &[]);
    source.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v TEXT); INSERT INTO d.t VALUES (1, 'a'); BEGIN; \
         INSERT INTO d.t VALUES (2, 'b'); INSERT INTO d.t VALUES (3, 'c'); COMMIT; CREATE TABLE d.u (id INT); DROP TABLE d.u; \
         UPDATE d.t SET v = 'd' WHERE id = 1",
    );
    daemon.wait_caught_up(&source);
    source.kill();
    target.sql(&format!(
        "SET GLOBAL autocommit = 0; SET GLOBAL completion_type = 'RELEASE'; SET GLOBAL sql_select_limit = 1; SET GLOBAL \
         sql_safe_updates = 1; SET GLOBAL sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'; SET GLOBAL TRANSACTION READ ONLY; SET GLOBAL \
         lock_wait_timeout = 1; SET GLOBAL wait_timeout = 2; SET GLOBAL foreign_key_checks = 0; SET GLOBAL init_connect = \
         'SET SESSION sql_log_bin = 0'; {of_kind}"
    ));
    let data_dir = daemon.data_dir();
    let run = |flags: &[&str]| {
        let mut arguments = vec!["rescue", data_dir.to_str().unwrap(), "--unrelated", "--yes", "--to"];
        let to = url(&target);
        arguments.push(&to);
        arguments.extend(flags);
        binlogd(&arguments)
    };
    // Which engine CREATE TABLE without one makes is not in the log.
    target.sql("SET GLOBAL default_storage_engine = MyISAM");
    let refused = run(&[]);
    assert!(
        text(&refused.stderr).contains("default_storage_engine is \"MyISAM\""),
        "{}",
        text(&refused.stderr)
    );
    target.sql("SET GLOBAL default_storage_engine = InnoDB");
    let output = run(&[]);
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let rows = "SET SESSION sql_select_limit = 100; SELECT * FROM d.t ORDER BY id";
    assert_eq!(target.sql(rows), "1\td\n2\tb\n3\tc\n");
    let said =
        target.sql("SET sql_select_limit = 100; SHOW GLOBAL VARIABLES LIKE '%exec_mode'; SHOW GLOBAL VARIABLES LIKE '%type_conversions'");
    assert!(said.contains("IDEMPOTENT") && said.contains("ALL_LOSSY"), "put back: {said}");
}

#[test]
fn mysql_with_hostile_settings() {
    hostile(
        "mysql-9.7",
        "SET GLOBAL replica_exec_mode = 'IDEMPOTENT'; SET GLOBAL replica_type_conversions = 'ALL_LOSSY'; SET GLOBAL sql_generate_invisible_primary_key = 1; SET GLOBAL max_execution_time = 1",
    );
}

#[test]
fn mariadb_with_hostile_settings() {
    hostile(
        "mariadb-11.8",
        "SET GLOBAL slave_exec_mode = 'IDEMPOTENT'; SET GLOBAL slave_type_conversions = 'ALL_LOSSY'; SET GLOBAL slave_run_triggers_for_rbr = 'YES'; SET GLOBAL idle_transaction_timeout = 1; SET GLOBAL enforce_storage_engine = 'Aria'",
    );
}

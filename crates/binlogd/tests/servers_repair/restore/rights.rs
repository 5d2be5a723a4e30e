//! `binlogd restore` by an account that may do what it needs and nothing else, and by accounts that lack one right each.

use super::{Scene, executed, is_detached, succeeded};
use crate::common::Server;
use crate::common::readers::checksums;
use codec::ServerKind;
use std::process::{Command, Output, Stdio};

const POINT: [&str; 2] = ["--until", "before DROP TABLE shop.orders"];

fn restore(scene: &Scene, user: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let url = format!("mysql://{user}@127.0.0.1:{}", scene.target.port());
    command.args(["restore", "--into", &url, "--from"]).arg(scene.daemon.data_dir());
    command.arg("--yes").args(arguments);
    command.env("BINLOGD_PASSWORD", "").stdin(Stdio::null()).output().expect("binlogd runs")
}

/// An account with these rights, of which nothing is in the server's log.
fn account(server: &Server, user: &str, rights: &[&str]) {
    server.sql(&format!(
        "SET sql_log_bin = 0; CREATE USER '{user}'@'%' IDENTIFIED BY ''; GRANT {} ON *.* TO '{user}'@'%'",
        rights.join(", ")
    ));
}

fn each_right_is_named(name: &str, rights: &[&str]) {
    let scene = Scene::new(name);
    let was = executed(&scene.target);
    for (place, right) in rights.iter().enumerate() {
        let others: Vec<&str> = rights.iter().copied().filter(|other| other != right).collect();
        let user = format!("without_{place}");
        account(&scene.target, &user, &others);
        let output = restore(&scene, &user, &POINT);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "without {right}: {said}");
        assert!(said.contains(right), "without {right}: {said}");
        assert_eq!(executed(&scene.target), was, "nothing is applied");
        is_detached(&scene.target);
    }
    account(&scene.target, "enough", rights);
    let said = succeeded(&restore(&scene, "enough", &POINT));
    assert!(said.contains("restored: 203 transactions"), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), scene.before);
    is_detached(&scene.target);

    // Enough to tell a server what it has, too.
    let has = executed(&scene.target);
    scene.target.sql(match scene.target.kind() {
        ServerKind::MySql => "RESET BINARY LOGS AND GTIDS",
        ServerKind::MariaDb => "RESET MASTER; SET GLOBAL gtid_slave_pos = ''",
    });
    // It sees no table of its own rights, and a server with tables that has executed nothing is refused all the same.
    let output = restore(&scene, "enough", &["--until", "end"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("has tables, in shop"), "{said}");
    let said = succeeded(&restore(&scene, "enough", &["--until", "end", "--backup-at", &has]));
    assert!(said.contains("restored: 2 transactions"), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
}

#[test]
fn mysql_names_the_right_that_is_missing() {
    each_right_is_named(
        "mysql-9.7",
        &["REPLICATION_SLAVE_ADMIN", "SYSTEM_VARIABLES_ADMIN", "REPLICATION CLIENT", "RELOAD", "PROCESS"],
    );
}

#[test]
fn mariadb_names_the_right_that_is_missing() {
    each_right_is_named(
        "mariadb-11.8",
        &["REPLICATION SLAVE ADMIN", "REPLICATION MASTER ADMIN", "SLAVE MONITOR", "RELOAD", "PROCESS"],
    );
}

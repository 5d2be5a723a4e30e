//! What an operator does at the port for readers: privileges, START and STOP REPLICA.

use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{client, make_account, serve_port};
use crate::common::{Server, wait_within};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A source, and an account of each kind.
fn config(source: &Server, more: &str) -> String {
    let mut text = String::new();
    for (name, privileges) in [("repl", ""), ("boss", "privileges = ['read', 'control']\n")] {
        text += &format!("[[serve.user]]\nname = '{name}'\npassword = 'secret'\n{privileges}");
    }
    let port = source.port();
    text + &format!("[[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\n{more}")
}

/// What a statement gives, or the error.
fn ask(server: &Server, daemon: &Daemon, user: &str, statement: &str) -> String {
    let arguments = [&format!("--user={user}"), "--batch", "--skip-column-names", "-e", statement];
    let output = client(server, "MYSQL", serve_port(daemon), &arguments);
    let text = if output.status.success() { output.stdout } else { output.stderr };
    String::from_utf8(text).unwrap()
}

/// Receiving is stopped and started by statements; readers are served meanwhile, over reloads; a restart receives again.
fn stops_and_starts(name: &str, options: &[&str], words: [&str; 2]) {
    let [noun, privilege] = words;
    let source = Server::start(name, options);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)");
    let mut daemon = Daemon::start_from(&config(&source, ""));
    daemon.wait_caught_up(&source);
    let boss = |daemon: &Daemon, statement: &str| ask(&source, daemon, "boss", statement);
    let denied = ask(&source, &daemon, "repl", &format!("STOP {noun}"));
    assert!(denied.contains("ERROR 1227") && denied.contains(privilege), "{denied}");
    assert_eq!(boss(&daemon, &format!("STOP {noun}")), "");
    let stopped = daemon.source();
    let detail = stopped["state_detail"].as_str().unwrap_or_default().to_owned();
    assert_eq!(stopped["state"], "stopped", "{stopped:#}");
    assert!(detail.starts_with("by STOP REPLICA of 'boss'@'127.0.0.1' at 20"), "{detail}");
    let shown = boss(&daemon, &format!("SHOW {noun} STATUS"));
    assert!(shown.contains("\tNo\t") && !shown.contains("\tYes\t"), "{shown}");
    assert_eq!(boss(&daemon, &format!("STOP {noun}")), "", "once more changes nothing");
    assert_eq!(daemon.log().matches("receiving is stopped by").count(), 1);

    // The source goes on alone; what is held is served; a reload with another key of the source does not receive.
    source.sql("INSERT INTO d.t VALUES (1)");
    let held = boss(&daemon, "SHOW BINARY LOGS");
    let (_, end) = binlog_end(&source);
    assert!(!held.contains(&format!("\t{end}\t")) && !held.is_empty(), "{held}");
    daemon.write_config(&config(&source, "heartbeat_period = '3s'\n"));
    daemon.reload();
    wait_within(PATIENCE, "it was started again and rests", || daemon.source()["state"] == "stopped");
    assert_eq!(daemon.source()["state_detail"], *detail);
    assert_eq!(boss(&daemon, "SHOW BINARY LOGS"), held, "readers are served as before");

    assert_eq!(boss(&daemon, &format!("START {noun}")), "");
    daemon.wait_caught_up(&source);
    assert_eq!(boss(&daemon, &format!("STOP {noun}")), "");
    source.sql("INSERT INTO d.t VALUES (2)");
    daemon.terminate();
    daemon.restart(&[]);
    daemon.wait_caught_up(&source);
}

#[test]
fn receiving_is_stopped_and_started_mysql() {
    let options = ["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    stops_and_starts("mysql-9.7", &options, ["REPLICA", "SUPER or REPLICATION_SLAVE_ADMIN"]);
}

#[test]
fn receiving_is_stopped_and_started_mariadb() {
    stops_and_starts("mariadb-11.8", &["--server-id=1"], ["SLAVE", "REPLICATION SLAVE ADMIN"]);
}

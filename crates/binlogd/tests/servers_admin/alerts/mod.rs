//! The packaged alerts: by promtool, and each in its real failure before a real Prometheus, where an operator does what the
//! runbook says. The latter take minutes and are run by `make test-alerts`.

mod acknowledgements;
mod archive;
mod dashboard;
mod disk;
mod forks;
mod peers;
mod prometheus;
mod quorum;
mod readers;
mod search;
mod source;
mod stage;

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::daemon::Daemon;
use crate::common::{Server, workspace};
use prometheus::program;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A source with the account that binlogd uses.
fn source(options: &[&str]) -> Server {
    let server = Server::start("mysql-9.7", options);
    crate::common::readers::make_account(&server);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v MEDIUMTEXT)");
    server
}

/// The lines of one source in a configuration, with more keys of its own.
fn received(server: &Server, more: &str) -> String {
    let port = server.port();
    format!(
        "[[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\nheartbeat_period = '1s'\n\
         net_read_timeout = '3s'\nbackoff_max = '1s'\n{more}\n"
    )
}

fn receives(daemon: &Daemon) {
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    for arguments in [["check", "rules", "binlogd.rules.yml"], ["test", "rules", "binlogd.rules.test.yml"]] {
        let output = Command::new(program("promtool"))
            .args(arguments)
            .current_dir(workspace().join("packaging/prometheus"))
            .stdin(Stdio::null())
            .output()
            .expect("promtool runs");
        let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("SUCCESS"), "{said}");
    }
}

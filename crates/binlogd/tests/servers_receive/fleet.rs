//! Sources that come and go by SIGHUP, while another one is under load with semi-sync.

use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::{client_command, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::wait_within;
use serde_json::Value;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than the test: an acknowledgement that is lost hangs it.
const TIMEOUT: Duration = Duration::from_secs(600);

fn source(name: &str, server: &Server) -> String {
    let port = server.port();
    format!(
        "[[source]]\nname = '{name}'\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\n\
         [[serve.user]]\nname = 'of_{name}'\npassword = 'secret'\nsources = ['{name}']\n"
    )
}

fn receives(status: &Value, names: &[&str]) -> bool {
    let sources = status["sources"].as_array().unwrap();
    let found: Vec<_> = sources.iter().map(|source| source["name"].as_str().unwrap()).collect();
    found == names && sources.iter().all(|source| source["state"] == "receiving")
}

/// The connections by which binlogd is served a binary log, as the server numbers them.
fn dumps(server: &Server) -> String {
    server.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' ORDER BY id")
}

/// The load ends with the scene, also when that fails.
struct EndsLoad<'a>(&'a AtomicBool);

impl Drop for EndsLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_source_comes_and_goes_while_another_one_is_under_load() {
    let start = |id| Server::start("mysql-9.7", &[id, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    let (loaded, other) = (start("--server-id=1"), start("--server-id=2"));
    for server in [&loaded, &other] {
        server.sql(
            "CREATE USER 'repl'@'%' IDENTIFIED BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%'; \
             CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        );
    }
    let mut daemon = Daemon::start_from(&source("loaded", &loaded));
    daemon.wait_caught_up(&loaded);
    let semi_sync = SemiSync::enable(&loaded, TIMEOUT);
    semi_sync.wait_attached();
    let (connection, before) = (dumps(&loaded), semi_sync.counters());
    let folder = daemon.config_path().parent().unwrap().to_owned();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = EndsLoad(&done);
        let load = scope.spawn(|| {
            let mut written = 0;
            while !done.load(Ordering::Relaxed) {
                loaded.sql(&"INSERT INTO d.t (v) VALUES (1);".repeat(20));
                written += 20;
            }
            written
        });
        let acknowledged = || semi_sync.counters().yes_tx;
        for _ in 0..2 {
            // It comes, by a file of its own; the main file names such files only once there are some.
            std::fs::create_dir_all(folder.join("conf.d")).unwrap();
            std::fs::write(folder.join("conf.d/other.toml"), source("other", &other)).unwrap();
            write_head_with_include(&daemon, &source("loaded", &loaded));
            daemon.reload();
            let holds = |status: &Value| !status["sources"][1]["positions"]["durable"].is_null();
            daemon.wait_until_status(
                |status| receives(status, &["loaded", "other"]) && holds(status),
                PATIENCE,
            );
            let so_far = acknowledged();
            wait_within(PATIENCE, "acknowledgements go on", || acknowledged() > so_far + 5);
            other.sql("INSERT INTO d.t (v) VALUES (1)");

            // A reader of it hears why it ends.
            let port = serve_port(&daemon);
            let raw = folder.join("raw");
            std::fs::create_dir_all(&raw).unwrap();
            let into = format!("--result-file={}/", raw.display());
            let files = other.sql("SHOW BINARY LOGS");
            let first = files.split_whitespace().next().unwrap();
            let arguments =
                ["--user=of_other", "--read-from-remote-server", "--raw", "--stop-never", &into, first];
            // Nobody is let in before something of the copy is published.
            wait_within(PATIENCE, "readers of it are let in", || {
                let mut asks = client_command(&other, "MYSQL", port, &["--user=of_other", "-e", "SELECT 1"]);
                asks.output().expect("a client").status.success()
            });
            let mut reader = client_command(&other, "MYSQLBINLOG", port, &arguments);
            let reader = reader.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            daemon.wait_until_status(
                |status| {
                    status["serve"]["readers"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .any(|reader| reader["caught_up"] == true)
                },
                PATIENCE,
            );

            // It goes.
            std::fs::remove_file(folder.join("conf.d/other.toml")).unwrap();
            daemon.reload();
            daemon.wait_until_status(|status| receives(status, &["loaded"]), PATIENCE);
            let ended = reader.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(said.contains("binlogd does not copy this source any more"), "{said}\n{}", daemon.log());
            assert_eq!(daemon.status()["serve"]["readers"].as_array().unwrap().len(), 0);
            assert!(daemon.data_dir().join("other").is_dir());
            wait_within(PATIENCE, "its connections are closed", || dumps(&other).is_empty());
            let so_far = acknowledged();
            wait_within(PATIENCE, "acknowledgements go on", || acknowledged() > so_far + 5);
        }
        done.store(true, Ordering::Relaxed);
        assert!(load.join().unwrap() > 0);
    });
    assert_eq!(dumps(&loaded), connection, "the connection is the same");
    let after = semi_sync.counters();
    assert!(after.on && after.no_tx == before.no_tx, "{before:?} {after:?}");
    assert_eq!(daemon.status()["sources"][0]["counters"]["reconnects"], 0);
    daemon.terminate();
}

/// The head that the daemon's own file has ends in a section, so that a key of the top level stands in front of it.
fn write_head_with_include(daemon: &Daemon, text: &str) {
    daemon.write_config(text);
    let path = daemon.config_path();
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, format!("include = 'conf.d/*.toml'\n{text}")).unwrap();
}

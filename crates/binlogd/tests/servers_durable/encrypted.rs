//! A source that encrypts its binary log sends it in clear. The copy cannot equal the source's file then; it must equal
//! what any other receiver gets: the files that the server's own mysqlbinlog writes with `--raw`.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::Daemon;
use crate::common::workload::{self, Dialect};
use crate::common::{Server, seed};

/// Stands in a row of every source, and so in every copy.
const MARK: &str = "found in clear text";
/// Options of every server here.
const QUICK: [&str; 3] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--max-binlog-size=256K"];
const START_MAX: Duration = Duration::from_secs(120);

#[test]
fn mariadb() {
    for name in ["mariadb-10.11", "mariadb-11.8"] {
        let keys = tempfile::tempdir().unwrap();
        let key_file = keys.path().join("keys");
        std::fs::write(&key_file, format!("1;{}\n", "a7".repeat(32))).unwrap();
        let options = [
            "--plugin-load-add=file_key_management".to_owned(),
            format!("--file-key-management-filename={}", key_file.display()),
            "--encrypt-binlog=ON".to_owned(),
        ];
        let options: Vec<&str> = options.iter().map(String::as_str).chain(QUICK).collect();
        let server = Server::start(name, &options);
        copies_what_any_receiver_gets(&server);
    }
}

#[test]
fn mysql() {
    let server = Server::start("mysql-9.7", &QUICK);
    let folder = tempfile::tempdir().unwrap();
    let _keyring = Encrypted::restart(&server, folder.path());
    copies_what_any_receiver_gets(&server);
}

fn copies_what_any_receiver_gets(server: &Server) {
    let dialect = Dialect { gtid_consistency: true, create_select: true };
    workload::run(server, "schema", &workload::schema("d", 1));
    let mut daemon = Daemon::start(server, &["--fsync-interval=50ms"]);
    workload::run(server, "mixed", &workload::mixed(dialect, "d", seed(), 0, 300));
    server.sql(&format!(
        "INSERT INTO d.t0 (c) VALUES ('{MARK}'); FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (1)"
    ));
    daemon.wait_caught_up(server);
    // A start in the middle of an encrypted file.
    daemon.terminate();
    server.sql("INSERT INTO d.t0 (k) VALUES (2)");
    daemon.restart(&["--fsync-interval=50ms"]);
    daemon.wait_caught_up(server);
    server.sql("INSERT INTO d.t0 (k) VALUES (3); FLUSH BINARY LOGS");
    let source = daemon.wait_caught_up(server);
    assert_eq!(source["counters"]["reconnects"], 0, "{source:#}");

    let names = binary_logs(server);
    let copies = daemon.timeline_dir();
    assert_eq!(copied_files(&copies), names);
    let mut marks = 0;
    for (name, ours, raw) in received_by_both(server, &names, &copies) {
        assert!(
            ours == raw,
            "{}: {name} of {} bytes is not what mysqlbinlog receives, {} bytes",
            server.name(),
            ours.len(),
            raw.len()
        );
        let theirs = std::fs::read(server.datadir().join(&name)).expect("the source's file");
        assert!(!holds(&theirs, MARK), "{name} of the source is not encrypted");
        if holds(&ours, MARK) {
            marks += 1;
            // MariaDB sends its START_ENCRYPTION event too, and its program must still read what follows in clear.
            let decoded = server.mysqlbinlog(&["--verbose".as_ref(), copies.join(&name).as_os_str()]);
            assert!(decoded.status.success(), "{}", String::from_utf8_lossy(&decoded.stderr));
            assert!(
                holds(&decoded.stdout, MARK),
                "{}: mysqlbinlog cannot read {name} of the copy",
                server.name()
            );
        }
    }
    assert_eq!(marks, 1, "the copy is in clear");
}

/// Names, our bytes and those that mysqlbinlog receives. MariaDB adds an event to its newest file by itself some time
/// after a rotation, before or after one of the two is read, so they are read again until both have it.
fn received_by_both(server: &Server, names: &[String], copies: &Path) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let received = tempfile::tempdir().unwrap();
        receive_raw(server, &names[0], received.path());
        let both: Vec<_> = names
            .iter()
            .map(|name| {
                let ours = std::fs::read(copies.join(name)).expect("our file");
                let raw = std::fs::read(received.path().join(name)).expect("mysqlbinlog's file");
                (name.clone(), ours, raw)
            })
            .collect();
        if both.iter().all(|(_, ours, raw)| ours == raw) || Instant::now() > deadline {
            return both;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Lets the server's mysqlbinlog write all files from `first` on as it receives them.
fn receive_raw(server: &Server, first: &str, folder: &Path) {
    let output = server.mysqlbinlog(&[
        "--read-from-remote-server",
        &format!("--host={}", server.env("HOST")),
        &format!("--port={}", server.port()),
        "--user=root",
        "--raw",
        "--to-last-log",
        &format!("--result-file={}/", folder.display()),
        first,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A MySQL server that runs with a keyring, which it wants before it encrypts anything. It loads one only when a
/// manifest stands beside its program, so it is started through a link in a folder of the test's own.
struct Encrypted {
    child: Child,
}

impl Encrypted {
    fn restart(server: &Server, folder: &Path) -> Self {
        let line = std::fs::read(format!("/proc/{}/cmdline", server.env("PID"))).expect("a running server");
        let mut arguments: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        arguments.retain(|word| !word.is_empty());
        server.stop();

        let plugins = folder.join("plugins");
        std::fs::create_dir(&plugins).unwrap();
        let given =
            arguments.iter().find_map(|word| word.strip_prefix("--plugin-dir=")).expect("a plugin folder");
        for plugin in std::fs::read_dir(given).expect("the plugin folder").flatten() {
            symlink(plugin.path(), plugins.join(plugin.file_name())).unwrap();
        }
        let program = folder.join("mysqld");
        let at = arguments.iter().position(|word| word.ends_with("/mysqld")).expect("the server's program");
        symlink(&arguments[at], &program).unwrap();
        arguments[at] = program.display().to_string();
        std::fs::write(folder.join("mysqld.my"), r#"{"components": "file://component_keyring_file"}"#)
            .unwrap();
        let keyring = format!(r#"{{"path": "{}/keys", "read_only": false}}"#, folder.display());
        std::fs::write(plugins.join("component_keyring_file.cnf"), keyring).unwrap();

        let mut command = Command::new(&arguments[0]);
        command.args(&arguments[1..]).arg(format!("--plugin-dir={}", plugins.display()));
        command.arg("--binlog-encryption=ON").current_dir(server.datadir());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let encrypted = Self { child: command.spawn().expect("the server starts") };
        let deadline = Instant::now() + START_MAX;
        let answers = || {
            let mut client = Command::new(server.env("MYSQL"));
            client.args(["-e", "SELECT 1"]).stdout(Stdio::null()).stderr(Stdio::null());
            client.status().is_ok_and(|status| status.success())
        };
        while !answers() {
            assert!(Instant::now() < deadline, "the server with the keyring does not answer");
            std::thread::sleep(Duration::from_millis(100));
        }
        // What was written before it had a keyring is in clear.
        server.sql("RESET BINARY LOGS AND GTIDS");
        encrypted
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A source that encrypts its binary log sends it in clear. The copy cannot equal the source's file then; it must equal
//! what any other receiver gets: the files that the server's own mysqlbinlog writes with `--raw`. Rows are written in the forms that say
//! least, and what was received is served to a replica, searched and restored from.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::{Daemon, url};
use crate::common::readers::{
    By, SERVE, account_url, attach, checksums, make_account, serve_port, wait_applied,
};
use crate::common::verbs::binlogd;
use crate::common::workload::{self, Dialect};
use crate::common::{Server, seed};
use codec::ServerKind;

/// Stands in a row of every source, and so in every copy.
const MARK: &str = "found in clear text";
/// Options of every server here.
const QUICK: [&str; 3] = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--max-binlog-size=256K"];
/// How rows are written besides: their columns named, of what is changed as little as can be, and packed.
const ROWS_OF_MYSQL: [&str; 3] =
    ["--binlog-row-metadata=FULL", "--binlog-row-image=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON"];
const ROWS_OF_MARIADB: [&str; 5] = [
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=MINIMAL",
    "--binlog-format=ROW",
    "--log-bin-compress=ON",
    "--log-bin-compress-min-len=300",
];
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
        let options: Vec<&str> =
            options.iter().map(String::as_str).chain(QUICK).chain(ROWS_OF_MARIADB).collect();
        let server = Server::start(name, &options);
        if name == "mariadb-11.8" {
            let daemon = copies_what_any_receiver_gets(&server, workload::safe);
            is_served_found_and_restored(&server, &daemon);
        } else {
            copies_what_any_receiver_gets(&server, workload::mixed);
        }
    }
}

#[test]
fn mysql() {
    let gtids = ["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    let options: Vec<&str> = QUICK.into_iter().chain(ROWS_OF_MYSQL).chain(gtids).collect();
    let server = Server::start("mysql-9.7", &options);
    let folder = tempfile::tempdir().unwrap();
    let _keyring = Encrypted::restart(&server, folder.path());
    let daemon = copies_what_any_receiver_gets(&server, workload::safe);
    is_served_found_and_restored(&server, &daemon);
}

/// The copy equals what mysqlbinlog receives of the same source, which runs these transactions.
fn copies_what_any_receiver_gets(
    server: &Server,
    transactions: fn(Dialect, &str, u64, u64, u64) -> String,
) -> Daemon {
    let dialect = Dialect { gtid_consistency: true, create_select: true };
    let flags = [&SERVE[..], &["--fsync-interval=50ms"]].concat();
    make_account(server);
    workload::run(server, "schema", &workload::schema("d", 1));
    let mut daemon = Daemon::start_on(&account_url(server), &flags);
    workload::run(server, "mixed", &transactions(dialect, "d", seed(), 0, 300));
    server.sql(match server.kind() {
        ServerKind::MySql => PARTS,
        ServerKind::MariaDb => PACKED,
    });
    server.sql(&format!(
        "INSERT INTO d.t0 (c) VALUES ('{MARK}'); FLUSH BINARY LOGS; INSERT INTO d.t0 (k) VALUES (1)"
    ));
    daemon.wait_caught_up(server);
    // A start in the middle of an encrypted file.
    daemon.terminate();
    server.sql("INSERT INTO d.t0 (k) VALUES (2)");
    daemon.restart(&flags);
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
    daemon
}

/// Rows of which the log holds a part: of a document what was changed in it, of an update the key and what is new.
const PARTS: &str = "CREATE TABLE d.rows (id INT PRIMARY KEY, j JSON, c VARCHAR(100), k INT DEFAULT 7);
    INSERT INTO d.rows (id, j, c) VALUES (1, JSON_OBJECT('a', REPEAT('a', 200), 'b', 'b'), 'one'), (2, '[1, 2]', 'two');
    UPDATE d.rows SET j = JSON_SET(j, '$.b', 'B') WHERE id = 1; DELETE FROM d.rows WHERE id = 2";

/// Rows that are packed twice: by the column, and as an event of the log.
const PACKED: &str =
    "CREATE TABLE d.rows (id INT PRIMARY KEY, j TEXT COMPRESSED, c VARCHAR(1000), k INT DEFAULT 7);
    INSERT INTO d.rows (id, j, c) VALUES (1, REPEAT('ab', 500), REPEAT('xy', 400)), (2, 'short', 'two');
    UPDATE d.rows SET j = REPEAT('cd', 900) WHERE id = 1; DELETE FROM d.rows WHERE id = 2";

/// A replica that is fed by the copy has the source's rows, a change of one row is found, and a server that stands further back is
/// brought to the end.
#[track_caller]
fn is_served_found_and_restored(server: &Server, daemon: &Daemon) {
    let is_mysql = server.kind() == ServerKind::MySql;
    let gtids = ["--server-id=2", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    // A server that writes its rows in another form has, to who compares by its log, other transactions.
    let options = match is_mysql {
        true => [&gtids[..], &ROWS_OF_MYSQL[..]].concat(),
        false => [&gtids[..1], &ROWS_OF_MARIADB[..]].concat(),
    };
    let replica = Server::start(server.name(), &options);
    attach(&replica, serve_port(daemon), By::Gtid, ("", 4));
    let end_of_log = || {
        let status = server.sql(if is_mysql { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" });
        let mut words = status.trim().split('\t');
        (
            words.next().expect("a file").to_owned(),
            words.next().and_then(|at| at.parse().ok()).expect("a place"),
        )
    };
    wait_applied(&replica, end_of_log, daemon);
    assert_eq!(checksums(&replica, "d"), checksums(server, "d"), "the replica");

    let data_dir = daemon.data_dir();
    let folder = data_dir.to_str().expect("a path of text");
    let found = binlogd(&["find", folder, "--table", "d.rows", "--kind", "update", "--json"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let transactions = found["sources"][0]["transactions"].as_array().expect("transactions");
    assert_eq!((transactions.len(), &found["complete"]), (1, &true.into()), "{found:#}");
    assert_eq!(transactions[0]["tables"][0]["updated"], 1, "{found:#}");

    replica.sql(if is_mysql { "STOP REPLICA; RESET REPLICA ALL" } else { "STOP SLAVE; RESET SLAVE ALL" });
    server.sql("UPDATE d.rows SET c = 'after' WHERE id = 1; INSERT INTO d.rows (id, c) VALUES (3, 'three')");
    daemon.wait_caught_up(server);
    assert_ne!(checksums(&replica, "d"), checksums(server, "d"), "the replica is behind");
    let restored =
        binlogd(&["restore", "--into", &url(&replica), "--from", folder, "--until", "end", "--yes"]);
    assert!(
        restored.status.success(),
        "{}{}",
        String::from_utf8_lossy(&restored.stdout),
        String::from_utf8_lossy(&restored.stderr)
    );
    assert_eq!(checksums(&replica, "d"), checksums(server, "d"), "the restored server");
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

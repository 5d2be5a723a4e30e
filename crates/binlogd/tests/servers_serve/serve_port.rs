//! The port for readers as an operator sees it: who reads and how far, who is turned away and why, the certificate that is made.

use crate::common::daemon::{Daemon, Launch, binlog_end, temporary_folder};
use crate::common::metrics::{check_metrics, metrics};
use crate::common::readers::{By, account_url, attach, client, make_account, serve_port, wait_applied};
use crate::common::{Server, wait_within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn metric(daemon: &Daemon, series: &str) -> Option<u64> {
    let (_, text) = metrics(daemon, "text/plain");
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned));
    line.map(|value| value.parse().expect("a number"))
}

fn plain_status(daemon: &Daemon) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["status", "--admin", &daemon.admin_address()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A replica that encrypts and checks the certificate that was made: its place and its lag are shown everywhere, and its series go
/// when it goes.
#[test]
fn a_replica_stands_in_status_and_metrics() {
    let server = |id: &'static str| {
        let options = [id, "--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
        Server::start("mysql-9.7", &options)
    };
    let (source, replica) = (server("--server-id=1"), server("--server-id=2"));
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let daemon =
        Daemon::start_on(&account_url(&source), &["--serve", "127.0.0.1:0", "--serve-require-tls", "true"]);
    daemon.wait_caught_up(&source);
    let ca = daemon.data_dir().join("ca.pem");
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    replica.sql(&format!(
        "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_SSL = 1, SOURCE_SSL_VERIFY_SERVER_CERT = 1, SOURCE_SSL_CA = '{}'; \
         START REPLICA",
        ca.display()
    ));
    for value in 0..10 {
        source.sql(&format!("INSERT INTO d.t (v) VALUES ({value}); FLUSH BINARY LOGS"));
    }
    wait_applied(&replica, || binlog_end(&source), &daemon);
    let status = daemon.wait_until_status(
        |status| {
            let reader = &status["serve"]["readers"][0];
            reader["behind_bytes"] == 0 && reader["caught_up"] == true
        },
        PATIENCE,
    );
    let (serve, reader) = (&status["serve"], &status["serve"]["readers"][0]);
    assert!(reader["server_id"] == 2 && reader["behind_seconds"] == 0, "{serve:#}");
    assert!(serve["tls"] == "self-made" && serve["require_tls"] == true, "{serve:#}");
    let sent = serve["counters"]["sent_bytes"].as_u64().unwrap();
    assert!(sent > 0 && sent >= reader["sent_bytes"].as_u64().unwrap(), "{serve:#}");
    let labels = "{source=\"default\",user=\"repl\",address=\"127.0.0.1\",server_id=\"2\"}";
    let of_reader = |name: &str| metric(&daemon, &format!("{name}{labels}"));
    assert_eq!(of_reader("binlogd_reader_behind_bytes"), Some(0));
    assert_eq!(of_reader("binlogd_reader_behind_seconds"), Some(0));
    let (_, end) = binlog_end(&source);
    assert_eq!(of_reader("binlogd_reader_position_bytes"), Some(end));
    assert_eq!(metric(&daemon, "binlogd_readers{source=\"default\"}"), Some(1));
    check_metrics(&daemon);
    let shown = plain_status(&daemon);
    for words in
        ["readers at 127.0.0.1:", "TLS required, self-made certificate", "server_id 2", "behind by nothing"]
    {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }
    // A client that does not encrypt is refused, counted and told in the log.
    let refused = client(&source, "MYSQL", serve_port(&daemon), &["--ssl-mode=DISABLED", "-e", "SELECT 1"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("3159"), "{refused:?}");
    let not_encrypted = "binlogd_serve_refused_connections_total{reason=\"not_encrypted\"}";
    wait_within(PATIENCE, "the refusal is counted", || metric(&daemon, not_encrypted) >= Some(1));
    daemon.wait_log("a reader was not let in: the client does not encrypt", PATIENCE);
    replica.sql("STOP REPLICA");
    wait_within(PATIENCE, "the series of the replica are gone", || {
        of_reader("binlogd_reader_behind_bytes").is_none()
    });
    assert!(metric(&daemon, "binlogd_serve_sent_bytes_total") >= Some(sent), "a counter never goes back");
}

/// A reader that does not read: how much it lacks is told over the files between, and in time.
#[test]
fn a_reader_that_stands_still_is_behind() {
    let source = Server::start("mysql-9.7", &["--server-id=1"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)");
    let daemon = Daemon::start_on(&account_url(&source), &["--serve", "127.0.0.1:0"]);
    daemon.wait_caught_up(&source);
    let first = crate::common::compare::binary_logs(&source)[0].clone();
    let results = tempfile::tempdir().unwrap();
    let mut reader = Command::new(source.env("MYSQLBINLOG"))
        .args(["--host=127.0.0.1", "--user=repl", "--password=secret", "--connection-server-id=77"])
        .args([
            format!("--port={}", serve_port(&daemon)),
            format!("--result-file={}/", results.path().display()),
        ])
        .args(["--read-from-remote-server", "--raw", "--stop-never", &first])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    daemon.wait_until_status(|status| status["serve"]["readers"][0]["caught_up"] == true, PATIENCE);
    let pid = Pid::from_raw(reader.id().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    for _ in 0..6 {
        source.sql("INSERT INTO d.t (v) VALUES (REPEAT('x', 8000000)); FLUSH BINARY LOGS");
    }
    daemon.wait_caught_up(&source);
    let lacks = |reader: &Value| {
        let at = &reader["position"];
        let (file, offset) = (at["file"].as_str()?.to_owned(), at["position"].as_u64()?);
        let files = crate::common::compare::binary_logs(&source);
        let sizes = files.iter().skip_while(|name| **name != file);
        let size = |name: &String| daemon.timeline_dir().join(name).metadata().unwrap().len();
        Some(sizes.map(size).sum::<u64>() - offset)
    };
    daemon.wait_until_status(
        |status| {
            let reader = &status["serve"]["readers"][0];
            let behind = reader["behind_bytes"].as_u64();
            behind.is_some_and(|behind| behind > 8_000_000)
                && behind == lacks(reader)
                && reader["behind_seconds"].as_u64() > Some(0)
                && reader["caught_up"] == false
        },
        PATIENCE,
    );
    kill_process(pid, Signal::CONT).unwrap();
    daemon.wait_until_status(
        |status| {
            let reader = &status["serve"]["readers"][0];
            reader["behind_bytes"] == 0 && reader["behind_seconds"] == 0
        },
        PATIENCE,
    );
    reader.kill().unwrap();
    reader.wait().unwrap();
}

/// MariaDB encrypts by itself, and checks a certificate that nobody has signed by the password.
#[test]
fn mariadb_needs_no_word_about_tls() {
    let source = Server::start("mariadb-11.8", &["--server-id=1"]);
    let replica = Server::start("mariadb-11.8", &["--server-id=2"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT)");
    let flags = ["--serve", "127.0.0.1:0", "--serve-require-tls", "true"];
    let daemon = Daemon::start_on(&account_url(&source), &flags);
    daemon.wait_caught_up(&source);
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    replica
        .sql("STOP SLAVE; CHANGE MASTER TO MASTER_SSL = 1, MASTER_SSL_VERIFY_SERVER_CERT = 1; START SLAVE");
    source.sql("INSERT INTO d.t VALUES (1)");
    wait_applied(&replica, || binlog_end(&source), &daemon);
    assert_eq!(replica.sql("SELECT COUNT(*) FROM d.t").trim(), "1");
}

/// Connections that never log in, more than there is room for, keep nobody out; wrong passwords do, for a minute.
#[test]
fn strangers_keep_nobody_out() {
    let source = Server::start("mysql-9.7", &["--server-id=1"]);
    make_account(&source);
    let flags = ["--serve", "127.0.0.1:0", "--serve-max-connections", "8", "--serve-max-failed-logins", "5"];
    let daemon = Daemon::start_on(&account_url(&source), &flags);
    daemon.wait_caught_up(&source);
    let port = serve_port(&daemon);
    let crowd: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("it is accepted")).collect();
    let displaced = "binlogd_serve_refused_connections_total{reason=\"displaced\"}";
    let too_many = "binlogd_serve_refused_connections_total{reason=\"too_many_connections\"}";
    wait_within(PATIENCE, "those without a login are sent away", || {
        let refused = metric(&daemon, displaced).unwrap_or(0) + metric(&daemon, too_many).unwrap_or(0);
        refused >= 36
    });
    let let_in = || {
        let output = client(&source, "MYSQL", port, &["-e", "SELECT @@version"]);
        output.status.success()
    };
    assert!(let_in(), "{}", daemon.log());
    drop(crowd);
    // A client that demands compression leaves at the greeting, which is no guess either.
    let packed = client(&source, "MYSQL", port, &["--compression-algorithms=zstd", "-e", "SELECT 1"]);
    assert!(String::from_utf8_lossy(&packed.stderr).contains("compression algorithm"), "{packed:?}");
    for _ in 0..5 {
        let wrong = client(&source, "MYSQL", port, &["--password=wrong", "-e", "SELECT 1"]);
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("1045"), "{wrong:?}");
    }
    let blocked = client(&source, "MYSQL", port, &["-e", "SELECT 1"]);
    assert!(String::from_utf8_lossy(&blocked.stderr).contains("1129"), "{blocked:?}");
    assert_eq!(metric(&daemon, "binlogd_serve_failed_logins_total"), Some(5));
    assert_eq!(metric(&daemon, "binlogd_serve_refused_connections_total{reason=\"blocked\"}"), Some(1));
    let log = daemon.log();
    for words in [
        "it had not logged in when others wanted to",
        "access denied for user",
        "5 logins from this address",
        "is blocked",
    ] {
        assert!(log.contains(words), "no {words:?} in\n{log}");
    }
}

/// What load balancers send to see whether a server is there: nothing at all, or what HAProxy sends for `option mysql-check user`
/// (`pre-41`, `post-41`, `post-80`), which offers no password (`mysql40_req` and its successors in HAProxy's `src/tcpcheck.c`).
fn load_balancer_looks(port: u16, probe: usize) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let post_41 = |capabilities: [u8; 4], plugin: &[u8]| {
        let settings = [&[0, 0x80, 0, 1, 0x21][..], &[0; 23]].concat();
        [&capabilities[..], &settings, b"repl\0\0", plugin].concat()
    };
    let message = match probe % 5 {
        0 => return,
        1 => Vec::new(),
        2 => [&[0, 0x80, 0, 0, 1][..], b"repl\0\0"].concat(),
        3 => post_41([0, 0x82, 0, 0], b""),
        _ => post_41([0, 0x82, 8, 0], b"mysql_native_password\0"),
    };
    // The greeting, then the login and COM_QUIT in one.
    assert!(stream.read(&mut [0; 256]).unwrap() > 0);
    if !message.is_empty() {
        let length = [message.len() as u8, 0, 0, 1];
        stream.write_all(&[&length[..], &message, &[1, 0, 0, 0, 1]].concat()).unwrap();
        let _ = stream.read(&mut [0; 256]); // What it is told, or the end.
    }
}

/// A client of 5.7 encrypts where it is offered, and probes of load balancers are no guesses.
#[test]
fn an_old_client_takes_the_offer_of_tls() {
    let source = Server::start("mysql-5.7.22", &["--server-id=1"]);
    make_account(&source);
    let flags = ["--serve", "127.0.0.1:0", "--serve-max-failed-logins", "2"];
    let daemon = Daemon::start_on(&account_url(&source), &flags);
    daemon.wait_caught_up(&source);
    (0..20).for_each(|probe| load_balancer_looks(serve_port(&daemon), probe));
    let output = client(&source, "MYSQL", serve_port(&daemon), &["-e", "SELECT @@version"]);
    assert!(output.status.success(), "{output:?}\n{}", daemon.log());
}

/// Readers of a binlogd that may open few files: no more are let in than leave the source its descriptors, whoever else comes.
#[test]
fn readers_never_take_the_descriptors_of_a_source() {
    const LIMIT: usize = 138;
    let source = Server::start("mysql-9.7", &["--server-id=1"]);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)");
    let few = ["sh", "-c", &format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"")].map(str::to_owned).to_vec();
    let launch = Launch { wrapper: few, ..Launch::default() };
    let (folder, results) = (temporary_folder(), tempfile::tempdir().unwrap());
    let data_dir = folder.path().join("data");
    let daemon =
        Daemon::start_with(launch, folder, &data_dir, &account_url(&source), &["--serve", "127.0.0.1:0"]);
    daemon.wait_caught_up(&source);
    daemon.wait_log("at most 3 readers are served, so that none takes what the sources need", PATIENCE);
    assert_eq!(daemon.status()["serve"]["max_connections"], 3);
    let port = serve_port(&daemon);
    let first = crate::common::compare::binary_logs(&source)[0].clone();
    let mut readers: Vec<_> = (0..6)
        .map(|number| {
            let mut command = Command::new(source.env("MYSQLBINLOG"));
            command.args(["--host=127.0.0.1", "--user=repl", "--password=secret", "--ssl-mode=REQUIRED"]);
            command.args([format!("--port={port}"), format!("--connection-server-id={}", 100 + number)]);
            command.arg(format!("--result-file={}/{number}-", results.path().display()));
            command.args(["--read-from-remote-server", "--raw", "--stop-never", &first]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let reading = "binlogd_readers{source=\"default\"}";
    wait_within(PATIENCE, "as many read as may", || metric(&daemon, reading) == Some(3));
    let _crowd: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("it is accepted")).collect();
    let mut most = 0;
    for _ in 0..20 {
        source.sql("INSERT INTO d.t (v) VALUES (REPEAT('x', 10000)); FLUSH BINARY LOGS");
        let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap().count();
        most = most.max(open);
    }
    daemon.wait_caught_up(&source);
    assert_eq!(metric(&daemon, reading), Some(3));
    for reader in &mut readers {
        // Those that were refused have ended by themselves.
        let _ = reader.kill();
        reader.wait().unwrap();
    }
    assert!(most + 10 < LIMIT, "{most} descriptors are open, of {LIMIT}");
    assert_eq!(daemon.source()["counters"]["reconnects"], 0, "{}", daemon.log());
    assert!(!daemon.log().contains("Too many open files"), "{}", daemon.log());
}

/// A MySQL and a MariaDB at one port: readers of the one that the greeting is not of are told what to do.
#[test]
fn two_kinds_of_servers_are_not_served_at_one_port() {
    let mysql = Server::start("mysql-9.7", &["--server-id=1"]);
    let mariadb = Server::start("mariadb-11.8", &["--server-id=1"]);
    let folder = tempfile::tempdir().unwrap();
    let mut text =
        "data_dir = 'data'\n[admin]\nlisten = '127.0.0.1:0'\n[serve]\nlisten = '127.0.0.1:0'\n".to_owned();
    for (name, server) in [("a", &mysql), ("b", &mariadb)] {
        make_account(server);
        let port = server.port();
        let user = if name == "a" { "repl" } else { "other" };
        text += &format!(
            "[[serve.user]]\nname = '{user}'\npassword = 'secret'\nsources = ['{name}']\n\
             [[source]]\nname = '{name}'\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\n"
        );
    }
    let config = folder.path().join("b.toml");
    std::fs::write(&config, text).unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["run", "--config"])
        .arg(&config)
        .env("NO_COLOR", "1")
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap();
    wait_within(PATIENCE, "both are received", || log().matches("receiving from").count() == 2);
    let log_text = log();
    let served = log_text.lines().find(|line| line.contains("log readers are served")).expect("it serves");
    let port: u16 = served.rsplit(':').next().unwrap().trim().parse().unwrap();
    // The greeting is that of "b", whose user comes first by name.
    // In the log one line in a while tells why a network is not let in: perhaps first that nothing is held yet.
    let told = "a reader was not let in: user \"repl\": this port greets as";
    wait_within(PATIENCE, "a reader of the other kind is refused, and the log says so", || {
        let output = client(&mysql, "MYSQL", port, &["-e", "SELECT 1"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.contains("MySQL and MariaDB cannot be served at one port") && log().contains(told)
    });
    let other = client(&mariadb, "MYSQL", port, &["--user=other", "-e", "SELECT 1"]);
    assert!(other.status.success(), "{other:?}\n{}", log());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

//! What an operator is told when a source cannot be copied: one clear line, the same in the status, nothing
//! that should not be seen; and that binlogd goes on by itself once the cause is gone.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::Server;
use crate::common::daemon::{Daemon, run_command, url, wait_child};
use crate::common::semi_sync::SemiSync;
use serde_json::Value;

/// Quick attempts, and still few enough to be counted.
const QUICK: [&str; 2] = ["--backoff-max=300ms", "--fsync-interval=50ms"];
/// Longest time until an attempt has failed or succeeded.
const ATTEMPT_MAX: Duration = Duration::from_secs(20);
/// No message is longer than an operator reads.
const MESSAGE_BYTES_MAX: usize = 500;
/// As it stands in a URL; the sign in it is written %25 there.
const PASSWORD: &str = "Sesame-31337%";
const PASSWORD_IN_URL: &str = "Sesame-31337%25";
/// Part of the password that no encoding changes.
const PASSWORD_PART: &str = "Sesame";

/// A URL with a password for an account of that server.
fn url_with_password(server: &Server, user: &str) -> String {
    format!("mysql://{user}:{PASSWORD_IN_URL}@{}:{}", server.env("HOST"), server.port())
}

fn with_quick<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    QUICK.iter().copied().chain(flags.iter().copied()).collect()
}

/// Starts binlogd, waits until it has failed a few times, and checks how it says so: every word of `words` in one line
/// for all attempts and in the status, and the state.
#[track_caller]
fn fails(url: &str, flags: &[&str], words: &[&str]) -> Daemon {
    let daemon = Daemon::start_on(url, &with_quick(flags));
    let source =
        daemon.wait_until(|source| source["counters"]["reconnects"].as_u64() >= Some(2), ATTEMPT_MAX);
    assert!(source["state"] == "backing off" || source["state"] == "connecting", "{source:#}");
    let last_error = source["last_error"]["message"].as_str().unwrap_or_default();
    for word in words {
        assert!(last_error.contains(word), "the status does not say {word:?}: {last_error}");
    }
    let log = daemon.log();
    let problems: Vec<&str> = problems(&log);
    for line in &problems {
        assert!(
            words.iter().all(|word| line.contains(word)),
            "another problem, or not all of {words:?}: {line}"
        );
        assert!(line.contains("next attempt in "), "{line}");
        assert!(line.len() < MESSAGE_BYTES_MAX, "too long: {line}");
    }
    assert_eq!(problems.len(), 1, "an error that goes on is said once\n{log}");
    assert_health(&daemon, 503);
    assert_discreet(&daemon);
    daemon
}

/// Lines of the log that tell of a problem.
fn problems(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains(" WARN ") || line.contains(" ERROR ")).collect()
}

/// No password and no trace of the program's inside anywhere that others can see.
#[track_caller]
fn assert_discreet(daemon: &Daemon) {
    let log = daemon.log();
    for inside in ["panicked", "backtrace", "RUST_", ".rs:", "Error {", "Some("] {
        assert!(!log.contains(inside), "{inside:?} in the log\n{log}");
    }
    let command = std::fs::read(format!("/proc/{}/cmdline", daemon.pid())).expect("a running process");
    let shown = [
        ("the log", log),
        ("the process list", String::from_utf8_lossy(&command).into_owned()),
        ("/status", get(daemon, "/status").1),
        ("/metrics", get(daemon, "/metrics").1),
        ("/healthz", get(daemon, "/healthz").1),
    ];
    for (place, text) in &shown {
        assert!(!text.contains(PASSWORD_PART), "the password is in {place}: {text}");
    }
    assert_no_password_in(&daemon.data_dir());
}

#[track_caller]
fn assert_no_password_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_no_password_in(&path);
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            let found = bytes.windows(PASSWORD_PART.len()).any(|window| window == PASSWORD_PART.as_bytes());
            assert!(!found, "the password is in {}", path.display());
        }
    }
}

fn get(daemon: &Daemon, path: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("http://{}{path}", daemon.admin_address())).call().expect("an answer");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("text"))
}

#[track_caller]
fn assert_health(daemon: &Daemon, code: u16) {
    let (status, body) = get(daemon, "/healthz");
    assert_eq!(status, code, "{body}");
    assert!(code == 200 || body.contains("default"), "it does not name the source: {body}");
}

fn is_receiving(source: &Value) -> bool {
    source["state"] == "receiving"
}

#[test]
fn accounts_and_addresses() {
    let server = Server::start("mysql-9.7", &[]);
    server.sql(&format!(
        "CREATE USER wrong IDENTIFIED BY 'another'; CREATE USER plain IDENTIFIED BY '{PASSWORD}'"
    ));

    let denied = ["the server denies access", "'wrong'@'127.0.0.1' (using password: YES)"];
    fails(&url_with_password(&server, "wrong"), &[], &denied);
    fails(
        "mysql://root@no-such-host.invalid:3306",
        &[],
        &["cannot resolve host \"no-such-host.invalid\"", "check the name"],
    );
    // The server's own second port, which nothing listens on, would race; port 1 is nobody's.
    fails("mysql://root@127.0.0.1:1", &[], &["cannot connect to 127.0.0.1:1: Connection refused"]);

    let privilege = ["the account may not read the binary log", "GRANT REPLICATION SLAVE ON *.* TO 'plain'@"];
    let daemon = fails(&url_with_password(&server, "plain"), &[], &privilege);
    server.sql("GRANT REPLICATION SLAVE ON *.* TO plain");
    daemon.wait_until(is_receiving, ATTEMPT_MAX);
    daemon.wait_caught_up(&server);
    assert_health(&daemon, 200);
    assert_discreet(&daemon);
    drop(daemon);

    let client = ["as start = \"latest\" must", "GRANT REPLICATION CLIENT ON *.* TO 'plain'@"];
    fails(&url_with_password(&server, "plain"), &["--start=latest"], &client);
}

#[test]
fn tls_and_server_id() {
    let server = Server::start("mysql-9.7", &[]);
    let folder = tempfile::tempdir().unwrap();
    let stranger = folder.path().join("ca.pem");
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(&stranger, certificate.cert.pem()).unwrap();
    let (root, ca) = (url(&server), format!("--tls-ca={}", stranger.display()));
    fails(&root, &["--tls=verify-ca", &ca], &["the server's certificate is not trusted"]);
    let known = format!("--tls-ca={}", server.env("SSL_CA"));
    let daemon = Daemon::start_on(&root, &["--tls=verify-full", &known]);
    let source = daemon.wait_until(is_receiving, ATTEMPT_MAX);
    assert_eq!(source["tls"], "TLSv1.3");

    let same_id = format!("--server-id={}", server.port());
    let words = format!("server_id {} is the source's own", server.port());
    fails(&root, &[&same_id], &[&words, "another server_id"]);
}

#[test]
fn sources_without_a_binary_log_or_tls() {
    for name in ["mysql-9.7", "mariadb-11.8"] {
        let server = Server::start(name, &["--skip-log-bin"]);
        fails(&url(&server), &[], &["the source writes no binary log (log_bin is OFF)", "--log-bin"]);
    }
    let server = Server::start("mysql-5.7.22", &[]);
    fails(&url(&server), &["--tls=required"], &["the server offers no TLS"]);
}

#[test]
fn accounts_of_every_method_are_used_without_a_trace() {
    let cases = [
        ("mysql-9.7", "caching_sha2_password BY", "--tls=required"),
        ("mysql-9.7", "caching_sha2_password BY", "--tls=disabled"),
        ("mysql-5.7.22", "mysql_native_password BY", "--tls=preferred"),
        ("mariadb-11.8", "mysql_native_password USING PASSWORD", "--tls=preferred"),
        ("mariadb-11.8", "ed25519 USING PASSWORD", "--tls=disabled"),
        ("mariadb-11.8", "parsec USING PASSWORD", "--tls=disabled"),
    ];
    let mut servers: Vec<Server> = Vec::new();
    for (number, (name, method, tls)) in cases.into_iter().enumerate() {
        if servers.last().is_none_or(|server| server.name() != name) {
            let plugins: &[&str] = match name {
                "mariadb-11.8" => &["--plugin-load-add=auth_ed25519", "--plugin-load-add=auth_parsec"],
                _ => &[],
            };
            servers.push(Server::start(name, plugins));
        }
        let server = servers.last().expect("one was started");
        let user = format!("u{number}");
        let secret =
            if method.ends_with("PASSWORD") { format!("('{PASSWORD}')") } else { format!("'{PASSWORD}'") };
        let statements = format!(
            "SET SESSION sql_log_bin = 0; CREATE USER {user} IDENTIFIED {} {method} {secret}; GRANT REPLICATION SLAVE ON *.* TO {user}",
            if name.starts_with("mariadb") { "VIA" } else { "WITH" }
        );
        server.sql(&statements);
        println!("{name}: {method} {tls}");
        let daemon = Daemon::start_on(&url_with_password(server, &user), &with_quick(&[tls]));
        daemon.wait_caught_up(server);
        assert_discreet(&daemon);
    }
}

#[test]
fn a_folder_in_use_is_refused() {
    let server = Server::start("mysql-9.7", &[]);
    let daemon = Daemon::start(&server, &[]);
    daemon.wait_until(is_receiving, ATTEMPT_MAX);
    let mut second = run_command(&url(&server), &daemon.data_dir(), &[]);
    let mut child = second.stderr(Stdio::piped()).spawn().expect("binlogd starts");
    let status = wait_child(&mut child, ATTEMPT_MAX).expect("it ends by itself");
    let said = std::io::read_to_string(child.stderr.take().expect("a pipe")).expect("text");
    assert_eq!(status.code(), Some(1), "{said}");
    let holder = format!("in use by another binlogd (process {})", daemon.pid());
    let errors: Vec<&str> =
        said.lines().filter(|line| line.contains("error") || line.contains("ERROR")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert!(errors[0].starts_with("error: source default: ") && errors[0].contains(&holder), "{said}");
    // The first one is as it was, and still found by its folder.
    assert!(is_receiving(&daemon.source()));
    server.sql("CREATE DATABASE d");
    daemon.wait_caught_up(&server);
}

#[test]
fn two_receivers_with_one_identity_are_told_and_do_not_race() {
    let server = Server::start("mysql-9.7", &[]);
    let flags = ["--backoff-max=1s"];
    let first = Daemon::start(&server, &flags);
    first.wait_until(is_receiving, ATTEMPT_MAX);
    // A copy of a data folder has the identity of the folder that it was copied from.
    let mut second = Daemon::start(&server, &flags);
    second.wait_until(is_receiving, ATTEMPT_MAX);
    second.terminate();
    let identity = |daemon: &Daemon| daemon.data_dir().join("default/replica.toml");
    std::fs::copy(identity(&first), identity(&second)).expect("a file to copy");
    second.restart(&flags);
    let evicted = |source: &Value| {
        let message = source["last_error"]["message"].as_str().unwrap_or_default();
        message.contains("another client connected with the same server_id or replica UUID")
    };
    first.wait_until(evicted, ATTEMPT_MAX);
    std::thread::sleep(Duration::from_secs(3));
    let attempts = |daemon: &Daemon| daemon.source()["counters"]["reconnects"].as_u64().expect("a number");
    let both = attempts(&first) + attempts(&second);
    assert!((1..=12).contains(&both), "{both} attempts in 3 s\n{}\n{}", first.log(), second.log());
    assert_discreet(&first);
}

/// MariaDB ends the older of two dumps with one server_id, and with semi-sync it hangs at that, commits and all. So the one
/// that comes second takes another one, and says so where its account may see who is registered.
#[test]
fn a_second_receiver_with_a_server_id_disturbs_no_mariadb() {
    let server = Server::start("mariadb-11.8", &[]);
    server.sql(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (v INT); CREATE USER plain IDENTIFIED BY '{PASSWORD}'; \
         GRANT REPLICATION SLAVE ON *.* TO plain"
    ));
    let flags = ["--server-id=77", "--heartbeat-period=1s", "--net-read-timeout=3s"];
    for (url, sees) in [(url_with_password(&server, "plain"), false), (url(&server), true)] {
        let first = Daemon::start_on(&url, &flags);
        first.wait_until(is_receiving, ATTEMPT_MAX);
        let semi_sync = SemiSync::enable(&server, Duration::from_secs(600));
        semi_sync.wait_until(|counters| counters.clients == 1);
        let second = Daemon::start_on(&url, &flags);
        second.wait_until(is_receiving, ATTEMPT_MAX);
        semi_sync.wait_until(|counters| counters.clients == 2);
        server.sql("INSERT INTO d.t VALUES (1)");
        assert!(second.log().contains("coming with another server_id"), "{}", second.log());
        if sees {
            let source = second.wait_until(|source| source["server_id_rival"].is_string(), ATTEMPT_MAX);
            let rival = source["server_id_rival"].as_str().unwrap();
            assert!(rival.contains("is registered with 77, ours"), "{rival}");
        }
        for daemon in [&first, &second] {
            let source = daemon.source();
            assert!(is_receiving(&source) && source["counters"]["reconnects"] == 0, "{}", daemon.log());
        }
        assert!(first.source()["server_id_rival"].is_null(), "it has the number for itself");
        // What is left of the two must not be taken for a third.
        drop((first, second));
        semi_sync.set_enabled(false);
        let none = "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Binlog Dump'";
        let deadline = std::time::Instant::now() + ATTEMPT_MAX;
        while server.sql(none).trim() != "0" {
            assert!(std::time::Instant::now() < deadline, "dumps go on");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

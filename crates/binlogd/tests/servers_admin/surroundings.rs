//! What the surroundings do: disks that hang, limits of the process, passwords that change, accounts that are refused,
//! a source whose `gtid_mode` is changed. Each with the built binary and a real server.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use wire::{Connection, TlsMode, WireError};

use crate::common::compare::{AfterCrash, assert_identical};
use crate::common::daemon::{Daemon, Launch, temporary_folder, url};
use crate::common::ledger::{self, Ledger, copied_entries};
use crate::common::semi_sync::SemiSync;
use crate::common::volume::{Kind, Volume};
use crate::common::{Server, connect_options};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// ER_NO_SUCH_THREAD of both servers.
const NO_SUCH_THREAD: u16 = 1094;
/// Nothing is acknowledged when no client has got an answer for so long.
const STANDSTILL: Duration = Duration::from_secs(1);
const VOLUME_BYTES: u64 = 160 << 20;
const WRITERS: usize = 4;
const HANGS: &str = "disk does not answer";

/// How the one source is, in the words of `/status`.
fn is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |source| source["state"] == state
}

fn last_error(source: &Value) -> &str {
    source["last_error"]["message"].as_str().unwrap_or_default()
}

/// Code and body of an answer over HTTP.
fn get(daemon: &Daemon, path: &str) -> (u16, String) {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("http://{}{path}", daemon.admin_address())).call().expect("an answer");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("text"))
}

#[test]
fn a_disk_that_does_not_answer_is_told_and_given_up_at_the_end() {
    let Some(volume) = Volume::mount(Kind::Ext4, VOLUME_BYTES) else { return };
    let server = Server::start("mysql-9.7", &[]);
    ledger::create_table(&server);
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let mut daemon = Daemon::start_in(&volume.path().join("data"), &url(&server), &[]);
    semi_sync.wait_attached();
    let ledger = Ledger::start(&server, WRITERS);
    ledger.wait_progress(&ledger.committed());

    let frozen = volume.freeze();
    let source = daemon.wait_until(is(HANGS), PATIENCE);
    let committed = ledger.wait_standstill(STANDSTILL);
    let detail = source["state_detail"].as_str().unwrap_or_default();
    assert!(
        detail.contains("has been under way for ") && detail.contains("nothing is acknowledged"),
        "{detail}"
    );
    assert_eq!(source["semi_sync"]["active"], false, "{source:#}");
    assert_eq!(source["seconds_behind"], Value::Null);
    assert!(last_error(&source).starts_with("the disk does not answer: "), "{source:#}");
    let (code, body) = get(&daemon, "/healthz");
    assert!(code == 503 && body.contains(HANGS), "{code} {body}");
    let (_, metrics) = get(&daemon, "/metrics");
    for line in [
        "binlogd_source_up{source=\"default\"} 0",
        "binlogd_source_state{source=\"default\",state=\"disk does not answer\"} 1",
        "binlogd_semi_sync_active{source=\"default\"} 0",
    ] {
        assert!(metrics.contains(line), "no {line}\n{metrics}");
    }
    assert!(daemon.log().contains("ERROR the disk does not answer: a "), "{}", daemon.log());
    drop(frozen);
    ledger.wait_progress(&committed);
    daemon.wait_until(is("receiving"), PATIENCE);
    assert!(daemon.log().contains("the disk answers again"), "{}", daemon.log());
    // The logs may have been reset meanwhile, which tells a replica nothing.
    assert!(daemon.log().contains("a new session compares the place"), "{}", daemon.log());
    // What arrived meanwhile was only not read.
    assert!(!daemon.log().contains("nothing arrives"), "{}", daemon.log());

    let frozen = volume.freeze();
    daemon.wait_until(is(HANGS), PATIENCE);
    let pid = Pid::from_raw(daemon.pid().cast_signed()).expect("a process id");
    kill_process(pid, Signal::TERM).expect("a child of ours");
    let given_up = "Whether the disk keeps what came after that is not known";
    daemon.wait_log(given_up, PATIENCE);
    daemon.wait_log("error: stopped without finishing", PATIENCE);
    // The kernel ends nobody who waits for a frozen file system.
    let committed = ledger.wait_standstill(STANDSTILL);
    drop(frozen);
    assert_eq!(daemon.wait_end(PATIENCE).code(), Some(1), "{}", daemon.log());
    daemon.restart(&[]);
    ledger.wait_progress(&committed);

    let committed = ledger.finish();
    daemon.wait_caught_up(&server);
    copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(semi_sync.counters().no_tx, 0, "commits that went without acknowledgement prove nothing");
}

#[test]
fn a_limit_of_the_size_of_files_is_survived() {
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT, b MEDIUMTEXT)");
    let folder = temporary_folder();
    let data_dir = folder.path().join("data");
    let wrapper = ["prlimit", "--fsize=1000000:unlimited"].map(str::to_owned).to_vec();
    let launch = Launch { wrapper, ..Launch::default() };
    let daemon = Daemon::start_with(launch, folder, &data_dir, &url(&server), &[]);
    daemon.wait_caught_up(&server);
    server.sql("INSERT INTO d.t VALUES (1, REPEAT('x', 2000000))");
    let source = daemon.wait_until(is("waiting for disk space"), PATIENCE);
    let error = last_error(&source);
    assert!(error.contains("cannot write to ") && error.contains("File too large"), "{error}");
    assert!(error.contains("RLIMIT_FSIZE"), "{error}");
    let mut raise = Command::new("prlimit");
    raise.args(["--pid", &daemon.pid().to_string(), "--fsize=unlimited:unlimited"]);
    assert!(raise.status().expect("prlimit").success());
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
}

fn write(path: &Path, text: &str) {
    let mut file = std::fs::File::create(path).expect("a file");
    file.write_all(text.as_bytes()).expect("a written file");
}

/// Ends binlogd's dump, as an operator would.
fn end_dump(server: &Server) {
    let list = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";
    let mut session =
        Connection::connect(&connect_options(server, "root", "", TlsMode::Preferred)).expect("a session");
    for id in server.sql(list).lines() {
        // A short dump that only looks may have ended by itself.
        match session.query(&format!("KILL {id}")) {
            Ok(_) | Err(WireError::Server { code: NO_SUCH_THREAD, .. }) => {}
            Err(error) => panic!("KILL {id}: {error}"),
        }
    }
}

/// What `binlogd doctor` says of an account, with its exit code.
fn doctor(url: &str, flags: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args(["doctor", "--source", url]).args(flags).env_remove("BINLOGD_PASSWORD").stdin(Stdio::null());
    let output = command.output().expect("binlogd runs");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn a_changed_password_counts_at_the_next_connection(server: &Server, identified: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    write(&file, "first");
    server.sql(&format!("CREATE USER p {identified} 'first'; GRANT REPLICATION SLAVE ON *.* TO p"));
    let flag = format!("--password-file={}", file.display());
    let daemon = Daemon::start_on(&format!("mysql://p@127.0.0.1:{}", server.port()), &[&flag]);
    daemon.wait_caught_up(server);
    server.sql("ALTER USER p IDENTIFIED BY 'second'");
    end_dump(server);
    let denied = |source: &Value| last_error(source).contains("the server denies access");
    let source = daemon.wait_until(denied, PATIENCE);
    assert!(last_error(&source).contains("the password is wrong"), "{source:#}");
    assert!(
        daemon.log().contains("ERROR the server denies access"),
        "a denied password is an error: {}",
        daemon.log()
    );
    write(&file, "second\n");
    daemon.wait_until(is("receiving"), PATIENCE);
    // A file that is gone must not be what keeps binlogd away, as long as the password of the start is right.
    server.sql("ALTER USER p IDENTIFIED BY 'first'");
    std::fs::remove_file(&file).expect("the password file");
    let before = daemon.source()["counters"]["reconnects"].clone();
    end_dump(server);
    daemon
        .wait_until(|source| source["counters"]["reconnects"] != before && is("receiving")(source), PATIENCE);
    assert!(daemon.log().contains("using the password that it held at the start"), "{}", daemon.log());
    server.sql("CREATE DATABASE d");
    daemon.wait_caught_up(server);
}

fn refused_logins_get_hints(server: &Server, cases: &[(&str, &str)]) {
    for (number, (made_by, hint)) in cases.iter().enumerate() {
        let user = format!("u{number}");
        server
            .sql(&made_by.replace("USER u", &format!("USER {user}")).replace("TO u", &format!("TO {user}")));
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        write(&file, "pw");
        let url = format!("mysql://{user}@127.0.0.1:{}", server.port());
        let flag = format!("--password-file={}", file.display());
        let (code, said) = doctor(&url, &[&flag]);
        assert!(code == Some(1) && said.contains(hint), "{made_by}: no {hint:?} in exit {code:?}\n{said}");
    }
    let (code, said) = doctor(&format!("mysql://u0@127.0.0.1:{}", server.port()), &[]);
    assert!(code == Some(1) && said.contains("password_file") || said.contains("locked"), "{said}");
}

#[test]
fn passwords_change_and_refused_logins_get_hints_on_mysql() {
    let server = Server::start("mysql-9.7", &[]);
    a_changed_password_counts_at_the_next_connection(&server, "IDENTIFIED BY");
    refused_logins_get_hints(
        &server,
        &[
            ("CREATE USER u IDENTIFIED BY 'pw' ACCOUNT LOCK", "ACCOUNT UNLOCK"),
            ("CREATE USER u IDENTIFIED BY 'pw' REQUIRE X509", "a client certificate"),
            ("CREATE USER u IDENTIFIED BY 'pw' PASSWORD EXPIRE", "the password has expired"),
            ("CREATE USER u@'10.9.8.7' IDENTIFIED BY 'pw'", "no such account for this host"),
            ("CREATE USER u IDENTIFIED BY 'other'", "the password is wrong"),
            (
                "CREATE USER u IDENTIFIED BY 'pw'; GRANT REPLICATION SLAVE ON *.* TO u; REVOKE ALL, GRANT OPTION FROM u5",
                "GRANT REPLICATION SLAVE ON *.* TO",
            ),
        ],
    );
}

#[test]
fn passwords_change_and_refused_logins_get_hints_on_mariadb() {
    let server = Server::start("mariadb-11.8", &[]);
    a_changed_password_counts_at_the_next_connection(&server, "IDENTIFIED BY");
    refused_logins_get_hints(
        &server,
        &[
            ("CREATE USER u IDENTIFIED BY 'pw' ACCOUNT LOCK", "ACCOUNT UNLOCK"),
            ("CREATE USER u IDENTIFIED BY 'pw' REQUIRE X509", "a client certificate"),
            ("CREATE USER u IDENTIFIED BY 'pw' PASSWORD EXPIRE", "the password has expired"),
            ("CREATE USER u IDENTIFIED BY 'other'", "the password is wrong"),
        ],
    );
}

/// `gtid_mode` by its steps, each of which begins another file.
fn set_gtid_mode(server: &Server, modes: &[&str]) {
    for mode in modes {
        server.sql(&format!("SET GLOBAL gtid_mode = {mode}"));
    }
}

/// A source with `gtid_mode = ON` sends transactions without a GTID to nobody, so that the last one of the copy cannot be asked
/// for again to be compared.
#[test]
fn gtid_mode_is_switched_on_while_binlogd_is_away() {
    const ON: [&str; 3] = ["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"];
    const OFF: [&str; 3] = ["ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"];
    let server = Server::start("mysql-9.7", &["--gtid-mode=OFF", "--enforce-gtid-consistency=ON"]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1)");
    let mut daemon = Daemon::start(&server, &[]);
    daemon.wait_caught_up(&server);
    let data_dir = format!("--data-dir={}", daemon.data_dir().display());

    daemon.terminate();
    set_gtid_mode(&server, &ON);
    server.sql("INSERT INTO d.t VALUES (2)");
    let (_, said) = doctor(&url(&server), &[&data_dir]);
    assert!(said.contains("the copy can go on where it ends"), "{said}");
    daemon.restart(&[]);
    daemon.wait_caught_up(&server);
    assert!(daemon.log().contains("does not send again to be compared"), "{}", daemon.log());
    assert_identical(&server, &daemon, AfterCrash::Identical);

    // Now the copy lacks one without a GTID: only the operator can have it sent.
    daemon.terminate();
    set_gtid_mode(&server, &OFF);
    server.sql("INSERT INTO d.t VALUES (3)");
    set_gtid_mode(&server, &ON);
    server.sql("INSERT INTO d.t VALUES (4)");
    daemon.restart(&[]);
    let is_told = |source: &Value| last_error(source).contains("SET GLOBAL gtid_mode = ON_PERMISSIVE");
    daemon.wait_until(is_told, PATIENCE);
    let (code, said) = doctor(&url(&server), &[&data_dir]);
    assert!(
        code == Some(1) && said.contains("error    logs: the source does not send what follows"),
        "{said}"
    );
    set_gtid_mode(&server, &["ON_PERMISSIVE"]);
    daemon.wait_caught_up(&server);
    set_gtid_mode(&server, &["ON"]);
    server.sql("INSERT INTO d.t VALUES (5)");
    daemon.wait_caught_up(&server);
    assert_identical(&server, &daemon, AfterCrash::Identical);
    assert_eq!(daemon.timeline_dirs().len(), 1, "the history is one");
}
